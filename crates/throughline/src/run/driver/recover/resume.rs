//! Going on with what a thread was left with, when it is the order's turn.
//!
//! Of several workers that resume one run at once, one gets it. The others are refused with `Busy` or
//! `Fenced`; one that comes when the run has ended gets its outcome.

use std::sync::Arc;

use throughline_store::{Error, Place, Run, RunFilter, RunKind, RunState, Version};

use super::adopt::{adopted, is_adoptable, repeated};
use super::restore::Restoring;
use super::take_over::{claim, taken};
use crate::run::driver::Job;
use crate::run::driver::finish::refused;
use crate::run::driver::start::Busy;
use crate::run::driver::start::QueuePlace;
use crate::run::handle::Answered;
use crate::run::options::RunOptions;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::run::setup::AgentSetup;
use crate::thread::{Loaded, OnBusy};
use crate::trials::planted;

/// Go on with what is left on the thread.
pub(in crate::run::driver) async fn resumed(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    replies: Vec<Answered>,
) -> Result<Outcome, RunFailed> {
    let mut line = QueuePlace::of(&agent, &job, agent.ids.run());
    let resumed = in_turn(agent, job, options, &replies, &mut line).await;
    line.leave().await;
    resumed
}

/// What the order saw of the thread.
struct LastSeen {
    /// The unsettled run that it, or the handle before it, saw first.
    run: Option<Run>,
    /// The thread's version when it, or the handle before it, first looked.
    version: Option<Version>,
    /// Whether another run began where this one was to.
    was_moved: bool,
    /// Whether what it goes by may be what the handle read long ago.
    is_remembered: bool,
}

async fn in_turn(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    replies: &[Answered],
    line: &mut QueuePlace,
) -> Result<Outcome, RunFailed> {
    let queues = options.on_busy.unwrap_or(agent.policy.on_busy) == OnBusy::Queue;
    let mut seen = LastSeen::of(&job);
    loop {
        job.thread.distrust();
        let loaded = match job.thread.load().await {
            Ok(loaded) => loaded,
            Err(error) => return Err(refused(line.run(), &job, RunError::Store(error))),
        };
        let found = loaded.found.as_deref();
        let unsettled = found.and_then(|found| found.unsettled.clone());
        let next = found.filter(|_| loaded.at_node.is_none());
        let before = line.before(next.and_then(|found| found.next));
        seen.version.get_or_insert(loaded.version());
        if let Some(run) = &unsettled {
            seen.run.get_or_insert_with(|| run.clone());
        }
        if before.is_some() && std::mem::take(&mut seen.is_remembered) {
            job.thread.put_back(loaded);
            continue;
        }
        let (in_the_way, error) = match (unsettled, before) {
            (Some(run), None) => {
                let in_line = Some((line.run(), Place::Leave));
                match claim(&job, &run, in_line).await {
                    Ok(claimed) => {
                        line.has_none();
                        let how = (Restoring::Resume, options);
                        return taken(&agent, job, loaded, &run, claimed, how, replies).await;
                    }
                    // It ended after it was looked at.
                    Err(Error::WrongState { .. }) if !planted("loop-resume-raced") => {
                        job.thread.put_back(loaded);
                        continue;
                    }
                    Err(error @ (Error::Busy { .. } | Error::Fenced { .. })) => (run.id, error),
                    Err(error) => {
                        job.thread.put_back(loaded);
                        return Err(refused(run.id, &job, RunError::Store(error)));
                    }
                }
            }
            (Some(run), Some(_)) => (run.id, Busy::with(&run).error()),
            (None, Some(first)) => (first, Busy::first_in_line(&job, first).error()),
            (None, None) => {
                let newest = match seen.look(&job, &loaded).await {
                    Ok(newest) => newest,
                    Err(error) => return Err(refused(line.run(), &job, RunError::Store(error))),
                };
                match newest {
                    LeftRun::Again => {
                        job.thread.put_back(loaded);
                        continue;
                    }
                    LeftRun::Ended(was, now) => {
                        job.thread.put_back(loaded);
                        return overtaken(&agent, &job, &was, now, replies).await;
                    }
                    LeftRun::Newest(newest) => {
                        let (agent, job, options) =
                            (Arc::clone(&agent), job.again(), options.clone());
                        let at = (newest, &mut *line);
                        let begun = adopted(agent, job, options, loaded, replies, at).await?;
                        match begun {
                            Some(outcome) => return Ok(outcome),
                            // Another worker was faster.
                            None => seen.was_moved = true,
                        }
                    }
                }
                continue;
            }
        };
        job.thread.put_back(loaded);
        if !queues {
            let of = seen.run.as_ref().map_or(line.run(), |run| run.id);
            return Err(refused(of, &job, RunError::Store(error)));
        }
        let lines_up = !line.has_place();
        if (lines_up || before.is_some())
            && let Err(error) = line.keep_place().await
        {
            return Err(refused(line.run(), &job, RunError::Store(error)));
        }
        if !lines_up && !line.wait(&job, in_the_way).await {
            return Err(refused(line.run(), &job, RunError::Cancelled));
        }
    }
}

