//! Compares what was sent, called, run and acknowledged with the store.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use throughline_model::json::RawJson;
use throughline_model::{Arguments, Message, Outcome, Output};
use throughline_store::{
    ApprovalFilter, ApprovalState, At, CallState, Effect, Entry, Error, Mode, RunState, Store,
    TenantScope, ThreadId,
};

use super::code::{BUDGET, Code, Kind, Mark, brackets};
use super::keeping::Keeping;
use super::tools::effect;
use crate::record::block_on;

/// A model call, as the mock model received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// The turn.
    pub code: Code,
    /// The round.
    pub round: u32,
    /// Calls whose results it contained.
    pub shown: Vec<Mark>,
}

/// An execution of a tool, as the server of tools received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The tool.
    pub tool: String,
    /// The key that came with the call.
    pub key: String,
    /// The call.
    pub mark: Mark,
}

/// What is known of a turn.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its messages, if it was acknowledged.
    acknowledged: Option<Vec<String>>,
    /// Whether readers received its end.
    heard: bool,
    /// Whether it may end without being published.
    given_up: bool,
}

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCounts {
    /// Turns that were sent.
    pub sent: u64,
    /// Turns that were acknowledged.
    pub acknowledged: u64,
    /// Model calls.
    pub asked: u64,
    /// Executions of tools.
    pub ran: u64,
    /// Executions that repeated one, of tools that are declared safe.
    pub repeated: u64,
    /// Runs that ended because their budget was used up.
    pub budgets: u64,
    /// Messages that were queued for a thread and acknowledged.
    pub notes: u64,
    /// Calls that were open when their process died.
    pub faulted: u64,
    /// Runs of processes that died.
    pub left: u64,
}

impl std::ops::AddAssign for LoopCounts {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.asked += other.asked;
        self.ran += other.ran;
        self.repeated += other.repeated;
        self.budgets += other.budgets;
        self.notes += other.notes;
        self.faulted += other.faulted;
        self.left += other.left;
    }
}

impl std::fmt::Display for LoopCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            sent,
            acknowledged,
            asked,
            ran,
            repeated,
            budgets,
            notes,
            faulted,
            left,
        } = self;
        write!(
            f,
            "turns={sent} acknowledged={acknowledged} model_calls={asked} tool_runs={ran} \
             repeated_by_key={repeated} budgets_used_up={budgets} queued_messages={notes} faulted_calls={faulted} runs_left={left}"
        )
    }
}

/// The record of what was sent, called, run and acknowledged, outside of the processes that did it.
#[derive(Debug, Default)]
pub struct LoopLedger {
    turns: BTreeMap<Code, Known>,
    asked: HashMap<(Code, u32), usize>,
    shown: BTreeSet<Mark>,
    ran: Vec<Ran>,
    /// Queued messages, by thread.
    notes: BTreeSet<(String, String)>,
    /// Rounds that were committed when a process died, and how often each had been requested.
    finished: HashMap<(Code, u32), usize>,
    /// Calls and results that were committed when a process died.
    calls: BTreeSet<Mark>,
    results: BTreeSet<Mark>,
    /// Whether a process continued after others had counted it as dead.
    returned: bool,
    counts: LoopCounts,
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn said(error: Error) -> String {
    error.to_string()
}

/// The mark of a call, from its arguments.
fn mark_in(arguments: &str) -> Option<Mark> {
    let (_, rest) = arguments.split_once("\"mark\"")?;
    let rest = rest.split_once('"')?.1;
    rest.split_once('"')?.0.parse().ok()
}

fn called(message: &Message) -> impl Iterator<Item = (String, Option<Mark>)> + '_ {
    message.contents.iter().filter_map(|content| {
        let call = content.as_tool_call()?;
        let text = match &call.arguments {
            Arguments::Text(text) | Arguments::Free(text) => text.as_str(),
            Arguments::Json(json) => json.get(),
            Arguments::None => "",
        };
        Some((call.call.value().to_owned(), mark_in(text)))
    })
}

/// The calls that results answer, their outcomes, and the marks that they contain.
fn results(message: &Message) -> impl Iterator<Item = (String, Outcome, Option<Mark>)> + '_ {
    message.contents.iter().filter_map(|content| {
        let result = content.as_tool_result()?;
        let text = match &result.output {
            Output::Text(text) => text.clone(),
            other => format!("{other:?}"),
        };
        let mark = brackets(&text, "ran")
            .next()
            .and_then(|mark| mark.parse().ok());
        let id = result.call().value().to_owned();
        Some((id, result.outcome, mark))
    })
}

