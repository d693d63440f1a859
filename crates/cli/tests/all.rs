//! The integration tests of this crate, in one executable, because each executable links all
//! dependencies and has its own copy of generic code.

mod compact;
mod convert;
mod serve;
mod store;
