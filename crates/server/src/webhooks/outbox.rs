//! Events that are still to be posted, in the store: each is a thread of its own in a tenant that no
//! client can name, written before its run begins and deleted when all webhooks have it. So an event
//! is lost in no crash, and a delivered one leaves nothing behind.

use throughline_model::json::{ArrayWriter, RawJson, Value, push_string};
use throughline_store::{
    At, Authority, Error, InvalidTenant, Millis, NewThread, RunId, Store, Tenant, TenantScope,
    Thread, ThreadFilter, ThreadId, ThreadPatch,
};

/// The tenant of the threads. A client's tenant never has this name.
pub(crate) const TENANT: &str = "throughline.webhooks";

/// How many are listed at once.
const PAGE: usize = 256;

/// An event that is to be posted when its run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingEvent {
    thread: ThreadId,
    /// Whose run it is.
    pub(super) scope: TenantScope,
    pub(super) run: RunId,
    /// The names of the webhooks that are still to get it.
    pub(super) left: Vec<String>,
    /// When the run was about to begin.
    pub(super) since: Millis,
}

pub(super) struct Outbox {
    store: Store,
    scope: TenantScope,
    authority: Authority,
}

impl Outbox {
    pub(super) fn new(store: &Store) -> Result<Self, InvalidTenant> {
        let authority = Authority::assume();
        let scope = authority.scope(Tenant::new(TENANT)?);
        Ok(Self {
            store: store.clone(),
            scope,
            authority,
        })
    }

    /// Note that the end of a run is to be posted.
    pub(super) async fn add(
        &self,
        scope: &TenantScope,
        run: RunId,
        webhooks: Vec<String>,
    ) -> Result<PendingEvent, Error> {
        let thread = self.store.ids().thread();
        let new = NewThread {
            meta: Some(meta(scope, run, &webhooks)),
            ..NewThread::new(thread.clone())
        };
        let opened = self.store.open_or_create(&self.scope, &new, 0).await?;
        Ok(PendingEvent {
            thread,
            scope: scope.clone(),
            run,
            left: webhooks,
            since: opened.thread.created,
        })
    }

    /// All events that are still to be posted.
    pub(super) async fn all(&self) -> Result<Vec<PendingEvent>, Error> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let filter = ThreadFilter::default();
            let page = self
                .store
                .threads(&self.scope, &filter, after, PAGE)
                .await?;
            all.extend(page.found.iter().filter_map(|thread| self.read(thread)));
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    fn read(&self, thread: &Thread) -> Option<PendingEvent> {
        let meta = thread.meta.as_ref()?.value();
        let text = |key| meta.get(key).and_then(Value::as_str);
        let webhooks = meta.get("webhooks")?.as_array()?;
        let webhooks = webhooks.iter().filter_map(Value::as_str);
        Some(PendingEvent {
            thread: thread.id.clone(),
            scope: self.authority.scope(Tenant::new(&text("tenant")?).ok()?),
            run: text("run")?.parse().ok()?,
            left: webhooks.map(|name| name.to_string()).collect(),
            since: thread.created,
        })
    }

    /// An event as it is stored now; `None` if another server has posted it.
    pub(super) async fn read_again(
        &self,
        event: &PendingEvent,
    ) -> Result<Option<PendingEvent>, Error> {
        let at = At::Thread(event.thread.clone());
        match self.store.open(&self.scope, &at, 0).await {
            Ok(opened) => Ok(self.read(&opened.thread)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Note which webhooks are still to get an event.
    pub(super) async fn update(&self, event: &PendingEvent) -> Result<(), Error> {
        let patch = ThreadPatch {
            meta: Some(Some(meta(&event.scope, event.run, &event.left))),
            ..ThreadPatch::default()
        };
        let patched = self.store.patch(&self.scope, &event.thread, &patch).await;
        gone_is_fine(patched.map(drop))
    }

    /// Nothing is to be posted any more.
    pub(super) async fn remove(&self, event: &PendingEvent) -> Result<(), Error> {
        gone_is_fine(self.store.delete(&self.scope, &event.thread).await)
    }
}

/// Another server may have been first.
fn gone_is_fine(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::NotFound { .. }) => Ok(()),
        other => other,
    }
}

fn meta(scope: &TenantScope, run: RunId, webhooks: &[String]) -> RawJson {
    RawJson::object(|object| {
        object
            .str("tenant", scope.tenant().as_str())
            .str("run", &run.to_string());
        let mut list = ArrayWriter::new(object.key("webhooks"));
        for name in webhooks {
            push_string(list.slot(), name);
        }
        list.end();
    })
}
