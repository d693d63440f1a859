//! Random runs as the library tells them: streamed with deltas, and told again from the journal.

use std::collections::BTreeMap;

use throughline::compact::{Report, Trigger};
use throughline::{RunEvent, StopReason};
use throughline_model::json::{RawJson, parse};
use throughline_model::{
    Body, CallId, Citation, Content, Extra, Family, Message, Outcome, Output, Place, Reasoning,
    Role, Source, Status, Stop, Text, ToolCall, Usage, Vendor, Wire,
};
use throughline_server::api::openai::items::{
    AwaitingApproval, KnownCall, ServerTool, ToolIndex, ToolList,
};
use throughline_server::api::openai::responses::wire::{Ending, ResponseContext};
use throughline_store::{ApprovalId, RunId, ThreadId};
use throughline_testkit::{Rng, generate};

use throughline_wire::openai_responses::CODEC;

/// What may happen in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing special.
    Plain,
    /// Model calls break off and are made again.
    Redone,
    /// It is cut off while the model answers.
    Cut,
    /// It fails while the model answers.
    Fails,
}

/// One run, told in both ways.
pub(crate) struct Told {
    pub(crate) context: ResponseContext,
    pub(crate) streamed: Vec<RunEvent>,
    /// As its journal tells it.
    pub(crate) replayed: Vec<RunEvent>,
    pub(crate) ending: Ending,
    /// Whether everything came in the order of the answer.
    pub(crate) in_turn: bool,
}

/// How an upstream's answers arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// Each content is whole before the next begins.
    InTurn,
    /// Contents are whole only at the end.
    AtTheEnd,
}

struct Maker<'r> {
    rng: &'r mut Rng,
    size: usize,
    streamed: Vec<RunEvent>,
    replayed: Vec<RunEvent>,
    calls: usize,
    asked: Vec<AwaitingApproval>,
    in_turn: bool,
}

/// The tools that run on the server in generated runs.
pub(crate) fn tool_index() -> ToolIndex {
    let mut tool_index = ToolIndex::new();
    for (name, asks) in [
        ("get_order", false),
        ("find_order", false),
        ("place_order", true),
    ] {
        let tool = ServerTool {
            label: "orders".to_owned(),
            name: name.to_owned(),
            asks,
        };
        tool_index.insert(name, tool);
    }
    tool_index
}

/// The list of tools of their server.
pub(crate) fn tool_list() -> ToolList {
    let tool = r#"{"name":"get_order","description":"an order","input_schema":{"type":"object"},"annotations":null}"#;
    ToolList {
        label: "orders".to_owned(),
        tools: vec![RawJson::new(tool).unwrap()],
    }
}

/// A random run.
pub(crate) fn run(rng: &mut Rng, size: usize, fate: Fate, context: ResponseContext) -> Told {
    let mut maker = Maker {
        rng,
        size,
        streamed: Vec::new(),
        replayed: Vec::new(),
        calls: 0,
        asked: Vec::new(),
        in_turn: true,
    };
    let ending = maker.tell(fate, context.run, &context);
    Told {
        streamed: maker.streamed,
        replayed: maker.replayed,
        ending,
        in_turn: maker.in_turn,
        context,
    }
}

