//! Turns of runs, and short forms of messages.

use throughline_model::{
    Body, CallId, Content, Message, Outcome, Output, Role, Scope, Source, ToolCall,
};
use throughline_store::{
    Anchor, Begin, Begun, CallResult, CallState, Effect, Engine, Entry, Mode, NewItem, PlannedCall,
    Publish, Published, Result, RunId, Started, Step, StepNode, Store, TenantScope,
};

pub use throughline_store::conformance::block_on;

/// A user's message.
pub fn user(text: &str) -> Message {
    Message {
        source: Some(Source::Caller),
        ..Message::user(text)
    }
}

/// A model's message.
pub fn assistant(text: &str) -> Message {
    Message {
        source: Some(Source::Model),
        ..Message::new(Role::Assistant, vec![Content::text(text)])
    }
}

fn call(id: &str) -> ToolCall {
    let id = CallId::natural(id).unwrap_or_else(|| CallId::minted(Scope::Place(0), 0));
    ToolCall::function(id, "get_tide", "{}")
}

/// A model's message that makes calls.
pub fn calling(ids: &[String]) -> Message {
    Message {
        source: Some(Source::Model),
        ..Message::new(
            Role::Assistant,
            ids.iter().map(|id| call(id).into()).collect(),
        )
    }
}

/// A tool message with one result.
pub fn answered(id: &str) -> Message {
    let result = call(id).answer(Outcome::Ok, Output::Text(format!("result of {id}")));
    Message {
        source: Some(Source::Tool),
        ..Message::new(Role::Tool, vec![result.into()])
    }
}

/// A message in short form: its texts, calls and results.
pub fn short(message: &Message) -> String {
    let word = |content: &Content| match &content.body {
        Body::Text(text) => text.text.clone(),
        Body::ToolCall(call) => format!("call {}", call.call.value()),
        Body::ToolResult(result) => format!("result {}", result.call().value()),
        _ => "?".to_owned(),
    };
    message
        .contents
        .iter()
        .map(word)
        .collect::<Vec<_>>()
        .join("+")
}

/// Messages in short form.
pub fn shorts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| short(&entry.message)).collect()
}

/// The predetermined contents of a run.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Messages of the caller.
    pub input: Vec<String>,
    /// Rounds of calls, by call id.
    pub rounds: Vec<Vec<String>>,
    /// The final answer.
    pub answer: String,
    /// When it is published.
    pub mode: Mode,
}

/// Begins a run; a repetition is an error of the test.
pub async fn begin(store: &Store, scope: &TenantScope, begin: &Begin) -> Result<Started> {
    match store.begin(scope, begin).await? {
        Begun::Started(started) => Ok(started),
        Begun::Repeated(run) => Err(throughline_store::Error::Exists {
            what: "run",
            id: run.id.to_string(),
        }),
    }
}

impl Turn {
    /// The texts that a reader sees when the whole run is published.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = self.input.clone();
        for round in &self.rounds {
            texts.extend(round_texts(round));
        }
        texts.push(self.answer.clone());
        texts
    }

    /// The texts that a reader sees after the model call with this number, in `per_call`.
    pub fn texts_after(&self, step: usize) -> Vec<String> {
        let mut texts = self.input.clone();
        for round in &self.rounds[..step] {
            texts.extend(round_texts(round));
        }
        texts.push(round_texts(&self.rounds[step])[0].clone());
        texts
    }

    /// The operation that begins the run.
    pub fn begin(&self, run: RunId, at: Anchor) -> Begin {
        let input: Vec<Message> = self.input.iter().map(|text| user(text)).collect();
        Begin {
            mode: self.mode,
            ..Begin::new(run, at, NewItem::of(&input))
        }
    }

    /// The step with this number.
    pub fn step(&self, no: usize) -> Step {
        let planned = |id: &String| PlannedCall {
            call: id.clone(),
            tool: "get_tide".to_owned(),
            effect: Effect::Once,
            state: CallState::Intent,
        };
        let round = &self.rounds[no];
        Step {
            no: u32::try_from(no).unwrap_or(u32::MAX),
            items: NewItem::of(&[calling(round)]),
            calls: round.iter().map(planned).collect(),
            node: (self.mode == Mode::PerCall).then(StepNode::default),
            ..Step::default()
        }
    }

    /// The results of a round, in the order of the calls.
    pub fn results(&self, no: usize) -> Vec<CallResult> {
        let step = u32::try_from(no).unwrap_or(u32::MAX);
        let result = |(position, id): (usize, &String)| {
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            CallResult::new(step, position, &answered(id))
        };
        self.rounds[no].iter().enumerate().map(result).collect()
    }

    /// The operation that ends the run.
    pub fn publish(&self) -> Publish {
        let step = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
        Publish::new(step, NewItem::of(&[assistant(&self.answer)]))
    }

    /// Does the whole turn. `told` is called for each node.
    pub async fn run(
        &self,
        store: &Store,
        scope: &TenantScope,
        run: RunId,
        at: Anchor,
        mut told: impl FnMut(usize, &Published),
    ) -> Result<Published> {
        let lease = begin(store, scope, &self.begin(run, at)).await?.lease;
        for no in 0..self.rounds.len() {
            if let Some(published) = store.step(scope, lease, &self.step(no)).await? {
                told(no, &published);
            }
            store.results(scope, lease, &self.results(no)).await?;
        }
        let engine: &dyn Engine = &**store;
        engine.publish(scope, lease, &self.publish()).await
    }
}

fn round_texts(round: &[String]) -> [String; 2] {
    let join = |word: &str| {
        let words: Vec<String> = round.iter().map(|id| format!("{word} {id}")).collect();
        words.join("+")
    };
    [join("call"), join("result")]
}

/// The runs in a history, each with its texts; an error if runs are interleaved.
pub fn whole_runs(entries: &[Entry]) -> std::result::Result<Vec<(RunId, Vec<String>)>, String> {
    let mut runs: Vec<(RunId, Vec<String>)> = Vec::new();
    for entry in entries {
        match runs.last_mut() {
            Some((run, texts)) if *run == entry.at.run => texts.push(short(&entry.message)),
            _ => {
                if runs.iter().any(|(run, _)| *run == entry.at.run) {
                    return Err(format!("{} is not in one piece", entry.at.run));
                }
                runs.push((entry.at.run, vec![short(&entry.message)]));
            }
        }
    }
    Ok(runs)
}
