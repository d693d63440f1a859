//! Collects loose updates into events, for clients of agents and servers whose updates have no
//! positions.

use throughline_model::json::{ObjectWriter, RawJson};
use throughline_model::{
    Arguments, Body, Content, Event, Form, Place, Role, Stop, Usage, Vendor, Wire,
};

/// A piece of an answer. Absent members mean no change: an update without an id belongs to the
/// current message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// The id of its message.
    pub message: Option<String>,
    /// The author of the message.
    pub author: Option<String>,
    /// The role of the message.
    pub role: Option<Role>,
    /// Complete contents, or fragments of text, reasoning and arguments.
    pub contents: Vec<Content>,
    /// The token usage so far.
    pub usage: Option<Usage>,
    /// The id under which the service stores the conversation, if it does; the last one counts.
    pub service: Option<String>,
    /// Other members, an object; the last value of a member counts.
    pub meta: Option<RawJson>,
}

/// Collects updates into the events of one answer.
///
/// - A new message starts when an update's id, author or role differs from the current one.
/// - Consecutive fragments of text are one content, unless one of them has citations.
/// - Fragments of reasoning are one content up to and including its signature, which is in the
///   vendor's form of the fragment.
/// - Fragments of arguments belong to the call with their id.
/// - Empty text makes no content.
///
/// ```
/// use throughline::client::{Update, Updates};
/// use throughline::model::{Content, Fold, Stop};
///
/// let mut updates = Updates::new();
/// let mut fold = Fold::new();
/// for text in ["High water ", "at four."] {
///     let update = Update { contents: vec![Content::text(text)], ..Update::default() };
///     updates.push(update).into_iter().for_each(|event| fold.push(event));
/// }
/// updates.end(Stop::Done).into_iter().for_each(|event| fold.push(event));
/// let response = fold.finish();
/// assert_eq!(response.messages[0].contents, [Content::text("High water at four.")]);
/// ```
#[derive(Debug, Default)]
pub struct Updates {
    speaker: Speaker,
    /// The index of the current message.
    choice: usize,
    /// The index of the next content of the message.
    item: usize,
    /// Contents that may still grow.
    open: Vec<(Place, Content)>,
    usage: Option<Usage>,
    service: Option<String>,
    meta: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Speaker {
    message: Option<String>,
    author: Option<String>,
    role: Option<Role>,
}

/// How a fragment is treated.
enum FragmentTarget {
    /// It extends an open content.
    Open(usize),
    /// It starts a content.
    New,
}

impl Updates {
    /// A collector without updates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an update.
    pub fn push(&mut self, update: Update) -> Vec<Event> {
        let mut events = Vec::new();
        self.start_message(&update, &mut events);
        for content in update.contents {
            self.content(content, &mut events);
        }
        if let Some(usage) = update.usage {
            self.usage = Some(match self.usage.take() {
                None => usage,
                Some(earlier) => newest(earlier, usage),
            });
        }
        self.service = update.service.or(self.service.take());
        for (name, value) in update.meta.iter().flat_map(members) {
            match self.meta.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => self.meta.push((name, value)),
            }
        }
        events
    }

