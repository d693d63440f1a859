//! What of a stateless request the upstream cannot be sent: refused if a model was to be shown it,
//! named in the answer otherwise.

use throughline::client::{Loss, MOST_LOSSES};
use throughline_model::{Body, Content, Form, Message};

use super::StatelessCall;
use crate::api::ignored::{self, Ignored, is_content};
use crate::app::App;
use crate::error::ApiError;

/// Where losses of a model call stand in the request of an API.
pub(crate) struct LossPlaces<'a> {
    /// The member that is behind a setting of ours; none if the client set nothing of the kind.
    pub(crate) setting: &'a dyn Fn(&str) -> Option<String>,
    /// The place of each tool on offer among the request's.
    pub(crate) tools: &'a [usize],
}

/// Add what the upstream cannot be sent. A content that it cannot take is refused.
pub(crate) fn with_losses(
    call: &StatelessCall,
    places: &LossPlaces<'_>,
    mut ignored: Vec<Ignored>,
) -> Result<Vec<Ignored>, ApiError> {
    let losses = call.losses();
    if losses.len() >= MOST_LOSSES {
        refuse_hidden_contents(call)?;
    }
    let messages = call.view.messages();
    let mut positions = None;
    for loss in &losses {
        let found = match loss.path.split_once(['.', '[']) {
            Some(("settings", key)) => (places.setting)(key),
            Some(("tools", rest)) => tool_place(rest, places.tools),
            None if loss.path == "choice" => Some("tool_choice".to_owned()),
            Some(("messages", rest)) => {
                let positions = positions.get_or_insert_with(|| {
                    let messages = messages.iter().map(|message| &**message);
                    positions_of(messages)
                });
                let path = message_place(rest, positions);
                if is_content(loss.kind) {
                    return Err(unsupported(call, loss, path));
                }
                // The same kind of loss in each message of a long history is named once.
                let known = ignored.iter().any(|one| one.reason == loss.detail);
                (!known).then_some(path)
            }
            _ => None,
        };
        let Some(path) = found else {
            continue;
        };
        if !ignored.iter().any(|one| one.path == path) {
            ignored.push(Ignored {
                path,
                reason: loss.detail.clone(),
                sent: loss.sent.clone(),
            });
        }
    }
    Ok(ignored)
}

/// Refuse contents that the upstream cannot take, among more losses than are listed.
fn refuse_hidden_contents(call: &StatelessCall) -> Result<(), ApiError> {
    for message in call.view.messages() {
        let is_plain =
            |content: &Content| matches!(content.body, Body::Text(_) | Body::ToolCall(_));
        if message.contents.iter().all(is_plain) {
            continue;
        }
        let losses = call.losses_of(message);
        if let Some(loss) = losses
            .iter()
            .find(|loss| is_content(loss.kind) && loss.path.starts_with("messages"))
        {
            return Err(unsupported(call, loss, "messages".to_owned()));
        }
    }
    Ok(())
}

/// Name what is not carried out in the metrics and the log. Gives the value of the header.
pub(crate) fn report_ignored(
    app: &App,
    all: &[Ignored],
    member_of: fn(&str) -> Option<&'static str>,
) -> Option<String> {
    for one in all {
        app.http.ignored(member_of(&one.path));
    }
    let paths = ignored::header(all);
    if let Some(ignored) = &paths {
        tracing::info!(ignored, "a request is not carried out in full");
    }
    paths
}

fn tool_place(rest: &str, tools: &[usize]) -> Option<String> {
    let (index, rest) = rest.split_once(']')?;
    let index = tools.get(index.parse::<usize>().ok()?)?;
    Some(format!("tools[{index}]{rest}"))
}

/// The place in the request of each content of each message: an API's message may be several of ours.
fn positions_of<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<Vec<(usize, usize)>> {
    let mut next = (0_usize, 0_usize);
    let places = messages.map(|message| {
        let contents = message.contents.iter().map(|content| {
            let vendor = content.vendor.as_ref();
            let begins = vendor.is_some_and(|vendor| {
                vendor.envelope.is_some() || matches!(vendor.form, Form::Item(_))
            });
            next = match begins {
                true => (next.0 + 1, 0),
                false => (next.0, next.1 + 1),
            };
            (next.0.saturating_sub(1), next.1)
        });
        contents.collect()
    });
    places.collect()
}

/// `0].contents[1]` as a place of the request.
fn message_place(rest: &str, positions: &[Vec<(usize, usize)>]) -> String {
    let numbers = rest.split(|letter: char| !letter.is_ascii_digit());
    let mut numbers = numbers.filter_map(|digits| digits.parse::<usize>().ok());
    let contents = numbers.next().and_then(|message| positions.get(message));
    let is_content = rest.contains("contents[");
    let content = numbers.next().filter(|_| is_content).unwrap_or(0);
    match contents.and_then(|contents| contents.get(content)) {
        Some((message, content)) if is_content => format!("messages[{message}].content[{content}]"),
        Some((message, _)) => format!("messages[{message}]"),
        None => "messages".to_owned(),
    }
}

fn unsupported(call: &StatelessCall, loss: &Loss, path: String) -> ApiError {
    ApiError::invalid(format!(
        "'{path}' cannot be sent to the upstream '{}': {}. Send the data itself in a form that its \
         models take, or leave it out.",
        call.route.upstream.name, loss.detail
    ))
    .code("unsupported_content")
    .param(path)
    .retry(false)
}
