//! Every mistake that can be planted: first those that campaigns must find, then small ones, mostly
//! in the journal, in leases and in cursors, which any test may find.

/// A mistake that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Its name, for `THROUGHLINE_PLANTED`.
    pub name: &'static str,
    /// What the code no longer does.
    pub what: &'static str,
    /// Parts of statements, and what stands there instead; none if the code asks by name.
    pub edits: &'static [(&'static str, &'static str)],
    /// Whether it is a small one, which any test may find; the others are for the campaigns.
    pub small: bool,
    /// Why nothing has to find it: what else stands in the way.
    pub reviewed: Option<&'static str>,
}

const fn bug(
    name: &'static str,
    what: &'static str,
    edits: &'static [(&'static str, &'static str)],
) -> Mistake {
    Mistake {
        name,
        what,
        edits,
        small: false,
        reviewed: None,
    }
}

const fn small(
    name: &'static str,
    what: &'static str,
    edits: &'static [(&'static str, &'static str)],
) -> Mistake {
    Mistake {
        name,
        what,
        edits,
        small: true,
        reviewed: None,
    }
}

const fn reviewed(
    name: &'static str,
    edits: &'static [(&'static str, &'static str)],
    why: &'static str,
) -> Mistake {
    Mistake {
        name,
        what: "the statement says so",
        edits,
        small: true,
        reviewed: Some(why),
    }
}

