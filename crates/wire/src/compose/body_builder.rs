//! What every format needs to put a body together.

use throughline_model::{Path, ToolChoice};

use super::hosted::{self, SelectedBy};
use super::{Delivery, Prompt};
use crate::foreign::{self, FunctionTool};
use crate::object_builder::ObjectBuilder;
use crate::render::{ChainAt, RenderedInput, Switches, add_input};
use crate::{LossKind, Losses};

/// A body that is being written.
pub(crate) struct BodyBuilder<'p> {
    pub(crate) prompt: &'p Prompt<'p>,
    system: Option<&'p str>,
    pub(crate) body: ObjectBuilder<'p>,
    pub(crate) losses: &'p mut Losses,
}

/// Which tools to call, as far as the vendor's API can express it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolSelection<'p> {
    Auto,
    None,
    Required,
    /// The tool of this name.
    Function(&'p str),
    /// The vendor's own tool of this type, with its name if it has one.
    Type(String, Option<&'p str>),
}

impl ToolSelection<'_> {
    /// Whether a call is demanded.
    pub(crate) fn is_forced(&self) -> bool {
        match self {
            Self::Auto | Self::None => false,
            Self::Required | Self::Function(_) | Self::Type(..) => true,
        }
    }
}

/// Whether a penalty changes anything.
fn is_some_penalty(penalty: f64) -> bool {
    penalty != 0.0
}

/// What can be continued by a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    Nothing,
    Responses,
    ResponsesAndConversations,
}

impl<'p> BodyBuilder<'p> {
    pub(crate) fn new(
        prompt: &'p Prompt<'p>,
        system: Option<&'p str>,
        losses: &'p mut Losses,
    ) -> Self {
        Self {
            prompt,
            system,
            body: ObjectBuilder::default(),
            losses,
        }
    }

    /// System text, messages, and what is continued.
    pub(crate) fn add_input(&mut self, continues: Continuation) {
        let target = self.prompt.target;
        let input = RenderedInput {
            system: self.system,
            items: self.prompt.items,
        };
        add_input(&mut self.body, input, target, Switches::default());
        let at = target.chain.as_ref().map(|chain| &chain.at);
        let what = match (at, continues) {
            (None, _)
            | (Some(_), Continuation::ResponsesAndConversations)
            | (Some(ChainAt::Response(_)), Continuation::Responses) => return,
            (Some(ChainAt::Response(_)), Continuation::Nothing) => "a response",
            (Some(ChainAt::Conversation(_)), _) => "a conversation",
        };
        let detail = format!("{} does not continue {what}", target.wire);
        let path = Path::Root.key("target");
        self.losses
            .note(&path.key("chain"), LossKind::RequestKey, detail);
    }

    /// Note a setting that the vendor cannot take.
    pub(crate) fn note_loss(&mut self, key: &str, detail: impl Into<String>) {
        let path = Path::Root.key("settings");
        self.losses.note(&path.key(key), LossKind::Setting, detail);
    }

    /// Note a setting in whose place another value is sent, given as JSON.
    pub(crate) fn note_replaced(&mut self, key: &str, detail: impl Into<String>, sent: &str) {
        let path = Path::Root.key("settings");
        let path = path.key(key);
        self.losses.replaced(&path, LossKind::Setting, detail, sent);
    }

    /// Note a choice of tools that the vendor cannot take.
    pub(crate) fn note_choice_loss(&mut self, detail: impl Into<String>) {
        let path = Path::Root.key("choice");
        self.losses.note(&path, LossKind::Setting, detail);
    }

