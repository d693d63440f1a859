//! The machine under random scripts: model answers, tool outcomes, cancels, approvals, messages in
//! between, runs one after the other on one history. Whatever happens, the history stays closed and
//! fit for every vendor, no call runs twice, and every exit says why.

use std::collections::{BTreeMap, HashSet};

use throughline_model::json::{self, RawJson};
use throughline_model::{
    Body, CallId, Content, ContentAt, Family, Media, MediaKind, MediaSource, Message, Outcome,
    Output, Reasoning, Response, Role, Runner, Stop, ToolCall, Usage, Wire, pairs,
};
use throughline_store::{Effect, RunId};
use throughline_testkit::{Rng, property};
use throughline_wire::render::{Options, Target, render};
use throughline_wire::validate::{Profile, validate};

use super::*;

/// What happened in all runs together.
#[derive(Default)]
struct Counts {
    runs: u64,
    asked: u64,
    dispatched: u64,
    renderings: u64,
    stops: BTreeMap<&'static str, u64>,
    outcomes: BTreeMap<&'static str, u64>,
}

#[test]
fn every_script_ends_closed_and_fit_for_every_vendor() {
    let mut counts = Counts::default();
    // Scale 20 is the full count of 100,000 runs.
    property("turn machine", 2_000, |rng, size| {
        thread(rng, size, &mut counts)
    });
    let Counts {
        runs,
        asked,
        dispatched,
        renderings,
        ..
    } = counts;
    println!(
        "table turn machine: runs={runs} asked={asked} dispatched={dispatched} \
         renderings={renderings} violations=0 stops={:?} outcomes={:?}",
        counts.stops, counts.outcomes
    );
    for stop in StopReason::ALL {
        assert!(
            counts.stops.contains_key(stop.as_str()),
            "{stop} never seen"
        );
    }
    for outcome in Outcome::ALL {
        let seen = counts.outcomes.contains_key(outcome.as_str());
        assert!(seen, "{} never seen", outcome.as_str());
    }
}

/// Several runs on one history.
fn thread(rng: &mut Rng, size: usize, counts: &mut Counts) -> Result<(), String> {
    let mut history: Vec<Message> = Vec::new();
    let turns = rng.range(1..=4);
    for number in 0..turns {
        counts.runs += 1;
        let mut run = Simulated::new(rng, number, size, history.len());
        run.play(rng, &mut history, counts)?;
        fit(&history, counts)?;
    }
    closed(&history, counts)?;
    let ids: HashSet<_> = history.iter().map(|message| &message.id).collect();
    match ids.len() == history.len() {
        true => Ok(()),
        false => Err("two messages share an id".to_owned()),
    }
}

struct Simulated {
    turn: Turn,
    base: usize,
    ids: usize,
    running: Vec<u32>,
    /// Calls that were started, by step and position.
    started: HashSet<(u32, u32)>,
    ended: u32,
    cuts: f64,
}

impl Simulated {
    fn new(rng: &mut Rng, number: usize, size: usize, base: usize) -> Self {
        let mut bytes = [0; 16];
        bytes[0] = u8::try_from(number).unwrap_or(0);
        let some = |rng: &mut Rng, most: usize| rng.chance(0.3).then(|| rng.range(1..=most));
        let limits = Limits {
            rounds: u32::try_from(rng.range(1..=2 + size / 10)).unwrap_or(1),
            failed_rounds: u32::try_from(rng.range(1..=3)).unwrap_or(1),
            calls: some(rng, 8).and_then(|most| u32::try_from(most).ok()),
            tokens: some(rng, 400).and_then(|most| u64::try_from(most).ok()),
            time: None,
            tool_time: None,
        };
        let calling = *rng.pick(&[Calling::Concurrent, Calling::Serial]);
        Self {
            turn: Turn::new(RunId::from_bytes(bytes), limits, calling),
            base,
            ids: 0,
            running: Vec::new(),
            started: HashSet::new(),
            ended: 0,
            cuts: *rng.pick(&[0.0, 0.02, 0.1]),
        }
    }

