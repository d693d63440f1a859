//! The integration tests of this crate, in one executable.

mod behaviours;
mod calibration;
mod invariants;
