//! The messages of a model call, which only grow, and their cached renderings.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_model::{Body, Content, HeapSize, Message, Runner};
use throughline_wire::Loss;
use throughline_wire::render::{self, Items, Options, Renderer, Target};

use super::compaction::Compacted;

/// The messages that a model is sent, oldest first. They only grow, and their rendering for one
/// call is reused by the next, so that a call costs the new messages only.
///
/// ```
/// use throughline::client::View;
/// use throughline::model::Message;
/// use throughline_wire::Wire;
/// use throughline_wire::render::{Options, Target};
///
/// let mut view = View::new([Message::user("hi")]);
/// view.push(Message::user("still there?"));
/// let rendering = view.render(&Target::newest(Wire::OpenAiChat), &Options::default());
/// let items = rendering.items().to_string();
/// assert!(items.starts_with(r#"[{"role":"user","content":"hi"}"#));
/// ```
#[derive(Default)]
pub struct View {
    messages: Vec<Arc<Message>>,
    /// The size of the messages in memory.
    message_bytes: usize,
    /// The size of the messages on the wire, rounded up.
    wire_bytes: usize,
    /// Whether there are calls or results of the application.
    tools: bool,
    // One per target and strategy; two at most in practice.
    kept: Mutex<Vec<CachedRendering>>,
    /// The compacted view of a long history, for the next run.
    compacted: Option<Box<Compacted>>,
    bookkeeping: Bookkeeping,
    /// How many redactions the tenant had had when the messages were read.
    redactions: u64,
}

/// The memory of renderers and tool histories besides texts: ids, groups, names, facts. Counting it
/// walks all of it, so it is counted again only after the history has grown by an eighth.
#[derive(Clone, Copy, Debug, Default)]
struct Bookkeeping {
    bytes: usize,
    /// The size of the messages when it was counted.
    message_bytes: usize,
    /// The epoch when it was counted: a new one adds facts about everything before it.
    epoch: Option<u64>,
}

/// The rendering for one target with one strategy.
#[derive(Clone)]
struct CachedRendering {
    target: Target,
    options: Options,
    renderer: Renderer,
    seen: usize,
    /// The opening bracket and the settled items. Shared with renderings, which are usually dropped
    /// before more is appended; otherwise it is copied.
    settled: Arc<String>,
    items: usize,
}

/// The conversation as a vendor's messages or items.
#[derive(Clone, Debug)]
pub struct Rendering {
    /// System text, for targets that take it outside of the messages.
    pub system: Option<String>,
    settled: Arc<String>,
    rest: String,
    /// How many changes were needed for the target to accept it.
    pub repairs: usize,
    /// How many losses there are.
    pub losses: usize,
    /// The newest losses, [`MOST_LOSSES`] at most.
    pub lost: Vec<Loss>,
}

/// How many losses of one rendering are listed. The cost of a call must not grow with losses in the
/// older history.
pub const MOST_LOSSES: usize = 32;

/// The newest losses, oldest first.
fn newest(settled: &[Loss], tail: &[Loss]) -> Vec<Loss> {
    let tail = &tail[tail.len().saturating_sub(MOST_LOSSES)..];
    let room = MOST_LOSSES - tail.len();
    let settled = &settled[settled.len().saturating_sub(room)..];
    settled.iter().chain(tail).cloned().collect()
}

impl View {
    /// A view of messages.
    pub fn new(messages: impl IntoIterator<Item = impl Into<Arc<Message>>>) -> Self {
        let mut view = Self::default();
        for message in messages {
            view.push(message);
        }
        view
    }

    /// The same, read when the tenant had had so many redactions. A view that says fewer than the store may
    /// show what was removed since.
    pub(crate) fn with_redactions(self, redactions: u64) -> Self {
        Self { redactions, ..self }
    }

    /// How many redactions the tenant had had when the messages were read.
    pub(crate) fn redactions(&self) -> u64 {
        self.redactions
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        let message = message.into();
        self.message_bytes += message.heap_size();
        self.wire_bytes += wire_bytes(&message);
        self.tools |= has_tools(&message);
        self.messages.push(message);
    }

    /// Removes all but the first messages, and the cached renderings.
    pub(crate) fn rewind(&mut self, length: usize) {
        if length < self.messages.len() {
            self.messages.truncate(length);
            self.message_bytes = self.messages.iter().map(HeapSize::heap_size).sum();
            self.wire_bytes = self.messages.iter().map(|one| wire_bytes(one)).sum();
            self.bookkeeping = Bookkeeping::default();
            self.tools = self.messages.iter().any(|one| has_tools(one));
            self.kept = Mutex::default();
            let compacted = self.compacted.take();
            self.compacted = compacted.filter(|one| one.fed() <= length);
        }
    }

