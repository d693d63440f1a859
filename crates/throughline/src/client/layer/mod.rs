//! Layers around any client: retries within a budget, a circuit breaker, publishing each call,
//! compaction.

mod breaker;
mod budget;
mod compacting;
mod jitter;
mod persist;
mod retry;
mod state;

#[cfg(test)]
mod tests;

pub use breaker::{Breaker, BreakerPolicy};
pub use compacting::Compacts;
pub use persist::PersistEachCall;
pub use retry::{Retry, RetryPolicy};
pub use state::BreakerState;
