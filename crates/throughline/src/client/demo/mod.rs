//! A model that needs no network: it answers from the conversation itself.
//!
//! It is not a language model. The same conversation always gets the same answer, so that history,
//! tools, forks and recovery can be tried without an API key.

mod calls;
mod unsupported;
mod words;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use futures_util::stream;
use throughline_model::{
    Body, CallId, Content, Event, Message, Output, Place, Response, Role, Stop, ToolCall,
    ToolChoice, Usage,
};
use throughline_wire::Loss;

use super::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, HistoryOwner,
};

/// The built-in model `demo`.
///
/// It answers "what did I say first?", "what did I say last?" and "how many messages?", returns
/// greetings, and repeats any other text. It cannot look at images, and says of which type they are. If tools are offered and the request names one, as in
/// "use get_tide with port=Hull" or "call add a=1 b=2", or asks for what one gets, as in "What is the
/// tide in Hull?", it calls the tool and answers from its result. Usage is counted in words.
///
/// ```
/// use throughline::model::{Message, Settings, ToolChoice};
/// use throughline::client::{ChatRequest, HistoryOwner, View};
/// use throughline::{ChatClient, Demo};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let view = View::new(vec![
///     Message::user("The tide turns at ten."),
///     Message::user("What did I say first?"),
/// ]);
/// let request = ChatRequest {
///     model: None,
///     instructions: None,
///     view: &view,
///     tools: &[],
///     choice: &ToolChoice::Auto,
///     settings: &Settings::default(),
///     history_owner: HistoryOwner::Caller,
///     persist: None,
///     losses: None,
/// };
/// let response = Demo::new().respond(&request).await?;
/// assert_eq!(response.messages[0].text(), "You first said: \"The tide turns at ten.\"");
/// # Ok::<(), throughline::client::ClientError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Demo {
    abilities: Abilities,
}

impl Default for Demo {
    fn default() -> Self {
        Self::new()
    }
}

impl Demo {
    /// A new client.
    pub fn new() -> Self {
        Self {
            abilities: Abilities {
                model: Some("demo".to_owned()),
                ..Abilities::of("demo")
            },
        }
    }
}

#[async_trait]
impl ChatClient for Demo {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn unsupported(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        unsupported::losses(request)
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        refuse_to_keep(request)?;
        request.note_losses(|| unsupported::losses(request));
        Ok(answer(request))
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        refuse_to_keep(request)?;
        request.note_losses(|| unsupported::losses(request));
        Ok(Box::pin(stream::iter(
            spoken(&answer(request)).into_iter().map(Ok),
        )))
    }
}

/// The model stores no conversations.
fn refuse_to_keep(request: &ChatRequest<'_>) -> Result<(), ClientError> {
    match request.history_owner {
        HistoryOwner::Caller => Ok(()),
        HistoryOwner::Service { .. } => {
            let text = "this model keeps no conversations: keep the thread's history here";
            Err(ClientError::new(ErrorKind::Setup, "demo", text))
        }
    }
}

/// The answer to a conversation.
fn answer(request: &ChatRequest<'_>) -> Response {
    let view = request.view.messages();
    let messages: Vec<&Message> = view
        .iter()
        .map(|message| {
            let message: &Message = message;
            message
        })
        .collect();
    let calls = wanted(request, &messages);
    let (contents, stop) = if calls.is_empty() {
        let said = match results(&messages) {
            Some(said) => said,
            None => words::answer(&messages),
        };
        let (said, stop) = within(said, request.settings.max_output_tokens);
        (vec![Content::text(said)], stop)
    } else {
        let calls = calls.into_iter().map(Content::from).collect();
        (calls, Stop::ToolCalls)
    };
    let usage = usage(request, &messages, &contents);
    let mut message = Message::new(Role::Assistant, contents);
    message.usage = Some(usage.clone());
    Response {
        id: None,
        model: Some(request.model.unwrap_or("demo").to_owned()),
        messages: vec![message],
        usage: Some(usage),
        stop,
        error: None,
        vendor: None,
        service: None,
    }
}

