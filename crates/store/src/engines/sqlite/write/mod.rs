//! The one connection that writes, and the queue of operations that wait for it.

pub(super) mod disk;
pub(super) mod hot;
pub(super) mod pen;
pub(super) mod queue;
pub(super) mod writer;
