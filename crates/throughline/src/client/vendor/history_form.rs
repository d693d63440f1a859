//! The form in which earlier calls and results are sent, and the services that refused their native
//! form.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throughline_store::{Clock, Millis};
use throughline_wire::render::{Markers, Options, TextEmbed, ToolHistoryStrategy};

use super::builder::ClientBuilder;
use crate::client::Abilities;

/// The form in which earlier tool calls and their results are sent to a service.
///
/// If the service stores the conversation itself, native items are used for what it has, whatever
/// this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum HistoryForm {
    /// Native items; text for a while after the service refused native items and accepted text.
    /// That costs one repeated call.
    #[default]
    Auto,
    /// Native items, always.
    Native,
    /// Results as text of the user; calls are omitted.
    Text,
}

impl HistoryForm {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Native, Self::Text];

    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for HistoryForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The settings of the builder.
#[derive(Clone)]
pub(super) struct FormSettings {
    form: HistoryForm,
    markers: Option<Markers>,
    own: Option<Arc<dyn ToolHistoryStrategy>>,
    expiry: Duration,
    clock: Arc<dyn Clock>,
}

/// How long a service that refused native items is sent text.
const DEFAULT_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

impl FormSettings {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            form: HistoryForm::Auto,
            markers: None,
            own: None,
            expiry: DEFAULT_EXPIRY,
            clock,
        }
    }

    /// The client's forms, and the abilities that follow from them.
    pub(super) fn chooser(self, abilities: &mut Abilities) -> FormChooser {
        let text = match self.markers {
            Some(markers) => Options::with_strategy(Arc::new(TextEmbed::with_markers(markers))),
            None => Options::text(),
        };
        let rule = match (self.own, self.form) {
            (Some(own), _) => {
                abilities.native_tool_history = own.keeps_calls();
                Rule::Own(Options::with_strategy(own))
            }
            (None, HistoryForm::Text) => Rule::Text,
            (None, HistoryForm::Auto | HistoryForm::Native) if !abilities.native_tool_history => {
                Rule::Text
            }
            (None, HistoryForm::Native) => Rule::Native,
            (None, HistoryForm::Auto) => Rule::Auto(Refusals {
                clock: self.clock,
                expiry: self.expiry,
                known: Mutex::default(),
            }),
        };
        if matches!(rule, Rule::Text) {
            abilities.native_tool_history = false;
        }
        FormChooser {
            native: Options::default(),
            text,
            rule,
        }
    }
}

impl ClientBuilder {
    /// Sets the form in which earlier tool calls and their results are sent. A service whose
    /// abilities lack `native_tool_history` is sent text in any case.
    ///
    /// ```
    /// use throughline::client::HistoryForm;
    /// use throughline::{ChatClient, OpenAi};
    ///
    /// let client = OpenAi::chat("small")
    ///     .base_url("http://127.0.0.1:8080/v1")
    ///     .tool_history(HistoryForm::Text)
    ///     .build()?;
    /// assert!(!client.abilities().native_tool_history);
    /// # Ok::<(), throughline::client::ClientError>(())
    /// ```
    #[must_use]
    pub fn tool_history(mut self, form: HistoryForm) -> Self {
        self.history.form = form;
        self.history.own = None;
        self
    }

    /// Sets a strategy of the application instead of a form. It is used for every call, and no
    /// other form is tried.
    #[must_use]
    pub fn tool_history_by(mut self, strategy: Arc<dyn ToolHistoryStrategy>) -> Self {
        self.history.own = Some(strategy);
        self
    }

    /// Sets what is written around results in text form.
    #[must_use]
    pub fn text_markers(mut self, markers: Markers) -> Self {
        self.history.markers = Some(markers);
        self
    }

    /// Sets how long [`HistoryForm::Auto`] remembers that the service accepted only text for a
    /// model; a day by default. After that, native items are tried again.
    #[must_use]
    pub fn tool_history_expiry(mut self, expiry: Duration) -> Self {
        self.history.expiry = expiry;
        self
    }

    /// Sets the clock of that memory.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.history.clock = clock;
        self
    }
}

/// The form of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemForm {
    Native,
    Text,
    /// The strategy of the application.
    Own,
}

impl ItemForm {
    /// The stable name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Text => "text",
            Self::Own => "own",
        }
    }
}

/// Chooses the form of each request.
pub(super) struct FormChooser {
    native: Options,
    text: Options,
    rule: Rule,
}

enum Rule {
    Auto(Refusals),
    Native,
    Text,
    Own(Options),
}

/// Whether the service has calls to which results of the request belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceCalls {
    Absent,
    Present,
}

impl FormChooser {
    /// The form of the first request for a model.
    pub(super) fn first(&self, model: &str, service_calls: ServiceCalls) -> ItemForm {
        match (&self.rule, service_calls) {
            (Rule::Own(_), _) => ItemForm::Own,
            // Text would leave the service's calls without results.
            (Rule::Auto(_) | Rule::Native | Rule::Text, ServiceCalls::Present) => ItemForm::Native,
            (Rule::Native, ServiceCalls::Absent) => ItemForm::Native,
            (Rule::Text, ServiceCalls::Absent) => ItemForm::Text,
            (Rule::Auto(refusals), ServiceCalls::Absent) if refusals.hold(model) => ItemForm::Text,
            (Rule::Auto(_), ServiceCalls::Absent) => ItemForm::Native,
        }
    }

    /// Whether a refused request may be repeated as text.
    pub(super) fn has_another(&self, form: ItemForm, service_calls: ServiceCalls) -> bool {
        let auto = matches!(self.rule, Rule::Auto(_));
        auto && form == ItemForm::Native && service_calls == ServiceCalls::Absent
    }

    /// Records that the service accepted only text for a model.
    pub(super) fn accepted_text(&self, model: &str) {
        if let Rule::Auto(refusals) = &self.rule {
            refusals.remember(model);
        }
    }

    pub(super) fn options(&self, form: ItemForm) -> &Options {
        match (form, &self.rule) {
            (ItemForm::Own, Rule::Own(own)) => own,
            (ItemForm::Text, _) => &self.text,
            (ItemForm::Native | ItemForm::Own, _) => &self.native,
        }
    }
}

/// The models for which the service accepted only text, and since when. All users of a client share
/// it.
struct Refusals {
    clock: Arc<dyn Clock>,
    expiry: Duration,
    known: Mutex<BTreeMap<String, Millis>>,
}

/// How many models are remembered, because their names come from requests.
const MOST_MODELS: usize = 1_024;

impl Refusals {
    fn hold(&self, model: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(since) = known.get(model) else {
            return false;
        };
        let holds = self.is_fresh(*since, self.clock.now());
        if !holds {
            known.remove(model);
        }
        holds
    }

    fn remember(&self, model: &str) {
        let now = self.clock.now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(model.to_owned(), now);
        if known.len() > MOST_MODELS {
            known.retain(|_, since| self.is_fresh(*since, now));
        }
        if known.len() > MOST_MODELS {
            let others = known.iter().filter(|(name, _)| *name != model);
            let oldest = others.min_by_key(|(_, since)| **since);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                known.remove(&oldest);
            }
        }
    }

    fn is_fresh(&self, since: Millis, now: Millis) -> bool {
        let age = Duration::from_millis(now.saturating_sub(since));
        age < self.expiry
    }
}
