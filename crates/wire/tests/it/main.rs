//! Tests of the wire formats through the front door, in one program.

mod anthropic;
mod catalogue;
mod common;
mod properties;
mod sse;
