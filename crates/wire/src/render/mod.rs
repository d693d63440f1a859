//! Any history to any vendor: rendering that never fails.
//!
//! A codec writes what is there. Rendering makes of it what the target accepts: each call has one
//! result in its place, ids fit and are unique, roles stand where they must, what is sealed for
//! another account stays behind, what the target has no form for becomes readable text. Nothing
//! stored is changed; what was changed in the view is listed as a [`Repair`], what could not be
//! expressed as a [`Loss`].
//!
//! Rendering is a pure function: the same history gives the same bytes, and a longer history starts
//! with the rendering of its prefix wherever the vendor's rules permit, because prompt caches
//! depend on it. A [`Renderer`] continues after what it has rendered without touching it.
//!
//! ```
//! use throughline_model::{CallId, Message, Role, ToolCall};
//! use throughline_wire::Wire;
//! use throughline_wire::render::{Options, Target, render};
//!
//! // A call that was never answered, as a crash leaves it.
//! let call = ToolCall::function(CallId::natural("call_1").unwrap(), "get_tide", "{}");
//! let history = [
//!     Message::user("when is high water?"),
//!     Message::new(Role::Assistant, vec![call.into()]),
//! ];
//! let rendered = render(&history, &Target::newest(Wire::OpenAiResponses), &Options::default());
//! assert_eq!(rendered.items.len(), 3);
//! assert_eq!(rendered.repairs[0].kind.as_str(), "closed_call");
//! ```

mod body;
mod content_filter;
mod edits;
mod envelope;
pub(crate) mod format;
mod ids;
mod item_ids;
mod markers;
mod native_form;
mod order;
mod placeholder_text;
pub(crate) mod plain_form;
mod rename;
mod renderer;
mod repair;
mod strategy;
mod switches;
mod target;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use throughline_model::{Message, Path};

use crate::object_builder::ObjectBuilder;
use crate::{Loss, codec};

pub use crate::object_builder::Items;
pub(crate) use body::{RenderedInput, add as add_input};
pub(crate) use content_filter::{as_function, has_call_id, has_sealed_data};
pub(crate) use format::RenderFormat;
pub(crate) use item_ids::{item_id, string_at};
pub use markers::{Markers, MarkersError};
pub(crate) use placeholder_text::result as result_text;
pub use renderer::{RenderedItem, Renderer, Stale, Tail};
pub use repair::{Repair, RepairKind};
pub use strategy::{Native, TextEmbed, ToolEntry, ToolHistoryStrategy};
pub(crate) use switches::Switches;
pub use target::{Chain, ChainAt, Target};

/// How to render.
#[derive(Clone)]
pub struct Options {
    /// How tool history reaches the model.
    pub strategy: Arc<dyn ToolHistoryStrategy>,
    switches: Switches,
}

/// Shared instances, so that what was rendered with one can be reused by all callers with the same
/// options.
static NATIVE: LazyLock<Arc<dyn ToolHistoryStrategy>> = LazyLock::new(|| Arc::new(Native));
static TEXT: LazyLock<Arc<dyn ToolHistoryStrategy>> =
    LazyLock::new(|| Arc::new(TextEmbed::default()));

impl Options {
    /// Results as text, calls left out.
    pub fn text() -> Self {
        Self::with_strategy(Arc::clone(&TEXT))
    }

    /// Whether both render with the very same strategy, so that what was rendered with one holds
    /// for the other.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.strategy, &other.strategy) && self.switches == other.switches
    }

    /// Calls and results as a strategy shows them.
    pub fn with_strategy(strategy: Arc<dyn ToolHistoryStrategy>) -> Self {
        Self {
            strategy,
            switches: Switches::default(),
        }
    }

    /// With one rule of the sheet not upheld, for the test that the validator notices.
    #[cfg(feature = "switches")]
    #[doc(hidden)]
    pub fn without(rule: &'static str) -> Self {
        Self {
            switches: Switches::without(rule),
            ..Self::default()
        }
    }
}

impl Default for Options {
    /// Calls and results as the vendor's own items.
    fn default() -> Self {
        Self::with_strategy(Arc::clone(&NATIVE))
    }
}

/// A history as a target accepts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// System text that the target takes outside the messages.
    pub system: Option<String>,
    /// The vendor's messages or items.
    pub items: Vec<RenderedItem>,
    /// What could not be expressed.
    pub losses: Vec<Loss>,
    /// What was changed.
    pub repairs: Vec<Repair>,
}

