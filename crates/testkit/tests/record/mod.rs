//! The guarantees of the record, on real engines. Each test names its guarantee, and prints its
//! counts; `THROUGHLINE_SCALE=20` gives the full figures.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod ambiguous;
mod backups;
mod common;
mod cursors;
mod cuts;
mod damage;
mod kills;
mod ledger;
mod power;
mod simulation;
mod size;
mod storage;
mod trees;
mod work;
