//! Shared code of Throughline's tests and bench programs.
//!
//! All randomness comes from a seed, and checks of JSON use a reader of their own, so that a
//! mistake in the code under test cannot hide behind the same mistake in its test. This crate is
//! not published and not meant for production code.

mod json_eq;
mod reader;
mod rng;
mod scratch;

pub mod agent;
pub mod bench;
pub mod checkers;
pub mod chunks;
#[cfg(feature = "trials")]
pub mod disk;
pub mod engines;
pub mod generate;
pub mod heap;
#[cfg(feature = "agents")]
pub mod loopkill;
pub mod messages;
pub mod mutate;
pub mod openapi;
pub mod property;
pub mod record;
pub mod recorded;
#[cfg(feature = "agents")]
pub mod scripted;
#[cfg(feature = "server")]
pub mod serverkill;
#[cfg(feature = "agents")]
pub mod stage;
pub mod trajectory;
#[cfg(feature = "agents")]
pub mod upstream;
#[cfg(feature = "agents")]
pub mod web;

pub use json_eq::{Compare, Numbers, Strings, json_eq, json_eq_with};
pub use property::property;
pub use rng::Rng;
pub use scratch::Scratch;
