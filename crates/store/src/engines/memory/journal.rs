//! What happens in a run between its beginning and its publication, and who goes on with it.

use crate::rules::calls::{AskedBefore, IntendedCall, Intent, StoredResult};
use crate::rules::lease::{ClaimedRun, WorkedTime};
use crate::{
    ApprovalState, CallRef, CallResult, CallState, Claim, ClaimInTurn, End, Flush, ItemNo, ItemRef,
    Lease, NewApproval, RemoteCall, Result, Run, RunId, RunState, Started, digest, rules,
};

use super::Transaction;
use super::schema::{CallRow, ItemRow, RemoteCallRow, RunRow, missing_row};

/// A result that is to be stored.
pub(super) struct NewResult {
    step: u32,
    position: u32,
    pub(super) no: ItemNo,
    item: ItemRow,
    ends: bool,
}

impl Transaction<'_> {
    /// The run of a lease that was not taken over.
    pub(super) fn leased(&self, lease: Lease) -> Result<&RunRow> {
        let run = self.tables.live_run(lease.run)?;
        rules::lease::fence(lease, run.epoch)?;
        Ok(run)
    }

    /// The same, if it is running.
    pub(super) fn at_work(&self, lease: Lease) -> Result<&RunRow> {
        let run = self.leased(lease)?;
        rules::lease::running(run.id, run.state)?;
        Ok(run)
    }

    pub(super) fn remote_call(&mut self, lease: Lease, call: &RemoteCall) -> Result<()> {
        let run = self.leased(lease)?;
        rules::remote_call::check(run.id, run.state, run.next_step, call)?;
        let tenant = &self.tables.tenant;
        let digest = digest::remote_call(tenant, run.id, call.step, call.handle.get());
        let now = self.now;
        let run = self.run_mut(lease.run)?;
        run.progress = now;
        run.remote = Some(RemoteCallRow {
            call: call.clone(),
            digest,
        });
        Ok(())
    }

    pub(super) fn intend(&mut self, lease: Lease, step: u32, positions: &[u32]) -> Result<()> {
        let run = self.at_work(lease)?;
        let mut fresh = Vec::with_capacity(positions.len());
        for position in positions {
            let at = run.at(step, *position);
            let call = run.known_call(at)?;
            let call = IntendedCall {
                state: call.state,
                epoch: call.intent,
                approval: self.approval_state(call),
            };
            if rules::calls::intend(at, &call, lease.epoch)? != Intent::Repeated {
                fresh.push(*position);
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }

        let mut used = Vec::new();
        let now = self.now;
        let run = self.run_mut(lease.run)?;
        run.progress = now;
        for position in fresh {
            let Some(call) = run.call_mut(step, position) else {
                continue;
            };
            if call.state == CallState::Approval {
                used.extend(call.approval);
            }
            call.state = CallState::Intent;
            call.intent = lease.epoch;
        }
        for approval in used {
            self.set_approval(approval, ApprovalState::Used);
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, lease: Lease, approvals: &[NewApproval]) -> Result<()> {
        let run = self.at_work(lease)?;
        let mut fresh: Vec<NewApproval> = Vec::with_capacity(approvals.len());
        for approval in approvals {
            let at = run.at(approval.step, approval.position);
            let call = run.known_call(at)?;
            let before = match self.approval_call(approval.id) {
                None => AskedBefore::No,
                Some(of) if of == at => AskedBefore::ForThisCall,
                Some(_) => AskedBefore::ForAnother,
            };
            if rules::calls::ask(at, call.state, approval, before, &fresh)? {
                fresh.push(approval.clone());
            }
        }

        let (now, thread) = (self.now, run.thread);
        for approval in fresh {
            let run = self.run_mut(lease.run)?;
            run.progress = now;
            if let Some(call) = run.call_mut(approval.step, approval.position) {
                call.state = CallState::Approval;
                call.approval = Some(approval.id);
            }
            self.insert_approval(thread, lease.run, &approval);
        }
        Ok(())
    }

    pub(super) fn results(&mut self, lease: Lease, results: &[CallResult]) -> Result<()> {
        let run = self.at_work(lease)?;
        let results = self.check_results(run, results)?;
        let now = self.now;
        self.run_mut(lease.run)?.progress = now;
        self.store_results(lease.run, results);
        Ok(())
    }

    /// The results that are new, if all of them can be stored.
    pub(super) fn check_results(
        &self,
        run: &RunRow,
        results: &[CallResult],
    ) -> Result<Vec<NewResult>> {
        let mut new: Vec<NewResult> = Vec::with_capacity(results.len());
        for result in results {
            let place = run.at(result.step, result.position);
            let call = run.known_call(place)?;
            let at = ItemRef {
                run: run.id,
                no: call.result,
            };
            let is_given = new.iter().any(|earlier| earlier.no == at.no);
            let stored = match (call.state, run.item(at.no)) {
                (CallState::Done, _) => match self.is_stored(run, result)? {
                    true => StoredResult::Same,
                    false => StoredResult::Other,
                },
                (_, Some(_)) => StoredResult::Gap,
                (_, None) => StoredResult::Nothing,
            };
            if rules::calls::result(place, call.state, stored, is_given)? {
                new.push(NewResult {
                    step: result.step,
                    position: result.position,
                    no: at.no,
                    item: self.item(at, &result.item)?,
                    ends: result.ends,
                });
            }
        }
        Ok(new)
    }

    /// Whether a result is there as it is given.
    pub(super) fn is_stored(&self, run: &RunRow, result: &CallResult) -> Result<bool> {
        let call = run.known_call(run.at(result.step, result.position))?;
        let item = std::slice::from_ref(&result.item);
        Ok(call.state == CallState::Done
            && call.ends == result.ends
            && self.has_items(run, call.result, item))
    }

    pub(super) fn store_results(&mut self, id: RunId, results: Vec<NewResult>) {
        for result in results {
            self.count_ref(&result.item);
            let Some(run) = self.tables.runs.get_mut(&id) else {
                return;
            };
            let mut approval = None;
            if let Some(call) = run.call_mut(result.step, result.position) {
                call.state = CallState::Done;
                call.ends = result.ends;
                approval = call.approval;
            }
            run.unanswered = run.unanswered.saturating_sub(1);
            if let Some(slot) = run.items.get_mut(result.no as usize - 1) {
                *slot = Some(result.item);
            }
            if let Some(approval) = approval {
                self.withdraw_one(approval);
            }
        }
    }

    pub(super) fn flush(&mut self, lease: Lease, events: &Flush) -> Result<()> {
        let run = self.leased(lease)?;
        if run.has_events(events) {
            return Ok(());
        }
        rules::lease::running(run.id, run.state)?;
        rules::lease::next_events(run.id, run.next_event, Some(events))?;
        let now = self.now;
        let run = self.run_mut(lease.run)?;
        run.add_events(Some(events));
        run.progress = now;
        Ok(())
    }

    pub(super) fn park(&mut self, lease: Lease, events: Option<&Flush>) -> Result<()> {
        let run = self.leased(lease)?;
        if run.state == RunState::Parked && events.is_none_or(|events| run.has_events(events)) {
            return Ok(());
        }
        rules::lease::running(run.id, run.state)?;
        rules::lease::next_events(run.id, run.next_event, events)?;
        let now = self.now;
        let run = self.run_mut(lease.run)?;
        run.add_events(events);
        run.progress = now;
        run.state = RunState::Parked;
        run.owner = None;
        let row = run.row;
        self.shared.running.remove(&row);
        Ok(())
    }

    pub(super) fn end(&mut self, lease: Lease, end: &End) -> Result<()> {
        let run = self.leased(lease)?;
        let has_events = |events| run.has_events(events);
        if rules::publish::is_ended(&self.run_view(run)?, end)
            && end.events.as_ref().is_none_or(has_events)
        {
            return Ok(());
        }
        rules::lease::running(run.id, run.state)?;
        rules::lease::next_events(run.id, run.next_event, end.events.as_ref())?;
        let now = self.now;
        let run = self.run_mut(lease.run)?;
        run.add_events(end.events.as_ref());
        run.progress = now;
        run.note.clone_from(&end.note);
        let (state, withdraws) = rules::publish::stopped(end.how);
        self.settle(lease.run, state)?;
        if withdraws {
            self.withdraw(lease.run);
        }
        Ok(())
    }

    /// A run is over, and its thread is free.
    pub(super) fn settle(&mut self, id: RunId, state: RunState) -> Result<()> {
        let run = self.run_mut(id)?;
        run.state = state;
        let (row, thread) = (run.row, run.thread);
        // An unpublished run may still be published on its base.
        if state != RunState::Unpublished {
            self.tables.unpin_base(id);
        }
        self.shared.running.remove(&row);
        if let Some(thread) = self.tables.threads.get_mut(&thread)
            && thread.unsettled == Some(id)
        {
            thread.unsettled = None;
        }
        Ok(())
    }

    pub(super) fn note_delivered(&mut self, runs: &[RunId]) {
        for id in runs {
            if let Some(run) = self.tables.runs.get_mut(id) {
                run.delivered = true;
            }
        }
    }

    pub(super) fn cancel(&mut self, id: RunId) -> Result<Run> {
        if !self.tables.run(id)?.state.is_settled() {
            self.run_mut(id)?.cancelling = true;
        }
        self.run(id)
    }

    /// A run may be claimed like this: where it stands.
    fn check_claim(&self, id: RunId, seen: u32, claim: Claim) -> Result<RunState> {
        let run = self.tables.live_run(id)?;
        rules::lease::claimed_epoch(id, seen, run.epoch)?;
        let thread = self.thread_of(run)?;
        let state = self.shared.state(run, self.now);
        let of = ClaimedRun {
            run: id,
            thread: &thread.id,
            state,
            is_own: run.state == RunState::Running && run.owner == Some(self.me),
        };
        rules::lease::claim(&of, claim)?;
        if rules::lease::claim_needs_free_thread(state, run.leased) {
            rules::begin::free(&thread.id, self.holder(thread))?;
        }
        Ok(state)
    }

    pub(super) fn claim_in_turn(&mut self, asked: &ClaimInTurn) -> Result<Started> {
        let ClaimInTurn {
            run,
            seen,
            claim,
            waiter,
            after,
        } = *asked;
        self.shared.renew(self.me, self.until);
        self.check_claim(run, seen, claim)?;
        let row = self.tables.live_run(run)?;
        let thread = row.leased.then_some(row.thread);
        if let Some(thread) = thread {
            let thread = self.tables.thread_row(thread)?;
            rules::begin::turn(&thread.id, waiter, self.first_waiter(thread))?;
        }
        let started = self.claim(run, seen, claim)?;
        if let Some(thread) = thread {
            self.take_turn(thread, waiter, after);
        }
        Ok(started)
    }

    pub(super) fn claim(&mut self, id: RunId, seen: u32, claim: Claim) -> Result<Started> {
        self.shared.renew(self.me, self.until);
        let state = self.check_claim(id, seen, claim)?;
        let run = self.tables.live_run(id)?;
        let owner = run.owner.filter(|owner| *owner != self.me);
        let owner = owner.filter(|_| run.state == RunState::Running);
        let owner = owner.and_then(|owner| self.shared.owners.get(&owner));
        let lease = self.until.saturating_sub(self.now);
        let lost = owner.map(|owner| (owner.until, lease));
        let last = rules::lease::last_worked(run.progress, lost);

        let (me, now) = (self.me, self.now);
        let run = self.run_mut(id)?;
        run.worked = WorkedTime {
            before: run.worked.until(last),
            since: now,
        };
        run.state = RunState::Running;
        run.epoch += 1;
        run.attempt += rules::lease::attempts_of_claim(state);
        run.owner = Some(me);
        run.progress = now;
        run.answer = None;
        let (row, thread, leased) = (run.row, run.thread, run.leased);
        let running = (self.tables.scope.clone(), id);
        self.shared.running.insert(row, running);
        if let Some(thread) = self.tables.threads.get_mut(&thread)
            && leased
        {
            thread.unsettled = Some(id);
        }
        self.started(self.tables.live_run(id)?)
    }

    pub(super) fn run_mut(&mut self, id: RunId) -> Result<&mut RunRow> {
        self.tables.runs.get_mut(&id).ok_or_else(|| missing_row(id))
    }
}

impl RunRow {
    pub(super) fn at(&self, step: u32, position: u32) -> CallRef {
        CallRef {
            run: self.id,
            step,
            position,
        }
    }

    /// A call that it planned.
    fn known_call(&self, at: CallRef) -> Result<&CallRow> {
        let call = self.call(at.step, at.position);
        call.ok_or_else(|| rules::calls::unknown(at))
    }

    /// Whether events are there already, exactly as given.
    fn has_events(&self, events: &Flush) -> bool {
        let known = self
            .flushes
            .binary_search_by_key(&events.first, Flush::first);
        events.count == 0 || known.is_ok_and(|place| self.flushes[place] == *events)
    }
}
