//! What every format needs to put a body together.

use throughline_model::{Path, ToolChoice};

use super::{Delivery, Prompt};
use crate::foreign::{self, Function};
use crate::members::Members;
use crate::render::{ChainAt, Said, Switches, add_said};
use crate::{LossKind, Losses};

/// A body that is being written.
pub(super) struct Draft<'p> {
    pub(super) prompt: &'p Prompt<'p>,
    system: Option<&'p str>,
    pub(super) body: Members<'p>,
    pub(super) losses: &'p mut Losses,
}

/// What can be continued by a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continues {
    Nothing,
    Responses,
    ResponsesAndConversations,
}

impl<'p> Draft<'p> {
    pub(super) fn new(
        prompt: &'p Prompt<'p>,
        system: Option<&'p str>,
        losses: &'p mut Losses,
    ) -> Self {
        Self {
            prompt,
            system,
            body: Members::default(),
            losses,
        }
    }

    /// System text, messages, and what is continued.
    pub(super) fn said(&mut self, continues: Continues) {
        let target = self.prompt.target;
        let said = Said {
            system: self.system,
            items: self.prompt.items,
        };
        add_said(&mut self.body, said, target, Switches::default());
        let at = target.chain.as_ref().map(|chain| &chain.at);
        let what = match (at, continues) {
            (None, _)
            | (Some(_), Continues::ResponsesAndConversations)
            | (Some(ChainAt::Response(_)), Continues::Responses) => return,
            (Some(ChainAt::Response(_)), Continues::Nothing) => "a response",
            (Some(ChainAt::Conversation(_)), _) => "a conversation",
        };
        let detail = format!("{} does not continue {what}", target.wire);
        let path = Path::Root.key("target");
        self.losses
            .note(&path.key("chain"), LossKind::RequestKey, detail);
    }

    /// Note a setting that the vendor cannot take.
    pub(super) fn lost(&mut self, key: &str, detail: impl Into<String>) {
        let path = Path::Root.key("settings");
        self.losses.note(&path.key(key), LossKind::Setting, detail);
    }

    /// Note a choice of tools that the vendor cannot take.
    pub(super) fn choice_lost(&mut self, detail: impl Into<String>) {
        let path = Path::Root.key("choice");
        self.losses.note(&path, LossKind::Setting, detail);
    }

    /// Write the functions on offer; the choice among them, or nothing if there are none.
    pub(super) fn tools(
        &mut self,
        write: fn(&mut String, &[Function<'_>], &mut Losses),
    ) -> Option<&'p ToolChoice> {
        let prompt = self.prompt;
        let functions = foreign::function_tools(prompt.tools, self.losses);
        let known = |name: &str| functions.iter().any(|found| found.tool.name == name);
        let possible = match prompt.choice {
            ToolChoice::Auto | ToolChoice::None => true,
            ToolChoice::Required => !functions.is_empty(),
            ToolChoice::Named(name) => known(name),
        };
        if !possible {
            self.choice_lost("there is no such function on offer");
        }
        if functions.is_empty() {
            return None;
        }
        let mut json = String::new();
        write(&mut json, &functions, self.losses);
        self.body.raw("tools", json);
        Some(if possible {
            prompt.choice
        } else {
            &ToolChoice::Auto
        })
    }

    /// Words and sampling: a number as the vendor takes it, from nothing to `most`.
    pub(super) fn decimal(&mut self, key: &str, value: Option<f64>, most: f64) -> Option<String> {
        let value = value?;
        if (0.0..=most).contains(&value) {
            // The shortest digits that give the same number back; always valid JSON.
            return Some(format!("{value:?}"));
        }
        self.lost(key, format!("{value} is not between 0 and {most}"));
        None
    }

    /// The temperature, if the vendor takes it.
    pub(super) fn temperature(&mut self, most: f64) -> Option<String> {
        self.decimal("temperature", self.prompt.settings.temperature, most)
    }

    /// The share of likely words, if the vendor takes it.
    pub(super) fn top_p(&mut self) -> Option<String> {
        self.decimal("top_p", self.prompt.settings.top_p, 1.0)
    }

    /// Texts that end the answer, as many as the vendor takes.
    pub(super) fn stop(&mut self, most: usize) -> &'p [String] {
        let stop = &self.prompt.settings.stop;
        if stop.len() > most {
            self.lost("stop", format!("only the first {most} are sent"));
        }
        stop.get(..most).unwrap_or(stop)
    }

    /// Whether the answer comes in pieces.
    pub(super) fn is_streamed(&self) -> bool {
        self.prompt.delivery == Delivery::Streamed
    }

    /// The body, with what the caller adds.
    pub(super) fn finish(mut self) -> String {
        match &self.prompt.settings.extra {
            None => {}
            Some(extra) if extra.get().starts_with('{') => self.body.replace_by(extra),
            Some(_) => self.lost("extra", "not an object"),
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
