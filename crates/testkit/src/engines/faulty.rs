//! An engine that fails when it is told to.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_store::{Error, Result, Store};
use tokio::sync::watch;

use super::forward::{Method, Pass, over};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and the answer is an error.
    Before,
    /// It is done, but the answer is an error.
    After,
    /// Nothing is done, and no answer ever comes.
    HangBefore,
    /// It is done, but no answer ever comes.
    HangAfter,
}

/// What is called before a call is made.
type Hook = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What is to happen to calls of one method.
#[derive(Default)]
struct Plan {
    /// `None` for a call that is left alone.
    next: VecDeque<Option<Fault>>,
    always: Option<Fault>,
    hooks: Vec<Hook>,
}

/// Makes calls of an engine fail by a script.
///
/// The error is always [`Error::Io`]: from it a caller cannot tell whether the call was done.
pub struct Faulty {
    plans: Mutex<HashMap<&'static str, Plan>>,
    /// How many calls hang or hung.
    hung: watch::Sender<usize>,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.left();
        f.debug_struct("Faulty").field("left", &left).finish()
    }
}

impl Faulty {
    /// The same store, which fails when it is told to.
    ///
    /// ```
    /// use throughline_store::{Error, Store, TenantScope};
    /// use throughline_testkit::engines::{Fault, Faulty};
    /// use throughline_testkit::record::block_on;
    ///
    /// block_on(async {
    ///     let (store, faulty) = Faulty::over(&Store::open("memory:").await.unwrap());
    ///     faulty.next("orphans", Fault::Before);
    ///     assert!(matches!(store.orphans(1).await, Err(Error::Io { .. })));
    ///     assert_eq!(store.orphans(1).await.unwrap(), []);
    /// });
    /// ```
    pub fn over(store: &Store) -> (Store, Arc<Self>) {
        let faulty = Self {
            plans: Mutex::new(HashMap::new()),
            hung: watch::Sender::new(0),
        };
        over(store, faulty)
    }

    /// Let the next call of a method fail, or the one after those that were told so before.
    ///
    /// # Panics
    ///
    /// When no method has the name. So do the others here.
    pub fn next(&self, method: &str, fault: Fault) {
        self.times(method, 1, fault);
    }

    /// Let as many calls of a method fail.
    pub fn times(&self, method: &str, times: usize, fault: Fault) {
        self.plan(method, |plan| {
            plan.next.extend(std::iter::repeat_n(Some(fault), times));
        });
    }

    /// Leave as many calls of a method alone before what it is told next.
    pub fn skip(&self, method: &str, times: usize) {
        self.plan(method, |plan| {
            plan.next.extend(std::iter::repeat_n(None, times));
        });
    }

    /// Let every call of a method fail that was told nothing else, until it is healed.
    pub fn always(&self, method: &str, fault: Fault) {
        self.plan(method, |plan| plan.always = Some(fault));
    }

    /// Let nothing fail any more. Calls that hang go on hanging; hooks stay.
    pub fn heal(&self) {
        for plan in self.plans().values_mut() {
            plan.next.clear();
            plan.always = None;
        }
    }

    /// How many faults have been told and have not come.
    pub fn left(&self) -> usize {
        let plans = self.plans();
        let told = plans.values().flat_map(|plan| plan.next.iter().flatten());
        told.count()
    }

    /// Before each call of a method, do something and wait for it: look at the store as it is at
    /// that moment, or keep the call back. A hook that calls the same method through this very
    /// store calls itself; let it use the store below.
    pub fn on<F>(&self, method: &str, hook: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let hook: Hook = Arc::new(move || Box::pin(hook()));
        self.plan(method, |plan| plan.hooks.push(hook));
    }

    /// Wait until as many calls hang, counted from the beginning.
    pub async fn hung(&self, calls: usize) {
        let mut hung = self.hung.subscribe();
        // The sender is right here.
        let _ = hung.wait_for(|hung| *hung >= calls).await;
    }

    fn plan<T>(&self, method: &str, change: impl FnOnce(&mut Plan) -> T) -> T {
        change(self.plans().entry(Method::of(method).name).or_default())
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<&'static str, Plan>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn hang<T>(&self) -> T {
        self.hung.send_modify(|hung| *hung += 1);
        std::future::pending().await
    }
}

fn failed(method: Method, how: &str) -> Error {
    Error::Io {
        detail: format!("{} was told to fail {how}", method.name),
    }
}

impl Pass for Faulty {
    async fn pass<T: Send>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let hooks = self.plan(method.name, |plan| plan.hooks.clone());
        for hook in hooks {
            hook().await;
        }
        let fault = self.plan(method.name, |plan| match plan.next.pop_front() {
            Some(told) => told,
            None => plan.always,
        });
        match fault {
            None => call.await,
            Some(Fault::Before) => Err(failed(method, "before it")),
            Some(Fault::After) => {
                // The answer is lost, whatever it was.
                drop(call.await);
                Err(failed(method, "after it"))
            }
            Some(Fault::HangBefore) => self.hang().await,
            Some(Fault::HangAfter) => {
                drop(call.await);
                self.hang().await
            }
        }
    }
}