/// A message without the dates of its results, for comparison. A resumed run dates its results by
/// the answer that made the calls, which may be a moment after the date of those that were stored
/// before.
pub fn dateless(text: &str) -> String {
    if !text.contains("\"role\":\"tool\"") {
        return text.to_owned();
    }
    let Some((before, rest)) = text.split_once("\"created\":") else {
        return text.to_owned();
    };
    let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    format!("{before}{}", rest.strip_prefix(',').unwrap_or(rest))
}

impl LoopLedger {
    /// What was counted so far.
    pub fn counts(&self) -> LoopCounts {
        self.counts
    }

    /// A turn is about to be sent.
    pub fn sent(&mut self, code: &Code) {
        self.counts.sent += 1;
        let known = self.turns.entry(code.clone()).or_default();
        known.given_up = code.kind == Kind::Poison;
    }

    /// A turn was acknowledged with its messages and its stop reason.
    pub fn acknowledged(
        &mut self,
        code: &Code,
        stop: &str,
        messages: &[String],
    ) -> Result<(), String> {
        self.counts.acknowledged += 1;
        self.check_budget(code, stop, messages)?;
        let mut messages = messages;
        if Keeping::of(&code.thread).parity {
            // The history of a cancelled turn has only the model calls that were answered in full.
            if stop == "cancelled" {
                return Ok(());
            }
            // Results that no model was sent are not history.
            if let Some((last, sent)) = messages.split_last()
                && last.contains("\"role\":\"tool\"")
            {
                messages = sent;
            }
        }
        let known = self.turns.entry(code.clone()).or_default();
        known.acknowledged = Some(messages.iter().map(|one| dateless(one)).collect());
        Ok(())
    }

    /// Whether a run with a budget used all of it: repetitions after a crash are not counted twice.
    fn check_budget(&mut self, code: &Code, stop: &str, messages: &[String]) -> Result<(), String> {
        if code.kind != Kind::Budget || !matches!(stop, "done" | "round_limit") {
            return Ok(());
        }
        let all = messages.join("\n");
        let round = |round: &u32| all.contains(&format!("{code}/{round}/"));
        let rounds = (0..=BUDGET).filter(round).count() as u32;
        if stop != "round_limit" || rounds != BUDGET {
            return Err(format!(
                "{code} ended with {stop} after {rounds} rounds of {BUDGET}"
            ));
        }
        self.counts.budgets += 1;
        Ok(())
    }

    /// A queued message was acknowledged.
    pub fn left(&mut self, thread: &str, note: &str) {
        self.counts.notes += 1;
        self.notes.insert((thread.to_owned(), note.to_owned()));
    }

    /// Checks that every queued message is in the history. One turn must have begun since.
    pub fn check_notes(&self, store: &Store, thread: &str) -> Result<(), String> {
        let entries =
            opened(store, thread, usize::MAX)?.map_or(Vec::new(), |opened| opened.entries);
        let texts: Vec<String> = entries.iter().map(|one| one.message.to_json()).collect();
        let all = texts.join("\n");
        let there: BTreeSet<&str> = brackets(&all, "note").collect();
        let mut notes = self.notes.iter().filter(|(of, _)| of == thread);
        match notes.find(|(_, note)| !there.contains(note.as_str())) {
            Some((_, note)) => Err(format!("{note} was left for {thread}, and is not there")),
            None => Ok(()),
        }
    }

    /// Readers received the end of a turn.
    pub fn heard(&mut self, code: &Code) {
        self.turns.entry(code.clone()).or_default().heard = true;
    }

    /// A process continues that others had counted as dead.
    pub fn returned(&mut self) {
        self.returned = true;
    }

    /// A model was called.
    pub fn asked(&mut self, asked: ModelCall) -> Result<(), String> {
        self.counts.asked += 1;
        if asked.code.kind == Kind::Budget && asked.round > BUDGET {
            let ModelCall { code, round, .. } = asked;
            return Err(format!("round {round} of {code} is over its budget"));
        }
        let place = (asked.code, asked.round);
        let count = self.asked.entry(place.clone()).or_default();
        *count += 1;
        self.shown.extend(asked.shown);
        match self.finished.get(&place) {
            Some(before) if *before < *count => {
                let (code, round) = place;
                Err(format!(
                    "round {round} of {code} was committed, and asked for again"
                ))
            }
            _ => Ok(()),
        }
    }

