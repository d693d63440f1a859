//! What the record promises, on real engines. Each test names the guarantee it is about, and
//! prints its counts; `THROUGHLINE_SCALE=20` gives the full figures.

#[path = "record/backups.rs"]
mod backups;
#[path = "record/common.rs"]
mod common;
#[path = "record/cursors.rs"]
mod cursors;
#[path = "record/damage.rs"]
mod damage;
#[path = "record/kills.rs"]
mod kills;
#[path = "record/size.rs"]
mod size;
#[path = "record/trees.rs"]
mod trees;