    fn play(
        &mut self,
        rng: &mut Rng,
        history: &mut Vec<Message>,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let input = (0..rng.range(1..=2))
            .map(|_| Message::user("go on"))
            .collect();
        let mut order = self.turn.start(input);
        loop {
            history.extend(
                self.turn
                    .take_new()
                    .into_iter()
                    .map(NewMessage::into_message),
            );
            if rng.chance(0.05) {
                self.turn.inject(Message::user("one more thing"));
            }
            order = match order {
                Order::CallModel(ask) => {
                    counts.asked += 1;
                    // What is sent is what the history holds now, every call answered.
                    closed(history, counts)?;
                    fit(history, counts)?;
                    self.answer(rng, ask)
                }
                Order::Dispatch(positions) => {
                    for position in positions {
                        counts.dispatched += 1;
                        if !self.started.insert((self.turn.model_calls(), position)) {
                            return Err(format!("call {position} was started twice"));
                        }
                        self.running.push(position);
                    }
                    self.wait(rng)?
                }
                Order::Wait => self.wait(rng)?,
                Order::End(stop) => {
                    *counts.stops.entry(stop.as_str()).or_default() += 1;
                    match self.after(rng, stop, history, counts)? {
                        Some(order) => order,
                        None => return Ok(()),
                    }
                }
            };
        }
    }

    fn answer(&mut self, rng: &mut Rng, ask: ModelCall) -> Order {
        if rng.chance(self.cuts) {
            let stop = *rng.pick(&[StopReason::Cancelled, StopReason::Budget]);
            let partial = rng.bool().then(|| self.response(rng));
            return self.turn.cut(stop, partial);
        }
        if rng.chance(0.03) {
            return self.turn.model_failed();
        }
        let response = self.response(rng);
        let order = self.turn.answered(response, &mut |_| verdict(rng));
        if ask == ModelCall::Last {
            assert!(matches!(order, Order::End(_)), "a last call is the last");
        }
        order
    }

    fn response(&mut self, rng: &mut Rng) -> Response {
        let mut contents = Vec::new();
        for _ in 0..rng.below(5) {
            let content = self.content(rng);
            contents.push(content);
        }
        if rng.chance(0.1) {
            // The vendor, or a loop below, has the result already; in either order.
            let call = self.call(rng);
            let result = call.answer(Outcome::Ok, Output::Text("had it".into()));
            let mut pair = [Content::from(call), Content::from(result)];
            if rng.bool() {
                pair.reverse();
            }
            contents.extend(pair);
        }
        let stops = [
            Stop::Done,
            Stop::ToolCalls,
            Stop::Length,
            Stop::Paused,
            Stop::Refusal,
        ];
        Response {
            id: Some(format!("resp_{}", self.ids)),
            model: None,
            messages: vec![Message::new(Role::Assistant, contents)],
            usage: rng.chance(0.8).then(|| Usage {
                input: Some(rng.below(60) as u64),
                output: Some(rng.below(20) as u64),
                ..Usage::default()
            }),
            stop: rng.pick(&stops).clone(),
            error: None,
            vendor: None,
            service: None,
        }
    }

    fn content(&mut self, rng: &mut Rng) -> Content {
        match rng.below(10) {
            0 | 1 => Content::text(*rng.pick(&["", "well", "let me see"])),
            2 => Content::new(Body::Reasoning(Reasoning {
                text: vec!["hm".into()],
                ..Reasoning::default()
            })),
            3 => Content::new(Body::Media(Media {
                kind: MediaKind::Image,
                media_type: Some("image/png".into()),
                source: MediaSource::Data("aGVsbG8=".into()),
                name: None,
                transcript: None,
            })),
            4 => {
                let mut call = self.call(rng);
                // The vendor's own ids do not meet ours.
                let id = format!("ws_{}_{}", self.base, self.ids);
                call.call = CallId::item(&id).expect("not empty");
                call.runner = Runner::Vendor;
                call.family = Family::WEB_SEARCH;
                call.into()
            }
            _ => self.call(rng).into(),
        }
    }