impl Maker<'_> {
    fn both(&mut self, event: RunEvent) {
        self.streamed.push(event.clone());
        self.replayed.push(event);
    }

    fn tell(&mut self, fate: Fate, run: RunId, context: &ResponseContext) -> Ending {
        let thread = ThreadId::new("thr_1").unwrap();
        self.both(RunEvent::Started { run, thread });
        if self.rng.chance(0.3) {
            let report = Report {
                trigger: Some(Trigger::Budget),
                epoch: 1 + self.rng.below(9) as u64,
                calls_digested: 84,
                tokens_before: 96_000,
                tokens_after: 21_000,
                ..Report::default()
            };
            self.both(RunEvent::Compacted { step: 0, report });
        }
        let mut input = Message::user("hi");
        input.source = Some(Source::Caller);
        self.both(RunEvent::Message(input));
        self.take_over(context);
        let steps = self.rng.range(1..=3);
        let fated = self.rng.below(steps);
        for step in 0..steps as u32 {
            let here = step as usize == fated && fate != Fate::Plain;
            if here && fate == Fate::Redone {
                for _ in 0..self.rng.range(1..=2) {
                    self.broken(step);
                }
            }
            if here && fate == Fate::Fails {
                self.broken(step);
                return self.end(StopReason::Failed, None);
            }
            if here && fate == Fate::Cut {
                self.cut(step);
                return self.end(StopReason::Cancelled, None);
            }
            let last = step as usize + 1 == steps;
            if self.answered(step, last) {
                return self.end(StopReason::Parked, Some(Stop::ToolCalls));
            }
        }
        match self.rng.below(6) {
            // Which item was the last depends on the order in which they were shown.
            0 if fate == Fate::Plain && self.in_turn => {
                self.end(StopReason::Done, Some(Stop::Length))
            }
            1 if fate == Fate::Plain && self.in_turn => {
                self.end(StopReason::Done, Some(Stop::ContentFilter))
            }
            2 => self.end(StopReason::RoundLimit, Some(Stop::Done)),
            _ => self.end(StopReason::Done, Some(Stop::Done)),
        }
    }

    fn end(&mut self, stop: StopReason, finish: Option<Stop>) -> Ending {
        if stop != StopReason::Parked {
            self.both(RunEvent::Ended { stop });
        }
        let failed = stop == StopReason::Failed;
        Ending {
            stop,
            finish,
            error: failed.then(|| {
                (
                    "rate_limit_exceeded".to_owned(),
                    "too \"many\"\n".to_owned(),
                )
            }),
            asked: std::mem::take(&mut self.asked),
            at: 1_790_000_009_000,
            ignored: Vec::new(),
        }
    }

    /// Calls of the history get their results.
    fn take_over(&mut self, context: &ResponseContext) {
        if context.known_calls.is_empty() {
            return;
        }
        let calls: Vec<ToolCall> = context
            .known_calls
            .iter()
            .map(|one| one.call.clone())
            .collect();
        self.round(0, &calls);
    }

    /// A model call that is answered. Returns whether the run waits for the client now.
    fn answered(&mut self, step: u32, last: bool) -> bool {
        let mut contents = Vec::new();
        for _ in 0..self.rng.range(0..=3) {
            contents.extend(self.spoken());
        }
        let words = self.words();
        contents.push(Content::text(words));
        let mut server = Vec::new();
        let mut waits = false;
        if last && self.rng.chance(0.4) {
            waits = true;
            for _ in 0..self.rng.range(1..=3) {
                contents.push(self.client_call().into());
            }
        } else if !last || self.rng.chance(0.2) {
            for _ in 0..self.rng.range(1..=3) {
                let call = self.server_call();
                // Words may come between calls, and calls of the client among others.
                if self.rng.chance(0.2) {
                    contents.extend(self.spoken());
                }
                if last && call.name == "place_order" && self.rng.chance(0.7) {
                    waits = true;
                    self.asked.push(AwaitingApproval {
                        step,
                        call: call.call.value().to_owned(),
                        occurrence: 0,
                        approval: ApprovalId::from_bytes([self.calls as u8; 16]),
                    });
                } else {
                    server.push(call.clone());
                }
                contents.push(call.into());
            }
        }
        self.say(step, &contents, None);
        self.round(step, &server);
        waits
    }

    /// Tell an answer in both ways.
    fn say(&mut self, step: u32, contents: &[Content], status: Option<Status>) {
        self.stream(step, contents, status.is_some());
        self.replayed.push(RunEvent::Asked { step });
        for (item, content) in contents.iter().enumerate() {
            let at = Place::new(0, item, 0);
            let brought = brought(step, at, content);
            self.replayed.extend(brought);
            self.replayed.push(RunEvent::Content {
                step,
                at,
                content: content.clone(),
            });
        }
        let mut message = Message::new(Role::Assistant, contents.to_vec());
        message.source = Some(Source::Model);
        message.status = status;
        message.usage = self.rng.chance(0.9).then(|| Usage {
            input: Some(self.rng.below(1000) as u64),
            output: Some(self.rng.below(1000) as u64),
            cache_read: Some(3),
            reasoning: self.rng.bool().then_some(2),
            ..Usage::default()
        });
        self.both(RunEvent::Message(message));
    }

    /// Tell an answer as it comes; in one that is cut, the last content never becomes whole.
    fn stream(&mut self, step: u32, contents: &[Content], cut: bool) {
        self.streamed.push(RunEvent::Asked { step });
        // What brings no text is seen only when it is whole.
        let silent = |content: &Content| match &content.body {
            Body::Reasoning(reasoning) => reasoning.summary.is_empty() && reasoning.text.is_empty(),
            _ => false,
        };
        let arrival = match contents.iter().any(silent) || self.rng.bool() {
            true => Arrival::InTurn,
            false => Arrival::AtTheEnd,
        };
        self.in_turn &= arrival == Arrival::InTurn;
        let mut wholes = Vec::new();
        let mut at = Place::new(0, 0, 0);
        for (number, content) in contents.iter().enumerate() {
            // Places are in order; they need not be dense.
            match self.rng.below(3) {
                0 => at.part += 1,
                more => at = Place::new(0, at.item + more, 0),
            }
            for event in brought(step, at, content) {
                let pieces = self.pieces(event);
                self.streamed.extend(pieces);
            }
            let whole = RunEvent::Content {
                step,
                at,
                content: content.clone(),
            };
            match arrival {
                _ if cut && number + 1 == contents.len() => {}
                Arrival::InTurn => self.streamed.push(whole),
                Arrival::AtTheEnd => wholes.push(whole),
            }
        }
        if !cut {
            self.streamed.extend(wholes);
        }
    }

    /// A delta in several pieces.
    fn pieces(&mut self, event: RunEvent) -> Vec<RunEvent> {
        let with = |text: String| match &event {
            RunEvent::Text { step, at, .. } => RunEvent::Text {
                step: *step,
                at: *at,
                delta: text,
            },
            RunEvent::Refusal { step, at, .. } => RunEvent::Refusal {
                step: *step,
                at: *at,
                delta: text,
            },
            RunEvent::Summary { step, at, part, .. } => RunEvent::Summary {
                step: *step,
                at: *at,
                part: *part,
                delta: text,
            },
            RunEvent::Reasoning { step, at, .. } => RunEvent::Reasoning {
                step: *step,
                at: *at,
                delta: text,
            },
            other => other.clone(),
        };
        let (RunEvent::Text { delta, .. }
        | RunEvent::Refusal { delta, .. }
        | RunEvent::Summary { delta, .. }
        | RunEvent::Reasoning { delta, .. }) = &event
        else {
            return vec![event];
        };
        let chars: Vec<char> = delta.chars().collect();
        let length = self.rng.range(1..=chars.len().max(1));
        let mut pieces: Vec<RunEvent> = chars
            .chunks(length)
            .map(|piece| with(piece.iter().collect()))
            .collect();
        // The rest may come with the whole.
        if pieces.len() > 1 && self.rng.chance(0.1) && !matches!(event, RunEvent::Summary { .. }) {
            pieces.pop();
        }
        pieces
    }

    /// A model call that breaks off.
    fn broken(&mut self, step: u32) {
        let mut contents = Vec::new();
        for _ in 0..self.rng.range(1..=3) {
            contents.extend(self.spoken());
            if self.rng.chance(0.3) {
                contents.push(self.client_call().into());
            }
        }
        let cut = self.rng.bool();
        let before = self.streamed.len();
        self.stream(step, &contents, cut);
        let told = self.streamed.get(before..).unwrap_or_default();
        let mut places = BTreeMap::new();
        for event in told {
            if let RunEvent::Text { at, .. }
            | RunEvent::Refusal { at, .. }
            | RunEvent::Summary { at, .. }
            | RunEvent::Reasoning { at, .. }
            | RunEvent::Content { at, .. } = event
            {
                places.insert(*at, ());
            }
        }
        for at in places.into_keys() {
            self.streamed.push(RunEvent::Incomplete { step, at });
        }
    }

    /// A model call that its reader cancels.
    fn cut(&mut self, step: u32) {
        let mut contents = Vec::new();
        for _ in 0..self.rng.range(0..=2) {
            contents.extend(self.spoken());
        }
        // A call that was not whole was never made. A text without letters has nothing that readers
        // would have heard before the cut.
        contents.retain(|content| {
            let empty = content.as_text().is_some_and(str::is_empty);
            content.as_tool_call().is_none() && content.as_tool_result().is_none() && !empty
        });
        let words = self.words();
        contents.push(Content::text(words));
        let before = self.streamed.len();
        self.say(step, &contents, Some(Status::Incomplete));
        // What was cut is as long as what came of it.
        let mut heard: BTreeMap<Place, String> = BTreeMap::new();
        for event in self.streamed.get(before..).unwrap_or_default() {
            if let RunEvent::Text { at, delta, .. } = event {
                heard.entry(*at).or_default().push_str(delta);
            }
        }
        let last = heard.into_iter().next_back().map(|(_, text)| text);
        let text = last.unwrap_or_default();
        for event in self.streamed.iter_mut().chain(&mut self.replayed) {
            if let RunEvent::Message(message) = event
                && message.status.is_some()
                && let Some(Content {
                    body: Body::Text(said),
                    ..
                }) = message.contents.last_mut()
            {
                said.text.clone_from(&text);
            }
        }
        let mut rest = self.replayed.iter_mut().rev().skip(1);
        if let Some(RunEvent::Content { content, .. }) = rest.next()
            && let Body::Text(said) = &mut content.body
        {
            said.text.clone_from(&text);
        }
        if let Some(RunEvent::Text { delta, .. }) = rest.next() {
            delta.clone_from(&text);
        }
    }

    /// The results of a round, in any order when it is streamed.
    fn round(&mut self, step: u32, calls: &[ToolCall]) {
        if calls.is_empty() {
            return;
        }
        let mut results = Vec::new();
        for (position, call) in (0..).zip(calls) {
            let outcome = match self.rng.chance(0.8) {
                true => Outcome::Ok,
                false => *self.rng.pick(&Outcome::ALL),
            };
            let words = self.words();
            let result = call.answer(outcome, Output::Text(words));
            self.streamed.push(RunEvent::Dispatched {
                step,
                position,
                call: call.call.clone(),
                tool: call.name.clone(),
            });
            results.push(RunEvent::Result {
                step,
                position,
                result,
            });
        }
        self.replayed.extend(results.iter().cloned());
        let contents = results.iter().filter_map(|event| match event {
            RunEvent::Result { result, .. } => Some(Content::from(result.clone())),
            _ => None,
        });
        let mut message = Message::new(Role::Tool, contents.collect());
        message.source = Some(Source::Tool);
        self.rng.shuffle(&mut results);
        // The last may be told with the round alone, as when a run is closed.
        if self.rng.chance(0.1) {
            results.pop();
        }
        self.streamed.extend(results);
        self.both(RunEvent::Message(message));
    }

    fn words(&mut self) -> String {
        let length = self.rng.range(1..=self.size.max(2));
        let text = generate::text(self.rng, length);
        match text.is_empty() {
            true => "x".to_owned(),
            false => text,
        }
    }

    /// Something that a model says, thinks or shows.
    fn spoken(&mut self) -> Vec<Content> {
        let words = self.words();
        match self.rng.below(10) {
            0 => vec![self.reasoning()],
            1 => vec![self.thinking()],
            2 => vec![Content::new(Body::Refusal(Text {
                text: words,
                citations: Vec::new(),
            }))],
            3 => vec![Content::new(Body::Text(Text {
                text: words,
                citations: vec![Citation {
                    url: Some("https://tides.example".to_owned()),
                    title: None,
                    file: None,
                    start: Some(0),
                    end: Some(1),
                    extra: Extra::NONE,
                }],
            }))],
            4 => self.hosted(),
            5 => vec![self.own_text()],
            6 => vec![Content::text("")],
            _ => vec![Content::text(words)],
        }
    }

    fn reasoning(&mut self) -> Content {
        let summary = (0..self.rng.below(3)).map(|_| self.words()).collect();
        let text = (0..self.rng.below(2)).map(|_| self.words()).collect();
        Content::new(Body::Reasoning(Reasoning {
            summary,
            text,
            sealed: false,
        }))
    }

    /// Reasoning that only its vendor can read.
    fn thinking(&mut self) -> Content {
        let reasoning = Reasoning {
            summary: Vec::new(),
            text: vec![self.words()],
            sealed: true,
        };
        let block = r#"{"type":"thinking","thinking":"","signature":"c2lnbmVk"}"#;
        let vendor = Vendor::part(Wire::Anthropic, RawJson::new(block).unwrap());
        Content::new(Body::Reasoning(reasoning)).with_vendor(vendor)
    }

    /// A text as OpenAI says it, with a phase.
    fn own_text(&mut self) -> Content {
        let item = r#"[{"id":"msg_0","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"looking","annotations":[{"type":"url_citation","url":"https://a.example","title":"a","start_index":0,"end_index":3}],"logprobs":[]}]}]"#;
        decoded(item).remove(0)
    }

    /// What a vendor's tool did.
    fn hosted(&mut self) -> Vec<Content> {
        let item = *self.rng.pick(&[
            r#"[{"id":"ws_0","type":"web_search_call","status":"completed","action":{"type":"search","query":"tides"}}]"#,
            r#"[{"id":"fs_0","type":"file_search_call","status":"completed","queries":["tides"],"results":null}]"#,
            r#"[{"id":"ci_0","type":"code_interpreter_call","status":"completed","code":"1+1","container_id":"c","outputs":[{"type":"logs","logs":"2"}]}]"#,
            r#"[{"id":"ig_0","type":"image_generation_call","status":"completed","result":"aGk="}]"#,
            r#"[{"id":"mcp_0","type":"mcp_call","status":"completed","server_label":"s","name":"n","arguments":"{}","output":"out","error":null}]"#,
        ]);
        decoded(item)
    }

    fn id(&mut self) -> CallId {
        self.calls += 1;
        CallId::natural(&format!("call_{}", self.calls)).unwrap()
    }

    fn client_call(&mut self) -> ToolCall {
        let id = self.id();
        let words = self.words();
        let call = ToolCall::function(id, "get_tide", format!("{{\"at\":{words:?}}}"));
        match self.rng.chance(0.2) {
            true => ToolCall {
                family: Family::CUSTOM,
                arguments: throughline_model::Arguments::Free(words),
                ..call
            },
            false => call,
        }
    }

    fn server_call(&mut self) -> ToolCall {
        let id = self.id();
        let name = *self.rng.pick(&["get_order", "find_order", "place_order"]);
        ToolCall::function(id, name, "{\"order\":7}")
    }
}

