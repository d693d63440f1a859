//! Layers around any client: retries within a budget, and a breaker.

mod breaker;
mod budget;
mod jitter;
mod retry;
mod state;

#[cfg(test)]
mod tests;

pub use breaker::{Breaker, BreakerPolicy};
pub use retry::{Retry, RetryPolicy};
pub use state::BreakerState;
