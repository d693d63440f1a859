//! Engines around engines: one that counts what is asked of it, and one that fails when it is told to.
//!
//! Both stand between a [`Store`](throughline_store::Store) and its engine, whichever that is, and
//! see calls as the layer above makes them. What fails below an engine is the business of
//! [`disk`](crate::disk), and what fails inside of one that of the store's own fault points.

mod counted;
mod faulty;
mod forward;

#[cfg(test)]
mod tests;

pub use counted::Counted;
pub use faulty::{Fault, Faulty};
pub use forward::Class;
