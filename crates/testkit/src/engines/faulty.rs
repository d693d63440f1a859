//! An engine that fails on command.

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
    /// Nothing is done, and an error is returned.
    Before,
    /// The call is done, but an error is returned.
    After,
    /// Nothing is done, and the call never returns.
    HangBefore,
    /// The call is done, but never returns.
    HangAfter,
}

/// A function that is called before a call.
type Hook = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The planned faults of one method.
#[derive(Default)]
struct Plan {
    /// `None` for a call without a fault.
    next: VecDeque<Option<Fault>>,
    always: Option<Fault>,
    hooks: Vec<Hook>,
}

/// Makes calls of an engine fail by a script.
///
/// The error is always [`Error::Io`], from which a caller cannot tell whether the call was done.
pub struct Faulty {
    plans: Mutex<HashMap<&'static str, Plan>>,
    /// The number of calls that hang or hung.
    hung: watch::Sender<usize>,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.left();
        f.debug_struct("Faulty").field("left", &left).finish()
    }
}

impl Faulty {
    /// Wraps a store.
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

    /// Plans a fault for the next call of a method, or for the one after those that were planned
    /// before.
    ///
    /// # Panics
    ///
    /// When no method has the name. So do the other functions here.
    pub fn next(&self, method: &str, fault: Fault) {
        self.times(method, 1, fault);
    }

    /// Plans a fault for several calls of a method.
    pub fn times(&self, method: &str, times: usize, fault: Fault) {
        self.plan(method, |plan| {
            plan.next.extend(std::iter::repeat_n(Some(fault), times));
        });
    }

    /// Plans several calls of a method without a fault.
    pub fn skip(&self, method: &str, times: usize) {
        self.plan(method, |plan| {
            plan.next.extend(std::iter::repeat_n(None, times));
        });
    }

    /// Makes every call of a method fail that has no other plan, until it is healed.
    pub fn always(&self, method: &str, fault: Fault) {
        self.plan(method, |plan| plan.always = Some(fault));
    }

    /// Removes all plans. Calls that hang continue to hang; hooks stay.
    pub fn heal(&self) {
        for plan in self.plans().values_mut() {
            plan.next.clear();
            plan.always = None;
        }
    }

    /// How many planned faults have not happened.
    pub fn left(&self) -> usize {
        let plans = self.plans();
        let told = plans.values().flat_map(|plan| plan.next.iter().flatten());
        told.count()
    }

    /// Calls a function before each call of a method, and waits for it: to read the store at that
    /// moment, or to delay the call. A hook that calls the same method must use the inner store, or
    /// it calls itself.
    pub fn on<F>(&self, method: &str, hook: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let hook: Hook = Arc::new(move || Box::pin(hook()));
        self.plan(method, |plan| plan.hooks.push(hook));
    }

    /// Waits until this many calls hang, counted from the beginning.
    pub async fn hung(&self, calls: usize) {
        let mut hung = self.hung.subscribe();
        // The sender lives as long as this value.
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
                // The result is lost, whatever it was.
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
