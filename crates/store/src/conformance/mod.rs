//! The suite that every engine passes: what `docs/record.md` says, as tests against the trait.
//!
//! An engine of one's own is tested with one line:
//!
//! `throughline_store::conformance!(MyHarness::new());`
//!
//! Cases never look behind the trait, never sleep, and set the clock by hand.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests, to be run by the test programs of engines"
)]

mod approvals;
mod cursors;
mod deleting;
mod deliveries;
mod edges;
mod fingerprints;
mod fixture;
mod imports;
mod leases;
mod listings;
mod messages;
mod modes;
mod queues;
mod redactions;
mod refusals;
mod remote_calls;
mod repeats;
mod results;
mod tenants;
mod threads;
mod tokens;
mod tree;
mod turns;
mod wait_queues;

use async_trait::async_trait;

use crate::{Options, Store};

pub use fixture::Fixture;

/// How the suite gets at an engine.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Open the store; each call is another process on the same store.
    async fn open(&self, options: Options) -> Store;
}

/// Make the list of cases once: functions to call, and the macro that makes tests of them.
macro_rules! cases {
    (($d:tt) $($(#[doc = $doc:literal])* $module:ident :: $case:ident,)*) => {
        $($(#[doc = $doc])* pub async fn $case(harness: &dyn Harness) {
            $module::$case(&mut Fixture::new(harness).await).await;
        })*

        /// The names of all cases.
        pub const CASES: &[&str] = &[$(stringify!($case)),*];

        /// Make a test of each case of the suite. The expression makes a new harness on an empty
        /// store.
        #[macro_export]
        macro_rules! conformance {
            ($d harness:expr) => {
                $(#[test]
                fn $case() {
                    let harness = $d harness;
                    $crate::conformance::block_on($crate::conformance::$case(&harness));
                })*
            };
        }
    };
}

cases! {
    ($)
    /// A thread is made once and opened by its id and its aliases.
    threads::a_thread_opens_by_every_name,
    /// An alias belongs to one thread.
    threads::an_alias_belongs_to_one_thread,
    /// What is not set in a patch stays.
    threads::a_patch_changes_what_it_names,
    /// The thread that moved last is listed first.
    threads::the_thread_that_moved_last_comes_first,
    /// Listings page by last touch and filter.
    threads::listings_page_and_filter,
    /// Threads are found by a part of their title, and by when they were opened.
    listings::threads_are_found_by_title_and_age,
    /// Threads are found by the agent and the model of their newest turn.
    listings::threads_are_found_by_their_newest_turn,
    /// Threads are found by the state of their newest run.
    listings::threads_are_found_by_the_state_of_their_newest_run,
    /// Another tenant sees nothing.
    threads::another_tenant_sees_nothing,
    /// A place leads to what its own tenant has there.
    tenants::tenants_open_their_own_threads,
    /// A name that another tenant has is free.
    tenants::tenants_make_threads_of_the_same_names,
    /// A patch changes the thread of its tenant.
    tenants::tenants_change_their_own_threads,
    /// Listings, trees and nodes are those of one tenant.
    tenants::tenants_list_their_own_threads,
    /// A thread of the same name in another tenant survives.
    tenants::tenants_delete_their_own_threads,
    /// Cursors, versions and seals are those of one tenant.
    tenants::tenants_follow_their_own_threads,
    /// Items are added under keys and run ids that another tenant has.
    tenants::tenants_add_items_to_their_own_threads,
    /// An item is redacted by its own tenant.
    tenants::tenants_redact_their_own_items,
    /// Runs begin under keys, ids and names that another tenant has.
    tenants::tenants_begin_runs_under_the_same_names,
    /// A digest finds the items of its own tenant.
    tenants::tenants_find_their_own_items_by_fingerprints,
    /// Calls, messages and items are taken from one's own tenant.
    tenants::tenants_take_their_own_calls_and_messages,
    /// A lease is good in its own tenant.
    tenants::tenants_write_to_their_own_runs,
    /// What is known of runs is that of one's own.
    tenants::tenants_look_into_their_own_runs,
    /// Runs are cancelled, claimed and hidden by their own tenant.
    tenants::tenants_settle_their_own_runs,
    /// An approval is answered and used by its own tenant.
    tenants::tenants_answer_their_own_approvals,
    /// A queue is that of one's own thread.
    tenants::tenants_queue_their_own_messages,
    /// Runs of two tenants wait for threads of the same id, each in its own wait queue.
    tenants::tenants_wait_in_their_own_lines,
    /// An import goes under names and ids that another tenant has.
    tenants::tenants_import_under_the_same_names,
    /// Orphans and what is swept up belong to their tenants.
    tenants::tenants_are_looked_after_apart,
    /// Messages wait in a queue and are taken with a run.
    threads::queued_messages_are_taken_with_a_run,
    /// Messages of the queue go with the step or the publication that delivers them.
    queues::queued_messages_go_with_what_delivers_them,
    /// Which messages a write delivers is part of what it says.
    queues::a_delivery_is_part_of_its_write,
    /// One read, two writes, and the next turn sees the first.
    turns::a_plain_turn,
    /// A run that opens its thread.
    turns::a_run_opens_its_thread,
    /// A second leased run is refused with the holder.
    turns::a_busy_thread_names_its_holder,
    /// A caller that saw an old head is told.
    turns::a_stale_version_is_refused,
    /// The same key and request is one run.
    turns::a_key_makes_one_run,
    /// Steps come in order.
    turns::steps_come_in_order,
    /// Events come in order and stay.
    turns::events_come_in_order,
    /// A request is kept with the run.
    turns::the_request_is_kept,
    /// What the layer above notes with a publication.
    turns::a_note_stays_with_its_run,
    /// A failed run leaves the head where it was.
    turns::a_failed_run_leaves_the_head,
    /// A cancelled run is published, closed.
    turns::a_cancelled_run_is_published_closed,
    /// A run that said nothing ends without a node.
    turns::a_run_without_items_ends_without_a_node,
    /// What cannot be stored is refused and loses nothing.
    turns::bad_writes_lose_nothing,
    /// `per_run`: readers see none or all.
    modes::per_run_shows_none_or_all,
    /// `per_call`: each call is a node.
    modes::per_call_shows_each_call,
    /// Results that were never sent are reported, sent first, stored once.
    modes::unsent_results_go_with_the_next_run,
    /// Results come in any order and are read in the order of the calls.
    modes::results_come_in_any_order,
    /// A result that never came leaves a gap, not a wrong neighbour.
    modes::a_missing_result_leaves_a_gap,
    /// A result that comes after its place was published is refused.
    modes::a_gap_that_was_published_stays,
    /// A call has one result and one intent.
    modes::a_call_has_one_result,
    /// That a tool asked for the end of the run survives its process.
    results::a_result_that_ends_the_run_says_so,
    /// A message tells the numbers of its items, also where some are missing.
    results::a_message_names_its_items,
    /// An unpublished run can be published or discarded.
    modes::unpublished_runs_are_published_or_discarded,
    /// A free run moves the head only from its base.
    tree::a_free_run_moves_the_head_or_branches,
    /// A thread behind a conversation is moved by leased runs only.
    tree::leased_threads_are_moved_by_leased_runs,
    /// Continuing from any node is legal and leaves the rest alone.
    tree::any_node_can_be_continued,
    /// A fork shares what was before and nothing after.
    tree::a_fork_shares_its_past,
    /// A fork of a fork of a fork.
    tree::forks_of_forks,
    /// The tree lists parents before children, in pages.
    tree::the_tree_lists_parents_first,
    /// A run that is not published cannot be continued.
    tree::an_unpublished_run_cannot_be_continued,
    /// What was seen when something was opened is not what counts when a run begins there.
    tree::what_was_opened_is_looked_at_again,
    /// A run begins on a remembered thread only while the thread is as remembered.
    tree::a_remembered_thread_must_be_as_it_was,
    /// State is that of the node.
    tree::state_is_kept_per_node,
    /// A hidden run's id is gone, its content is not.
    tree::a_hidden_run_keeps_its_content,
    /// Pages never end inside a message.
    messages::pages_hold_whole_messages,
    /// Reading forwards and backwards gives the same messages.
    messages::reading_goes_both_ways,
    /// Unknown vendors' words, metadata and ids survive.
    messages::messages_come_back_as_they_were,
    /// A message gets an id that stays.
    messages::message_ids_stay,
    /// Items that say something again share its body.
    messages::saying_again_shares_the_body,
    /// Large bodies come back.
    messages::large_bodies_come_back,
    /// A redacted body is gone everywhere and says so.
    messages::a_redacted_body_is_gone,
    /// What is left of a redacted round of calls still pairs calls with results.
    redactions::what_is_left_pairs_calls_with_results,
    /// What was derived from a redacted message is gone from its branches, and from no other.
    redactions::what_was_derived_goes_with_the_message,
    /// What else of a run says the words of its items goes with them.
    redactions::approvals_and_requests_say_nothing_more,
    /// A run does not go on from messages that were read before a redaction.
    redactions::a_run_does_not_go_on_from_what_was_removed,
    /// What is redacted is not told by the events of its run either.
    messages::a_redacted_answer_is_gone_from_the_events,
    /// Items added by hand.
    messages::items_are_added_by_hand,
    /// Walking by cursor gives everything once.
    cursors::increments_give_everything_once,
    /// A cursor of an abandoned branch names the common ancestor.
    cursors::a_cursor_on_an_abandoned_branch_says_so,
    /// A thread made anew under an old name has other cursors.
    cursors::a_cursor_of_a_deleted_thread_fits_no_new_one,
    /// Forged and foreign cursors are refused.
    cursors::forged_cursors_are_refused,
    /// A seal is for one tenant, one purpose and these bytes.
    cursors::a_seal_is_for_one_tenant_one_purpose_and_these_bytes,
    /// Callers that wait for a thread are woken.
    cursors::a_change_wakes_whoever_waits,
    /// A run whose owner is gone is interrupted and claimed once.
    leases::an_orphan_is_claimed_once,
    /// The old owner is fenced in every write.
    leases::the_old_owner_is_fenced_everywhere,
    /// An intent of another owner is no leave to dispatch.
    leases::the_intent_of_a_lost_owner_is_not_ones_own,
    /// A heartbeat keeps all runs of a process.
    leases::a_heartbeat_keeps_every_run,
    /// A parked run has no owner and waits.
    leases::a_parked_run_waits,
    /// A run that its process has given up is taken over by that process alone.
    leases::a_run_that_was_given_up_is_claimed_by_its_process,
    /// Only a worker that was lost counts as an attempt.
    leases::going_on_with_a_parked_run_is_no_take_over,
    /// What a claim gives is enough to go on.
    leases::the_journal_is_enough_to_go_on,
    /// A cancel is seen by the owner.
    leases::a_cancel_is_seen,
    /// Which answers were delivered is noted for many runs at once, and outlives the process.
    deliveries::deliveries_are_noted_for_many_runs_at_once,
    /// A note is the run's: it changes nothing else, and goes with it.
    deliveries::a_note_of_a_delivery_goes_with_its_run,
    /// Items are found by digests, published or not.
    fingerprints::items_are_found_by_their_fingerprints,
    /// A digest that many items have finds the newest.
    fingerprints::the_newest_items_of_a_fingerprint_are_found,
    /// A digest of no item is refused.
    fingerprints::a_fingerprint_needs_its_item,
    /// What is deleted or hidden is not found.
    fingerprints::fingerprints_go_with_their_items,
    /// The first waiter begins next, and no newcomer in between.
    wait_queues::waiters_begin_in_the_order_in_which_they_came,
    /// Lining up twice is one place; leaving twice is leaving.
    wait_queues::a_place_is_taken_and_given_up_once,
    /// A dead process waits for nothing.
    wait_queues::a_place_lapses_with_the_lease_of_its_process,
    /// The first waiter settles what was left, and begins after it.
    wait_queues::a_left_run_is_taken_over_in_turn,
    /// A run that fails changes no order.
    wait_queues::a_run_that_fails_changes_no_order,
    /// A wait queue belongs to one thread of one tenant.
    wait_queues::a_line_goes_with_its_thread,
    /// An approval is answered once, for what was shown, in time.
    approvals::an_approval_is_answered_once,
    /// A call that waits for leave is not dispatched without it.
    approvals::no_intent_without_leave,
    /// An answer that was used can be sent again, and opens nothing.
    approvals::an_answer_that_was_used_is_no_new_one,
    /// A planned call can be made to wait for leave.
    approvals::a_planned_call_waits_when_leave_is_asked_for,
    /// Approvals end with their run.
    approvals::approvals_end_with_their_run,
    /// A waiting call is taken over once.
    approvals::a_waiting_call_is_taken_once,
    /// The handle of a remote call is shown until its step is stored; a later one replaces it.
    remote_calls::a_remote_call_is_journaled_until_its_step,
    /// The process that takes a run over finds the handle, and the one before is fenced.
    remote_calls::a_remote_call_outlives_its_process,
    /// A remote call is for the step that comes next, while the run is running.
    remote_calls::a_remote_call_is_for_the_next_step_of_a_running_run,
    /// The handle of a remote call is deleted with its thread.
    remote_calls::a_remote_call_goes_with_its_run,
    /// What is redacted may stand in a handle too.
    remote_calls::redacting_an_item_removes_the_remote_call_of_its_run,
    /// Engines refuse calls and claims in the same words.
    refusals::refusals_of_calls_and_runs_are_worded_alike,
    /// A begin is known by its key first, then by the id of its run.
    refusals::a_key_is_looked_at_before_the_id_of_a_run,
    /// Engines say in the same words what is not there.
    refusals::what_is_not_there_is_refused_alike,
    /// Where a run begins is looked at before the calls that it takes, and those before the lease.
    refusals::a_run_is_begun_at_a_place_before_calls_are_taken,
    /// Every write can be sent again.
    repeats::every_write_can_be_sent_again,
    /// The same write with other content is not the same.
    repeats::other_content_is_not_a_repeat,
    /// A deleted thread is gone at once, and for its runs.
    deleting::a_deleted_thread_is_gone,
    /// What a fork shares survives the original.
    deleting::a_fork_survives_its_origin,
    /// What a fork of a fork shares survives both, before they are swept too.
    deleting::a_fork_of_a_fork_survives_both_origins,
    /// Threads outlive their time and are swept.
    deleting::old_threads_are_swept,
    /// The store says that it is whole.
    deleting::the_store_is_whole,
    /// An imported thread is invisible until it is complete.
    imports::an_import_shows_when_it_is_complete,
    /// Names and positions are those of the export.
    imports::an_import_keeps_names_and_positions,
    /// A begin that makes its thread, and the key that ends when its run is hidden.
    edges::a_begin_with_a_new_thread_and_a_key_can_be_sent_again,
    /// A place that was published without a result stays empty.
    edges::a_place_that_was_published_empty_stays_empty,
    /// Everything, the last step, or an item: a node ends where it is told to.
    edges::a_publication_goes_as_far_as_it_is_told,
    /// A run without steps has nothing to publish up to its last step.
    edges::a_publication_to_the_last_step_of_a_run_without_steps_makes_no_node,
    /// An approval that was given is used by the process that goes on with the run.
    edges::a_parked_run_goes_on_elsewhere_after_its_approval,
    /// An unpublished run cannot be published once the head has moved.
    edges::an_unpublished_run_is_too_late_for_a_head_that_moved,
    /// A run without anything to publish is answered with the node that it has.
    edges::an_empty_publication_answers_with_the_node_before,
    /// Items of a deleted thread can be exported and redacted as long as a fork has them.
    edges::what_a_fork_says_again_outlives_its_origin,
    /// Results that were never sent stay as long as a fork may send them.
    edges::unsent_results_stay_with_a_fork_that_has_not_sent_them,
    /// A cursor of a deleted thread has moved, also while the new thread is empty.
    edges::a_cursor_of_a_thread_that_was_made_anew_has_moved,
    /// A run that was hidden while it ran is claimed and published.
    edges::a_hidden_run_can_still_be_ended_by_its_owner,
    /// Calls are taken all together.
    edges::calls_are_taken_with_their_run_or_not_at_all,
    /// Every step of an import can be sent again.
    edges::imports_can_be_sent_again,
    /// No limit is too small or too large.
    edges::limits_of_any_size_are_fine,
    /// Whichever way an item enters, it is counted, and its thread's total is the sum.
    tokens::every_item_is_counted_when_it_enters,
    /// Results that go out with a later run are in the totals of the branches that have them.
    tokens::results_that_are_sent_later_are_counted_once_on_each_branch,
    /// The total of a fork has what it shares in it, also after its origin was deleted.
    tokens::a_fork_counts_what_it_shares,
    /// What is imported counts as where it comes from, also what was redacted there.
    tokens::an_imported_item_keeps_its_count,
}

/// Run a future on this thread. Engines need no runtime, so the suite does not either.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::park();
    }
}
