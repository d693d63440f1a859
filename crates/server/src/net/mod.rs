//! HTTP as every API has it: connections and their limits, request bodies, logs and metrics.
//!
//! This module knows neither routes nor runs. A request passes, from the outside in: the limit on
//! connections, the timeout for its head, [`observe`] (request id, log line, metrics), then the router
//! with [`auth`](crate::auth), and [`Payload`], which limits its body.

mod answer;
mod body;
mod conn_runtimes;
mod conn_state;
mod connections;
mod decode;
mod idle;
mod logs;
mod metrics;
mod observe;
mod refuse;
mod signals;
mod state;
mod upgrade;

pub(crate) use answer::event_stream;
pub use answer::json;
pub use body::Payload;
pub(crate) use conn_runtimes::ConnRuntimes;
pub(crate) use conn_state::DeliveryProbe;
pub(crate) use connections::Connections;
pub use logs::{BadLog, log_to_stderr};
pub use metrics::HttpMetrics;
pub(crate) use metrics::register_gauge;
pub(crate) use observe::observe;
pub use observe::{Answered, RequestId};
pub use signals::Signals;
pub use state::NetState;
pub(crate) use upgrade::{HeldConnection, Upgrade};
