//! Tests of the behaviours that concern storage; each name has the number and the content of a
//! rule. They run on every engine, with whole and with streamed answers.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests, and tables are printed for people"
)]

mod accepted_calls;
mod actions;
mod approvals;
mod busy;
mod cached_nodes;
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
mod keepers;
mod keepers_matrix;
mod matrix;
mod moving;
mod narrative;
mod open_nodes;
mod owners;
mod prefixes;
mod providers;
mod queue;
mod redactions;
mod run_memory;
mod same_run;
mod sequences;
mod snapshot;
mod sources;
mod stacks;
mod tokens;
mod view_settings;
mod warnings;
