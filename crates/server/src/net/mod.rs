//! HTTP: who is let in, what is read of them, and what every answer has in common.
//!
//! Nothing here knows what a response is. A request passes, from the outside in: the number of
//! connections, the time for its head, [`observe`] (its id, its line in the log, its place in the
//! metrics), [`guard`] (whether it comes from where it says), the router, and the bounds of its body.

mod answer;
mod app;
mod body;
mod connections;
mod counters;
mod decode;
mod error;
mod guard;
mod health;
mod idle;
mod lanes;
mod logs;
mod models;
mod observe;
mod refuse;
mod routes;
mod server;
mod signals;
mod stopping;
mod watched;

pub use answer::json;
pub(crate) use answer::json_pieces;
pub use app::App;
pub use body::Payload;
pub use counters::HttpCounters;
pub use error::ServeError;
pub use guard::Caller;
pub use logs::{BadLog, log_to_stderr};
pub use observe::{Answered, RequestId};
pub use server::{Server, resume, serve, serve_on, serve_with};
pub use signals::Signals;
pub use stopping::Stopping;
pub(crate) use watched::Way;
