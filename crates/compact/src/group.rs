//! Which parts of the record belong together and are kept or digested together.

use std::collections::{HashMap, HashSet};

use throughline_model::{Body, HeapSize, Message, Pairing, Role};

use crate::read_back::is_read_back;

/// What a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// System or developer text.
    System,
    /// Texts of a user.
    User,
    /// What an earlier view showed in place of other messages: a digest, a quoted result.
    Digest,
    /// Texts of the model without calls.
    Assistant,
    /// Calls with their results, the text beside them and the reasoning bound to them.
    Tools,
    /// A result that answers no call.
    Result,
    /// Anything of a vendor's own role.
    Other,
}

/// The part of one message that belongs to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The place of the message in the record, from zero.
    pub place: usize,
    /// Which contents, if not all.
    pub contents: Option<Vec<usize>>,
}

/// What is kept or digested as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What it is.
    pub kind: GroupKind,
    /// Its parts, oldest first; results of its calls may stand far behind the calls.
    pub members: Vec<Member>,
    /// How many calls it has.
    pub calls: u32,
    /// How many of its calls have no result yet.
    pub unanswered: u32,
    /// Only reasoning so far: the next contents of the model belong to it.
    pub(crate) bound: bool,
}

impl Group {
    /// The place of its first message.
    pub fn first(&self) -> usize {
        self.members.first().map_or(0, |member| member.place)
    }

    /// Whether it is tool history.
    pub fn is_tools(&self) -> bool {
        match self.kind {
            GroupKind::Tools | GroupKind::Result => true,
            GroupKind::System
            | GroupKind::User
            | GroupKind::Digest
            | GroupKind::Assistant
            | GroupKind::Other => false,
        }
    }
}

/// Where one content belongs and how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentGroup {
    pub(crate) group: usize,
    pub(crate) display: ContentDisplay,
}

/// How a content is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentDisplay {
    /// As it is.
    Plain,
    /// A result without a call: quoted.
    Orphan,
    /// One more result of an answered call: in the record only.
    Duplicate,
}

/// Where the contents of one message belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageGroups {
    /// All to one group, as they are.
    Whole(usize),
    /// Each to its own.
    Each(Box<[ContentGroup]>),
}

impl MessageGroups {
    /// The group that the message counts for.
    pub(crate) fn main(&self) -> usize {
        match self {
            Self::Whole(group) => *group,
            Self::Each(all) => all.first().map_or(0, |one| one.group),
        }
    }
}

/// Groups a record message by message; each message is read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grouping {
    pub(crate) groups: Vec<Group>,
    /// Calls without a result, by id, oldest first.
    open: HashMap<Box<str>, Vec<usize>>,
    /// Ids whose calls were answered.
    answered: HashSet<Box<str>>,
    /// Approval requests, by id.
    asked: HashMap<Box<str>, usize>,
}

impl HeapSize for Grouping {
    fn heap_size(&self) -> usize {
        self.groups.heap_size()
            + self.open.heap_size()
            + self.answered.heap_size()
            + self.asked.heap_size()
    }
}

impl Grouping {
    /// Take in the next message of the record.
    pub(crate) fn push(&mut self, place: usize, message: &Message) -> MessageGroups {
        let contents = &message.contents;
        let mut displays: Vec<Option<ContentGroup>> = vec![None; contents.len()];
        let mut rest = false;
        for (at, content) in contents.iter().enumerate() {
            match &content.body {
                Body::ToolResult(result) if result.pairing() == Pairing::Answers => {
                    displays[at] = self.answer(result.call().value());
                    // Calls of this very message are not known yet.
                    rest |= displays[at].is_none();
                }
                Body::ApprovalResponse(response) => {
                    let group = self.asked.get(response.request.value());
                    displays[at] = group.map(|group| ContentGroup {
                        group: *group,
                        display: ContentDisplay::Plain,
                    });
                    rest |= displays[at].is_none();
                }
                _ => rest = true,
            }
        }
        if rest || contents.is_empty() {
            self.group_rest(message, &mut displays);
        }
        self.record_membership(place, &displays)
    }

    /// The group of the newest unanswered call of an id.
    fn answer(&mut self, id: &str) -> Option<ContentGroup> {
        let calls = self.open.get_mut(id)?;
        let newest = *calls.last()?;
        // Of several calls of one message with one id the first comes first; they share the group.
        calls.pop();
        if calls.is_empty() {
            self.open.remove(id);
        }
        self.answered.insert(id.into());
        if let Some(group) = self.groups.get_mut(newest) {
            group.unanswered = group.unanswered.saturating_sub(1);
        }
        Some(ContentGroup {
            group: newest,
            display: ContentDisplay::Plain,
        })
    }