    /// A tool ran.
    pub fn ran(&mut self, ran: Ran) -> Result<(), String> {
        self.counts.ran += 1;
        if ran.mark.code.kind == Kind::Budget && ran.mark.round >= BUDGET {
            return Err(format!("{} ran, which is over its budget", ran.mark));
        }
        let before = self.ran.iter().find(|one| one.mark == ran.mark);
        let result = match before {
            None => match self.ran.iter().any(|one| one.key == ran.key) {
                true => Err(format!("the key of {} is another call's", ran.mark)),
                false => Ok(()),
            },
            Some(before) if before.key != ran.key => {
                Err(format!("{} ran again with another key", ran.mark))
            }
            Some(_) => {
                self.counts.repeated += 1;
                match effect(&ran.tool) {
                    // A tool that can be probed is probed before it runs again. What a process that
                    // counted as dead does later is unknown to the probe.
                    Effect::Probe if self.returned => Ok(()),
                    Effect::Once | Effect::Probe => {
                        Err(format!("{} ran again: {}", ran.tool, ran.mark))
                    }
                    Effect::ReadOnly
                    | Effect::Idempotent
                    | Effect::Keyed
                    | Effect::Transactional => Ok(()),
                }
            }
        };
        self.ran.push(ran);
        result
    }

    /// A process died: what is committed now must stay, and must not be repeated.
    pub fn died(&mut self, store: &Store, threads: &[String]) -> Result<(), String> {
        for thread in threads {
            let Some(opened) = opened(store, thread, 0)? else {
                continue;
            };
            let Some(run) = opened.unsettled else {
                continue;
            };
            self.counts.left += u64::from(run.state == RunState::Running);
            let journal = block_on(store.journal(&TenantScope::local(), run.id)).map_err(said)?;
            for entry in &journal.entries {
                for (_, mark) in called(&entry.message) {
                    let Some(mark) = mark else { continue };
                    let place = (mark.code.clone(), mark.round);
                    let asked = self.asked.get(&place).copied().unwrap_or(0);
                    self.finished.entry(place).or_insert(asked);
                    self.calls.insert(mark);
                }
                self.results
                    .extend(results(&entry.message).filter_map(|(_, _, mark)| mark));
            }
            let open = |state| !matches!(state, CallState::Done | CallState::Taken);
            let open = journal.calls.iter().filter(|call| open(call.state));
            self.counts.faulted += open.count() as u64;
        }
        Ok(())
    }

    /// Checks that everything acknowledged is stored, once and unchanged.
    pub fn check(&self, store: &Store, thread: &str) -> Result<(), String> {
        let Some(opened) = opened(store, thread, usize::MAX)? else {
            let mut turns = self.turns.iter().filter(|(code, _)| code.thread == thread);
            return match turns.find(|(_, known)| known.acknowledged.is_some() || known.heard) {
                Some((code, _)) => Err(format!("{code} was acknowledged, and there is no thread")),
                None => Ok(()),
            };
        };
        let history: Vec<&Message> = opened.entries.iter().map(|one| &one.message).collect();
        let texts: Vec<String> = history.iter().map(|one| dateless(&one.to_json())).collect();
        let all = texts.join("\n");
        let turns: Vec<&str> = brackets(&all, "turn").collect();
        let distinct: BTreeSet<&str> = turns.iter().copied().collect();
        if distinct.len() != turns.len() {
            return Err(format!("a turn of {thread} is there twice: {turns:?}"));
        }
        let notes: Vec<&str> = brackets(&all, "note").collect();
        let once: BTreeSet<&str> = notes.iter().copied().collect();
        if once.len() != notes.len() {
            return Err(format!("a note was delivered twice to {thread}: {notes:?}"));
        }
        self.check_acknowledged(thread, &texts)?;
        let mine = self.turns.iter().filter(|(code, _)| code.thread == thread);
        for (code, known) in mine {
            let done = format!("[[done {code}]]");
            if known.heard && !all.contains(&done) {
                return Err(format!(
                    "readers heard that {code} is done, and it is not there"
                ));
            }
        }
        Ok(())
    }

