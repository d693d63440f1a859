//! Other strategies for long histories. Each keeps calls and results together.

use std::sync::Arc;

use throughline_model::{Content, Message, Output, Role, Source};
use throughline_testkit::trajectory::{argument_strings, error_line, message_texts};

use crate::count::Counter;
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
    groups: Vec<Vec<Arc<Message>>>,
    masked: Vec<Option<Vec<Arc<Message>>>>,
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

    /// The index of the oldest group of the newest `wanted` calls.
    fn recent(&self, wanted: usize) -> usize {
        let mut calls = 0;
        for (place, group) in self.groups.iter().enumerate().rev() {
            calls += calls_of(group);
            if calls >= wanted {
                return place;
            }
        }
        0
    }

    fn summary(&self, older: &[Vec<Arc<Message>>]) -> Arc<Message> {
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

    fn shortened(&mut self) -> Vec<Vec<Arc<Message>>> {
        let keep = |group: &&Vec<Arc<Message>>| calls_of(group) == 0;
        match self.kind {
            Kind::Raw | Kind::DropOldest => self.groups.clone(),
            Kind::KeepLast => {
                let (older, recent) = self.groups.split_at(self.recent(6));
                older.iter().filter(keep).chain(recent).cloned().collect()
            }
            Kind::Mask => {
                let recent = self.recent(10);
                let mut view = Vec::with_capacity(self.groups.len());
                self.masked.resize(self.groups.len(), None);
                for (place, group) in self.groups.iter().enumerate() {
                    if place < recent {
                        let masked = &mut self.masked[place];
                        view.push(masked.get_or_insert_with(|| mask(group)).clone());
                    } else {
                        view.push(group.clone());
                    }
                }
                view
            }
            Kind::HeadSummary => {
                let (older, recent) = self.groups.split_at(self.recent(6));
                let (heads, rest): (Vec<_>, Vec<_>) = older
                    .iter()
                    .partition(|group| group.iter().any(|message| message.role == Role::System));
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
        let answers = |group: &Vec<Arc<Message>>| {
            let calls: Vec<_> = contents(group).filter_map(Content::as_tool_call).collect();
            let mut results = message.contents.iter().filter_map(Content::as_tool_result);
            results.any(|result| calls.iter().any(|call| &call.call == result.call()))
        };
        match self.groups.iter().rposition(answers) {
            // Text between a call and its late result belongs to the same group from then on.
            Some(place) => {
                let mut late: Vec<_> = self.groups.drain(place + 1..).flatten().collect();
                late.push(Arc::clone(message));
                self.groups[place].append(&mut late);
                self.masked.truncate(place);
            }
            None => self.groups.push(vec![Arc::clone(message)]),
        }
    }

    fn view(&mut self, counter: &mut Counter) -> View {
        let groups = self.shortened();
        let sizes: Vec<u64> = groups.iter().map(|group| counter.view(group)).collect();
        let mut left: u64 = sizes.iter().sum();
        let mut messages = Vec::new();
        for (place, (group, size)) in groups.iter().zip(sizes).enumerate() {
            let system = group.iter().any(|message| message.role == Role::System);
            let over = self.budget.is_some_and(|budget| left > budget);
            // The model has to answer the newest group.
            if over && !system && place + 1 < groups.len() {
                left -= size;
            } else {
                messages.extend(group.iter().cloned());
            }
        }
        View { messages, epoch: 0 }
    }

    fn billed(&mut self, _: u64) {}
}

fn contents(group: &[Arc<Message>]) -> impl Iterator<Item = &Content> {
    group.iter().flat_map(|message| &message.contents)
}

fn calls_of(group: &[Arc<Message>]) -> usize {
    contents(group).filter_map(Content::as_tool_call).count()
}

fn mask(group: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let masked = group.iter().map(|message| {
        let mut message = (**message).clone();
        for content in &mut message.contents {
            if let throughline_model::Body::ToolResult(result) = &mut content.body {
                result.output = Output::from("[Old tool result left out]");
            }
        }
        Arc::new(message)
    });
    masked.collect()
}

fn first(text: &str, most: usize) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let end = line
        .char_indices()
        .nth(most)
        .map_or(line.len(), |(at, _)| at);
    &line[..end]
}