/// What there is on a thread without an unsettled run.
enum LeftRun {
    /// Perhaps something else: the handle has only remembered what it said.
    Again,
    /// Another worker has ended what this order saw: as it was, and as it is.
    Ended(Run, Run),
    /// The newest run, if there is one; it may have failed.
    Newest(Option<Run>),
}

impl LastSeen {
    fn of(job: &Job) -> Self {
        let looked = job.thread.looked();
        Self {
            version: looked.as_ref().map(|looked| looked.version),
            run: looked.and_then(|looked| looked.unsettled),
            was_moved: false,
            is_remembered: true,
        }
    }

    async fn look(&mut self, job: &Job, loaded: &Loaded) -> throughline_store::Result<LeftRun> {
        let home = &job.thread.home;
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
            thread: Some(job.id().clone()),
            states: Vec::new(),
        };
        let page = home.store.runs(&home.scope, &filter, None, 2).await?;
        let mut runs = page.found.into_iter();
        let (newest, before) = match (runs.next(), runs.next()) {
            (Some(newest), before) if !is_adoptable(&newest) => (newest, before),
            (newest, _) => return Ok(LeftRun::Newest(newest)),
        };
        if std::mem::take(&mut self.is_remembered) {
            return Ok(LeftRun::Again);
        }
        match before {
            Some(failed) if self.was_faster(job, &newest, &failed).await? => {
                Ok(LeftRun::Ended(newest.clone(), newest))
            }
            _ => Ok(LeftRun::Newest(Some(newest))),
        }
    }

    /// Whether the newest run is another worker's, which went on with what this order saw fail.
    async fn was_faster(
        &self,
        job: &Job,
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
        let home = &job.thread.home;
        let mut asked = Vec::new();
        for run in [newest, failed] {
            let journal = home.store.journal(&home.scope, run.id).await?;
            let first = journal.entries.into_iter().next();
            asked.push(first.and_then(|entry| entry.message.id));
        }
        // A run that adopts another begins with what that one was asked.
        Ok(asked[0].is_some() && asked[0] == asked[1])
    }
}

/// Another worker has ended the run that this order saw. Its outcome is the answer, unless the order
/// had something to say in it.
async fn overtaken(
    agent: &Arc<AgentSetup>,
    job: &Job,
    seen: &Run,
    now: Run,
    replies: &[Answered],
) -> Result<Outcome, RunFailed> {
    if replies.is_empty() {
        return repeated(agent, job, now).await;
    }
    let error = match now.epoch == seen.epoch {
        true => Busy::with(seen).error(),
        false => Error::Fenced {
            run: now.id,
            mine: seen.epoch,
            current: now.epoch,
        },
    };
    Err(refused(now.id, job, RunError::Store(error)))
}