    /// Drops the cached renderings.
    pub(crate) fn forget_rendered(&mut self) {
        self.kept = Mutex::default();
        self.messages.shrink_to_fit();
    }

    /// Takes the compacted view.
    pub(crate) fn take_compacted(&mut self) -> Option<Box<Compacted>> {
        self.compacted.take()
    }

    /// Stores the compacted view, unless it has more messages than this view.
    pub(crate) fn keep_compacted(&mut self, compacted: Option<Box<Compacted>>) {
        self.compacted = compacted.filter(|one| one.fed() <= self.messages.len());
    }

    /// A copy with the cached renderings, for another branch.
    pub(crate) fn fork(&self) -> Self {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            messages: self.messages.clone(),
            message_bytes: self.message_bytes,
            wire_bytes: self.wire_bytes,
            tools: self.tools,
            kept: Mutex::new(kept.clone()),
            compacted: self.compacted.as_deref().map(|one| Box::new(one.fork())),
            bookkeeping: self.bookkeeping,
            redactions: self.redactions,
        }
    }

    /// The held bytes: messages, rendered text, and the state of renderers and of the tool history.
    /// The cost is proportional to what is new since the last call, averaged over a growing
    /// history.
    pub(crate) fn held_bytes(&mut self) -> usize {
        let compacted = self.compacted.as_deref();
        let epoch = compacted.and_then(Compacted::epoch_number);
        let known = self.bookkeeping;
        let grown = self.message_bytes > known.message_bytes + known.message_bytes / 8;
        if grown || known.epoch != epoch {
            self.bookkeeping = Bookkeeping {
                bytes: self.bookkeeping_bytes(),
                message_bytes: self.message_bytes,
                epoch,
            };
        }
        let known = self.bookkeeping;
        // Assumed to grow with the messages until it is counted again.
        let added = self.message_bytes.saturating_sub(known.message_bytes);
        let bookkeeping = known.bytes + (known.bytes * added) / known.message_bytes.max(1);
        self.message_bytes + self.list_and_text_bytes() + bookkeeping
    }

    /// The bytes of the list of messages, without the messages, and of rendered text.
    pub(super) fn list_and_text_bytes(&self) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let rendered = kept.iter().map(|one| one.settled.heap_size());
        let list = self.messages.capacity() * size_of::<Arc<Message>>();
        let compacted = self.compacted.as_deref();
        let compacted = compacted.map_or(0, |one| one.view().list_and_text_bytes());
        list + rendered.sum::<usize>() + compacted
    }

    /// The bytes of the renderers' state, and of the tool history besides the messages of this
    /// view.
    fn bookkeeping_bytes(&self) -> usize {
        let compacted = self.compacted.as_deref().map_or(0, |compacted| {
            let own: HashSet<_> = self.messages.iter().map(Arc::as_ptr).collect();
            let view = compacted.view();
            let shown = view.messages.iter();
            let digests = shown.filter(|message| !own.contains(&Arc::as_ptr(message)));
            size_of::<Compacted>()
                + compacted.history_bytes()
                + digests.map(HeapSize::heap_size).sum::<usize>()
                + view.renderer_bytes()
        });
        self.renderer_bytes() + compacted
    }

    fn renderer_bytes(&self) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let each = kept
            .iter()
            .map(|one| size_of::<CachedRendering>() + one.renderer.heap_size());
        each.sum()
    }

    /// The size of the messages in memory.
    pub(crate) fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// The size of the messages on the wire, rounded up: no vendor's form of them is much larger.
    pub(crate) fn wire_bytes(&self) -> usize {
        self.wire_bytes
    }

    /// Whether there are calls or results of the application.
    #[cfg(feature = "http")]
    pub(crate) fn has_tools(&self) -> bool {
        self.tools
    }

    /// Renders the messages for a target. The cached rendering for this target and these options is
    /// extended.
    pub fn render(&self, target: &Target, options: &Options) -> Rendering {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |known: &CachedRendering| known.target == *target && known.options.is_same(options);
        let place = match kept.iter().position(same) {
            Some(place) => place,
            None => {
                let Some(renderer) = render::renderer(target, options) else {
                    return Rendering::default();
                };
                if kept.len() >= MOST_KEPT {
                    kept.remove(0);
                }
                // Usually there is one, and it is large: capacity for four would be wasted in each
                // view.
                kept.reserve_exact(1);
                kept.push(CachedRendering {
                    target: target.clone(),
                    options: options.clone(),
                    renderer,
                    seen: 0,
                    settled: Arc::new("[".to_owned()),
                    items: 0,
                });
                kept.len() - 1
            }
        };
        match kept[place].advance(&self.messages) {
            Some(rendering) => rendering,
            None => {
                // A late result or the like changes earlier items: everything is rendered again.
                kept.swap_remove(place);
                whole(&self.messages, target, options)
            }
        }
    }
}

