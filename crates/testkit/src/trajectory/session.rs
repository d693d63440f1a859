//! Recorded sessions.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use throughline_model::{Body, Message, Role, ToolCall, ToolResult};
use throughline_wire::Format;
use throughline_wire::transcript::{Limits, read};

/// A session: its messages in order. The number of a message is its index.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its name in tables.
    pub name: String,
    /// Its messages, without summaries that the agent wrote of its own past: they would hide what a
    /// strategy forgets.
    pub messages: Vec<Arc<Message>>,
    /// These summaries, with the index of the following message: from there on the vendor was sent
    /// the summary instead of what it summarises.
    pub summaries: Vec<(usize, Arc<Message>)>,
}

impl Session {
    /// A session of these messages.
    pub fn new(name: impl Into<String>, messages: Vec<Message>) -> Self {
        let mut session = Self {
            name: name.into(),
            messages: Vec::with_capacity(messages.len()),
            summaries: Vec::new(),
        };
        for message in messages.into_iter().map(Arc::new) {
            match is_own_summary(&message) {
                true => session.summaries.push((session.messages.len(), message)),
                false => session.messages.push(message),
            }
        }
        session
    }

    /// The indexes of the model's messages. Each was one model call.
    pub fn model_calls(&self) -> impl Iterator<Item = usize> {
        let places = self.messages.iter().enumerate();
        places.filter_map(|(place, message)| (message.role == Role::Assistant).then_some(place))
    }

    /// The calls that were answered, in the order of their results: the index of the result's message,
    /// the call and its result. A result belongs to the newest call of its id.
    pub(super) fn answered_calls(&self) -> Vec<(usize, &ToolCall, &ToolResult)> {
        let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
        let mut answered = Vec::new();
        for (at, message) in self.messages.iter().enumerate() {
            for content in &message.contents {
                match &content.body {
                    Body::ToolCall(call) => {
                        calls.insert(call.call.value(), call);
                    }
                    Body::ToolResult(result) => {
                        let call = calls.get(result.call().value());
                        answered.extend(call.map(|call| (at, *call, result)));
                    }
                    _ => {}
                }
            }
        }
        answered
    }
}

/// Why a session cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    file: PathBuf,
    why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.why)
    }
}

impl std::error::Error for Unreadable {}

/// The recorded sessions beside the project, by name; `None` if the folder does not exist.
pub fn recorded() -> Result<Option<Vec<Session>>, Unreadable> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/trajectories");
    folder.is_dir().then(|| sessions_in(&folder)).transpose()
}

/// The sessions in the files `*.json` of a folder, by name.
///
/// # Errors
///
/// If the folder or a file cannot be read, or a file is in another form.
pub fn sessions_in(folder: &Path) -> Result<Vec<Session>, Unreadable> {
    let failed = |file: &Path, why: &dyn fmt::Display| Unreadable {
        file: file.to_owned(),
        why: why.to_string(),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
        let file = entry.map_err(|error| failed(folder, &error))?.path();
        let named = file.file_name().and_then(|name| name.to_str());
        if named.is_some_and(|name| name.ends_with(".json") && name != "MANIFEST.json") {
            files.push(file);
        }
    }
    files.sort();
    let mut sessions = Vec::with_capacity(files.len());
    for file in files {
        let bytes = std::fs::read(&file).map_err(|error| failed(&file, &error))?;
        let transcript = read(&bytes, &Format::Neutral, Limits::default())
            .map_err(|error| failed(&file, &error))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        sessions.push(Session::new(name, transcript.request.messages));
    }
    Ok(sessions)
}

/// Whether a message is a summary that the recorded agent wrote when its context window was full.
fn is_own_summary(message: &Message) -> bool {
    message.meta.as_ref().is_some_and(|meta| {
        let value = meta.value();
        let kind = value.get("kind");
        kind.is_some_and(|kind| kind.is_str("compaction_summary"))
    })
}
