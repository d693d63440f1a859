//! The body of a model call, for each vendor: what was rendered, and around it the model, the
//! application's instructions, the tools on offer and what the caller set.
//!
//! The rendered messages are copied as they are and never read, so that composing costs the same
//! for the first message and for the ten thousandth, but for their bytes. What a vendor has no word
//! for is a [`Loss`](crate::Loss) with its place (`settings.stop`, `choice`, `tools[2]`), never an
//! error.
//!
//! Not here on purpose: addresses, headers and betas. Two things stand in Gemini's address and not
//! in its body: the model, and whether the answer is streamed.

pub(crate) mod answer_schema;
pub(crate) mod body_builder;
pub(crate) mod hosted;

#[cfg(test)]
mod tests;

use throughline_model::{Path, Settings, ToolChoice, ToolDef};

use crate::render::{Items, Target};
use crate::{LossKind, Losses, vendors};

use body_builder::BodyBuilder;
use hosted::{HostedTool, OfferedTool};

/// How the body of a model call is written in one vendor format.
pub(crate) struct ComposeFormat {
    /// Write every member of the body.
    pub(crate) write: fn(&mut BodyBuilder<'_>),
    /// The definition of a tool that the vendor runs itself; `None` if it has no such tool.
    pub(crate) hosted_tool:
        for<'p> fn(&mut BodyBuilder<'p>, &OfferedTool<'p>) -> Option<HostedTool<'p>>,
}

/// What a model is asked, and how.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    /// Whom the items were rendered for. Its format decides what is written.
    pub target: &'a Target,
    /// The model, by the vendor's name for it; with none, none is named.
    pub model: &'a str,
    /// The application's instructions. They stand above everything else.
    pub instructions: Option<&'a str>,
    /// System text that rendering placed outside the messages.
    pub system: Option<&'a str>,
    /// The rendered messages or items, the text of a JSON array. It is copied as it is, once.
    pub items: Items<'a>,
    /// Tools on offer.
    pub tools: &'a [ToolDef],
    /// Which of them to call.
    pub choice: &'a ToolChoice,
    /// What the caller set.
    pub settings: &'a Settings,
    /// How the answer is to come.
    pub delivery: Delivery,
    /// By which name a Chat Completions server knows the limit of tokens.
    pub limit: TokenLimit,
    /// Members as JSON text that name what answers, such as an agent with a model of its own. They come last and win,
    /// and with any of them no model is named.
    pub answered_by: &'a [(&'a str, String)],
}

/// How an answer is to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// At once, when it is done.
    #[default]
    Whole,
    /// In pieces, while it is made.
    Streamed,
}

/// By which name a Chat Completions server knows the limit of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TokenLimit {
    /// `max_completion_tokens`, the name at OpenAI, whose reasoning models refuse the other. vLLM
    /// and newer llama.cpp know it too.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, the older name. Many compatible servers know no other and would ignore a limit
    /// by the new name without a word.
    MaxTokens,
}

static NOTHING_SET: Settings = Settings {
    max_output_tokens: None,
    temperature: None,
    top_p: None,
    stop: Vec::new(),
    effort: None,
    summary: false,
    verbosity: None,
    presence_penalty: None,
    frequency_penalty: None,
    parallel_calls: None,
    answer: None,
    user: None,
    service_tier: None,
    cache_key: None,
    cache_retention: None,
    betas: Vec::new(),
    extra: None,
};

impl<'a> Prompt<'a> {
    /// Rendered items for a model, without instructions, tools and settings.
    pub fn new(target: &'a Target, model: &'a str, items: impl Into<Items<'a>>) -> Self {
        Self {
            target,
            model,
            instructions: None,
            system: None,
            items: items.into(),
            tools: &[],
            choice: &ToolChoice::Auto,
            settings: &NOTHING_SET,
            delivery: Delivery::default(),
            limit: TokenLimit::default(),
            answered_by: &[],
        }
    }
}

/// Write the body of a model call.
///
/// ```
/// use throughline_model::{Message, Settings};
/// use throughline_wire::compose::{Delivery, Prompt, compose};
/// use throughline_wire::render::{Options, Target, render};
/// use throughline_wire::{Losses, Wire};
///
/// let target = Target::newest(Wire::OpenAiChat);
/// let rendered = render(&[Message::user("hi")], &target, &Options::default());
/// let items = rendered.array();
/// let settings = Settings { temperature: Some(0.5), ..Settings::default() };
/// let prompt = Prompt {
///     instructions: Some("Be brief."),
///     system: rendered.system.as_deref(),
///     settings: &settings,
///     delivery: Delivery::Streamed,
///     ..Prompt::new(&target, "some-model", &items)
/// };
/// let mut losses = Losses::default();
/// assert_eq!(
///     compose(&prompt, &mut losses),
///     concat!(
///         r#"{"model":"some-model","messages":[{"role":"system","content":"Be brief."},"#,
///         r#"{"role":"user","content":"hi"}],"temperature":0.5,"#,
///         r#""stream":true,"stream_options":{"include_usage":true}}"#
///     )
/// );
/// assert!(losses.is_empty());
/// ```
///
/// ObjectBuilder of [`Settings::extra`] come last and win: one that is there already is replaced where it
/// stands, so that no key stands twice.
pub fn compose(prompt: &Prompt<'_>, losses: &mut Losses) -> String {
    let system = system(prompt);
    let mut builder = BodyBuilder::new(prompt, system.as_deref(), losses);
    let wire = &prompt.target.wire;
    let vendor = vendors::find(wire).unwrap_or_else(|| {
        let fallback = vendors::fallback();
        let path = Path::Root.key("target");
        let detail = format!("{wire} is not known; written as {}", fallback.wire);
        let path = path.key("wire");
        builder.losses.note(&path, LossKind::RequestKey, detail);
        fallback
    });
    (vendor.compose.write)(&mut builder);
    builder.finish()
}

/// The instructions and, below them, the system text of the history that stands outside the
/// messages. Vendors refuse blank ones.
fn system(prompt: &Prompt<'_>) -> Option<String> {
    let texts = [prompt.instructions, prompt.system];
    let has_text = |text: &&str| !text.trim_start().is_empty();
    let texts: Vec<&str> = texts.into_iter().flatten().filter(has_text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
