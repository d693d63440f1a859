//! The integration tests of this crate, in one executable: each executable costs a link and
//! another copy of the code that generics expand to.

mod compact;
mod convert;
mod serve;
mod store;
