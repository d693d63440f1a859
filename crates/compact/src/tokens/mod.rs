//! How large messages are, and what a vendor will bill for them.
//!
//! A *unit* is about one token of a present-day vocabulary. Units are counted once, when a message
//! enters a record, and stay with it ([`throughline_model::tokens`] counts them). What a vendor
//! bills differs by model and by what it adds on its side, so a [`Calibration`] learns from each
//! bill what units come to. Stored units never change.

mod calibration;

pub use calibration::{Calibration, Calibrations, Estimate};
pub use throughline_model::tokens::{text_units, units};
