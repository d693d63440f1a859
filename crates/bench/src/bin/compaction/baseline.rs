//! Other strategies for long histories, as large as they are. Each keeps calls and results together.

use std::sync::Arc;

use throughline_model::{Content, Message, Role, Source};
use throughline_testkit::trajectory::{argument_strings, error_line, message_texts};

use crate::count::Counter;
use crate::groups::{MessageGroup, calls_of, contents, is_system, masked, newest, push, recent};
use crate::replay::{Strategy, View};

/// A way to shorten a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The whole history.
    Raw,
    /// The newest groups that fit the budget.
    DropOldest,
    /// All text, and the newest six calls.
    KeepLast,
    /// Results before the newest ten calls are replaced by a placeholder.
    Mask,
    /// Six calls, and before them a summary that is rewritten for each model call.
    HeadSummary,
}

impl Kind {
    /// The strategies that shorten the history.
    pub(crate) const SHORT: [Self; 4] = [
        Self::DropOldest,
        Self::KeepLast,
        Self::Mask,
        Self::HeadSummary,
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::DropOldest => "drop-oldest",
            Self::KeepLast => "keep-last-6",
            Self::Mask => "mask-last-10",
            Self::HeadSummary => "head-summary",
        }
    }
}

/// A history with one of these strategies.
pub(crate) struct Baseline {
    kind: Kind,
    /// The largest view, if the strategy or the bench has a limit.
    budget: Option<u64>,
    groups: Vec<MessageGroup>,
    masked: Vec<Option<MessageGroup>>,
}

impl Baseline {
    pub(crate) fn new(kind: Kind, budget: Option<u64>) -> Self {
        Self {
            kind,
            budget,
            groups: Vec::new(),
            masked: Vec::new(),
        }
    }

    fn summary(&self, older: &[MessageGroup]) -> Arc<Message> {
        let mut files: Vec<String> = Vec::new();
        let mut lines: Vec<String> = Vec::new();
        for group in older.iter().rev() {
            for call in contents(group).filter_map(Content::as_tool_call) {
                for (key, value) in argument_strings(&call.arguments) {
                    if key.to_lowercase().contains("path") && !files.contains(&value) {
                        files.push(value);
                    } else if key == "command" && lines.len() < 20 {
                        lines.push(format!("ran {}", first(&value, 120)));
                    }
                }
            }
            let texts: Vec<String> = group
                .iter()
                .flat_map(|message| message_texts(message))
                .collect();
            let results = contents(group).any(|content| content.as_tool_result().is_some());
            let line = texts.iter().find_map(|text| error_line(text));
            if let Some(line) = line.filter(|_| results && lines.len() < 20) {
                lines.push(format!("saw {}", first(line, 120)));
            }
        }
        files.truncate(40);
        lines.reverse();
        let text = format!(
            "Summary of {} earlier steps.\nFiles: {}\n{}",
            older.len(),
            files.join(", "),
            lines.join("\n")
        );
        let mut message = Message::user(text);
        message.source = Some(Source::Summary);
        Arc::new(message)
    }

    fn shortened(&mut self) -> Vec<MessageGroup> {
        let keep = |group: &&MessageGroup| calls_of(group) == 0;
        match self.kind {
            Kind::Raw | Kind::DropOldest => self.groups.clone(),
            Kind::KeepLast => {
                let (older, recent) = self.groups.split_at(recent(&self.groups, 6));
                older.iter().filter(keep).chain(recent).cloned().collect()
            }
            Kind::Mask => {
                let recent = recent(&self.groups, 10);
                let mut view = Vec::with_capacity(self.groups.len());
                self.masked.resize(self.groups.len(), None);
                for (place, group) in self.groups.iter().enumerate() {
                    if place < recent {
                        let known = &mut self.masked[place];
                        view.push(known.get_or_insert_with(|| masked(group)).clone());
                    } else {
                        view.push(group.clone());
                    }
                }
                view
            }
            Kind::HeadSummary => {
                let (older, recent) = self.groups.split_at(recent(&self.groups, 6));
                let (heads, rest): (Vec<_>, Vec<_>) =
                    older.iter().partition(|group| is_system(group));
                let users = rest
                    .iter()
                    .filter(|group| group.iter().any(|message| message.role == Role::User));
                let mut view: Vec<_> = heads.into_iter().cloned().collect();
                if !older.is_empty() {
                    view.push(vec![self.summary(older)]);
                }
                view.extend(users.map(|group| (*group).clone()));
                view.extend(recent.iter().cloned());
                view
            }
        }
    }
}

impl Strategy for Baseline {
    fn push(&mut self, _: usize, message: &Arc<Message>) {
        let place = push(&mut self.groups, message);
        self.masked.truncate(place);
    }

    fn view(&mut self, counter: &mut Counter) -> View {
        let messages = newest(&self.shortened(), self.budget, counter);
        View { messages, epoch: 0 }
    }

    fn billed(&mut self, _: u64) {}
}

fn first(text: &str, most: usize) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let end = line
        .char_indices()
        .nth(most)
        .map_or(line.len(), |(at, _)| at);
    &line[..end]
}
