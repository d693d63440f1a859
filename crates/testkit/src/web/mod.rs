//! A client for our server that shows every byte, and a proxy that can cut connections.
//!
//! Absent on purpose: TLS, redirects, cookies, and retries. The client does nothing that the test
//! did not request.

mod client;
mod cut;
mod events;
#[cfg(test)]
mod tests;

pub use client::{Answer, Client, Request};
pub use cut::{Cut, Cutter};
pub use events::{Events, Frame};
