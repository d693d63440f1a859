use async_trait::async_trait;
use throughline_model::Message;
use throughline_model::json::RawJson;

/// Why a message store of the application failed.
pub type MessageStoreError = Box<dyn std::error::Error + Send + Sync>;

/// A message store of the application. A thread whose [`Owner`](crate::thread::Owner) is `External`
/// reads its history and appends to it here, while the journal of its runs is in our store.
///
/// A key is any JSON value, and each append may return a new one. The store may shorten its own
/// history; it is read before each run, and the result is not cached. There is one append per run,
/// before the run is published, and one after each model call with
/// [`Persistence::PerCall`](crate::thread::Persistence::PerCall). The journal has the messages of an
/// append before it is made: the store never holds more than the journal can recover.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use async_trait::async_trait;
/// use throughline::model::Message;
/// use throughline::model::json::RawJson;
/// use throughline::thread::{MessageStore, MessageStoreError, Owner};
/// use throughline::{Agent, Demo, Thread};
///
/// /// The appends of a case, each with its idempotency value.
/// #[derive(Clone, Default)]
/// struct Crm(Arc<Mutex<Vec<(String, Vec<Message>)>>>);
///
/// #[async_trait]
/// impl MessageStore for Crm {
///     async fn load(
///         &self,
///         _key: &RawJson,
///         _budget: Option<u64>,
///     ) -> Result<Vec<Message>, MessageStoreError> {
///         let appends = self.0.lock().map_err(|_| "poisoned")?;
///         Ok(appends.iter().flat_map(|(_, messages)| messages).cloned().collect())
///     }
///
///     async fn append(
///         &self,
///         _key: &RawJson,
///         messages: &[Message],
///         idempotency: &str,
///     ) -> Result<Option<RawJson>, MessageStoreError> {
///         let mut appends = self.0.lock().map_err(|_| "poisoned")?;
///         // The same append again changes nothing.
///         if !appends.iter().any(|(known, _)| known == idempotency) {
///             appends.push((idempotency.to_owned(), messages.to_vec()));
///         }
///         Ok(None)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), MessageStoreError> {
/// let crm = Crm::default();
/// let agent = Agent::builder(Demo::new())
///     .message_store("crm", crm.clone())
///     .build()?;
/// let thread = Thread::new();
/// let key = RawJson::new(r#"{"case":4711}"#)?;
/// thread.set_owner(Owner::External { store: "crm".to_owned(), key: key.clone() }).await?;
/// agent.run_on(&thread, "The tide is at four.").await?;
/// agent.run_on(&thread, "What did I say first?").await?;
/// assert_eq!(crm.load(&key, None).await?.len(), 4);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait MessageStore: Send + Sync {
    /// Returns the history under a key, oldest first; about `budget` tokens of it if given, which is
    /// what the model that will be called can take.
    async fn load(
        &self,
        key: &RawJson,
        budget: Option<u64>,
    ) -> Result<Vec<Message>, MessageStoreError>;

    /// Appends messages under a key. The same `idempotency` means the same append: a store that
    /// remembers these keys neither loses nor duplicates messages when a process dies in between.
    /// If a new key is returned, the thread uses it from then on.
    async fn append(
        &self,
        key: &RawJson,
        messages: &[Message],
        idempotency: &str,
    ) -> Result<Option<RawJson>, MessageStoreError>;
}