    /// Checks that a history has the messages of every acknowledged turn, unchanged and in order.
    /// `texts` are its messages without the dates of results.
    pub fn check_acknowledged(&self, thread: &str, texts: &[String]) -> Result<(), String> {
        let mine = self.turns.iter().filter(|(code, _)| code.thread == thread);
        for (code, known) in mine {
            let Some(messages) = &known.acknowledged else {
                continue;
            };
            let starts = texts.iter().enumerate();
            let mut starts = starts.filter(|(_, text)| messages.first() == Some(*text));
            let found = starts.any(|(place, _)| texts[place..].starts_with(messages));
            if !found {
                return Err(format!(
                    "{code} was acknowledged, and is not there as it was:\n{}\nthere is:\n{}",
                    messages.join("\n"),
                    texts.join("\n")
                ));
            }
        }
        Ok(())
    }

    /// Checks a thread without unsettled runs: calls are answered, and nothing that was committed,
    /// sent or run is missing.
    pub fn check_settled(&self, store: &Store, thread: &str) -> Result<(), String> {
        self.check(store, thread)?;
        let Some(opened) = opened(store, thread, usize::MAX)? else {
            return Ok(());
        };
        if let Some(run) = opened.unsettled {
            return Err(format!("{thread} has a run that is not settled: {run:?}"));
        }
        let messages = opened.entries.iter().chain(&opened.unsent);
        let messages: Vec<&Message> = messages.map(|one| &one.message).collect();
        let mut open: Vec<(String, Option<Mark>)> = Vec::new();
        let mut calls = BTreeSet::new();
        let mut ran = BTreeSet::new();
        for message in &messages {
            for (id, outcome, mark) in results(message) {
                let place = open.iter().position(|(call, _)| *call == id);
                let Some(place) = place else {
                    return Err(format!("a result of {thread} answers nothing: {id}"));
                };
                let (_, call) = open.remove(place);
                match (outcome, &mark) {
                    (Outcome::Ok, None) => {
                        return Err(format!("a call went well without its result: {call:?}"));
                    }
                    (_, Some(_)) if mark != call => {
                        return Err(format!("{call:?} has the result of {mark:?}"));
                    }
                    (_, mark) => ran.extend(mark.clone()),
                }
            }
            for (id, mark) in called(message) {
                calls.extend(mark.clone());
                open.push((id, mark));
            }
        }
        if let Some((id, mark)) = open.first() {
            return Err(format!("the call {id} of {thread} has no result: {mark:?}"));
        }
        let matters = |mark: &&Mark| {
            let known = self.turns.get(&mark.code);
            mark.code.thread == thread && known.is_none_or(|known| !known.given_up)
        };
        let executed = self.ran.iter().map(|ran| &ran.mark);
        for mark in self.calls.iter().chain(executed).filter(matters) {
            if !calls.contains(mark) {
                return Err(format!(
                    "{mark} was committed or ran, and is not in the history"
                ));
            }
        }
        for mark in self.results.iter().chain(&self.shown).filter(matters) {
            if !ran.contains(mark) {
                return Err(format!(
                    "the result of {mark} was stored or shown, and is not there"
                ));
            }
        }
        self.check_approvals(store, thread)
    }

    /// Checks that every call that needs approval ran with it, and once.
    fn check_approvals(&self, store: &Store, thread: &str) -> Result<(), String> {
        let filter = ApprovalFilter {
            thread: Some(id(thread)?),
            waiting: false,
        };
        let mut after = None;
        loop {
            let page = block_on(store.approvals(&TenantScope::local(), &filter, after, 100));
            let page = page.map_err(said)?;
            for approval in &page.found {
                let detail = approval.detail.as_ref().map(RawJson::get);
                let detail = detail.unwrap_or_default().replace('\\', "");
                let Some(mark) = mark_in(&detail) else {
                    return Err(format!("an approval names no call: {detail}"));
                };
                let count = self.ran.iter().filter(|ran| ran.mark == mark).count();
                let allowed = match approval.state {
                    ApprovalState::Approved | ApprovalState::Used => 1,
                    ApprovalState::Waiting
                    | ApprovalState::Denied
                    | ApprovalState::Expired
                    | ApprovalState::Withdrawn => 0,
                };
                if count > allowed {
                    let state = approval.state;
                    return Err(format!("{mark} is {state:?}, and ran {count} times"));
                }
            }
            after = match page.next {
                Some(next) => Some(next),
                None => return Ok(()),
            };
        }
    }
}

