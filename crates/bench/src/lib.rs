//! The part of the bench programs that tests have to reach.

pub mod asking;
