//! HTTP as every API has it: connections and their limits, request bodies, logs and counters.
//!
//! This module knows neither routes nor runs. A request passes, from the outside in: the limit on
//! connections, the timeout for its head, [`observe`] (request id, log line, metrics), then the router
//! with [`auth`](crate::auth), and [`Payload`], which limits its body.

mod answer;
mod body;
mod connections;
mod counters;
mod decode;
mod idle;
mod lanes;
mod logs;
mod observe;
mod refuse;
mod signals;
mod state;
mod watched;

pub use answer::json;
pub use body::Payload;
pub(crate) use connections::Connections;
pub use counters::HttpCounters;
pub(crate) use lanes::Lanes;
pub use logs::{BadLog, log_to_stderr};
pub(crate) use observe::observe;
pub use observe::{Answered, RequestId};
pub use signals::Signals;
pub use state::NetState;
pub(crate) use watched::Way;
