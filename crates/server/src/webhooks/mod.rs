//! Webhooks: the ends of background responses are posted to configured addresses.
//!
//! An event is posted at least once, also if a process dies between the end of the run and the
//! delivery: what is to be posted is stored before the run begins ([`outbox`]). A response has one
//! event; every attempt to post it has the same `webhook-id`, so that receivers can tell repetitions.

mod outbox;
mod signature;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures_util::future::join_all;
use throughline::client::{Header, HttpMethod, HttpRequest, Transport};
use throughline_model::json::RawJson;
use throughline_store::{Error, InvalidTenant, Millis, RunId, Store, TenantScope};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::config::WebhookConfig;
use crate::service::Runs;
use crate::stopping::Stopping;
use crate::trials::planted;
use outbox::{Outbox, PendingEvent};
use signature::signature;

/// How long a receiver may take to answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How long an event is tried: a receiver may be down for a weekend.
const GIVE_UP: Duration = Duration::from_secs(72 * 60 * 60);

/// The pause after the first failure; each is twice the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// How often to look whether a run has ended that this process does not work on.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A run that does not exist after this time will never begin. It is long, because a run may wait its turn
/// on a busy conversation in another process.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How often to look for events that another server left.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// How many events are posted at once.
const AT_ONCE: usize = 16;

/// How a response stands, as far as webhooks are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseEnd {
    /// It is still being made.
    Unfinished,
    /// It has ended with this status, at this time.
    Ended(&'static str, Millis),
    /// There is no such response.
    Missing,
}

/// Tells how responses ended. An API implements it.
#[async_trait]
pub(crate) trait ResponseEnds: Send + Sync {
    /// How a response stands. Dropping the future has no effect.
    async fn end_of(&self, scope: &TenantScope, run: RunId) -> Result<ResponseEnd, String>;

    /// The public id of a response.
    fn id(&self, run: RunId) -> String;
}

/// The webhooks of a server, and what is still to be posted to them.
pub(crate) struct Webhooks {
    all: Vec<WebhookConfig>,
    outbox: Outbox,
    transport: Arc<dyn Transport>,
    waiting: Mutex<HashMap<RunId, Waiting>>,
    added: Notify,
}

/// An event of this process, or one that another process left.
struct Waiting {
    event: PendingEvent,
    attempts: u32,
    /// When to look at it again.
    due: Instant,
    is_at_work: bool,
}

/// What became of an event.
enum Posted {
    /// Nothing is left to do.
    Done,
    /// It is looked at again, after this pause.
    Later(Duration),
    /// A receiver did not take it.
    Failed,
}

