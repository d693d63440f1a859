//! Tests of the wire formats through the front door, in one program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what helpers of tests cannot read is a failed test"
)]

mod anthropic;
mod catalogue;
mod chat;
mod common;
mod compose;
mod cut;
mod exact;
mod foundry;
mod gemini;
mod gemini_interactions;
mod gemini_support;
mod histories;
mod matrix;
mod properties;
mod render;
mod snapshots;
mod sse;
mod trajectories;
mod unnatural;
mod validate;
