//! Counts the calls of an engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_store::{Result, Store};

use super::forward::{Class, Method, Pass, over};

/// Counts the calls of an engine when they are made, whatever their outcome.
///
/// The engine's own heartbeats are not calls and are not counted.
#[derive(Debug, Default)]
pub struct Counted(Mutex<Vec<Method>>);

impl Counted {
    /// Wraps a store.
    ///
    /// ```
    /// use throughline_store::{NewThread, Store, TenantScope, ThreadId};
    /// use throughline_testkit::engines::Counted;
    /// use throughline_testkit::record::block_on;
    ///
    /// block_on(async {
    ///     let (store, counted) = Counted::over(&Store::open("memory:").await.unwrap());
    ///     let new = NewThread::new(ThreadId::new("t").unwrap());
    ///     store.open_or_create(&TenantScope::local(), &new, 0).await.unwrap();
    ///     assert_eq!(counted.log(), ["open_or_create"]);
    ///     assert_eq!((counted.reads(), counted.writes()), (1, 0));
    /// });
    /// ```
    pub fn over(store: &Store) -> (Store, Arc<Self>) {
        over(store, Self::default())
    }

    /// Calls that only read.
    pub fn reads(&self) -> usize {
        self.of_class(Class::Read)
    }

    /// Calls that write, except flushes.
    pub fn writes(&self) -> usize {
        self.of_class(Class::Write)
    }

    /// Calls that store events only.
    pub fn flushes(&self) -> usize {
        self.of_class(Class::Flush)
    }

    /// Calls that renew the lease of the process.
    pub fn renewals(&self) -> usize {
        self.of_class(Class::Renewal)
    }

    /// Calls of one class.
    pub fn of_class(&self, class: Class) -> usize {
        let calls = self.calls();
        calls.iter().filter(|call| call.class == class).count()
    }

    /// Calls of one method.
    ///
    /// # Panics
    ///
    /// When no method has the name.
    pub fn of(&self, method: &str) -> usize {
        let method = Method::of(method);
        self.calls().iter().filter(|call| **call == method).count()
    }

    /// The names of all calls in the order in which they were made, except renewals, which depend
    /// on timing.
    pub fn log(&self) -> Vec<&'static str> {
        let calls = self.calls();
        let asks = |call: &&Method| !matches!(call.class, Class::Renewal);
        calls.iter().filter(asks).map(|call| call.name).collect()
    }

    /// Resets the counts.
    pub fn reset(&self) {
        self.calls().clear();
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Method>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass for Counted {
    async fn pass<T: Send>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.calls().push(method);
        call.await
    }
}
