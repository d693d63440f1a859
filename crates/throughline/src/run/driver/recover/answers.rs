//! Answers to the waiting calls of a resumed run: replies of the caller, and answers in the store.

use throughline_store::{
    Approval, ApprovalState, ArgumentsDigest, Decision, Error, Journal, Unanswerable,
};

use crate::run::driver::approvals::{find_approvals, store_decision};
use crate::run::driver::tools::judge;
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::handle::Answered;
use crate::run::machine::{Order, Resolution};
use crate::run::outcome::{Left, Outcome, RunError, RunFailed};
use crate::thread::StopReason;
use crate::thread::journal::Awaits;

impl Driver {
    /// Take the replies of the caller and the answers in the store, and continue if no call waits.
    pub(crate) async fn apply_replies(
        &mut self,
        order: Order,
        journal: &Journal,
        replies: &[Answered],
    ) -> Result<Order, DriverError> {
        self.request_missing_approvals().await?;
        let tools = self.tools.set();
        let round = (self.run, self.tools.round.step, &self.turn);
        let (resolved, ready) = judge::resolve_replies(round, &tools, journal, replies)?;
        let known = self.approvals().await?;
        for one in resolved {
            let resolution = self.record_decision(one.position, one.resolution, &known);
            let resolution = resolution.await?;
            // It is a waiting call, so that it cannot be refused.
            let _ = self.turn.resolve(one.position, resolution);
        }
        self.tools.ready.extend(ready);
        self.apply_stored_answers(&known, &tools);
        if !self.turn.is_parked() {
            // Approved calls start when the calls that were dispatched before have ended.
            return Ok(order);
        }
        self.read_own_queue().await?;
        Ok(self.turn.resume())
    }

    /// Request approvals for calls that were planned when their tools needed none.
    async fn request_missing_approvals(&mut self) -> Result<(), DriverError> {
        let mut asked = Vec::new();
        for one in self.turn.waiting() {
            let known = self.tools.round.approvals.contains_key(&one.position);
            if one.awaits == Awaits::Approval && !known {
                asked.push(self.new_approval(one.call, one.position, one.awaits));
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        self.log.recorder.ask(&asked).await?;
        let records = asked.iter().map(|one| (one.position, (one.id, one.shown)));
        self.tools.round.approvals.extend(records);
        Ok(())
    }

    /// The approvals that calls of this round wait for.
    async fn approvals(&self) -> Result<Vec<Approval>, DriverError> {
        let waiting = self.turn.waiting();
        let wanted: Vec<_> = waiting
            .iter()
            .filter_map(|one| Some(self.tools.round.approvals.get(&one.position)?.0))
            .collect();
        let thread = self.context.thread_id();
        Ok(find_approvals(&self.context, thread, &wanted).await?)
    }

    /// Store the decision on an approval before it takes effect. The first decision stands.
    async fn record_decision(
        &self,
        position: u32,
        resolution: Resolution,
        known: &[Approval],
    ) -> Result<Resolution, DriverError> {
        let Some(approval) = self.approval_of(position, known) else {
            return Ok(resolution);
        };
        let (decision, reason) = match &resolution {
            Resolution::Approved(_) => (Decision::Approved, None),
            Resolution::Rejected { reason } => (Decision::Denied, reason.clone()),
            Resolution::Expired if is_answered(approval) => {
                return Err(self.answered_before(position));
            }
            Resolution::Expired | Resolution::Result { .. } => return Ok(resolution),
        };
        if is_answered(approval) {
            return self.same_decision(position, resolution, approval);
        }
        match store_decision(&self.context, approval, decision, reason).await {
            Ok(_) => Ok(resolution),
            // Another answer was faster.
            Err(Error::NotAnswerable {
                why: Unanswerable::Answered,
                ..
            }) => {
                let now = self.approvals().await?;
                match self.approval_of(position, &now) {
                    Some(approval) => self.same_decision(position, resolution, approval),
                    None => Err(self.answered_before(position)),
                }
            }
            Err(error @ Error::NotAnswerable { .. }) => Err(RunError::Store(error).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The resolution by the stored decision, if it is the same.
    fn same_decision(
        &self,
        position: u32,
        resolution: Resolution,
        approval: &Approval,
    ) -> Result<Resolution, DriverError> {
        match (approval.state, resolution) {
            (ApprovalState::Approved | ApprovalState::Used, Resolution::Approved(verdict)) => {
                Ok(Resolution::Approved(verdict))
            }
            (ApprovalState::Denied, Resolution::Rejected { .. }) => Ok(Resolution::Rejected {
                reason: approval.reason.clone(),
            }),
            _ => Err(self.answered_before(position)),
        }
    }

    fn answered_before(&self, position: u32) -> DriverError {
        let call = self.turn.call(position);
        let call = call.map(|call| call.call.to_string());
        let call = call.unwrap_or_default();
        RunError::AlreadyAnswered { call }.into()
    }

    fn approval_of<'k>(&self, position: u32, known: &'k [Approval]) -> Option<&'k Approval> {
        let (id, _): &(_, ArgumentsDigest) = self.tools.round.approvals.get(&position)?;
        known.iter().find(|one| one.id == *id)
    }

    /// Apply answers that the store got elsewhere, and expired approvals.
    fn apply_stored_answers(&mut self, known: &[Approval], tools: &crate::tool::ToolSet) {
        let waiting: Vec<(u32, Awaits)> = self
            .turn
            .waiting()
            .iter()
            .map(|one| (one.position, one.awaits))
            .collect();
        for (position, awaits) in waiting {
            if awaits == Awaits::Result {
                continue;
            }
            let Some(approval) = self.approval_of(position, known) else {
                continue;
            };
            let resolution = match approval.state {
                ApprovalState::Approved | ApprovalState::Used => {
                    let (verdict, ready) = judge::judge_approved(tools, self.turn.call(position));
                    if let Some(ready) = ready {
                        self.tools.ready.insert(position, ready);
                    }
                    Resolution::Approved(verdict)
                }
                ApprovalState::Denied => Resolution::Rejected {
                    reason: approval.reason.clone(),
                },
                ApprovalState::Expired => Resolution::Expired,
                ApprovalState::Waiting | ApprovalState::Withdrawn => continue,
            };
            let _ = self.turn.resolve(position, resolution);
        }
    }

    /// Park the run as it was, because a reply does not fit.
    pub(crate) async fn park_again(mut self, error: RunError) -> Result<Outcome, RunFailed> {
        let parked = self.log.recorder.park().await;
        if let Err(second) = parked {
            tracing::warn!(run = %self.run, error = %second, "a run could not be parked again");
        }
        let stop = StopReason::Failed;
        self.log.events.release();
        self.log.events.send_unstored(RunEvent::Ended { stop });
        let outcome = self.into_outcome(StopReason::Parked);
        let outcome = Outcome { stop, ..outcome };
        Err(RunFailed::new(outcome, Left::Parked, error))
    }
}

fn is_answered(approval: &Approval) -> bool {
    match approval.state {
        ApprovalState::Approved | ApprovalState::Denied | ApprovalState::Used => true,
        ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Withdrawn => false,
    }
}