    /// Give what answers nothing a group: a new one, or the one that reasoning began.
    fn group_rest(&mut self, message: &Message, displays: &mut [Option<ContentGroup>]) {
        let mut speaks = message.contents.is_empty();
        let mut calls = 0;
        let mut only_reasoning = !message.contents.is_empty();
        for (content, display) in message.contents.iter().zip(displays.iter()) {
            match &content.body {
                Body::Reasoning(_) => speaks |= display.is_none(),
                Body::ToolCall(_) => {
                    calls += 1;
                    speaks = true;
                    only_reasoning = false;
                }
                Body::ToolResult(result) => {
                    // A result that stands alone on purpose is speech of its message.
                    speaks |= display.is_none() && result.pairing() == Pairing::Standalone;
                    only_reasoning = false;
                }
                _ => {
                    speaks |= display.is_none();
                    only_reasoning = false;
                }
            }
        }
        let own = speaks.then(|| {
            let kind = match (&message.role, calls) {
                (_, 1..) => GroupKind::Tools,
                (Role::System | Role::Developer, 0) => GroupKind::System,
                (Role::User, 0) if is_read_back(message) => GroupKind::Digest,
                (Role::User, 0) => GroupKind::User,
                (Role::Assistant, 0) => GroupKind::Assistant,
                (Role::Tool, 0) => GroupKind::Result,
                (Role::Other(_), 0) => GroupKind::Other,
            };
            let joins = message.role == Role::Assistant
                && self.groups.last().is_some_and(|group| group.bound);
            if !joins {
                self.groups.push(Group {
                    kind,
                    members: Vec::new(),
                    calls: 0,
                    unanswered: 0,
                    bound: false,
                });
            }
            let at = self.groups.len() - 1;
            if let Some(group) = self.groups.last_mut() {
                group.kind = kind;
                group.calls += calls;
                group.unanswered += calls;
                group.bound = message.role == Role::Assistant && only_reasoning;
            }
            at
        });
        for (content, display) in message.contents.iter().zip(displays.iter_mut()) {
            match &content.body {
                Body::ToolCall(call) => {
                    let group = own.unwrap_or_default();
                    self.open
                        .entry(call.call.value().into())
                        .or_default()
                        .push(group);
                }
                Body::ApprovalRequest(request) => {
                    self.asked
                        .insert(request.request.value().into(), own.unwrap_or_default());
                }
                _ => {}
            }
            if display.is_some() {
                continue;
            }
            *display = match &content.body {
                Body::ToolResult(result) if result.pairing() == Pairing::Answers => {
                    Some(self.orphan_result(result.call().value(), own))
                }
                _ => own.map(|group| ContentGroup {
                    group,
                    display: ContentDisplay::Plain,
                }),
            };
        }
    }

    /// A result that no earlier message asked for.
    fn orphan_result(&mut self, id: &str, own: Option<usize>) -> ContentGroup {
        // A vendor that runs tools itself puts call and result into one message.
        if let Some(found) = self.answer(id) {
            return found;
        }
        if self.answered.contains(id) {
            let group = own.unwrap_or_else(|| self.new_group(GroupKind::Result));
            return ContentGroup {
                group,
                display: ContentDisplay::Duplicate,
            };
        }
        ContentGroup {
            group: self.new_group(GroupKind::Result),
            display: ContentDisplay::Orphan,
        }
    }

    fn new_group(&mut self, kind: GroupKind) -> usize {
        self.groups.push(Group {
            kind,
            members: Vec::new(),
            calls: 0,
            unanswered: 0,
            bound: false,
        });
        self.groups.len() - 1
    }

    /// Enter the message into the groups of its contents.
    fn record_membership(
        &mut self,
        place: usize,
        displays: &[Option<ContentGroup>],
    ) -> MessageGroups {
        let newest = self.groups.len().saturating_sub(1);
        let of = |display: &Option<ContentGroup>| {
            display.unwrap_or(ContentGroup {
                group: newest,
                display: ContentDisplay::Plain,
            })
        };
        let first = displays.first().map_or(newest, |display| of(display).group);
        let same = displays.iter().all(|display| {
            let display = of(display);
            display.group == first && display.display == ContentDisplay::Plain
        });
        if same {
            if let Some(group) = self.groups.get_mut(first) {
                group.members.push(Member {
                    place,
                    contents: None,
                });
            }
            return MessageGroups::Whole(first);
        }
        let each: Box<[ContentGroup]> = displays.iter().map(of).collect();
        for (at, belongs) in each.iter().enumerate() {
            let Some(group) = self.groups.get_mut(belongs.group) else {
                continue;
            };
            match group.members.last_mut() {
                Some(member) if member.place == place => {
                    member.contents.get_or_insert_default().push(at);
                }
                _ => group.members.push(Member {
                    place,
                    contents: Some(vec![at]),
                }),
            }
        }
        MessageGroups::Each(each)
    }
}