    /// Write the tools on offer; the choice among them, or nothing if there are none.
    pub(crate) fn add_tools(
        &mut self,
        write: fn(&mut String, &[FunctionTool<'_>], &mut Losses),
    ) -> Option<ToolSelection<'p>> {
        let prompt = self.prompt;
        let functions: Vec<FunctionTool<'p>> = foreign::function_tools(prompt.tools).collect();
        let hosted = hosted::hosted_tools(self);
        let choice = match prompt.choice {
            ToolChoice::Auto => ToolSelection::Auto,
            ToolChoice::None => ToolSelection::None,
            ToolChoice::Required if functions.is_empty() && hosted.is_empty() => {
                self.note_choice_loss("there is no tool on offer");
                ToolSelection::Auto
            }
            ToolChoice::Required => ToolSelection::Required,
            ToolChoice::Named(name) => {
                let function = functions.iter().any(|found| found.tool.name == *name);
                let of_vendor = hosted.iter().find(|found| found.name == name);
                match (function, of_vendor.map(|found| &found.selected_by)) {
                    (true, _) => ToolSelection::Function(name),
                    (false, None) => {
                        self.note_choice_loss(format!("there is no tool '{name}' on offer"));
                        ToolSelection::Auto
                    }
                    (false, Some(SelectedBy::Never)) => {
                        self.note_choice_loss(format!("a call of '{name}' cannot be demanded"));
                        ToolSelection::Auto
                    }
                    (false, Some(SelectedBy::Name(name))) => ToolSelection::Function(name),
                    (false, Some(SelectedBy::Type(tag))) => ToolSelection::Type(tag.clone(), None),
                    (false, Some(SelectedBy::TypeAndName(tag))) => {
                        ToolSelection::Type(tag.clone(), Some(name))
                    }
                }
            }
        };
        if functions.is_empty() && hosted.is_empty() {
            return None;
        }
        let mut json = String::new();
        match functions.is_empty() {
            true => json.push_str("[]"),
            false => write(&mut json, &functions, self.losses),
        }
        for tool in &hosted {
            json.pop();
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&tool.json);
            json.push(']');
        }
        self.body.raw("tools", json);
        Some(choice)
    }

    /// Note what the vendor has no member for. `known` are settings that its format has written.
    pub(crate) fn note_unsupported(&mut self, known: &[&str]) {
        let settings = self.prompt.settings;
        let settings = [
            ("summary", settings.summary),
            ("verbosity", settings.verbosity.is_some()),
            (
                "presence_penalty",
                settings.presence_penalty.is_some_and(is_some_penalty),
            ),
            (
                "frequency_penalty",
                settings.frequency_penalty.is_some_and(is_some_penalty),
            ),
            ("user", settings.user.is_some()),
            ("service_tier", settings.service_tier.is_some()),
            ("cache_key", settings.cache_key.is_some()),
            ("cache_retention", settings.cache_retention.is_some()),
            ("betas", !settings.betas.is_empty()),
        ];
        for (key, is_set) in settings {
            if is_set && !known.contains(&key) {
                self.note_loss(
                    key,
                    format!("{} has no such setting", self.prompt.target.wire),
                );
            }
        }
    }

    /// A penalty, if it is one that the vendor takes.
    pub(crate) fn penalty(&mut self, key: &str, value: Option<f64>) -> Option<String> {
        let value = value?;
        if (-2.0..=2.0).contains(&value) {
            return Some(format!("{value:?}"));
        }
        self.note_loss(key, format!("{value} is not between -2 and 2"));
        None
    }

    /// Words and sampling: a number as the vendor takes it, from nothing to `most`.
    pub(crate) fn decimal(&mut self, key: &str, value: Option<f64>, most: f64) -> Option<String> {
        let value = value?;
        if (0.0..=most).contains(&value) {
            // The shortest digits that give the same number back; always valid JSON.
            return Some(format!("{value:?}"));
        }
        self.note_loss(key, format!("{value} is not between 0 and {most}"));
        None
    }

    /// The temperature, if the vendor takes it.
    pub(crate) fn temperature(&mut self, most: f64) -> Option<String> {
        self.decimal("temperature", self.prompt.settings.temperature, most)
    }

    /// The share of likely words, if the vendor takes it.
    pub(crate) fn top_p(&mut self) -> Option<String> {
        self.decimal("top_p", self.prompt.settings.top_p, 1.0)
    }

    /// Texts that end the answer, as many as the vendor takes.
    pub(crate) fn stop(&mut self, most: usize) -> &'p [String] {
        let stop = &self.prompt.settings.stop;
        if stop.len() > most {
            self.note_loss("stop", format!("only the first {most} are sent"));
        }
        stop.get(..most).unwrap_or(stop)
    }

    /// Whether the answer comes in pieces.
    pub(crate) fn is_streamed(&self) -> bool {
        self.prompt.delivery == Delivery::Streamed
    }

    /// The body, with what the caller adds.
    pub(crate) fn finish(mut self) -> String {
        match &self.prompt.settings.extra {
            None => {}
            Some(extra) if extra.get().starts_with('{') => self.body.replace_by(extra),
            Some(_) => self.note_loss("extra", "not an object"),
        }
        if self.prompt.model.is_empty() || !self.prompt.answered_by.is_empty() {
            self.body.remove("model");
        }
        for (key, json) in self.prompt.answered_by {
            self.body.raw(key, json.as_str());
        }
        self.body.into_text()
    }
}
