//! How large messages are, and what a vendor will bill for them.
//!
//! A *unit* is about one token of the vocabulary o200k. Units are counted once, when a message
//! enters a record, and stay with it ([`throughline_model::tokens`] counts them). What a vendor
//! bills differs by model and by what it adds on its side, so a [`Calibration`] learns from each
//! bill what units come to. Before the first bill it follows from the [`Family`] of the model and
//! from the [`Mix`] of languages, code and numbers. Stored units never change.

mod calibration;
mod family;
mod recent;

pub use calibration::{Calibration, Calibrations, Estimate};
pub use family::Family;
pub use recent::recent_mix;
pub use throughline_model::tokens::{Class, Mix, for_each_text, text_units, units};