/// The contents of items as OpenAI's codec reads them.
fn decoded(items: &str) -> Vec<Content> {
    let value = parse(items).unwrap();
    let messages = CODEC.decode_messages(value.as_array().unwrap());
    messages.unwrap().remove(0).contents
}

/// The text that a content brings along, as the library tells it.
fn brought(step: u32, at: Place, content: &Content) -> Vec<RunEvent> {
    let mut events = Vec::new();
    match &content.body {
        Body::Text(text) if !text.text.is_empty() => events.push(RunEvent::Text {
            step,
            at,
            delta: text.text.clone(),
        }),
        Body::Refusal(text) => events.push(RunEvent::Refusal {
            step,
            at,
            delta: text.text.clone(),
        }),
        Body::Reasoning(reasoning) => {
            for (part, text) in (0..).zip(&reasoning.summary) {
                events.push(RunEvent::Summary {
                    step,
                    at,
                    part,
                    delta: text.clone(),
                });
            }
            let delta = reasoning.text.concat();
            if !delta.is_empty() {
                events.push(RunEvent::Reasoning { step, at, delta });
            }
        }
        _ => {}
    }
    events
}

/// A call of the response before, whose id no other call has.
pub(crate) fn known(call: ToolCall) -> KnownCall {
    KnownCall {
        call,
        occurrence: 0,
    }
}
