//! Approvals: asked for with a step, answered once, used once.

use std::ops::Bound;

use crate::{
    Answer, Approval, ApprovalFilter, ApprovalId, ApprovalState, CallRef, Listing, Millis,
    NewApproval, PageToken, Result, RunId, rules,
};

use super::schema::{ApprovalRow, CallRow, Row, missing_row};
use super::{MAX_READ, Transaction};
use crate::rules::{exists, not_found};

impl Transaction<'_> {
    pub(super) fn check_new_approval(&self, id: ApprovalId) -> Result<()> {
        match self.tables.approval_rows.get(&id) {
            Some(_) => Err(exists("approval", id)),
            None => Ok(()),
        }
    }

    pub(super) fn insert_approval(&mut self, thread: Row, run: RunId, new: &NewApproval) {
        let row = self.shared.row();
        self.tables.approval_rows.insert(new.id, row);
        let approval = ApprovalRow {
            id: new.id,
            thread,
            call: CallRef {
                run,
                step: new.step,
                position: new.position,
            },
            shown: new.shown,
            state: ApprovalState::Waiting,
            created: self.now,
            expires: new.expires,
            detail: new.detail.clone(),
            answered: None,
            reason: None,
        };
        self.tables.approvals.insert(row, approval);
    }

    fn approval(&self, id: ApprovalId) -> Option<&ApprovalRow> {
        self.tables
            .approvals
            .get(self.tables.approval_rows.get(&id)?)
    }

    fn approval_mut(&mut self, id: ApprovalId) -> Option<&mut ApprovalRow> {
        let row = self.tables.approval_rows.get(&id)?;
        self.tables.approvals.get_mut(row)
    }

    /// The stored state of the approval that a call waits for.
    pub(super) fn approval_state(&self, call: &CallRow) -> Option<ApprovalState> {
        let approval = call.approval.and_then(|id| self.approval(id));
        approval.map(|approval| approval.state)
    }

    /// The call that an approval is for.
    pub(super) fn approval_call(&self, id: ApprovalId) -> Option<CallRef> {
        self.approval(id).map(|approval| approval.call)
    }

    pub(super) fn set_approval(&mut self, id: ApprovalId, state: ApprovalState) {
        if let Some(approval) = self.approval_mut(id) {
            approval.state = state;
        }
    }

    /// The answer is not needed any more.
    pub(super) fn withdraw_one(&mut self, id: ApprovalId) {
        if let Some(approval) = self.approval_mut(id)
            && approval.state == ApprovalState::Waiting
        {
            approval.state = ApprovalState::Withdrawn;
        }
    }

    /// Its call was taken over: an approval that was given is used up, one without an answer is withdrawn.
    pub(super) fn use_up(&mut self, id: ApprovalId) {
        if let Some(approval) = self.approval_mut(id) {
            approval.state = rules::approvals::taken_over(approval.state);
        }
    }

    /// Withdraw all approvals of a run that have no answer.
    pub(super) fn withdraw(&mut self, run: RunId) {
        let Some(run) = self.tables.runs.get(&run) else {
            return;
        };
        let waiting: Vec<_> = run.calls.iter().filter_map(|call| call.approval).collect();
        for approval in waiting {
            self.withdraw_one(approval);
        }
    }

    pub(super) fn answer(&mut self, answer: &Answer) -> Result<Approval> {
        let id = answer.approval;
        let now = self.now;
        let approval = self.approval(id).ok_or_else(|| not_found("approval", id))?;
        let known = rules::approvals::AskedApproval {
            state: approval.state_at(now),
            shown: &approval.shown,
            answered_by: approval.answered.as_ref().map(|(by, _)| by.as_str()),
            reason: approval.reason.as_deref(),
        };
        let Some(decided) = rules::approvals::answer(&known, answer)? else {
            return self.approval_view(approval);
        };
        let row = self.approval_mut(id).ok_or_else(|| missing_row(id))?;
        row.state = decided;
        row.answered = Some((answer.by.clone(), now));
        row.reason.clone_from(&answer.reason);
        let approval = self.approval(id).ok_or_else(|| missing_row(id))?;
        self.approval_view(approval)
    }

    pub(super) fn approvals(
        &self,
        filter: &ApprovalFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Approval>> {
        if let Some(thread) = &filter.thread {
            self.tables.thread(thread)?;
        }
        let limit = limit.min(MAX_READ);
        let end = after.map_or(Bound::Unbounded, |token| Bound::Excluded(token.row));
        let mut found = Vec::new();
        let mut next = None;
        for (row, approval) in self.tables.approvals.range((Bound::Unbounded, end)).rev() {
            let waiting = approval.state_at(self.now) == ApprovalState::Waiting;
            if filter.waiting && !waiting {
                continue;
            }
            let view = self.approval_view(approval)?;
            if filter
                .thread
                .as_ref()
                .is_some_and(|thread| *thread != view.thread)
            {
                continue;
            }
            if found.len() == limit {
                return Ok(Listing { found, next });
            }
            found.push(view);
            next = Some(PageToken { key: 0, row: *row });
        }
        Ok(Listing { found, next: None })
    }

    fn approval_view(&self, approval: &ApprovalRow) -> Result<Approval> {
        Ok(Approval {
            id: approval.id,
            thread: self.tables.thread_row(approval.thread)?.id.clone(),
            call: approval.call,
            shown: approval.shown,
            state: approval.state_at(self.now),
            created: approval.created,
            expires: approval.expires,
            detail: approval.detail.clone(),
            answered: approval.answered.clone(),
            reason: approval.reason.clone(),
        })
    }
}

impl ApprovalRow {
    /// Where it stands at a time.
    fn state_at(&self, now: Millis) -> ApprovalState {
        rules::approvals::state_at(self.state, self.expires, now)
    }
}
