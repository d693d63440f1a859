//! What was said about calls that wait, here and elsewhere.

use throughline_store::{
    Answer, Approval, ApprovalFilter, ApprovalState, Decision, Error, Journal, Shown, Unanswerable,
};

use crate::run::driver::tools::judge;
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::handle::Answered;
use crate::run::machine::{Order, Resolution};
use crate::run::outcome::{Left, Outcome, RunError, RunFailed};
use crate::thread::StopReason;
use crate::thread::journal::Awaits;

impl Driver {
    /// Take in what was said about calls that wait, here and elsewhere.
    pub(in crate::run::driver) async fn answer(
        &mut self,
        order: Order,
        journal: &Journal,
        replies: &[Answered],
    ) -> Result<Order, DriverError> {
        self.ask_leave().await?;
        let tools = self.tools.set();
        let here = (self.run, self.round.step, &self.turn);
        let checked = judge::replies(here, &tools, journal, replies);
        let (resolved, prepared) = checked.map_err(DriverError::Run)?;
        let known = self.approvals().await?;
        for one in resolved {
            let resolution = self.word(one.position, one.resolution, &known).await?;
            // It waits: it was looked up among those that do.
            let _ = self.turn.resolve(one.position, resolution);
        }
        self.prepared.extend(prepared);
        self.heard_elsewhere(&known, &tools);
        if !self.turn.is_parked() {
            // What may run by now is started when what was under way has ended.
            return Ok(order);
        }
        self.mail().await?;
        Ok(self.turn.resume())
    }

    /// Ask about calls that were planned when nobody had to be asked.
    async fn ask_leave(&mut self) -> Result<(), DriverError> {
        let mut asked = Vec::new();
        for one in self.turn.waiting() {
            let known = self.round.approvals.contains_key(&one.position);
            if one.awaits == Awaits::Approval && !known {
                asked.push(self.approval(one.call, one.position, Some(one.awaits)));
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        self.recorder.ask(&asked).await?;
        let records = asked.iter().map(|one| (one.position, (one.id, one.shown)));
        self.round.approvals.extend(records);
        Ok(())
    }

    /// The approvals that calls of this round wait for.
    async fn approvals(&self) -> Result<Vec<Approval>, DriverError> {
        let waiting = self.turn.waiting();
        let wanted: Vec<_> = waiting
            .iter()
            .filter_map(|one| Some(self.round.approvals.get(&one.position)?.0))
            .collect();
        let mut found = Vec::new();
        let home = self.recorder.home();
        let filter = ApprovalFilter {
            thread: Some(self.job.thread.id.clone()),
            waiting: false,
        };
        let mut after = None;
        while found.len() < wanted.len() {
            let page = home
                .store
                .approvals(&home.scope, &filter, after, 100)
                .await?;
            found.extend(
                page.found
                    .into_iter()
                    .filter(|one| wanted.contains(&one.id)),
            );
            after = match page.next {
                Some(next) => Some(next),
                None => break,
            };
        }
        Ok(found)
    }

    /// Record the word of whoever was asked, before it counts. What was said first stands.
    async fn word(
        &mut self,
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
            return self.same_word(position, resolution, approval);
        }
        let answer = Answer {
            approval: approval.id,
            shown: approval.shown,
            decision,
            by: self.agent.name.clone(),
            reason: reason.filter(|reason| !reason.trim().is_empty()),
        };
        let home = self.recorder.home();
        let stored = home.sure(|| home.store.answer(&home.scope, &answer)).await;
        match stored {
            Ok(_) => Ok(resolution),
            // Somebody was faster.
            Err(Error::NotAnswerable {
                why: Unanswerable::Answered,
                ..
            }) => {
                let now = self.approvals().await?;
                match self.approval_of(position, &now) {
                    Some(approval) => self.same_word(position, resolution, approval),
                    None => Err(self.answered_before(position)),
                }
            }
            Err(error @ Error::NotAnswerable { .. }) => {
                Err(DriverError::Run(RunError::Store(error)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The word that an approval has, if this is it.
    fn same_word(
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
        DriverError::Run(RunError::AlreadyAnswered {
            call: call.map(|call| call.call.to_string()).unwrap_or_default(),
        })
    }

    fn approval_of<'k>(&self, position: u32, known: &'k [Approval]) -> Option<&'k Approval> {
        let (id, _): &(_, Shown) = self.round.approvals.get(&position)?;
        known.iter().find(|one| one.id == *id)
    }

    /// Take in what was answered in other places, and what nobody answered in time.
    fn heard_elsewhere(&mut self, known: &[Approval], tools: &crate::tool::ToolSet) {
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
                    let (verdict, ready) = judge::approved(tools, self.turn.call(position));
                    if let Some(ready) = ready {
                        self.prepared.insert(position, ready);
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

    /// Nothing was said that fits: the run waits on as it was.
    pub(in crate::run::driver) async fn put_down(
        mut self,
        error: RunError,
    ) -> Result<Outcome, RunFailed> {
        let parked = self.recorder.park().await;
        if let Err(second) = parked {
            tracing::warn!(run = %self.run, error = %second, "a run could not be parked again");
        }
        let stop = StopReason::Failed;
        self.publisher.stored();
        self.publisher.say_unstored(RunEvent::Ended { stop });
        let outcome = self.leave(StopReason::Parked);
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
