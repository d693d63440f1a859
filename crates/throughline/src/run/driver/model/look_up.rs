//! Asking a service for an answer whose stream was lost, instead of making the model call again.

use std::time::Duration;

use throughline_model::json::{self, ArrayWriter, RawJson, Value};
use throughline_store::{Journal, QueueNo, RemoteCall};
use tokio::time::Instant;

use super::call::CallEnd;
use crate::client::{CallStatus, ClientError, ErrorKind, TimeoutPhase};
use crate::run::driver::{Driver, DriverError};
use crate::trials::planted;

/// How long an answer is waited for that the service still works on.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long to wait between two questions, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How many questions in a row may fail.
const MOST_FAILURES: u32 = 5;

/// A model call that a service has accepted, as the journal has it while the answer is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcceptedCall {
    /// The upstream that accepted it.
    upstream: String,
    /// What names the answer there.
    handle: RawJson,
    /// The queued messages that were sent with it.
    pub(crate) delivered: Vec<QueueNo>,
}

impl AcceptedCall {
    /// The call that was under way when the journal ends.
    pub(crate) fn of(journal: &Journal) -> Option<Self> {
        if planted("loop-handle-forgotten") {
            return None;
        }
        let stored = json::parse(journal.remote.as_ref()?.handle.get()).ok()?;
        let queued = stored.get("queued").and_then(Value::as_array);
        let queued = queued.unwrap_or_default().iter();
        Some(Self {
            upstream: stored.get("upstream")?.as_str()?.into_owned(),
            handle: RawJson::of(stored.get("handle")?),
            delivered: queued.filter_map(Value::as_u64).collect(),
        })
    }

    fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object
                .str("upstream", &self.upstream)
                .raw("handle", self.handle.get());
            if !self.delivered.is_empty() {
                let mut list = ArrayWriter::new(object.key("queued"));
                for no in &self.delivered {
                    list.raw(&no.to_string());
                }
                list.end();
            }
        })
    }
}

impl Driver {
    /// The service has accepted the model call: the journal has its handle before the answer is
    /// waited for.
    pub(super) async fn record_accepted(&mut self, handle: RawJson) -> Result<(), DriverError> {
        let accepted = AcceptedCall {
            upstream: self.plan.client.abilities().upstream.clone(),
            handle,
            delivered: self.log.recorder.delivered().to_vec(),
        };
        if !planted("loop-handle-unjournaled") {
            let call = RemoteCall {
                step: self.log.recorder.next_step(),
                handle: accepted.to_json(),
            };
            self.log.recorder.remote_call(&call).await?;
        }
        self.model.accepted = Some(accepted);
        Ok(())
    }

    /// Ask the service for the answer to a call that it accepted. `None` if the call has to be made
    /// again.
    pub(super) async fn look_up(&self, accepted: &AcceptedCall) -> Option<CallEnd> {
        let client = &self.plan.client;
        let upstream = &client.abilities().upstream;
        let conversations = client.conversations();
        let Some(conversations) = conversations.filter(|_| *upstream == accepted.upstream) else {
            tracing::warn!(
                run = %self.run,
                accepted_by = accepted.upstream,
                upstream,
                "an answer that is under way cannot be asked for; the call is made again"
            );
            return None;
        };
        let until = Instant::now() + PATIENCE;
        let mut wait = FIRST_WAIT;
        let mut failures = 0;
        loop {
            let asked = tokio::select! {
                biased;
                stop = self.cutoff.reached() => return Some(CallEnd::Cut(stop, None)),
                asked = conversations.look_up(&accepted.handle) => asked,
            };
            match asked {
                Ok(CallStatus::Answered(response)) => {
                    tracing::info!(run = %self.run, upstream, "the service had the answer");
                    return Some(self.end_of_call(Ok(*response)));
                }
                Ok(CallStatus::Lost { reason }) => {
                    tracing::info!(run = %self.run, upstream, reason, "the service lost the answer");
                    return None;
                }
                Ok(CallStatus::Running) => failures = 0,
                Err(error) if error.may_retry() && failures < MOST_FAILURES => failures += 1,
                Err(error) => return Some(CallEnd::Failed(error)),
            }
            if Instant::now() >= until {
                let kind = ErrorKind::Timeout(TimeoutPhase::Idle);
                let text = "the service has not finished the answer that it accepted";
                return Some(CallEnd::Failed(ClientError::new(kind, upstream, text)));
            }
            tokio::select! {
                biased;
                stop = self.cutoff.reached() => return Some(CallEnd::Cut(stop, None)),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// A stream broke after the service had accepted the call. The answer, if the service has it.
    pub(super) async fn look_up_broken(&mut self, error: ClientError) -> CallEnd {
        let accepted = self.model.accepted.take();
        let is_broken = matches!(error.kind(), ErrorKind::Cut | ErrorKind::Timeout(_));
        let Some(accepted) = accepted.filter(|_| is_broken) else {
            return CallEnd::Failed(error);
        };
        match self.look_up(&accepted).await {
            Some(CallEnd::Failed(_)) | None => CallEnd::Failed(error),
            Some(end) => end,
        }
    }
}
