//! Resuming what a thread was left with, when it is the order's turn.
//!
//! Of several workers that resume one run at once, one gets it. The others are refused with `Busy` or
//! `Fenced`; one that comes when the run has ended gets its outcome.

use throughline_store::{AfterTurn, Error, Run, RunFilter, RunId, RunKind, RunState, Version};

use super::adopt::{adopt, is_adoptable};
use super::end_of_run;
use super::restore::Restoring;
use super::take_over::{claim, work};
use crate::run::driver::RunContext;
use crate::run::driver::start::{BlockingRun, QueuePlace};
use crate::run::handle::Answered;
use crate::run::options::RunOptions;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::thread::{Loaded, OnBusy};
use crate::trials::planted;

/// Resume what is left on the thread.
pub(crate) async fn resume(
    context: RunContext,
    options: RunOptions,
    replies: &[Answered],
) -> Result<Outcome, RunFailed> {
    let mut line = QueuePlace::new(&context, context.agent.ids.run());
    let resumed = resume_in_line(context, options, replies, &mut line).await;
    line.leave().await;
    resumed
}

/// What this order has seen of the thread.
struct LastSeen {
    /// The first unsettled run that it, or the handle before it, has seen.
    run: Option<Run>,
    /// The version of the thread when it, or the handle before it, first read it.
    version: Option<Version>,
    /// Whether another run began where this order was to begin one.
    was_moved: bool,
    /// Whether what it has seen may be what the handle read long ago.
    is_remembered: bool,
}

async fn resume_in_line(
    context: RunContext,
    options: RunOptions,
    replies: &[Answered],
    line: &mut QueuePlace,
) -> Result<Outcome, RunFailed> {
    let on_busy = options.on_busy.unwrap_or(context.agent.policy.on_busy);
    let refuse = |run: RunId, error: Error| context.refuse(run, error);
    let mut seen = LastSeen::new(&context);
    loop {
        context.thread.distrust();
        let loaded = context.thread.load().await;
        let loaded = loaded.map_err(|error| refuse(line.run(), error))?;
        let found = loaded.found.as_deref();
        let unsettled = found.and_then(|found| found.unsettled.clone());
        let next = found.filter(|_| loaded.at_node.is_none());
        let before = line.before(next.and_then(|found| found.next));
        seen.version.get_or_insert(loaded.version());
        if let Some(run) = &unsettled {
            seen.run.get_or_insert_with(|| run.clone());
        }
        if before.is_some() && std::mem::take(&mut seen.is_remembered) {
            context.thread.put_back(loaded);
            continue;
        }
        let (blocking, error) = match (unsettled, before) {
            (Some(run), None) => {
                match claim(&context, &run, Some((line.run(), AfterTurn::Leave))).await {
                    Ok(claimed) => {
                        line.forget_place();
                        let how = (Restoring::Resume, options);
                        return work(context, loaded, &run, claimed, how, replies).await;
                    }
                    // It ended after it was read.
                    Err(Error::WrongState { .. }) if !planted("loop-resume-raced") => {
                        context.thread.put_back(loaded);
                        continue;
                    }
                    Err(error @ (Error::Busy { .. } | Error::Fenced { .. })) => (run.id, error),
                    Err(error) => {
                        context.thread.put_back(loaded);
                        return Err(refuse(run.id, error));
                    }
                }
            }
            (Some(run), Some(_)) => (run.id, BlockingRun::of(&run).error()),
            (None, Some(first)) => (first, BlockingRun::first_in_line(&context, first).error()),
            (None, None) => {
                let left = seen.find_left(&context, &loaded).await;
                match left.map_err(|error| refuse(line.run(), error))? {
                    LeftRun::Reload => context.thread.put_back(loaded),
                    LeftRun::Ended(was, now) => {
                        context.thread.put_back(loaded);
                        return overtaken(&context, &was, now, replies).await;
                    }
                    LeftRun::Newest(newest) => {
                        let options = options.clone();
                        let begun = adopt(&context, options, loaded, newest, replies, line);
                        match begun.await? {
                            Some(outcome) => return Ok(outcome),
                            // Another worker was faster.
                            None => seen.was_moved = true,
                        }
                    }
                }
                continue;
            }
        };
        context.thread.put_back(loaded);
        if on_busy != OnBusy::Queue {
            let run = seen.run.as_ref().map_or(line.run(), |run| run.id);
            return Err(refuse(run, error));
        }
        let waited = line.wait_behind(blocking, before, &context).await;
        if !waited.map_err(|error| refuse(line.run(), error))? {
            return Err(context.refuse(line.run(), RunError::Cancelled));
        }
    }
}

