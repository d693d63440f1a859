//! Building blocks of generated sessions.

use throughline_model::{CallId, Content, Message, Outcome, Output, Role, Scope, ToolCall};

use crate::Rng;

const WORDS: [&str; 24] = [
    "tide", "berth", "harbour", "pilot", "anchor", "buoy", "mooring", "chart", "draught", "keel",
    "lock", "quay", "sluice", "wharf", "beacon", "cargo", "convoy", "dredge", "ferry", "gauge",
    "hull", "jetty", "lagoon", "sonar",
];

/// Builds a session.
pub(super) struct Maker {
    pub(super) rng: Rng,
    pub(super) messages: Vec<Message>,
    made: usize,
}

impl Maker {
    pub(super) fn new(seed: u64) -> Self {
        let rng = Rng::new(seed);
        Self {
            rng,
            messages: Vec::new(),
            made: 0,
        }
    }

    pub(super) fn system(&mut self, text: &str) {
        let text = Content::text(text);
        self.messages.push(Message::new(Role::System, vec![text]));
    }

    pub(super) fn user(&mut self, text: impl Into<String>) {
        self.messages.push(Message::user(text.into()));
    }

    pub(super) fn says(&mut self, text: impl Into<String>) {
        let text = Content::text(text.into());
        self.messages
            .push(Message::new(Role::Assistant, vec![text]));
    }

    /// One round of calls, each with its result.
    pub(super) fn round(&mut self, text: &str, calls: Vec<(&str, String, Outcome, String)>) {
        let mut asked = Vec::new();
        let mut answered = Vec::new();
        for (name, arguments, outcome, output) in calls {
            let call = self.call(name, arguments);
            answered.push(Content::from(call.answer(outcome, Output::Text(output))));
            asked.push(call);
        }
        self.asks(text, asked);
        self.messages.push(Message::new(Role::Tool, answered));
    }

    /// A round of one call that succeeds.
    pub(super) fn done(&mut self, text: &str, name: &str, arguments: String, output: String) {
        self.round(text, vec![(name, arguments, Outcome::Ok, output)]);
    }

    /// A call without a word, and its result.
    #[cfg(test)]
    pub(super) fn called(&mut self, name: &str, arguments: &str, outcome: Outcome, output: &str) {
        let call = self.call(name, arguments.to_owned());
        let asks = Content::from(call.clone());
        self.messages
            .push(Message::new(Role::Assistant, vec![asks]));
        self.answers(&call, outcome, output.to_owned());
    }

    /// A call that is not made yet.
    pub(super) fn call(&mut self, name: &str, arguments: String) -> ToolCall {
        self.made += 1;
        let id = CallId::natural(&format!("call_{:05}", self.made))
            .unwrap_or_else(|| CallId::minted(Scope::Place(self.made), 0));
        ToolCall::function(id, name, arguments)
    }

    /// Calls without their results.
    pub(super) fn asks(&mut self, text: &str, calls: Vec<ToolCall>) {
        let mut asked = vec![Content::text(text)];
        asked.extend(calls.into_iter().map(Content::from));
        self.messages.push(Message::new(Role::Assistant, asked));
    }

    /// The result of a call that was made before.
    pub(super) fn answers(&mut self, call: &ToolCall, outcome: Outcome, output: String) {
        let result = Content::from(call.answer(outcome, Output::Text(output)));
        self.messages.push(Message::new(Role::Tool, vec![result]));
    }

    pub(super) fn word(&mut self) -> &'static str {
        self.rng.pick::<&str>(&WORDS)
    }

    pub(super) fn identifier(&mut self) -> String {
        let (a, b, n) = (self.word(), self.word(), self.rng.below(100));
        format!("{a}_{b}_{n}")
    }

    /// A word that hardly occurs twice.
    pub(super) fn rare_word(&mut self) -> String {
        const PARTS: [&str; 16] = [
            "bren", "tho", "kul", "mar", "vis", "ond", "pel", "tra", "gli", "fen", "ost", "dra",
            "wem", "zul", "cor", "nab",
        ];
        let count = self.rng.range(3..=4);
        (0..count).map(|_| *self.rng.pick::<&str>(&PARTS)).collect()
    }

    pub(super) fn prose(&mut self, words: usize) -> String {
        let words: Vec<&str> = (0..words).map(|_| self.word()).collect();
        words.join(" ")
    }
}

/// Arguments of a call, as JSON.
pub(super) fn object(members: &[(&str, &str)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{}:{}", serde_json::json!(key), serde_json::json!(value)))
        .collect();
    format!("{{{}}}", members.join(","))
}