    /// Ends the answer.
    pub fn end(&mut self, stop: Stop) -> Vec<Event> {
        let mut events = Vec::new();
        self.close_all(&mut events);
        let meta = (!self.meta.is_empty()).then(|| {
            let body = RawJson::object(|object: &mut ObjectWriter<'_>| {
                for (name, value) in &self.meta {
                    object.raw(name, value);
                }
            });
            Box::new(Vendor::form(
                Wire::Other("updates".into()),
                Form::Item(body),
            ))
        });
        events.push(Event::Finished {
            stop,
            usage: self.usage.take(),
            error: None,
            vendor: meta,
            service: self.service.take(),
        });
        events
    }

    /// Starts a new message if the update names another speaker.
    fn start_message(&mut self, update: &Update, events: &mut Vec<Event>) {
        fn differs<T: PartialEq>(known: Option<&T>, now: Option<&T>) -> bool {
            known.is_some() && now.is_some() && known != now
        }
        let speaker = &self.speaker;
        let other = differs(speaker.message.as_ref(), update.message.as_ref())
            || differs(speaker.author.as_ref(), update.author.as_ref())
            || differs(speaker.role.as_ref(), update.role.as_ref());
        if other {
            self.close_all(events);
            if self.item > 0 {
                self.choice += 1;
            }
            self.item = 0;
            self.speaker = Speaker::default();
        }
        let before = self.speaker.clone();
        let speaker = &mut self.speaker;
        speaker.message = speaker.message.take().or_else(|| update.message.clone());
        speaker.author = speaker.author.take().or_else(|| update.author.clone());
        speaker.role = speaker.role.take().or_else(|| update.role.clone());
        let named = before.author != speaker.author || before.role != speaker.role;
        let plain = speaker.author.is_none()
            && speaker
                .role
                .as_ref()
                .is_none_or(|role| *role == Role::Assistant);
        if named && !plain {
            events.push(Event::Speaker {
                choice: self.choice,
                role: speaker.role.clone().unwrap_or(Role::Assistant),
                author: speaker.author.clone(),
            });
        }
    }

    fn content(&mut self, content: Content, events: &mut Vec<Event>) {
        if content.vendor.is_none() && content.as_text() == Some("") {
            return;
        }
        if let FragmentTarget::Open(place) = self.fragment_target(&content) {
            let (at, grown) = &mut self.open[place];
            let ended = content.vendor.is_some();
            let text = fragment(&content);
            grow(grown, content);
            events.push(Event::Delta { at: *at, text });
            if ended {
                self.close(place, events);
            }
            return;
        }
        // A call stays open while other contents arrive; everything else ends when a new content
        // begins.
        let keeps = |open: &Content| open.as_tool_call().is_some();
        let mut place = 0;
        while place < self.open.len() {
            match keeps(&self.open[place].1) && keeps(&content) {
                true => place += 1,
                false => self.close(place, events),
            }
        }
        let at = Place::new(self.choice, self.item, 0);
        self.item += 1;
        let whole = match &content.body {
            Body::Text(_) | Body::ToolCall(_) => false,
            Body::Reasoning(_) => content.vendor.is_some(),
            Body::Media(_)
            | Body::ToolResult(_)
            | Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Refusal(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => true,
        };
        if whole {
            events.push(Event::Content { at, content });
            return;
        }
        let text = fragment(&content);
        events.push(Event::Opened {
            at,
            content: without_text(&content),
        });
        events.push(Event::Delta { at, text });
        self.open.push((at, content));
    }

    fn fragment_target(&self, content: &Content) -> FragmentTarget {
        let same = |open: &Content| match (&open.body, &content.body) {
            (Body::Text(known), Body::Text(more)) => {
                known.citations.is_empty() && more.citations.is_empty()
            }
            (Body::Reasoning(_), Body::Reasoning(_)) => true,
            (Body::ToolCall(known), Body::ToolCall(more)) => known.call == more.call,
            _ => false,
        };
        let found = self.open.iter().rposition(|(_, open)| same(open));
        found.map_or(FragmentTarget::New, FragmentTarget::Open)
    }

    fn close(&mut self, place: usize, events: &mut Vec<Event>) {
        let (at, content) = self.open.remove(place);
        events.push(Event::Content { at, content });
    }

    fn close_all(&mut self, events: &mut Vec<Event>) {
        while !self.open.is_empty() {
            self.close(0, events);
        }
    }
}

/// The text of a fragment.
fn fragment(content: &Content) -> String {
    match &content.body {
        Body::Text(text) => text.text.clone(),
        Body::Reasoning(reasoning) => reasoning.text.concat(),
        Body::ToolCall(call) => match &call.arguments {
            Arguments::Text(text) | Arguments::Free(text) => text.clone(),
            Arguments::Json(json) => json.get().to_owned(),
            Arguments::None => String::new(),
        },
        _ => String::new(),
    }
}

/// A content without the text that deltas carry.
fn without_text(content: &Content) -> Content {
    let mut content = content.clone();
    match &mut content.body {
        Body::Text(text) => text.text.clear(),
        Body::Reasoning(reasoning) => reasoning.text.clear(),
        Body::ToolCall(call) => call.arguments = Arguments::Text(String::new()),
        _ => {}
    }
    content
}

/// Appends a fragment to a content.
fn grow(content: &mut Content, more: Content) {
    let text = fragment(&more);
    match (&mut content.body, more.body) {
        (Body::Text(known), _) => known.text.push_str(&text),
        (Body::Reasoning(known), Body::Reasoning(more)) => {
            match known.text.last_mut() {
                Some(last) => last.push_str(&text),
                None => known.text.extend((!text.is_empty()).then_some(text)),
            }
            known.summary.extend(more.summary);
            known.sealed |= more.sealed;
        }
        (Body::ToolCall(known), Body::ToolCall(more)) => {
            if known.name.is_empty() {
                known.name = more.name;
            }
            known.status = more.status.or(known.status.take());
            match &mut known.arguments {
                Arguments::Text(known) | Arguments::Free(known) => known.push_str(&text),
                Arguments::None | Arguments::Json(_) => known.arguments = Arguments::Text(text),
            }
        }
        _ => {}
    }
    content.vendor = more.vendor.or(content.vendor.take());
}

/// The later counts, and the earlier ones where the later have none.
fn newest(earlier: Usage, later: Usage) -> Usage {
    Usage {
        input: later.input.or(earlier.input),
        output: later.output.or(earlier.output),
        total: later.total.or(earlier.total),
        cache_read: later.cache_read.or(earlier.cache_read),
        cache_write: later.cache_write.or(earlier.cache_write),
        reasoning: later.reasoning.or(earlier.reasoning),
        vendor: later.vendor.or(earlier.vendor),
        extra: later.extra,
    }
}

/// The members of an object; none for other values.
fn members(meta: &RawJson) -> Vec<(String, String)> {
    let value = meta.value();
    let members = value.members().iter();
    members
        .map(|member| {
            (
                member.key.to_str().into_owned(),
                member.value.raw().to_owned(),
            )
        })
        .collect()
}