/// What there is on a thread without an unsettled run.
enum LeftRun {
    /// The handle only remembers the thread: read it again.
    Reload,
    /// Another worker has ended the run that this order saw: as it was, and as it is.
    Ended(Run, Run),
    /// The newest run, if there is one. It may have failed.
    Newest(Option<Run>),
}

impl LastSeen {
    fn new(context: &RunContext) -> Self {
        let read = context.thread.looked();
        Self {
            version: read.as_ref().map(|read| read.version),
            run: read.and_then(|read| read.unsettled),
            was_moved: false,
            is_remembered: true,
        }
    }

    async fn find_left(
        &mut self,
        context: &RunContext,
        loaded: &Loaded,
    ) -> throughline_store::Result<LeftRun> {
        let home = &context.thread.home;
        if let Some(run) = &self.run {
            let now = home.store.run(&home.scope, run.id).await?;
            if now.state.is_settled() && now.state != RunState::Failed {
                return Ok(LeftRun::Ended(run.clone(), now));
            }
        }
        if loaded.found.is_none() {
            return Ok(LeftRun::Newest(None));
        }
        let filter = RunFilter {
            thread: Some(context.thread_id().clone()),
            states: Vec::new(),
        };
        let page = home.store.runs(&home.scope, &filter, None, 2).await?;
        let mut runs = page.found.into_iter();
        let (newest, before) = match (runs.next(), runs.next()) {
            (Some(newest), before) if !is_adoptable(&newest) => (newest, before),
            (newest, _) => return Ok(LeftRun::Newest(newest)),
        };
        if std::mem::take(&mut self.is_remembered) {
            return Ok(LeftRun::Reload);
        }
        match before {
            Some(failed) if self.was_faster(context, &newest, &failed).await? => {
                Ok(LeftRun::Ended(newest.clone(), newest))
            }
            _ => Ok(LeftRun::Newest(Some(newest))),
        }
    }

    /// Whether the newest run is another worker's, which continued the run that this order saw fail.
    async fn was_faster(
        &self,
        context: &RunContext,
        newest: &Run,
        failed: &Run,
    ) -> throughline_store::Result<bool> {
        if newest.kind != RunKind::Turn || !newest.leased || self.was_moved {
            return Ok(newest.kind == RunKind::Turn && newest.leased);
        }
        let is_newer = self.version.is_some_and(|seen| seen.0 < newest.version.0);
        if !is_adoptable(failed) || !is_newer {
            return Ok(false);
        }
        let home = &context.thread.home;
        let mut first_messages = Vec::new();
        for run in [newest, failed] {
            let journal = home.store.journal(&home.scope, run.id).await?;
            let first = journal.entries.into_iter().next();
            first_messages.push(first.and_then(|entry| entry.message.id));
        }
        // A run that continues another one begins with its input.
        Ok(first_messages[0].is_some() && first_messages[0] == first_messages[1])
    }
}

/// Another worker has ended the run that this order saw. Its outcome is the answer, unless the order
/// has replies for it.
async fn overtaken(
    context: &RunContext,
    seen: &Run,
    now: Run,
    replies: &[Answered],
) -> Result<Outcome, RunFailed> {
    if replies.is_empty() {
        return end_of_run::outcome(context, now).await;
    }
    let error = match now.epoch == seen.epoch {
        true => BlockingRun::of(seen).error(),
        false => Error::Fenced {
            run: now.id,
            mine: seen.epoch,
            current: now.epoch,
        },
    };
    Err(context.refuse(now.id, error))
}
