//! Model calls of requests that bring their whole conversation and keep nothing: Chat Completions and
//! Anthropic's Messages.
//!
//! Such a request goes straight to the client of its upstream, with the same breaker, retries and
//! memory budget as the calls of a run. There is no run and no journal, because there is nothing to
//! continue: when the client disconnects, the call is dropped with the request. With `[record]` what is
//! said is written to the store beside the call (`record`).

mod call;
mod event_body;
mod losses;
mod record;

pub(crate) use call::{SentMessages, StatelessCall, client_agent};
pub(crate) use event_body::{EventWriter, event_body};
pub(crate) use losses::{LossPlaces, report_ignored, with_losses};
pub(crate) use record::{CallRecord, name_thread};