/// The calls that the newest request asks for; none once there are results.
fn wanted(request: &ChatRequest<'_>, messages: &[&Message]) -> Vec<ToolCall> {
    let Some(newest) = messages.last().filter(|newest| newest.role == Role::User) else {
        return Vec::new();
    };
    let found = match request.choice {
        ToolChoice::None => return Vec::new(),
        ToolChoice::Auto => calls::asked(&newest.text(), request.tools),
        ToolChoice::Required => calls::asked_or_first(&newest.text(), request.tools),
        ToolChoice::Named(name) => {
            let only: Vec<_> = request
                .tools
                .iter()
                .filter(|tool| tool.name == *name)
                .cloned()
                .collect();
            calls::asked_or_first(&newest.text(), &only)
        }
    };
    let most = match request.settings.parallel_calls {
        Some(false) => 1,
        Some(true) | None => usize::MAX,
    };
    found
        .into_iter()
        .take(most)
        .enumerate()
        .filter_map(|(place, (name, arguments))| {
            let id = CallId::natural(&format!("demo_{}_{place}", messages.len()))?;
            Some(ToolCall::function(id, name, arguments))
        })
        .collect()
}

/// The results of the last round, if they are the newest messages.
fn results(messages: &[&Message]) -> Option<String> {
    let round: Vec<&Message> = messages
        .iter()
        .rev()
        .take_while(|message| message.role == Role::Tool)
        .copied()
        .collect();
    let lines: Vec<String> = round
        .iter()
        .rev()
        .flat_map(|message| &message.contents)
        .filter_map(Content::as_tool_result)
        .map(|result| {
            let asked = messages
                .iter()
                .rev()
                .flat_map(|message| &message.contents)
                .filter_map(Content::as_tool_call)
                .find(|call| call.call == *result.call());
            let name = result
                .name
                .as_deref()
                .or_else(|| asked.map(|call| call.name.as_str()))
                .unwrap_or("the tool");
            let verb = match result.outcome {
                throughline_model::Outcome::Ok => "says",
                other => other.as_str(),
            };
            format!("{name} {verb}: {}", shown(&result.output))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn shown(output: &Output) -> String {
    match output {
        Output::None => "nothing".to_owned(),
        Output::Text(text) => text.clone(),
        Output::Json(json) => json.get().to_owned(),
        Output::Parts(parts) => parts.iter().filter_map(Content::as_text).collect(),
    }
}

/// Truncates a text to a number of words.
fn within(text: String, most: Option<u64>) -> (String, Stop) {
    let most = most.and_then(|most| usize::try_from(most).ok());
    match most {
        Some(most) if words::count(&text) > most => {
            let kept: String = words::pieces(&text).take(most).collect();
            (kept.trim_end().to_owned(), Stop::Length)
        }
        _ => (text, Stop::Done),
    }
}

fn usage(request: &ChatRequest<'_>, messages: &[&Message], answer: &[Content]) -> Usage {
    let said = |content: &Content| match &content.body {
        Body::ToolResult(result) => words::count(&shown(&result.output)),
        Body::ToolCall(_) => 1,
        _ => content.as_text().map_or(0, words::count),
    };
    let heard: usize = messages
        .iter()
        .flat_map(|message| &message.contents)
        .map(said)
        .sum();
    let input = (heard + request.instructions.map_or(0, words::count)) as u64;
    let output = answer.iter().map(said).sum::<usize>() as u64;
    Usage {
        input: Some(input),
        output: Some(output),
        total: Some(input + output),
        ..Usage::default()
    }
}

/// The events of an answer, word by word.
fn spoken(response: &Response) -> Vec<Event> {
    let mut events = Vec::new();
    for event in response.events() {
        if let Event::Content { at, content } = &event {
            events.extend(growing(*at, content));
        }
        events.push(event);
    }
    events
}

fn growing(at: Place, content: &Content) -> Vec<Event> {
    let Some(text) = content.as_text() else {
        return Vec::new();
    };
    let content = Content::text("");
    let mut events = vec![Event::Opened { at, content }];
    events.extend(words::pieces(text).map(|word| Event::Delta {
        at,
        text: word.to_owned(),
    }));
    events
}
