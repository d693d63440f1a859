//! Engines around engines: one that counts calls, and one that fails on command.
//!
//! Both stand between a [`Store`](throughline_store::Store) and any engine, and see calls as the
//! layer above makes them. [`disk`](crate::disk) simulates faults below an engine, and the store's
//! own fault points those inside of it.

mod counted;
mod faulty;
mod forward;

#[cfg(test)]
mod tests;

pub use counted::Counted;
pub use faulty::{Fault, Faulty};
pub use forward::Class;
