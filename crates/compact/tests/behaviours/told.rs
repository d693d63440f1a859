//! Small conversations, told message by message.

use std::sync::Arc;

use throughline_compact::{Call, Epoch, Planned, Policy, Report, ToolHistory};
use throughline_model::{
    CallId, Content, Message, Outcome, Output, Reasoning, Role, Source, ToolCall,
};

/// A conversation and its history.
pub(crate) struct Told {
    pub(crate) history: ToolHistory,
    pub(crate) seq: u64,
}

impl Told {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            history: ToolHistory::new(policy),
            seq: 0,
        }
    }

    pub(crate) fn push(&mut self, message: Message) -> u64 {
        self.seq += 1;
        assert!(self.history.push(self.seq, message));
        self.seq
    }

    /// With a size of its own, whatever it says.
    pub(crate) fn sized(&mut self, message: Message, units: u32) -> u64 {
        self.seq += 1;
        assert!(self.history.push_counted(self.seq, message, units));
        self.seq
    }

    pub(crate) fn user(&mut self, text: &str) -> u64 {
        self.push(Message::user(text))
    }

    pub(crate) fn system(&mut self, text: &str) -> u64 {
        self.push(Message::new(Role::System, vec![Content::text(text)]))
    }

    pub(crate) fn says(&mut self, text: &str) -> u64 {
        self.push(Message::new(Role::Assistant, vec![Content::text(text)]))
    }

    /// A round of one call of a tool; gives the number of its result.
    pub(crate) fn round(&mut self, name: &str, arguments: &str, output: &str) -> u64 {
        self.ended(name, arguments, Outcome::Ok, output)
    }

    pub(crate) fn ended(
        &mut self,
        name: &str,
        arguments: &str,
        outcome: Outcome,
        output: &str,
    ) -> u64 {
        let call = call(&format!("call_{}", self.seq), name, arguments);
        let result = answer(&call, outcome, output);
        self.push(calls(vec![call]));
        self.push(results(vec![result]))
    }

    /// A round of several calls, of so many units in all.
    pub(crate) fn rounds_of(&mut self, count: u32, units: u32) {
        let made: Vec<ToolCall> = (0..count)
            .map(|at| {
                call(
                    &format!("call_{}_{at}", self.seq),
                    "read_file",
                    r#"{"path":"/a/b.rs"}"#,
                )
            })
            .collect();
        let answers = made
            .iter()
            .map(|call| answer(call, Outcome::Ok, &"word ".repeat(20)))
            .collect();
        self.sized(calls(made), units / 2);
        self.sized(results(answers), units - units / 2);
    }

    pub(crate) fn plan(&mut self) -> Planned {
        self.history.plan(&Call::default()).unwrap()
    }

    /// Plan, and install what was planned.
    pub(crate) fn compact(&mut self) -> (Epoch, Report) {
        match self.plan() {
            Planned::Epoch(epoch, report) => {
                assert!(self.history.install(epoch.clone()));
                (epoch, report)
            }
            Planned::Unchanged(report) => unreachable!("{report}"),
        }
    }

    pub(crate) fn unchanged(&mut self) -> Report {
        match self.plan() {
            Planned::Unchanged(report) => report,
            Planned::Epoch(_, report) => unreachable!("{report}"),
        }
    }

    /// The digests of the view.
    pub(crate) fn digests(&self) -> String {
        let view = self.history.view().iter();
        let summaries = view.filter(|message| message.source == Some(Source::Summary));
        let texts: Vec<String> = summaries.map(|message| message.text()).collect();
        texts.join("\n")
    }

    /// The line about a message.
    pub(crate) fn line(&self, seq: u64) -> String {
        let mark = format!(" #{seq}]");
        let digests = self.digests();
        let line = digests.lines().find(|line| line.ends_with(&mark));
        line.unwrap_or_default().to_owned()
    }

    /// Calls that are shown in full.
    pub(crate) fn calls_shown(&self) -> usize {
        let contents = self.history.view().iter().flat_map(|one| &one.contents);
        contents.filter_map(Content::as_tool_call).count()
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall::function(CallId::natural(id).unwrap(), name, arguments)
}

pub(crate) fn answer(call: &ToolCall, outcome: Outcome, output: &str) -> Content {
    call.answer(outcome, Output::from(output)).into()
}

pub(crate) fn calls(calls: Vec<ToolCall>) -> Message {
    let contents = calls.into_iter().map(Content::from).collect();
    Message::new(Role::Assistant, contents)
}

pub(crate) fn results(results: Vec<Content>) -> Message {
    Message::new(Role::Tool, results)
}

pub(crate) fn thought(text: &str) -> Content {
    Content::new(throughline_model::Body::Reasoning(Reasoning {
        text: vec![text.to_owned()],
        ..Reasoning::default()
    }))
}

/// The stored form of messages, for comparing bytes.
pub(crate) fn bytes<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<String> {
    messages.into_iter().map(|one| one.to_json()).collect()
}

/// A policy that compacts as soon as it can.
pub(crate) fn eager() -> Policy {
    Policy {
        threshold: 100,
        recent_calls: 1,
        ..Policy::default()
    }
}
