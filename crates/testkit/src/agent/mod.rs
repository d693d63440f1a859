//! A small agent for campaigns: what it does follows from the id of the run, so that any process
//! can go on where another one was killed, and an outsider knows what should be there.
//!
//! It says what it is about to do and what was acknowledged, word by word ([`Word`]); a [`Ledger`]
//! outside of its process keeps the words and compares them with the store.

mod driver;
mod ledger;
mod script;
pub mod turns;
mod word;

pub use driver::{Driver, Halt, Told};
pub use ledger::{Audit, Ledger};
pub use script::{Script, ScriptCall, Way};
pub use word::Word;
