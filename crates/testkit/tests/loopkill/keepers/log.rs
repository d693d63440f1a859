//! What the servers that keep histories printed, and what readers saw of their answers.

use std::collections::{BTreeMap, BTreeSet};

use throughline_testkit::loopkill::{Code, Keeping, SERVICES};

use crate::loopkill::thread::{Standing, Thread};

/// A model call, as a storing service received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceCall {
    pub(super) service: &'static str,
    pub(super) code: Code,
    round: u32,
    /// The number of the request, which the id of its answer has.
    pub(super) number: u64,
}

/// What the servers that keep histories printed.
#[derive(Debug, Default)]
pub(crate) struct KeeperLog {
    pub(super) calls: Vec<ServiceCall>,
    /// Appends that the application's store made.
    pub(super) appends: u64,
    /// Appends that it was asked for again.
    pub(super) repeated: u64,
    pub(super) declined: u64,
    /// The run and the step of the newest answer of which a reader saw a part, by thread.
    pub(super) shown: BTreeMap<String, (String, u32)>,
    /// Whether every answer is cancelled of which a reader sees a part.
    pub(crate) cancels_all: bool,
    /// How often a reader saw the first part of an answer, by thread.
    seen: BTreeMap<String, u64>,
    /// Turns that may have ended in the middle of a model call.
    pub(super) stopped: BTreeSet<Code>,
    /// The turn before the current one, by thread.
    previous: BTreeMap<String, Code>,
    /// Calls whose handle was in the journal when a process died, and their service.
    askable: BTreeMap<(Code, u32), &'static str>,
    /// The service of the call that was under way when a process died, by turn, until the next call.
    left: BTreeMap<Code, &'static str>,
    /// How often a process died in the middle of a call without a handle, by turn.
    pub(super) unasked: BTreeMap<Code, u64>,
    /// How often another service continued while a call was under way, by turn.
    pub(super) elsewhere: BTreeMap<Code, u64>,
}

impl KeeperLog {
    /// A command is about to be sent.
    pub(crate) fn ordered(&mut self, line: &str, thread: &Thread) {
        let Some(current) = &thread.current else {
            return;
        };
        let is_cancel = line.starts_with("cancel ");
        if is_cancel || (line.ends_with(" close") && thread.standing != Standing::Free) {
            self.stopped.insert(current.clone());
        }
        if is_cancel {
            // The run before it may be still the one that is cancelled.
            self.stopped
                .extend(self.previous.get(&thread.name).cloned());
        }
        if line.starts_with("turn ") {
            self.previous.insert(thread.name.clone(), current.clone());
        }
    }

    /// A reader saw a part of an answer; `at` is the run and the step. Returns whether its run is to
    /// be cancelled now.
    pub(crate) fn shown(&mut self, thread: &str, at: &str) -> bool {
        if let Some((run, step)) = at.split_once(' ')
            && let Ok(step) = step.parse()
        {
            self.shown.insert(thread.to_owned(), (run.to_owned(), step));
        }
        // With parity, more of them: what is left of a cut answer is what matters there.
        let every = match (self.cancels_all, Keeping::of(thread).parity) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 5,
        };
        let seen = self.seen.entry(thread.to_owned()).or_default();
        *seen += 1;
        seen.is_multiple_of(every)
    }

    /// Processes the words of a line of a server. Returns whether the ledger of the loop
    /// has no use for it.
    pub(crate) fn take_in(&mut self, words: &[&str]) -> Result<bool, String> {
        match words {
            ["appended", _, _, "first", _] => self.appends += 1,
            ["appended", _, _, "again", _] => self.repeated += 1,
            ["declined", ..] => self.declined += 1,
            ["asked", name, code, round, number, ..] => {
                let Some(service) = SERVICES.into_iter().find(|one| one == name) else {
                    return Ok(false);
                };
                self.called(ServiceCall {
                    service,
                    code: code.parse()?,
                    round: round.parse().map_err(|_| words.join(" "))?,
                    number: number.parse().map_err(|_| words.join(" "))?,
                })?;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn called(&mut self, call: ServiceCall) -> Result<(), String> {
        let (code, round) = (&call.code, call.round);
        match self.askable.get(&(code.clone(), round)) {
            Some(service) if *service == call.service => {
                return Err(format!(
                    "round {round} of {code} was paid twice: the journal had the handle of the first call"
                ));
            }
            Some(_) | None => {}
        }
        // Only the service that has accepted a call can be asked about it.
        if self
            .left
            .remove(code)
            .is_some_and(|service| service != call.service)
        {
            *self.elsewhere.entry(code.clone()).or_default() += 1;
        }
        self.calls.push(call);
        Ok(())
    }

    /// A process died in the middle of a turn; `handle` is that of the model call that was under way.
    pub(super) fn died(&mut self, code: &Code, handle: Option<(&str, u64)>) -> Result<(), String> {
        let Some((service, number)) = handle else {
            *self.unasked.entry(code.clone()).or_default() += 1;
            return Ok(());
        };
        let mut calls = self.calls.iter();
        let call = calls.find(|one| one.service == service && one.number == number);
        let call = call.ok_or_else(|| format!("the handle of {code} is of no call: {number}"))?;
        self.left.insert(code.clone(), call.service);
        self.askable
            .insert((call.code.clone(), call.round), call.service);
        Ok(())
    }

    /// The turn of an answer.
    pub(super) fn turn_of(&self, service: &str, number: u64) -> Option<&Code> {
        let mut calls = self.calls.iter();
        let call = calls.find(|one| one.service == service && one.number == number);
        call.map(|call| &call.code)
    }

    /// How many calls had their handle in the journal when a process died.
    pub(super) fn askable(&self) -> usize {
        self.askable.len()
    }
}