/// Every mistake that can be planted.
#[rustfmt::skip]
pub const MISTAKES: &[Mistake] = &[
    bug("ack-before-commit", "an acknowledgement waits for the commit", &[]),
    bug("no-sync", "a commit is synced to the disk", &[]),
    bug("events-unsync-others", "what is committed with events waits for the disk", &[]),
    bug("lossy-log", "nothing is written behind what a sync may have lost", &[]),
    bug("expects-nothing", "a run that begins by what is remembered of its thread finds it so", &[]),
    bug("full-is-fine", "a full disk is reported", &[]),
    bug("no-fence", "a write carries the epoch of its lease", &[("AND epoch=?14 AND", "AND ?14 IS NOT NULL AND"), ("AND epoch=?6 AND", "AND ?6 IS NOT NULL AND"), ("AND epoch=?4 AND state=1", "AND ?4 IS NOT NULL AND state=1")]),
    bug("no-fence-no-state", "neither of the two is checked", &[("AND epoch=?14 AND state=1 AND next_step=?15", "AND ?14 IS NOT NULL AND ?15 IS NOT NULL"), ("AND epoch=?6 AND state=1 AND next_step=?7", "AND ?6 IS NOT NULL AND ?7 IS NOT NULL"), ("AND epoch=?4 AND state=1 AND next_step=?5", "AND ?4 IS NOT NULL AND ?5 IS NOT NULL")]),
    bug("no-head-check", "a publication finds the head where its run began", &[("(version=?19 OR NOT ?20)", "(?19 IS NOT NULL OR NOT ?20)"), ("(version=?15 OR NOT ?4)", "(?15 IS NOT NULL OR NOT ?4)"), ("AND thread.version=?12", "AND ?12 IS NOT NULL"), ("WHERE thread=?5 AND version=?6", "WHERE thread=?5 AND ?6 IS NOT NULL"), ("WHERE thread=?3 AND version=?4 AND", "WHERE thread=?3 AND ?4 IS NOT NULL AND")]),
    bug("no-intent", "an intent is stored before a call is dispatched", &[("UPDATE call SET state=?, epoch=? WHERE run=?", "UPDATE call SET state=?, epoch=? WHERE 0 AND run=?")]),
    bug("key-by-process", "the key of a call is the same for every process that dispatches it", &[]),
    bug("result-unmarked", "a result that is stored ends its call", &[("UPDATE call SET state=? WHERE run=?", "UPDATE call SET state=? WHERE 0 AND run=?")]),
    bug("publish-in-two", "a publication is one transaction", &[]),
    bug("repeat-refused", "a step that is sent again is answered as the first time", &[]),
    bug("key-ignored", "a request under a known key finds its run", &[]),
    bug("cursor-skips", "a page begins with the first message after its cursor", &[]),
    bug("tail-splits", "a window holds whole messages", &[]),
    bug("fork-late", "a branch sees its ancestors and nothing else", &[]),
    bug("items-unread", "an item is checked against its digest", &[]),
    bug("nodes-unread", "a node is checked against its digest", &[]),
    bug("fork-uncounted", "what a fork shares is in its total of tokens", &[]),
    bug("restore-running", "restored runs are held", &[]),
    bug("purge-shared", "what a fork still reaches is kept", &[]),
    bug("erase-later", "erased bytes leave the log too", &[]),
    bug("loop-no-intent", "an intent is recorded before a call is dispatched", &[]),
    bug("loop-lost-again", "a call that is not declared safe is not run again when its result is lost", &[]),
    bug("loop-results-late", "results are stored before the model is asked again", &[]),
    bug("loop-no-publish", "a run is published before it is acknowledged", &[]),
    bug("loop-service-forgotten", "a run that is gone on with knows what the service calls it", &[]),
    bug("loop-service-place-forgotten", "it is known how far each of several services was sent a conversation", &[]),
    bug("loop-append-renumbered", "an append that is made again has the same idempotency value", &[]),
    bug("loop-append-unjournaled", "the application's store gets messages after the journal has them", &[]),
    bug("loop-handle-unjournaled", "the handle of an accepted call is in the journal before its answer is waited for", &[]),
    bug("loop-handle-forgotten", "a run that is gone on with asks for an answer that is under way", &[]),
    bug("loop-parity-keeps-cut", "with parity, a call that was cut leaves nothing in the history", &[]),
    bug("loop-asks-again", "a finished model call is not made again", &[]),
    bug("loop-approval-kept", "an approval is used up before its call is dispatched", &[]),
    bug("loop-ends-early", "readers hear of the end after the commit", &[]),
    bug("loop-delivers-twice", "a queued message is taken from the queue with the step that says it", &[]),
    bug("loop-never-sealed", "a run that was taken over too often is given up", &[]),
    bug("approval-by-id", "a call is found by its place, not by its id", &[]),
    bug("queue-newcomer-first", "while others wait for a thread, a run begins there in its turn alone", &[("AND (NOT ?4 OR ?17 OR NOT EXISTS(SELECT 1 FROM waiter WHERE waiter.thread=?3))", "AND ?17 IS NOT NULL")]),
    bug("queue-dead-waiter-kept", "the place of a waiter lapses with the lease of its process", &[("AND o.until>?2 ORDER BY w.no", "AND ?2 IS NOT NULL ORDER BY w.no")]),
    bug("queue-place-kept", "a waiter that goes away gives up its place", &[]),
    bug("server-webhook-removed-early", "an event for webhooks is removed from the store before it is posted", &[]),
    bug("server-retry-anew", "a request that is sent again finds a run from before the process", &[]),
    bug("server-events-unstored", "what readers of a stream are told is stored before", &[]),
    bug("server-unrecorded-end", "no client is told of an end that is not recorded", &[]),
    bug("server-tells-again", "a stream goes on after the event that its reader names", &[]),
    bug("fingerprints-lost", "what finds an item is stored with it", &[]),
    bug("record-prefix-ignored", "a recorded request goes on after the answer that it has", &[]),
    bug("record-stored-again", "what a client sends again is stored once", &[]),
    bug("record-answer-unwritten", "an answer is recorded before its client has all of it", &[]),
    bug("compact-cut-in-group", "a view is cut between groups", &[]),
    bug("compact-result-alone", "a result whose call is digested is no result any more", &[]),
    bug("compact-intent-digested", "the first request is shown as it was said", &[]),
    bug("compact-schemas-uncounted", "what is sent beside a view counts towards its budget", &[]),
    bug("compact-epoch-swapped", "an epoch replaces the one that it was made after, and no other", &[]),
    bug("compact-blocks-forgotten", "a new epoch takes over the blocks of the one before", &[]),
    bug("compact-order-by-chance", "the same record gives the same bytes", &[]),
    bug("compact-error-left-out", "a digest tells what went wrong", &[]),
    bug("compact-code-left-out", "a digest tells what a command ended with", &[]),
    bug("compact-gain-unasked", "an epoch that gains too little is not made", &[]),
    small("loop-input-with-answers", "input beside answers is refused on a parked run", &[]),
    small("loop-queue-forgotten", "a run that is resumed says what was queued for it", &[]),
    small("loop-time-forgotten", "time that a run has used counts when it is resumed", &[]),
    small("loop-limits-lifted", "what a failed run has used of its limits counts in its place", &[]),
    small("loop-results-dropped", "results that the store refuses are kept in memory", &[]),
    small("loop-cut-call-run", "a call that the output limit cut off does not run", &[]),
    small("compact-outcome-left-out", "a digest names an outcome that is not ok", &[]),
    small("compact-outcome-clipped", "the shortest lines of a digest still name the outcome", &[]),
    small("compact-outcomes-merged", "only lines of equal outcome become one", &[]),
    small("compact-claimed-done", "what did not run is not told as done", &[]),
    small("compact-open-digested", "a call that waits is never digested", &[]),
    small("compact-open-pins-later", "a round that waits stays, and none of the later ones with it", &[]),
    small("compact-requests-whole", "a request that does not fit is shown in part", &[]),
    small("compact-digests-give-way", "digests have their share of every budget", &[]),
    small("compact-placeholders-uncounted", "what rendering adds counts towards the budget", &[]),
    small("compact-short-without-error", "a failed result in part has its first error", &[]),
    small("compact-failures-settled", "what still fails keeps its first error", &[]),
    small("compact-reads-digested", "the last read of a file that is worked on stays in full", &[]),
    small("compact-epoch-unkept", "an epoch is published with the run that made it", &[]),
    small("loop-failed-without-cause", "a failed run prints why it failed", &[]),
    small("loop-failed-prints-all", "a failed run prints none of its messages", &[]),
    small("loop-discards-working", "a run that a task of this process works on is not discarded", &[]),
    small("parts-uncounted", "every result of a round is counted", &[]),
    small("old-items-uncounted", "items from before counting are counted when a store is migrated", &[]),
    small("again-uncounted", "what is said again counts as it did", &[("SELECT i.kind, i.source, i.units, coalesce(o.item", "SELECT i.kind, i.source, 0*i.units, coalesce(o.item")]),
    small("damage-unnamed", "damage names the thread that was read", &[]),
    small("damage-node-blamed", "an item that is damaged is named, and not only its node", &[]),
    bug("server-orphans-in-turn", "a run that stalls keeps no other from being taken over", &[]),
    small("server-key-pinned", "a request whose run failed for a passing reason goes on when it comes again", &[]),
    small("server-delivery-forgotten", "an answer that was delivered before the process is not given again", &[]),
    small("server-key-unstored", "an idempotency key with store: false is refused", &[]),
    bug("server-memory-unbounded", "what peers make a server hold is bounded", &[]),
    small("files-public", "only the owner of a store can read its files", &[]),
    small("server-no-sweep", "a running server removes threads whose time is over", &[]),
    small("lease-tenant", "a remembered run is written to by its own tenant", &[]),
    small("cursor-unsealed", "a cursor of another tenant is refused", &[]),
    small("queue-last-first", "the first in a line is the one that came first", &[("AND o.until>?2 ORDER BY w.no LIMIT 1", "AND o.until>?2 ORDER BY w.no DESC LIMIT 1")]),
    small("queue-lapsed-kept", "a place that was passed over is gone", &[("DELETE FROM waiter WHERE thread=? AND no<?", "DELETE FROM waiter WHERE 0 AND thread=? AND no<?")]),
    small("queue-place-twice", "a run that has a place keeps it", &[("SELECT no FROM waiter WHERE thread=? AND run=?", "SELECT no FROM waiter WHERE 0 AND thread=? AND run=?")]),
    small("queue-used-kept", "a run that begins gives up its place", &[("DELETE FROM waiter WHERE thread=?1 AND run=?2", "DELETE FROM waiter WHERE 0 AND thread=?1 AND run=?2")]),
    small("queue-settler-unlined", "a run that settles another one first has a place in line", &[]),
    small("loop-cancel-late", "a cancel after the commit is answered with what was committed", &[]),
    small("loop-resume-raced", "a resume that another worker was faster than looks again", &[]),
    small("claim-living", "a run is taken over only from an owner that is gone", &[]),
    small("claim-others", "a run that is given up is taken over by its own process alone", &[]),
    small("no-step-state", "a write finds its run running, at its step", &[("AND state=1 AND next_step=?15", "AND ?15 IS NOT NULL"), ("AND state=1 AND next_step=?7", "AND ?7 IS NOT NULL"), ("AND state=1 AND next_step=?5", "AND ?5 IS NOT NULL")]),
    small("step-order", "a step is the next one", &[]),
    small("event-order", "events are the next ones", &[]),
    small("claim-epoch-seen", "a claim names the epoch that it saw", &[]),
    small("claim-busy", "an unpublished run is claimed while no run holds its thread", &[]),
    small("key-other-body", "a key with another request is refused", &[]),
    small("busy-unasked", "a thread with an unsettled run is busy", &[]),
    small("take-taken", "a call that was taken is not taken again", &[]),
    small("repeat-other", "a repeated step must say the same", &[]),
    small("intend-again", "an intent of another epoch is not intended again", &[]),
    small("approval-unasked", "a call that waits for an approval needs one that says yes", &[]),
    small("approval-other", "an approval is answered for the arguments that were shown", &[]),
    small("approval-late", "an approval is answered before it expires", &[]),
    small("result-twice", "a call has one result", &[]),
    small("result-other", "a call that has a result gets no other one", &[]),
    small("result-gap", "a result comes before its node", &[]),
    small("panic-uncaught", "an operation that panics fails alone", &[]),
    small("late-refusal", "what a refused operation wrote is undone", &[]),
    small("cursor-moved", "a cursor of another branch is refused", &[]),
    small("cursor-beyond", "a cursor stands within its thread", &[]),
    small("page-cuts", "a page ends with a whole message", &[]),
    reviewed("line-position", &[], "a timeline below the position leads to the same ancestors"),
    small("run-version", "the statement says so", &[("(version=?15 OR NOT ?4)", "(?15 IS NOT NULL OR NOT ?4)")]),
    small("run-stage", "the statement says so", &[("WHERE thread=?3 AND stage=0 AND", "WHERE thread=?3 AND")]),
    small("publish-epoch", "the statement says so", &[("AND epoch=?14 AND", "AND ?14 IS NOT NULL AND")]),
    reviewed("publish-state", &[("AND epoch=?14 AND state=1 AND", "AND epoch=?14 AND")], "a run that is settled has no epoch to publish with in the cache, and is refused by name when it is read anew"),
    reviewed("publish-step", &[("AND next_step=?15", "AND ?15 IS NOT NULL")], "the number of the step is compared with what is remembered, and what is remembered changes with each step"),
    reviewed("publish-item", &[("AND next_item=?16", "AND ?16 IS NOT NULL")], "items are numbered by what is remembered; a second writer of the epoch would find its item taken"),
    reviewed("publish-event", &[("AND next_event<=?17", "AND ?17 IS NOT NULL")], "events are numbered by the log, which refuses what is not next"),
    reviewed("publish-version", &[("(version=?19 OR NOT ?20)", "(?19 IS NOT NULL OR NOT ?20)")], "a leased run keeps others from moving the head; no-head-check takes all of its guards away and is found"),
    small("publish-live", "the statement says so", &[("SET state=?1, live=NULL, flags=flags & 183", "SET state=?1, flags=flags & 183")]),
    small("publish-flags", "the statement says so", &[("flags=flags & 183 | ?2, next_item", "flags=?2, next_item")]),
    reviewed("publish-next-event", &[("next_step=?4, next_event=?5,", "next_step=?4, next_event=?5-?5,")], "the number of the next event follows from the events that are stored"),
    small("publish-note", "the statement says so", &[("progress=?10, note=?11", "progress=?10, note=nullif(?11, ?11)")]),
    reviewed("head-version", &[("WHERE thread=?3 AND version=?4 AND", "WHERE thread=?3 AND ?4 IS NOT NULL AND")], "the publication before it in the transaction checked the version"),
    small("head-same", "the statement says so", &[("SET head_first=?1, version=version+1, touched=?2", "SET head_first=?1, touched=?2")]),
    small("head-stays", "the statement says so", &[("SET head_first=?1, version=version+1", "SET head_first=coalesce(head_first, ?1), version=version+1")]),
    small("head-minute", "the statement says so", &[("AND head_tl=?5 AND recent=?6", "AND head_tl=?5 AND ?6 IS NOT NULL")]),
    small("step-epoch", "the statement says so", &[("AND epoch=?6 AND state=1 AND next_step=?7", "AND ?6 IS NOT NULL AND state=1 AND next_step=?7")]),
    small("remote-call-unfenced", "the handle of a remote call is stored under the lease of its run", &[("AND epoch=?4 AND state=1 AND next_step=?5", "AND ?4 IS NOT NULL AND state=1 AND next_step=?5")]),
    small("remote-call-stale", "the handle of a step that is stored is not shown", &[]),
    small("remote-call-kept", "the handle of a remote call goes with its run", &[("DELETE FROM remote_call WHERE run=?", "DELETE FROM remote_call WHERE 0 AND run=?")]),
    reviewed("step-state", &[("AND epoch=?6 AND state=1 AND next_step=?7", "AND epoch=?6 AND next_step=?7")], "a run that is settled is forgotten, and refused by name when it is read anew"),
    reviewed("step-number", &[("AND next_step=?7", "AND ?7 IS NOT NULL")], "the number is compared with what is remembered, and what is remembered changes with each step"),
    reviewed("step-item", &[("AND next_item=?8", "AND ?8 IS NOT NULL")], "items are numbered by what is remembered; a second writer of the epoch would find its item taken"),
    small("step-stays", "the statement says so", &[("SET next_step=next_step+1, next_item=?1", "SET next_step=next_step, next_item=?1")]),
    reviewed("step-version", &[("AND thread.version=?12", "AND ?12 IS NOT NULL")], "a leased run keeps others from moving the head; no-head-check takes all of its guards away and is found"),
    small("step-node", "the statement says so", &[("SET pub_tl=?, pub_first=?, pub_step=?, version=?, flags=flags & 255 | ? WHERE run=?", "SET pub_tl=?, pub_first=?, pub_step=?, version=?, flags=flags & 255 | ? WHERE 0 AND run=?")]),
    reviewed("leased-version", &[("head_digest=?7 WHERE thread=?5 AND version=?6", "head_digest=?7 WHERE thread=?5 AND ?6 IS NOT NULL")], "the statement before it in the transaction checked the version"),
    small("free-head", "the statement says so", &[("AND head_tl IS ?2 AND head_first IS ?3", "AND (?2 IS NULL OR ?3 IS NULL OR 1)")]),
    small("free-settings", "the statement says so", &[("AND head_first IS ?3 AND moved_by=0", "AND head_first IS ?3")]),
    small("free-minute", "the statement says so", &[("AND head_tl=?4 AND recent=?7", "AND head_tl=?4 AND ?7 IS NOT NULL")]),
    small("base-place", "the statement says so", &[("AND r.pub_tl=?3 AND r.pub_first=?4", "AND ?3 IS NOT NULL AND ?4 IS NOT NULL")]),
    small("base-hidden", "the statement says so", &[("AND r.flags & 32=0 AND t.stage=0", "AND t.stage=0")]),
    reviewed("base-stage", &[("AND r.flags & 32=0 AND t.stage=0", "AND r.flags & 32=0")], "the statement that inserts the run asks for the stage too"),
    small("free-lease", "the statement says so", &[("AND NOT EXISTS(SELECT 1 FROM run WHERE run.thread=?1 AND run.live=0)", "")]),
    small("intent-others", "the statement says so", &[("UPDATE call SET state=?, epoch=? WHERE run=? AND step=? AND pos=?", "UPDATE call SET state=?, epoch=? WHERE run=? AND step=? AND pos>=?")]),
    small("intent-epoch", "the statement says so", &[("UPDATE call SET state=?, epoch=? WHERE", "UPDATE call SET state=?, epoch=epoch+0*? WHERE")]),
    small("result-others", "the statement says so", &[("UPDATE call SET state=? WHERE run=? AND step=? AND pos=?", "UPDATE call SET state=? WHERE run=? AND step=? AND pos>=?")]),
    small("result-ends", "the statement says so", &[("UPDATE call SET effect=effect|? WHERE run=?", "UPDATE call SET effect=effect+0*? WHERE run=?")]),
    reviewed("call-number", &[("WHERE c.run=? AND c.step=? AND c.pos=?", "WHERE c.run=? AND c.step=? AND c.pos>=?")], "calls are read in the order of their numbers, which have no gaps: the first one found is the one asked for"),
    small("park-state", "the statement says so", &[("SET state=?, owner=NULL, next_event=?", "SET state=state+0*?, owner=NULL, next_event=?")]),
    small("end-live", "the statement says so", &[("SET state=?, live=NULL, next_event=?, progress=?, note=?", "SET state=?, next_event=?, progress=?, note=?")]),
    small("cancel-unmarked", "the statement says so", &[("UPDATE run SET flags=flags|? WHERE run=?", "UPDATE run SET flags=flags WHERE ? IS NULL AND run=?")]),
    small("claim-epoch", "the statement says so", &[("epoch=epoch+1, attempt=attempt+?5, progress=?2", "attempt=attempt+?5, progress=?2")]),
    small("claim-attempt", "the statement says so", &[("epoch=epoch+1, attempt=attempt+?5, progress=?2", "epoch=epoch+1, attempt=attempt+0*?5, progress=?2")]),
    small("claim-parked", "the statement says so", &[("epoch=epoch+1, attempt=attempt+?5, progress=?2", "epoch=epoch+1, attempt=attempt+1+0*?5, progress=?2")]),
    small("claim-owner", "the statement says so", &[("SET state=1, owner=?1, epoch", "SET state=1, owner=coalesce(owner, ?1), epoch")]),
    small("claim-state", "the statement says so", &[("UPDATE run SET state=1, owner=?1", "UPDATE run SET owner=?1")]),
    small("orphan-living", "the statement says so", &[("AND o.until>?1", "AND o.until>?1+100000000")]),
    small("orphan-settled", "the statement says so", &[("WHERE r.live IS NOT NULL AND r.state=1 AND t.stage=0", "WHERE r.live IS NOT NULL AND t.stage=0")]),
    reviewed("orphan-deleted", &[("r.state=1 AND t.stage=0", "r.state=1")], "a run of a deleted thread is no longer live"),
    small("beat-once", "the statement says so", &[("ON CONFLICT(id) DO UPDATE SET until=?2", "ON CONFLICT(id) DO UPDATE SET until=until")]),
    small("take-unmarked", "the statement says so", &[("UPDATE call SET state=?1, taken_by=?2 WHERE run=", "UPDATE call SET state=?1, taken_by=?2 WHERE 0 AND run=")]),
    small("dequeue-never", "the statement says so", &[("DELETE FROM queue WHERE no=?", "DELETE FROM queue WHERE 0 AND no=?")]),
    small("approval-unused", "the statement says so", &[("SET state=3 WHERE run=? AND step=? AND pos=? AND state=1", "SET state=3 WHERE 0 AND run=? AND step=? AND pos=?")]),
    small("approval-kept", "the statement says so", &[("UPDATE approval SET state=4 WHERE run=? AND state=0", "UPDATE approval SET state=4 WHERE 0 AND run=?")]),
    small("approval-call-kept", "the statement says so", &[("UPDATE approval SET state=4 WHERE run=? AND step=? AND pos=? AND state=0", "UPDATE approval SET state=4 WHERE 0 AND run=? AND step=? AND pos=?")]),
    small("answer-unsaid", "the statement says so", &[("SET state=?, answered_by=?, answered_at=?, reason=? WHERE approval=?", "SET state=?, answered_by=nullif(?, ''), answered_at=?, reason=? WHERE approval<=?")]),
    reviewed("delete-epoch", &[("SET live=NULL, state=9, epoch=epoch+1, owner=NULL WHERE", "SET live=NULL, state=9, owner=NULL WHERE")], "a run of a deleted thread is no longer running, and that is checked too"),
    small("delete-live", "the statement says so", &[("SET live=NULL, state=9, epoch=epoch+1, owner=NULL WHERE thread=? AND live IS NOT NULL", "SET owner=NULL WHERE 0 AND thread=?")]),
    small("node-before", "the statement says so", &[("WHERE n.tl=? AND n.first<=? ORDER BY n.first DESC", "WHERE n.tl=? AND n.first<? ORDER BY n.first DESC")]),
    small("window-end", "the statement says so", &[("AND n.first<=?3", "AND n.first<?3")]),
    reviewed("window-start", &[("(SELECT max(first) FROM node WHERE tl=?1 AND first<=?2)", "(SELECT max(first) FROM node WHERE tl=?1 AND first<?2)")], "one node more is read, and left out by position"),
    small("unsettled-none", "the statement says so", &[("WHERE r.thread=? AND r.live=0", "WHERE r.thread=? AND r.live=0 AND 0")]),
    small("event-guard", "the statement says so", &[("WHERE run=?4 AND id=?5 AND epoch=?6 AND state=1", "WHERE run=?4 AND id=?5 AND ?6 IS NOT NULL")]),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::MISTAKES;

    fn sources(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("trials") {
                sources(&path, text);
            } else if path.is_file() {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }

    /// A mistake that the code cannot make would count as one that nothing finds.
    #[test]
    fn every_mistake_fits_the_code() {
        let mut text = String::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        sources(&folder.join("src"), &mut text);
        // Mistakes of other layers are planted in their crates.
        sources(&folder.join("../compact/src"), &mut text);
        sources(&folder.join("../throughline/src"), &mut text);
        sources(&folder.join("../server/src"), &mut text);
        let mut names = std::collections::BTreeSet::new();
        for mistake in MISTAKES {
            assert!(
                names.insert(mistake.name),
                "{} is there twice",
                mistake.name
            );
            let named = text.contains(&format!("\"{}\"", mistake.name));
            assert!(
                named || !mistake.edits.is_empty(),
                "{} is nowhere",
                mistake.name
            );
            for (from, _) in mistake.edits {
                assert!(
                    text.contains(from),
                    "{}: no statement has {from}",
                    mistake.name
                );
            }
        }
        assert!(MISTAKES.iter().filter(|mistake| !mistake.small).count() >= 12);
        assert!(MISTAKES.iter().filter(|mistake| mistake.small).count() >= 60);
    }
}
