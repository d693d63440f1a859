//! Layers around any client: retries within a budget, a breaker, and publishing each call.

mod breaker;
mod budget;
mod jitter;
mod persist;
mod retry;
mod state;

#[cfg(test)]
mod tests;

pub use breaker::{Breaker, BreakerPolicy};
pub use persist::PersistEachCall;
pub use retry::{Retry, RetryPolicy};
pub use state::BreakerState;
