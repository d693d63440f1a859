//! Two tenants side by side, both with data: the same thread ids, aliases, keys, run ids and approval
//! ids, and each with names of things that only the other has.
//!
//! What a tenant asks for by a name of the other is answered exactly as for a name that was never
//! given; nothing of the other changes; listings and counts show one's own. A case that looks for
//! strangers without data would prove nothing: its statements find no row.
//!
//! [`OPERATIONS`] names a case for each operation of the trait, and a test holds it against the
//! trait's source, so that a new operation without a case fails.

mod approvals;
mod begin;
mod cursors;
mod fingerprints;
mod messages;
mod runs;
#[cfg(test)]
mod tests;
mod threads;
mod twins;
mod upkeep;
mod wait_queue;

pub(super) use approvals::{tenants_answer_their_own_approvals, tenants_queue_their_own_messages};
pub(super) use begin::{
    tenants_begin_runs_under_the_same_names, tenants_take_their_own_calls_and_messages,
};
pub(super) use cursors::tenants_follow_their_own_threads;
pub(super) use fingerprints::tenants_find_their_own_items_by_fingerprints;
pub(super) use messages::{tenants_add_items_to_their_own_threads, tenants_redact_their_own_items};
pub(super) use runs::{
    tenants_look_into_their_own_runs, tenants_settle_their_own_runs,
    tenants_write_to_their_own_runs,
};
pub(super) use threads::{
    tenants_change_their_own_threads, tenants_delete_their_own_threads,
    tenants_list_their_own_threads, tenants_make_threads_of_the_same_names,
    tenants_open_their_own_threads,
};
pub(super) use upkeep::{tenants_are_looked_after_apart, tenants_import_under_the_same_names};
pub(super) use wait_queue::tenants_wait_in_their_own_lines;

/// How an operation is tested with two tenants.
#[cfg(test)]
enum With {
    /// By this case of the suite.
    Case(&'static str),
    /// It has no scope, and this is why nothing of a tenant goes through it.
    NoScope(&'static str),
}

/// The case in which two tenants use an operation of [`Engine`](crate::Engine), for each of them.
#[cfg(test)]
const OPERATIONS: &[(&str, With)] = {
    use With::{Case, NoScope};
    &[
        ("owner", NoScope("it names the process")),
        ("seal", Case("tenants_follow_their_own_threads")),
        ("open", Case("tenants_open_their_own_threads")),
        (
            "open_or_create",
            Case("tenants_make_threads_of_the_same_names"),
        ),
        ("fork", Case("tenants_make_threads_of_the_same_names")),
        ("patch", Case("tenants_change_their_own_threads")),
        ("threads", Case("tenants_list_their_own_threads")),
        ("tree", Case("tenants_list_their_own_threads")),
        ("node", Case("tenants_list_their_own_threads")),
        ("delete", Case("tenants_delete_their_own_threads")),
        ("read", Case("tenants_open_their_own_threads")),
        ("increment", Case("tenants_follow_their_own_threads")),
        ("cursor", Case("tenants_follow_their_own_threads")),
        ("changed", Case("tenants_follow_their_own_threads")),
        ("append", Case("tenants_add_items_to_their_own_threads")),
        ("redact", Case("tenants_redact_their_own_items")),
        ("begin", Case("tenants_begin_runs_under_the_same_names")),
        ("remote_call", Case("tenants_write_to_their_own_runs")),
        ("step", Case("tenants_write_to_their_own_runs")),
        ("intend", Case("tenants_write_to_their_own_runs")),
        ("ask", Case("tenants_answer_their_own_approvals")),
        ("results", Case("tenants_write_to_their_own_runs")),
        ("flush", Case("tenants_write_to_their_own_runs")),
        ("publish", Case("tenants_write_to_their_own_runs")),
        ("park", Case("tenants_write_to_their_own_runs")),
        ("end", Case("tenants_write_to_their_own_runs")),
        ("cancel", Case("tenants_settle_their_own_runs")),
        ("claim", Case("tenants_settle_their_own_runs")),
        ("claim_in_turn", Case("tenants_wait_in_their_own_lines")),
        ("join_wait_queue", Case("tenants_wait_in_their_own_lines")),
        ("leave_wait_queue", Case("tenants_wait_in_their_own_lines")),
        ("wait_queue", Case("tenants_wait_in_their_own_lines")),
        ("run", Case("tenants_look_into_their_own_runs")),
        (
            "run_by_key",
            Case("tenants_begin_runs_under_the_same_names"),
        ),
        (
            "find_fingerprints",
            Case("tenants_find_their_own_items_by_fingerprints"),
        ),
        ("cancelling", Case("tenants_look_into_their_own_runs")),
        ("journal", Case("tenants_look_into_their_own_runs")),
        ("runs", Case("tenants_look_into_their_own_runs")),
        ("events", Case("tenants_look_into_their_own_runs")),
        ("hide", Case("tenants_settle_their_own_runs")),
        ("note_delivered", Case("tenants_settle_their_own_runs")),
        ("answer", Case("tenants_answer_their_own_approvals")),
        ("approvals", Case("tenants_answer_their_own_approvals")),
        ("enqueue", Case("tenants_queue_their_own_messages")),
        ("queue", Case("tenants_queue_their_own_messages")),
        ("import", Case("tenants_import_under_the_same_names")),
        ("renew", NoScope("it says that the process is alive")),
        ("orphans", Case("tenants_are_looked_after_apart")),
        ("purge", Case("tenants_delete_their_own_threads")),
        ("check", Case("tenants_are_looked_after_apart")),
        ("profile", NoScope("it tells the settings of the engine")),
        ("backups", NoScope("a backup is of the whole store")),
        ("close", NoScope("it stops the process's work")),
    ]
};
