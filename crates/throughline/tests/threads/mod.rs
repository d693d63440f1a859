//! One test for each line of the library's behaviours that has to do with what is kept: its name is
//! the line's number and content. Each runs on every engine, whole and streamed.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests, and tables are printed for people"
)]

mod acts;
mod approvals;
mod busy;
mod cancels;
mod compaction;
mod crashes;
mod discards;
mod events;
mod external;
mod failures;
mod filters;
mod foreign;
mod history_bytes;
mod identity;
mod json;
mod look;
mod matrix;
mod moving;
mod narrative;
mod open_nodes;
mod owners;
mod prefixes;
mod providers;
mod queue;
mod remembered;
mod same_run;
mod sequences;
mod sources;
mod stacks;
mod tokens;
mod warnings;
mod wishes;
