//! The counts, and the minimum coverage.

use std::collections::{BTreeMap, BTreeSet};

use throughline_testkit::serverkill::Guard;

use super::case::{COMBINATIONS, Case, Ids, Kill, POINTS, SLOTS, Trigger};
use super::check::{Outcome, Settled};

/// The counts.
#[derive(Default)]
pub(crate) struct Counts {
    cases: u64,
    combinations: BTreeMap<String, u64>,
    ids: BTreeMap<Ids, u64>,
    wires: BTreeMap<String, u64>,
    guards: BTreeMap<Guard, u64>,
    streamed: u64,
    with_input: u64,
    calls: u64,
    ran: u64,
    unknown: u64,
    rejected: u64,
    withdrawn: u64,
    points: BTreeSet<&'static str>,
    /// Kills at reached points, kills after events, and kills of the server that took over.
    at_points: u64,
    on_events: u64,
    of_successors: u64,
    pub(crate) between: u64,
    pub(crate) in_store: u64,
    pub(crate) foreign: u64,
    pub(crate) changed: u64,
    pub(crate) partial: u64,
    pub(crate) several: u64,
    pub(crate) raced: u64,
    pub(crate) late: u64,
    pub(crate) went_on: u64,
    pub(crate) requests: u64,
}

impl Counts {
    pub(crate) fn begin(&mut self, case: &Case) {
        self.cases += 1;
        self.calls += case.calls.len() as u64;
        *self.combinations.entry(case.combination()).or_default() += 1;
        *self.ids.entry(case.ids).or_default() += 1;
        *self.wires.entry(case.wire.to_string()).or_default() += 1;
        self.streamed += u64::from(case.asks_streamed || case.answers_streamed);
        self.with_input += u64::from(case.input.is_some());
    }

    /// Counts a create that was answered after this many deaths of servers.
    pub(crate) fn killed(&mut self, kill: Kill, guard: Guard, deaths: u64) {
        if deaths == 0 {
            return;
        }
        *self.guards.entry(guard).or_default() += 1;
        self.of_successors += deaths - 1;
        match kill {
            Kill::At(point, _) => {
                self.points.insert(point);
                self.at_points += 1;
            }
            Kill::On(
                Trigger::Sent | Trigger::Charged(_) | Trigger::Asked | Trigger::Event(_),
                _,
            ) => {
                self.on_events += 1;
            }
            Kill::Never | Kill::Between => {}
        }
    }

    pub(crate) fn settled(&mut self, settled: &Settled) {
        for outcome in &settled.outcomes {
            match outcome {
                Outcome::Ran(_) => self.ran += 1,
                Outcome::Unknown => self.unknown += 1,
                Outcome::Rejected => self.rejected += 1,
                Outcome::Withdrawn => self.withdrawn += 1,
            }
        }
    }

    /// Prints the counts; `executions` are those of the tool's log.
    #[expect(clippy::print_stdout, reason = "the test command shows these lines")]
    pub(crate) fn print(&self, executions: u64) {
        for (combination, count) in &self.combinations {
            println!("table r25 http approvals: {combination} {count}");
        }
        let named = |counts: Vec<String>| counts.join(" ");
        let ids = self.ids.iter();
        let ids = named(
            ids.map(|(ids, count)| format!("{}={count}", ids.as_str()))
                .collect(),
        );
        let wires = self.wires.iter();
        let wires = named(
            wires
                .map(|(wire, count)| format!("{wire}={count}"))
                .collect(),
        );
        println!(
            "campaign r25 http approvals: cases={} calls={} {ids} {wires} streamed={} with_input={} combinations={}",
            self.cases,
            self.calls,
            self.streamed,
            self.with_input,
            self.combinations.len()
        );
        println!(
            "campaign r25 http approvals: executions={executions} ran={} lost_result={} rejected={} withdrawn={} refused_for_missing={} in_several_creates={} changed={} answered_in_store={} foreign={} races={} late_branches={} model_requests={} next_turns={} wrong=0",
            self.ran,
            self.unknown,
            self.rejected,
            self.withdrawn,
            self.partial,
            self.several,
            self.changed,
            self.in_store,
            self.foreign,
            self.raced,
            self.late,
            self.requests,
            self.went_on
        );
        let guards = self.guards.iter();
        let guards = named(
            guards
                .map(|(guard, count)| format!("{guard:?}={count}"))
                .collect(),
        );
        println!(
            "campaign r25 http approvals: kills_before_answers={} kills_at_points={} points={} of {} kills_on_events={} kills_of_successors={} retried: {guards}",
            self.between,
            self.at_points,
            self.points.len(),
            POINTS.len(),
            self.on_events,
            self.of_successors
        );
    }

    /// Why the campaign covered too little, if it did.
    pub(crate) fn is_void(&self, executions: u64) -> Option<&'static str> {
        // A replayed case need not cover anything else.
        if self.cases < SLOTS {
            return None;
        }
        let part = |count: u64| self.cases / count;
        let equal = self.combinations.keys();
        let equal = equal.filter(|name| name.starts_with(Ids::Equal.as_str()));
        [
            (equal.count() < COMBINATIONS, "some answers were not given"),
            (self.ids.len() < 5, "some kinds of ids were not met"),
            (self.wires.len() < 4, "an upstream was not used"),
            (executions < part(2), "the tool ran too seldom"),
            (executions < self.ran, "the log is not whole"),
            (self.rejected < part(4), "too few refusals"),
            (self.partial < part(10), "answers were missing too seldom"),
            (self.withdrawn < part(100), "too few were withdrawn"),
            (self.late != self.cases, "no late branch"),
            (self.with_input < part(5), "input came too seldom"),
            (self.streamed < part(3), "too few streams"),
            (self.between < part(100), "too few kills before answers"),
            (
                self.at_points + self.on_events < part(50),
                "too few kills while answers were taken",
            ),
            (self.went_on < part(25), "too few chains went on"),
        ]
        .into_iter()
        .find_map(|(is_void, why)| is_void.then_some(why))
    }
}
