//! What is done with the copies of threads that services have: reading them back before a thread is
//! handed over, and deleting them.

use std::collections::BTreeMap;
use std::sync::Arc;

use throughline_model::{Body, Content, Message, Output, Role, Source};
use throughline_store::ThreadId;

use crate::client::{ChatClient, ClientError, ErrorKind, VendorDeletion};
use crate::thread::{CopyOutcome, Deleted, Owner, OwnerError, Thread, Threads, VendorCopy};

/// Clients of the services that keep threads, by upstream.
///
/// ```
/// use throughline::Demo;
/// use throughline::agent::ServiceClients;
///
/// let clients = ServiceClients::new().with(Demo::new());
/// assert_eq!(clients.upstreams().collect::<Vec<_>>(), ["demo"]);
/// ```
#[derive(Clone, Default)]
pub struct ServiceClients(BTreeMap<String, Arc<dyn ChatClient>>);

/// A thread that was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOver {
    /// Who owned the history before.
    pub from: Owner,
    /// Who owns it now.
    pub to: Owner,
    /// What each service that kept it was asked for.
    pub read_back: Vec<ReadBack>,
}

/// What was read back from a service that kept a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// The upstream.
    pub upstream: String,
    /// The id of the conversation there.
    pub id: String,
    /// What came of it.
    pub outcome: ReadBackOutcome,
}

/// What came of reading a conversation back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadBackOutcome {
    /// The service has what the record has.
    Same,
    /// The service had more, and so many of its messages were added to the record.
    Added(usize),
    /// The service has another conversation than the record; the record is the history.
    Differs,
    /// No client of the upstream is known, or it cannot read conversations; the record is the
    /// history.
    NotAsked,
    /// The service does not have the conversation any more; the record is the history.
    Absent,
}

impl ReadBackOutcome {
    /// The word in receipts.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Added(_) => "added",
            Self::Differs => "differs",
            Self::NotAsked => "not_asked",
            Self::Absent => "absent",
        }
    }
}

/// Why a thread could not be handed over. It is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// The owner cannot be changed now.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The service that keeps the thread could not be asked.
    #[error(
        "{upstream} could not be asked for what it has of this thread; try again, or leave its client out to hand over the record"
    )]
    Service {
        /// The upstream.
        upstream: String,
        /// Why.
        #[source]
        source: ClientError,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] throughline_store::Error),
}

impl ServiceClients {
    /// No clients: nothing is read back, and no vendor's copy can be deleted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also this client, for the upstream that it names in its abilities.
    #[must_use]
    pub fn with(mut self, client: impl ChatClient + 'static) -> Self {
        let upstream = client.abilities().upstream.clone();
        self.0.insert(upstream, Arc::new(client));
        self
    }

    /// The upstreams of the clients, sorted.
    pub fn upstreams(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Hands a thread over to another owner. What services that kept it have more than our record is
    /// added to the record first, and the next upstream sees the whole of it. The ids of the
    /// services stay on the thread, as ids of vendors' copies; a thread that is handed back to a
    /// service later continues its conversation there.
    ///
    /// Refused while a run is running, parked or interrupted.
    ///
    /// ```
    /// use throughline::agent::ServiceClients;
    /// use throughline::thread::Owner;
    /// use throughline::{Agent, Demo, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let thread = Thread::new();
    /// thread.set_owner(Owner::service("openai")).await?;
    /// let moved = ServiceClients::new().hand_over(&thread, Owner::Local).await?;
    /// assert_eq!(moved.from, Owner::service("openai"));
    /// Agent::builder(Demo::new()).build()?.run_on(&thread, "hi").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn hand_over(&self, thread: &Thread, to: Owner) -> Result<HandedOver, HandOverError> {
        thread.refresh().await?;
        thread.check_settled().await?;
        let from = thread.owner();
        let mut read_back = Vec::new();
        if let Owner::Services(services) = &from {
            let ids = thread.service_ids();
            for service in ids.iter().filter(|one| services.contains(&one.upstream)) {
                let outcome = self
                    .read_back(thread, &service.upstream, &service.id)
                    .await?;
                read_back.push(ReadBack {
                    upstream: service.upstream.clone(),
                    id: service.id.clone(),
                    outcome,
                });
            }
        }
        thread.set_owner(to.clone()).await?;
        Ok(HandedOver {
            from,
            to,
            read_back,
        })
    }