impl Rendered {
    /// The items as a JSON array.
    pub fn array(&self) -> String {
        let size: usize = self.items.iter().map(|item| item.json.len() + 1).sum();
        let mut out = String::with_capacity(size + 2);
        out.push('[');
        for (place, item) in self.items.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str(&item.json);
        }
        out.push(']');
        out
    }

    /// The members of a request body that follow from the history and its target: the messages,
    /// system text that stands outside of them, and what is continued.
    ///
    /// ```
    /// use throughline_model::Message;
    /// use throughline_wire::Wire;
    /// use throughline_wire::render::{Options, Target, render};
    ///
    /// let (target, options) = (Target::newest(Wire::OpenAiResponses), Options::default());
    /// let rendered = render(&[Message::user("hi")], &target, &options);
    /// let body = rendered.body(&target, &options);
    /// assert!(body.starts_with(r#"{"input":[{"type":"message""#));
    /// ```
    pub fn body(&self, target: &Target, options: &Options) -> String {
        let items = self.array();
        let input = RenderedInput {
            system: self.system.as_deref(),
            items: Items::from(&items),
        };
        let mut members = ObjectBuilder::default();
        body::add(&mut members, input, target, options.switches);
        members.into_text()
    }
}

/// A renderer for a target; `None` for a format that this version does not know.
pub fn renderer(target: &Target, options: &Options) -> Option<Renderer> {
    let codec = match codec(&target.wire) {
        None if !options.switches.enforces("S-1") => codec(&throughline_model::Wire::OpenAiChat)?,
        found => found?,
    };
    Some(Renderer::new(codec, target.clone(), options))
}

/// Render a history. For a format that this version does not know the result is empty.
pub fn render(history: &[Message], target: &Target, options: &Options) -> Rendered {
    let Some(fresh) = renderer(target, options) else {
        return Rendered::default();
    };
    // First as a renderer that continues would do it, so that both give the same wherever it can.
    let first = straight(history, fresh.clone());
    if !fresh.only_newest_sealed() {
        // No seal grows old there, so leaving some behind would give the same again.
        return first
            .or_else(|Stale| reordered(history, fresh.clone()))
            .or_else(|Stale| straight(history, fresh.lenient()))
            .unwrap_or_default();
    }
    // The newest sealed reasoning may go back if the model sent nothing after its turn; else none.
    let newest = history
        .iter()
        .rposition(|message| content_filter::has_sealed(message, target));
    let sealed = fresh.clone().sealed_from(newest.unwrap_or(0));
    let unsealed = fresh.sealed_from(history.len());
    first
        .or_else(|Stale| straight(history, sealed.clone()))
        .or_else(|Stale| straight(history, unsealed.clone()))
        .or_else(|Stale| reordered(history, sealed))
        .or_else(|Stale| reordered(history, unsealed.clone()))
        // Nothing is stale to a renderer that shows late results as text and sends no seals.
        .or_else(|Stale| straight(history, unsealed.lenient()))
        .unwrap_or_default()
}

/// Render in the order of the history.
fn straight(history: &[Message], mut renderer: Renderer) -> Result<Rendered, Stale> {
    for message in history {
        renderer.push(message)?;
    }
    finish(renderer)
}

/// Render with each result at its call.
fn reordered(history: &[Message], mut renderer: Renderer) -> Result<Rendered, Stale> {
    let order = order::in_order(history, renderer.adjacency());
    let root = Path::Root.key("messages");
    let mut first = None;
    for (at, message) in &order.placed {
        // Where a result was taken away, and where it stands now.
        if let Cow::Owned(_) = message {
            first.get_or_insert(renderer.items().len());
        }
        renderer.push_at(message, *at)?;
    }
    let mut rendered = finish(renderer)?;
    let late = (RepairKind::LateResult, "moved to its call");
    let stood_in = (RepairKind::LateResult, "gave way to the real one");
    let moved = order.moved.into_iter().map(|at| (at, late));
    let replaced = order.replaced.into_iter().map(|at| (at, stood_in));
    for (at, (kind, detail)) in moved.chain(replaced) {
        let path = root.index(at.message);
        let path = path.key("contents");
        let path = path.index(at.content);
        let item = first.unwrap_or_default();
        let repair = Repair::new(&path, kind, detail, item);
        rendered.repairs.push(repair);
    }
    Ok(rendered)
}

fn finish(renderer: Renderer) -> Result<Rendered, Stale> {
    let tail = renderer.tail()?;
    let system = renderer.system_text();
    let (mut items, mut losses, mut repairs) = renderer.into_parts();
    items.extend(tail.items);
    losses.extend(tail.losses);
    repairs.extend(tail.repairs);
    Ok(Rendered {
        system,
        items,
        losses,
        repairs,
    })
}
