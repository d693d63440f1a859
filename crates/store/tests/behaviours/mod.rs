//! One test for each line of the behaviours of stores as history: its name is the line's number
//! and content. Each runs on every engine.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test says that it failed"
)]

mod atomic;
mod cursors;
mod damage;
mod filter;
mod ground;
mod lives;
mod order;
mod tokens;
mod writers;