    async fn read_back(
        &self,
        thread: &Thread,
        upstream: &str,
        id: &str,
    ) -> Result<ReadBackOutcome, HandOverError> {
        let client = self.0.get(upstream);
        let conversations = client.and_then(|client| client.conversations());
        // What is read back is added at the head.
        let Some(conversations) = conversations.filter(|_| thread.is_at_head()) else {
            return Ok(ReadBackOutcome::NotAsked);
        };
        let held = match conversations.read(id).await {
            Ok(held) => held,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(ReadBackOutcome::Absent);
            }
            Err(source) => {
                return Err(HandOverError::Service {
                    upstream: upstream.to_owned(),
                    source,
                });
            }
        };
        let record = thread.history();
        let known = record.iter().flat_map(|message| said(message));
        let known: Vec<Said> = known.collect();
        let Some(more) = behind(&known, &held) else {
            return Ok(ReadBackOutcome::Differs);
        };
        if more.is_empty() {
            return Ok(ReadBackOutcome::Same);
        }
        let mut new = more.to_vec();
        for message in &mut new {
            message.source = Some(Source::Import);
        }
        let added = new.len();
        thread.add_read_back(new, upstream, id).await?;
        Ok(ReadBackOutcome::Added(added))
    }

    /// Deletes a thread, and the copies that vendors have of it. A vendor's copy is deleted where
    /// its client is known and its API can; the receipt names each. If a vendor cannot be asked, our
    /// record stays, so that the deletion can be repeated.
    ///
    /// Ids that belong to another thread, from which this one was forked or imported, are not
    /// deleted.
    pub async fn delete(
        &self,
        threads: &Threads,
        thread: &ThreadId,
    ) -> throughline_store::Result<Deleted> {
        let mut copies = threads.vendor_copies(thread).await?;
        for copy in &mut copies {
            if copy.outcome == CopyOutcome::Remains {
                copy.outcome = self.delete_copy(copy).await;
            }
        }
        let has_failed = |copy: &VendorCopy| matches!(copy.outcome, CopyOutcome::Failed { .. });
        let is_deleted = !copies.iter().any(has_failed);
        if is_deleted {
            threads.delete(thread).await?;
        }
        Ok(Deleted {
            is_deleted,
            vendor_copies: copies,
        })
    }

    async fn delete_copy(&self, copy: &VendorCopy) -> CopyOutcome {
        let client = self.0.get(&copy.upstream);
        let Some(conversations) = client.and_then(|client| client.conversations()) else {
            return CopyOutcome::Unsupported;
        };
        match conversations.delete(&copy.id).await {
            Ok(VendorDeletion::Deleted) => CopyOutcome::Deleted,
            Ok(VendorDeletion::Absent) => CopyOutcome::Absent,
            Ok(VendorDeletion::Unsupported) => CopyOutcome::Unsupported,
            Err(error) => CopyOutcome::Failed {
                reason: error.to_string(),
            },
        }
    }
}

impl std::fmt::Debug for ServiceClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// What one content says, without what only one of its vendors knows: for comparing our record with
/// what a service has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said(Role, String);

/// What a message says. Reasoning and items without a neutral form are not compared, because
/// services leave them out or show them otherwise.
fn said(message: &Message) -> impl Iterator<Item = Said> {
    let role = message.role.clone();
    let texts = message.contents.iter().filter_map(said_by);
    texts.map(move |text| Said(role.clone(), text))
}

fn said_by(content: &Content) -> Option<String> {
    match &content.body {
        Body::Text(text) => Some(format!("text {}", text.text)),
        Body::Refusal(text) => Some(format!("refusal {}", text.text)),
        Body::ToolCall(call) => Some(format!("call {} {}", call.call.value(), call.name)),
        Body::ToolResult(result) => Some(match &result.output {
            Output::Text(text) => format!("result {} {text}", result.call().value()),
            _ => format!("result {}", result.call().value()),
        }),
        Body::Reasoning(_)
        | Body::Media(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => None,
    }
}

/// The messages of a service's conversation that come behind what is known; `None` if it does not
/// begin with that.
fn behind<'m>(known: &[Said], held: &'m [Message]) -> Option<&'m [Message]> {
    let mut rest = known;
    for (place, message) in held.iter().enumerate() {
        if rest.is_empty() {
            return Some(&held[place..]);
        }
        let told: Vec<Said> = said(message).collect();
        rest = rest.strip_prefix(&told[..])?;
    }
    // Results that were never sent, and the end of an answer that was cut off, are only ours.
    Some(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(messages: &[Message]) -> Vec<String> {
        messages.iter().map(Message::text).collect()
    }

    #[test]
    fn what_a_service_has_behind_the_record_is_found_by_what_is_said() {
        let record = [Message::user("when?"), Message::assistant("at four")];
        let known: Vec<Said> = record.iter().flat_map(said).collect();
        let mut held = record.to_vec();
        assert_eq!(behind(&known, &held), Some(&[][..]));
        assert_eq!(behind(&known, &held[..1]), Some(&[][..]));
        held.push(Message::user("and tomorrow?"));
        assert_eq!(texts(behind(&known, &held).unwrap()), ["and tomorrow?"]);
        held[1] = Message::assistant("at five");
        assert_eq!(behind(&known, &held), None);
        assert_eq!(behind(&[], &held).unwrap().len(), 3);
    }
}