impl Webhooks {
    pub(crate) fn new(
        all: &[WebhookConfig],
        store: &Store,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, InvalidTenant> {
        Ok(Self {
            all: all.to_vec(),
            outbox: Outbox::new(store)?,
            transport,
            waiting: Mutex::default(),
            added: Notify::new(),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RunId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Store that the end of a run is to be posted, before it begins.
    pub(crate) async fn expect(&self, scope: &TenantScope, run: RunId) -> Result<(), Error> {
        let names = self.all.iter().map(|webhook| webhook.name.clone());
        let event = self.outbox.add(scope, run, names.collect()).await?;
        self.wait_for(event);
        Ok(())
    }

    /// The run did not begin: there is nothing to post.
    pub(crate) async fn forget(&self, run: RunId) {
        let waiting = self.waiting().remove(&run);
        if let Some(waiting) = waiting
            && let Err(error) = self.outbox.remove(&waiting.event).await
        {
            // It is looked at until it is clear that the run will never begin.
            tracing::info!(%run, %error, "an event of a run that did not begin is left");
            self.wait_for(waiting.event);
        }
    }

    fn wait_for(&self, event: PendingEvent) {
        let waiting = Waiting {
            attempts: 0,
            due: Instant::now(),
            is_at_work: false,
            event,
        };
        self.waiting().entry(waiting.event.run).or_insert(waiting);
        self.added.notify_one();
    }

    /// Look for events that are stored: those from before this process began, or of a server that
    /// has gone.
    async fn look(&self) {
        match self.outbox.all().await {
            Ok(events) => events.into_iter().for_each(|event| self.wait_for(event)),
            Err(error) => tracing::warn!(%error, "events for webhooks cannot be read now"),
        }
    }

    /// Post an event to the webhooks that are still to get it.
    async fn post(&self, ends: &dyn ResponseEnds, waiting: &mut PendingEvent) -> Posted {
        let age = Duration::from_millis(now_millis().saturating_sub(waiting.since));
        let end = match ends.end_of(&waiting.scope, waiting.run).await {
            Ok(ResponseEnd::Ended(status, at)) => (status, at),
            Ok(ResponseEnd::Missing) if age > BEGIN_TIMEOUT => return self.done(waiting).await,
            // One that has just been asked for begins soon, or never.
            Ok(ResponseEnd::Missing) if age > LOOK_INTERVAL => return Posted::Later(LOOK_INTERVAL),
            Ok(ResponseEnd::Unfinished | ResponseEnd::Missing) => {
                return Posted::Later(POLL_INTERVAL);
            }
            Err(error) => {
                tracing::info!(run = %waiting.run, error, "how a response ended cannot be read now");
                return Posted::Later(POLL_INTERVAL);
            }
        };
        match self.outbox.read_again(waiting).await {
            Ok(Some(stored)) => *waiting = stored,
            Ok(None) => return Posted::Done,
            Err(error) => {
                tracing::info!(run = %waiting.run, %error, "an event cannot be read now");
                return Posted::Later(POLL_INTERVAL);
            }
        }
        if planted("server-webhook-removed-early") {
            self.done(waiting).await;
        }
        let kind = format!("response.{}", end.0);
        let wanted = self.all.iter().filter(|webhook| {
            waiting.left.contains(&webhook.name) && webhook.events.contains(&kind)
        });
        let (response, body) = (ends.id(waiting.run), body(ends, waiting.run, &kind, end.1));
        let posted = wanted.map(|webhook| self.post_to(webhook, waiting.run, &body));
        let failed: Vec<String> = join_all(posted).await.into_iter().flatten().collect();
        if failed.is_empty() {
            return self.done(waiting).await;
        }
        if age > GIVE_UP {
            tracing::error!(response, event = kind, webhooks = ?failed, "an event is given up, nobody took it");
            return self.done(waiting).await;
        }
        if failed.len() < waiting.left.len() {
            waiting.left = failed;
            if let Err(error) = self.outbox.update(waiting).await {
                tracing::info!(response, %error, "some webhooks may get an event again");
            }
        }
        Posted::Failed
    }

    async fn done(&self, event: &PendingEvent) -> Posted {
        match self.outbox.remove(event).await {
            Ok(()) => Posted::Done,
            Err(error) => {
                tracing::warn!(run = %event.run, %error, "an event that was posted is posted again");
                Posted::Failed
            }
        }
    }

    /// Post an event to a webhook. Returns its name if it did not take the event.
    async fn post_to(&self, webhook: &WebhookConfig, run: RunId, body: &str) -> Option<String> {
        let id = format!("wh_{}", run.to_hex());
        let timestamp = now_millis() / 1_000;
        let header = |name: &str, value: String| Header::plain(name, value);
        let request = HttpRequest {
            method: HttpMethod::Post,
            url: webhook.url.clone(),
            headers: vec![
                header("content-type", "application/json".to_owned()),
                header(
                    "webhook-signature",
                    signature(&webhook.secret, &id, timestamp, body),
                ),
                header("webhook-timestamp", timestamp.to_string()),
                header("webhook-id", id),
            ],
            body: body.to_owned().into(),
        };
        let answered = tokio::time::timeout(TIMEOUT, self.transport.send(request)).await;
        let why = match answered {
            Ok(Ok(response)) if (200..300).contains(&response.status) => return None,
            Ok(Ok(response)) => format!("it answered {}", response.status),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not answer within {} s", TIMEOUT.as_secs()),
        };
        tracing::warn!(webhook = webhook.name, %run, why, "a webhook did not take an event");
        Some(webhook.name.clone())
    }
}

/// Post events until the server drains. What is left then is posted by the next process.
pub(crate) async fn post_events(
    webhooks: Arc<Webhooks>,
    runs: Arc<Runs>,
    ends: Arc<dyn ResponseEnds>,
) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut look_at = Instant::now();
    loop {
        if Instant::now() >= look_at {
            webhooks.look().await;
            look_at = Instant::now() + LOOK_INTERVAL;
        }
        let next = start_due(&webhooks, &runs, &ends, &places).await;
        let next = next.map_or(look_at, |due| due.min(look_at));
        tokio::select! {
            () = runs.stopping.draining() => return,
            () = webhooks.added.notified() => {}
            () = runs.ended.notified() => {}
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

/// Start with all events that are due and whose runs this process does not work on. Returns when the
/// next one is due.
async fn start_due(
    webhooks: &Arc<Webhooks>,
    runs: &Arc<Runs>,
    ends: &Arc<dyn ResponseEnds>,
    places: &Arc<Semaphore>,
) -> Option<Instant> {
    let idle: Vec<(RunId, Instant)> = {
        let waiting = webhooks.waiting();
        let idle = waiting.iter().filter(|(_, waiting)| !waiting.is_at_work);
        idle.map(|(run, waiting)| (*run, waiting.due)).collect()
    };
    let mut next: Option<Instant> = None;
    for (run, due) in idle {
        if runs.find(run).await.is_some() {
            // Its end is told.
            continue;
        }
        if due > Instant::now() {
            next = Some(next.map_or(due, |next| next.min(due)));
            continue;
        }
        let Ok(place) = Arc::clone(places).acquire_owned().await else {
            return next;
        };
        let event = match webhooks.waiting().get_mut(&run) {
            Some(waiting) => {
                waiting.is_at_work = true;
                waiting.event.clone()
            }
            None => continue,
        };
        let (webhooks, ends) = (Arc::clone(webhooks), Arc::clone(ends));
        let stopping: Stopping = runs.stopping.clone();
        runs.stopping.work().spawn(async move {
            tokio::select! {
                () = attempt(&webhooks, &*ends, event) => {}
                // The next process posts it, again if need be.
                () = stopping.closing() => {}
            }
            drop(place);
        });
    }
    next
}

/// Try to post an event, and note when to look at it again.
async fn attempt(webhooks: &Webhooks, ends: &dyn ResponseEnds, mut event: PendingEvent) {
    let posted = webhooks.post(ends, &mut event).await;
    let mut all = webhooks.waiting();
    let run = event.run;
    let Some(waiting) = all.get_mut(&run) else {
        return;
    };
    waiting.event = event;
    waiting.is_at_work = false;
    match posted {
        Posted::Done => {
            all.remove(&run);
        }
        Posted::Later(pause) => waiting.due = Instant::now() + pause,
        Posted::Failed => {
            waiting.due = Instant::now() + pause_after(waiting.attempts);
            waiting.attempts += 1;
        }
    }
    drop(all);
    webhooks.added.notify_one();
}

/// The pause after so many failures before the last one.
fn pause_after(failures: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.min(20));
    doubled.min(LONGEST_PAUSE)
}

/// The body of an event, the same for each attempt.
fn body(ends: &dyn ResponseEnds, run: RunId, kind: &str, ended: Millis) -> String {
    let data = RawJson::object(|object| {
        object.str("id", &ends.id(run));
    });
    let event = RawJson::object(|object| {
        object
            .str("id", &format!("evt_{}", run.to_hex()))
            .str("object", "event")
            .number("created_at", ended / 1_000)
            .str("type", kind)
            .raw("data", data.get());
    });
    event.get().to_owned()
}

fn now_millis() -> Millis {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| {
        Millis::try_from(now.as_millis()).unwrap_or(Millis::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour() {
        let pauses = [0, 1, 2, 11, 12, 40].map(|failures| pause_after(failures).as_secs());
        assert_eq!(pauses, [1, 2, 4, 2_048, 3_600, 3_600]);
    }
}
