//! Layers around any client: retries within a budget, and a breaker.

mod breaker;
mod budget;
mod jitter;
mod retry;

#[cfg(test)]
mod tests;

pub use breaker::{Breaker, BreakerPolicy, BreakerState};
pub use retry::{Retry, RetryPolicy};
