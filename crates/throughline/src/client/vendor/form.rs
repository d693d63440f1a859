//! How earlier calls and results are shown to a service, and which services were found not to take
//! them as its own items.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throughline_store::{Clock, Millis};
use throughline_wire::render::{Markers, Options, TextEmbed, ToolHistoryStrategy};

use super::builder::ClientBuilder;
use crate::client::Abilities;

/// How earlier tool calls and their results are shown to a service.
///
/// Where the service keeps the conversation itself, what it has is gone on with in its own items,
/// whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum HistoryForm {
    /// As its own items; as text for a while, once it refused those and took the text. One call is
    /// asked twice for that, later ones are not.
    #[default]
    Auto,
    /// As its own items, always.
    Native,
    /// Results as text of the user, calls not at all.
    Text,
}

impl HistoryForm {
    /// All of them.
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

/// What a builder was told about this.
#[derive(Clone)]
pub(super) struct Wanted {
    form: HistoryForm,
    markers: Option<Markers>,
    own: Option<Arc<dyn ToolHistoryStrategy>>,
    expiry: Duration,
    clock: Arc<dyn Clock>,
}

/// How long a service is not tried again that did not take its own items.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Wanted {
    pub(super) fn usual(clock: Arc<dyn Clock>) -> Self {
        Self {
            form: HistoryForm::Auto,
            markers: None,
            own: None,
            expiry: A_DAY,
            clock,
        }
    }

    /// What a client does about it, and what that says of its abilities.
    pub(super) fn settle(self, abilities: &mut Abilities) -> Forms {
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
        Forms {
            native: Options::default(),
            text,
            rule,
        }
    }
}

impl ClientBuilder {
    /// How earlier tool calls and their results are shown to the service. A service whose abilities
    /// lack `native_tool_history` is shown text in any case.
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

    /// A strategy of one's own in place of a form. It is used for every call, and nothing is tried
    /// in another way.
    #[must_use]
    pub fn tool_history_by(mut self, strategy: Arc<dyn ToolHistoryStrategy>) -> Self {
        self.history.own = Some(strategy);
        self
    }

    /// What stands around results that are shown as text.
    #[must_use]
    pub fn text_markers(mut self, markers: Markers) -> Self {
        self.history.markers = Some(markers);
        self
    }

    /// How long [`HistoryForm::Auto`] remembers that the service took only text for a model: a day,
    /// unless this says otherwise. After that its own items are tried again.
    #[must_use]
    pub fn tool_history_expiry(mut self, expiry: Duration) -> Self {
        self.history.expiry = expiry;
        self
    }

    /// Where the time comes from by which such things are forgotten.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.history.clock = clock;
        self
    }
}

/// The form of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Native,
    Text,
    /// By the application's own strategy.
    Own,
}

impl Shown {
    /// The stable name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Text => "text",
            Self::Own => "own",
        }
    }
}

/// How a client shows calls and results.
pub(super) struct Forms {
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

/// Whether a service has calls behind a request that its results belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    Nothing,
    Calls,
}

impl Forms {
    /// In which form to ask for a model.
    pub(super) fn first(&self, model: &str, behind: Behind) -> Shown {
        match (&self.rule, behind) {
            (Rule::Own(_), _) => Shown::Own,
            // Text would leave the calls open that the service has.
            (Rule::Auto(_) | Rule::Native | Rule::Text, Behind::Calls) => Shown::Native,
            (Rule::Native, Behind::Nothing) => Shown::Native,
            (Rule::Text, Behind::Nothing) => Shown::Text,
            (Rule::Auto(refusals), Behind::Nothing) if refusals.hold(model) => Shown::Text,
            (Rule::Auto(_), Behind::Nothing) => Shown::Native,
        }
    }

    /// Whether a request that was refused in a form may be made again as text.
    pub(super) fn has_another(&self, form: Shown, behind: Behind) -> bool {
        let auto = matches!(self.rule, Rule::Auto(_));
        auto && form == Shown::Native && behind == Behind::Nothing
    }

    /// The service took text for a model, and nothing else.
    pub(super) fn took_text(&self, model: &str) {
        if let Rule::Auto(refusals) = &self.rule {
            refusals.remember(model);
        }
    }

    pub(super) fn options(&self, form: Shown) -> &Options {
        match (form, &self.rule) {
            (Shown::Own, Rule::Own(own)) => own,
            (Shown::Text, _) => &self.text,
            (Shown::Native | Shown::Own, _) => &self.native,
        }
    }
}

/// For which models the service took only text, and since when. One for each client, so for all
/// that share it.
struct Refusals {
    clock: Arc<dyn Clock>,
    expiry: Duration,
    known: Mutex<BTreeMap<String, Millis>>,
}

/// Names of models come from requests: so many are remembered.
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
