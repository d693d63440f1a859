//! What compaction does in its corners, line by line.

mod groups;
mod limits;
mod remains;
mod stable;
mod told;
