//! A model that answers from the conversation, in any vendor's format.

#[cfg(test)]
mod tests;

use futures_util::FutureExt;
use throughline::client::{ChatRequest, HistoryOwner, View};
use throughline::{ChatClient, Demo};
use throughline_model::{Body, Content, Message, Role, Stop, Wire};

use crate::upstream::gate::Gate;
use crate::upstream::model_input::ModelInput;
use crate::upstream::recorded::Recorded;
use crate::upstream::reply::{Reply, Script};

/// Its reasoning, on request.
const THOUGHT: &str = "The tide first, then the berth.";

/// A model that answers like [`Demo`], so that one conversation gives the same answers with the
/// built-in model and with every vendor.
///
/// A prefix of a request changes the answer: `think first: …` puts reasoning before it, `hold: …`
/// waits in the middle until the gate opens, `say exactly: …` returns just these words, and `step
/// by step: A; B` makes the calls of A, then those of B once there are results, and answers from
/// the last results. With `think first: ` before that there is reasoning before each of these
/// answers.
pub fn talk(wire: &Wire, gate: &Gate) -> Script {
    let (wire, gate) = (wire.clone(), gate.clone());
    Script::respond_with(move |request: &Recorded| {
        answer(ModelInput::of(&wire, &request.body), &gate)
    })
}

fn answer(mut heard: ModelInput, gate: &Gate) -> Reply {
    let mut thinks = next_step(&mut heard).unwrap_or(false);
    let (mut holds, mut exactly) = (false, None);
    let newest = heard
        .messages
        .last_mut()
        .filter(|newest| newest.role == Role::User);
    if let Some(newest) = newest {
        let mut text = last_text(newest);
        loop {
            if let Some(rest) = text.strip_prefix("think first: ") {
                (thinks, text) = (true, rest.to_owned());
            } else if let Some(rest) = text.strip_prefix("hold: ") {
                (holds, text) = (true, rest.to_owned());
            } else {
                break;
            }
        }
        exactly = text.strip_prefix("say exactly: ").map(str::to_owned);
        if thinks || holds {
            newest.contents = vec![Content::text(text)];
        }
    }
    let mut reply = match exactly {
        Some(text) => Reply::text(text),
        None => from_conversation(&heard),
    };
    if thinks {
        reply = reply.reasoning_first(THOUGHT);
    }
    match holds {
        true => reply.held(gate),
        false => reply,
    }
}

/// The last text of a message. Context that a client sends with a request precedes it, and some
/// vendors have both in one message.
fn last_text(message: &Message) -> String {
    let mut texts = message.contents.iter().rev().filter_map(Content::as_text);
    texts.next().unwrap_or_default().to_owned()
}

/// If the newest request is `step by step`, makes the conversation end with its next step. After
/// the last step the conversation does not change, and ends with results. Returns whether there is
/// reasoning before each answer.
fn next_step(heard: &mut ModelInput) -> Option<bool> {
    let asked = heard
        .messages
        .iter()
        .rposition(|it| it.role == Role::User)?;
    let text = last_text(&heard.messages[asked]);
    let (thinks, text) = match text.strip_prefix("think first: ") {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let steps: Vec<&str> = text.strip_prefix("step by step: ")?.split("; ").collect();
    // Results of a round are one message.
    let after = heard.messages[asked..].iter();
    let rounds = after.filter(|it| it.role == Role::Tool).count();
    if let Some(step) = steps.get(rounds) {
        heard.messages.truncate(asked + 1);
        heard.messages[asked].contents = vec![Content::text(*step)];
    }
    Some(thinks)
}

fn from_conversation(heard: &ModelInput) -> Reply {
    let view = View::new(heard.messages.clone());
    let request = ChatRequest {
        model: None,
        instructions: heard.instructions.as_deref(),
        view: &view,
        tools: &heard.tools,
        choice: &heard.choice,
        settings: &heard.settings,
        history_owner: HistoryOwner::Caller,
        persist: None,
        losses: None,
    };
    let model = Demo::new();
    let Some(Ok(response)) = model.respond(&request).now_or_never() else {
        return Reply::text("I have nothing to say.");
    };
    let contents = response
        .messages
        .iter()
        .flat_map(|message: &Message| &message.contents);
    let (mut text, mut calls) = (String::new(), Vec::new());
    for content in contents {
        match &content.body {
            Body::ToolCall(call) => {
                let throughline_model::Arguments::Text(given) = &call.arguments else {
                    continue;
                };
                calls.push((call.name.clone(), given.clone()));
            }
            _ => text.push_str(content.as_text().unwrap_or_default()),
        }
    }
    let reply = match calls.is_empty() {
        true => Reply::text(text),
        false => Reply::calls(calls),
    };
    let counted = response
        .usage
        .and_then(|usage| Some((usage.input?, usage.output?)));
    let (input, output) = counted.unwrap_or_default();
    let reply = reply.with_usage(input, output);
    match response.stop {
        Stop::Length => reply.cut_off(),
        _ => reply,
    }
}
