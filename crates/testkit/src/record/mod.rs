//! Shared by tests of the record: short forms of messages, a reference tree, turns.

mod tree;
mod turn;

pub use tree::{Tree, totals};
pub use turn::{
    Turn, answered, assistant, begin, block_on, calling, short, shorts, user, whole_runs,
};