/// The number of cached renderings. An application that makes a new strategy for every call must
/// not fill the memory with renderings that are never used again.
const MOST_KEPT: usize = 4;

impl CachedRendering {
    /// Renders the new messages; `None` if the cached rendering is no longer valid.
    fn advance(&mut self, messages: &[Arc<Message>]) -> Option<Rendering> {
        for message in &messages[self.seen..] {
            self.renderer.push(message).ok()?;
        }
        self.seen = messages.len();
        // The text is kept here, in one piece; the renderer need not keep it as well.
        let fresh = self.renderer.take_items();
        if !fresh.is_empty() {
            let settled = Arc::make_mut(&mut self.settled);
            for item in fresh {
                if self.items > 0 {
                    settled.push(',');
                }
                settled.push_str(&item.json);
                self.items += 1;
            }
        }
        let tail = self.renderer.tail().ok()?;
        let mut rest = String::new();
        for (place, item) in tail.items.iter().enumerate() {
            if self.items + place > 0 {
                rest.push(',');
            }
            rest.push_str(&item.json);
        }
        rest.push(']');
        Some(Rendering {
            system: self.renderer.system_text(),
            settled: Arc::clone(&self.settled),
            rest,
            repairs: self.renderer.repairs().len() + tail.repairs.len(),
            losses: self.renderer.losses().len() + tail.losses.len(),
            lost: newest(self.renderer.losses(), &tail.losses),
        })
    }
}

/// Whether a message has calls or results that a strategy shows.
fn has_tools(message: &Message) -> bool {
    let by_client = |content: &Content| match &content.body {
        Body::ToolCall(call) => call.runner == Runner::Client,
        Body::ToolResult(result) => result.runner == Runner::Client,
        Body::Text(_)
        | Body::Refusal(_)
        | Body::Reasoning(_)
        | Body::Media(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => false,
    };
    message.contents.iter().any(by_client)
}

/// The size of a message on the wire, with ample room for names and brackets around its texts.
fn wire_bytes(message: &Message) -> usize {
    const MESSAGE: usize = 256;
    const CONTENT: usize = 128;
    let contents = message.contents.iter();
    let sizes = contents.map(|content| CONTENT + content.byte_size());
    MESSAGE + sizes.sum::<usize>()
}

fn whole(messages: &[Arc<Message>], target: &Target, options: &Options) -> Rendering {
    let messages: Vec<Message> = messages.iter().map(|one| Message::clone(one)).collect();
    let rendered = render::render(&messages, target, options);
    Rendering {
        settled: Arc::new(rendered.array()),
        rest: String::new(),
        repairs: rendered.repairs.len(),
        losses: rendered.losses.len(),
        lost: newest(&rendered.losses, &[]),
        system: rendered.system,
    }
}

/// Rendered text as an owner of bytes, so that a request body can share it.
#[cfg(feature = "http")]
struct SharedText(Arc<String>);

#[cfg(feature = "http")]
impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Rendering {
    /// The settled items without the opening bracket, if they are long enough to be shared with a
    /// body.
    #[cfg(feature = "http")]
    pub(crate) fn lent(&self, least: usize) -> Option<bytes::Bytes> {
        let is_long = self.settled.len() >= least && self.settled.starts_with('[');
        is_long.then(|| {
            let shared = SharedText(Arc::clone(&self.settled));
            bytes::Bytes::from_owner(shared).slice(1..)
        })
    }

    /// The text after the settled items, up to the closing bracket.
    #[cfg(feature = "http")]
    pub(crate) fn rest(&self) -> &str {
        &self.rest
    }

    /// The messages or items as a JSON array.
    pub fn items(&self) -> Items<'_> {
        Items {
            settled: &self.settled,
            rest: &self.rest,
        }
    }
}

impl Default for Rendering {
    /// The rendering of an empty view.
    fn default() -> Self {
        Self {
            system: None,
            settled: Arc::new("[]".to_owned()),
            rest: String::new(),
            repairs: 0,
            losses: 0,
            lost: Vec::new(),
        }
    }
}

impl Clone for View {
    /// Copies the messages without the cached renderings.
    fn clone(&self) -> Self {
        Self::new(self.messages.iter().cloned())
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.messages).finish()
    }
}