    fn call(&mut self, rng: &mut Rng) -> ToolCall {
        self.ids += 1;
        // Models count from one again, some use one id for everything.
        let id = match rng.below(4) {
            0 => "call_0".to_owned(),
            1 => format!("call_{}", rng.below(3)),
            _ => format!("call_{}_{}", self.base, self.ids),
        };
        let arguments = *rng.pick(&["{}", r#"{"port":"Hull"}"#, "{broken", ""]);
        let id = CallId::natural(&id).expect("not empty");
        ToolCall::function(id, *rng.pick(&["get_tide", "book"]), arguments)
    }

    fn wait(&mut self, rng: &mut Rng) -> Result<Order, String> {
        if rng.chance(self.cuts) {
            self.running.clear();
            let stop = *rng.pick(&[StopReason::Cancelled, StopReason::Budget]);
            return Ok(self.turn.cut(stop, None));
        }
        if self.running.is_empty() {
            return Err("told to wait although nothing runs".to_owned());
        }
        let at = rng.below(self.running.len());
        let position = self.running.swap_remove(at);
        self.ended += 1;
        let outcomes = [
            Outcome::Ok,
            Outcome::Ok,
            Outcome::Ok,
            Outcome::Error,
            Outcome::Unknown,
        ];
        let outputs = [Output::None, Output::Text("04:12".into()), json_output()];
        Ok(self.turn.tool_ended(
            position,
            Ended {
                outcome: *rng.pick(&outcomes),
                output: rng.pick(&outputs).clone(),
                terminate: rng.chance(0.05),
            },
        ))
    }

    /// What follows a stop: nothing, or the turn is resumed.
    fn after(
        &mut self,
        rng: &mut Rng,
        stop: StopReason,
        history: &mut Vec<Message>,
        counts: &mut Counts,
    ) -> Result<Option<Order>, String> {
        match stop {
            StopReason::Parked => {
                let mut shown = history.clone();
                shown.extend(self.turn.partial_results());
                fit(&shown, counts)?;
                let waiting: Vec<(u32, Awaits)> = self
                    .turn
                    .waiting()
                    .iter()
                    .map(|one| (one.position, one.awaits))
                    .collect();
                if waiting.is_empty() {
                    return Err("parked, and nothing waits".to_owned());
                }
                if rng.chance(0.1) {
                    return Ok(Some(self.turn.cut(StopReason::Cancelled, None)));
                }
                if rng.chance(0.15) {
                    self.turn.withdraw();
                    history.extend(
                        self.turn
                            .take_new()
                            .into_iter()
                            .map(NewMessage::into_message),
                    );
                    return Ok(None);
                }
                for (position, awaits) in waiting {
                    if rng.chance(0.7) {
                        let resolution = resolution(rng, awaits);
                        let answered = self.turn.resolve(position, resolution);
                        answered.map_err(|_| "refused what waits".to_owned())?;
                    }
                }
                Ok(Some(self.turn.resume()))
            }
            StopReason::Failed => {
                if rng.bool() {
                    return Ok(Some(self.turn.resume()));
                }
                // It is not resumed: the head stays where it was.
                history.truncate(self.base);
                Ok(None)
            }
            StopReason::Done
            | StopReason::RoundLimit
            | StopReason::ErrorLimit
            | StopReason::Budget
            | StopReason::Terminated
            | StopReason::Cancelled => {
                closed(history, counts)?;
                Ok(None)
            }
        }
    }
}

fn json_output() -> Output {
    Output::Json(RawJson::new(r#"{"high":"04:12"}"#).expect("JSON"))
}

fn verdict(rng: &mut Rng) -> Verdict {
    let effect = *rng.pick(&Effect::ALL);
    match rng.below(10) {
        0 => Verdict::NeedsApproval(effect),
        1 => Verdict::Outside,
        2 => Verdict::Refuse("no such tool".to_owned()),
        _ => Verdict::Run(effect),
    }
}

fn resolution(rng: &mut Rng, awaits: Awaits) -> Resolution {
    if rng.chance(0.1) {
        return Resolution::Expired;
    }
    match awaits {
        Awaits::Approval | Awaits::VendorApproval if rng.chance(0.3) => Resolution::Rejected {
            reason: rng.bool().then(|| "too late".to_owned()),
        },
        Awaits::Approval | Awaits::VendorApproval => Resolution::Approved(match verdict(rng) {
            Verdict::NeedsApproval(effect) | Verdict::Run(effect) => Verdict::Run(effect),
            other => other,
        }),
        Awaits::Result => Resolution::Result {
            outcome: *rng.pick(&[Outcome::Ok, Outcome::Error]),
            output: json_output(),
        },
    }
}

/// Every call that waits for the application has exactly one result, right behind its message, in
/// call order.
fn closed(history: &[Message], counts: &mut Counts) -> Result<(), String> {
    let pairs = pairs(history);
    let mut answered = HashSet::new();
    for pair in &pairs {
        if !answered.insert(pair.call) {
            return Err(format!("{:?} has two results", pair.call));
        }
    }
    for (at, message) in history.iter().enumerate() {
        let mut last = None;
        for (place, content) in message.contents.iter().enumerate() {
            let here = ContentAt {
                message: at,
                content: place,
            };
            match &content.body {
                Body::ToolCall(call)
                    if call.runner == Runner::Client && !answered.contains(&here) =>
                {
                    return Err(format!("{here:?} has no result in {}", short(history)));
                }
                Body::ToolResult(result) => {
                    *counts.outcomes.entry(result.outcome.as_str()).or_default() += 1;
                    let pair = pairs.iter().find(|pair| pair.result == here);
                    let pair = pair.ok_or_else(|| format!("{here:?} answers nothing"))?;
                    if message.role == Role::Tool {
                        if pair.call.message + 1 != at {
                            return Err(format!("{here:?} is not behind its call"));
                        }
                        if last.replace(pair.call) > Some(pair.call) {
                            return Err(format!("{here:?} is not in call order"));
                        }
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Every vendor accepts the history.
fn fit(history: &[Message], counts: &mut Counts) -> Result<(), String> {
    let wires = [
        Wire::OpenAiResponses,
        Wire::OpenAiChat,
        Wire::Anthropic,
        Wire::Gemini,
        Wire::Foundry,
    ];
    for wire in wires {
        let (target, options) = (Target::newest(wire.clone()), Options::default());
        let body = render(history, &target, &options).body(&target, &options);
        let value = json::parse(&body).map_err(|error| format!("{wire}: {error}"))?;
        counts.renderings += 1;
        if let Some(violation) = validate(&value, &Profile::newest(wire.clone())).first() {
            return Err(format!("{wire}: {violation:?} in {body}"));
        }
    }
    Ok(())
}

/// A history in one line a message, for failures.
fn short(history: &[Message]) -> String {
    let mut out = String::new();
    for message in history {
        out.push_str("\n  ");
        out.push_str(message.role.as_str());
        for content in &message.contents {
            out.push_str(&match &content.body {
                Body::ToolCall(call) => format!(" call({}, {:?})", call.call, call.runner),
                Body::ToolResult(result) => {
                    format!(" result({}, {})", result.call(), result.outcome.as_str())
                }
                Body::Text(text) => format!(" {:?}", text.text),
                _ => " …".to_owned(),
            });
        }
    }
    out
}
