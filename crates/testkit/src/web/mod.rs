//! The other side of a server of ours: a client that shows every byte, and a wire that can be cut.
//!
//! Not here on purpose: TLS, redirects, cookies, and retries. What a test did not ask for must not
//! happen.

mod client;
mod cut;
mod events;
#[cfg(test)]
mod tests;

pub use client::{Answer, Client, Request};
pub use cut::{Cut, Cutter};
pub use events::{Events, Frame};