fn id(thread: &str) -> Result<ThreadId, String> {
    ThreadId::new(thread).map_err(|error| error.to_string())
}

/// A thread in the store; `None` if it was never stored.
fn opened(
    store: &Store,
    thread: &str,
    window: usize,
) -> Result<Option<throughline_store::Opened>, String> {
    let at = At::Thread(id(thread)?);
    match block_on(store.open(&TenantScope::local(), &at, window)) {
        Ok(opened) => Ok(Some(opened)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(said(error)),
    }
}

/// What readers saw of threads.
#[derive(Debug, Default)]
pub struct Readers {
    seen: HashMap<String, Seen>,
    /// How often a reader polled.
    pub polls: u64,
}

#[derive(Debug, Default)]
struct Seen {
    entries: Vec<Entry>,
    lengths: BTreeSet<usize>,
}

impl Readers {
    /// Reads a thread: what was seen before must still be there, unchanged.
    pub fn poll(&mut self, store: &Store, thread: &str) -> Result<(), String> {
        self.polls += 1;
        let Some(opened) = opened(store, thread, usize::MAX)? else {
            return Ok(());
        };
        let seen = self.seen.entry(thread.to_owned()).or_default();
        if !opened.entries.starts_with(&seen.entries) {
            return Err(format!("what readers saw of {thread} has changed"));
        }
        seen.lengths.insert(opened.entries.len());
        seen.entries = opened.entries;
        Ok(())
    }

    /// Checks that no reader saw a part of a run that is published at its end.
    pub fn check(&mut self, store: &Store) -> Result<(), String> {
        let threads: Vec<String> = self.seen.keys().cloned().collect();
        for thread in threads {
            self.poll(store, &thread)?;
            let Some(seen) = self.seen.get(&thread) else {
                continue;
            };
            for length in &seen.lengths {
                let (Some(last), Some(next)) = (
                    length
                        .checked_sub(1)
                        .and_then(|last| seen.entries.get(last)),
                    seen.entries.get(*length),
                ) else {
                    continue;
                };
                if last.at.run != next.at.run {
                    continue;
                }
                let run = block_on(store.run(&TenantScope::local(), last.at.run));
                let run = run.map_err(said)?;
                if run.mode == Mode::PerRun {
                    return Err(format!(
                        "readers saw {length} messages of {thread}, in the middle of {}",
                        run.id
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{LoopLedger, ModelCall, Ran};
    use crate::loopkill::{Code, Kind, Mark};

    fn mark(round: u32) -> Mark {
        Mark {
            code: Code {
                thread: "t".to_owned(),
                turn: 1,
                seed: 7,
                kind: Kind::Plain,
            },
            round,
            position: 0,
            request: "gemini-1".to_owned(),
        }
    }

    #[test]
    fn a_second_run_of_a_call_is_noticed_unless_it_is_declared_safe() {
        let mut ledger = LoopLedger::default();
        let ran = |tool: &str, key: &str, round| Ran {
            tool: tool.to_owned(),
            key: key.to_owned(),
            mark: mark(round),
        };
        assert_eq!(ledger.ran(ran("pay", "k0", 0)), Ok(()));
        assert_eq!(ledger.ran(ran("pay", "k0", 0)), Ok(()));
        assert!(ledger.ran(ran("pay", "k1", 0)).is_err());
        assert_eq!(ledger.ran(ran("call", "k2", 1)), Ok(()));
        assert!(ledger.ran(ran("call", "k2", 1)).is_err());
        assert!(ledger.ran(ran("call", "k2", 2)).is_err());
    }

    #[test]
    fn a_finished_round_is_not_asked_for_again() {
        let mut ledger = LoopLedger::default();
        let asked = || ModelCall {
            code: mark(0).code,
            round: 0,
            shown: Vec::new(),
        };
        assert_eq!(ledger.asked(asked()), Ok(()));
        assert_eq!(ledger.asked(asked()), Ok(()));
        ledger.finished.insert((mark(0).code, 0), 2);
        assert!(ledger.asked(asked()).is_err());
    }
}
