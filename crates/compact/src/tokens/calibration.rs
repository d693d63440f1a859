//! What units come to on a vendor's bill.

use std::collections::BTreeMap;

use throughline_model::json::{self, ArrayWriter, RawJson, Value};
use throughline_model::tokens::Mix;

use super::family::Family;

/// The version of the stored form.
const VERSION: u64 = 1;

/// No vocabulary is so coarse or so fine: Thai comes to 4.5 with the least fitting one.
const BOUNDS: (f64, f64) = (0.3, 5.0);

/// How many units of experience the first guess is worth.
const GUESS: f64 = 2_000.0;

/// What an older call counts after each newer one.
const DECAY: f64 = 0.98;

/// The share by which an estimate may be wrong before anything was billed.
const UNKNOWN: f64 = 0.35;

/// What lately measured errors add to an estimate at most: above that, errors say more about an
/// unusual text than about the next one.
const MOST_CAUTION: f64 = 0.05;

/// The share by which units that no bill has covered may be short: about what the weights of
/// scripts and families are off by.
const UNBILLED: f64 = 0.1;

/// How many errors are remembered.
const ERRORS: usize = 40;

/// What is known about the bills of one model of one upstream in one conversation.
///
/// What was billed for the last call is trusted, and only what is new since then is estimated:
/// a bill covers instructions, tool schemas and what the vendor adds, none of which has to be
/// known here.
///
/// ```
/// use throughline_compact::tokens::Calibration;
///
/// let mut calibration = Calibration::default();
/// calibration.observe(10_000, 33_000);
/// calibration.observe(12_000, 35_600);
/// // 23,000 tokens of instructions, and 1.3 tokens for each unit on top.
/// let estimate = calibration.estimate(13_000);
/// assert!(estimate.tokens > 36_600 && estimate.tokens < 37_000);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Tokens for each unit.
    scale: f64,
    /// Units that the scale was learnt from, older ones counting less.
    weight: f64,
    last: Option<Bill>,
    calls: u64,
    /// How wrong the newest estimates were, as shares of what was billed.
    errors: Vec<f64>,
}

/// A view, and what was billed for it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bill {
    units: u64,
    tokens: u64,
}

/// What a view will be billed, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimated number of tokens.
    pub tokens: u64,
    /// The share by which 95 of 100 such estimates are wrong at most.
    pub p95_error: f64,
}

impl Estimate {
    /// The tokens, with what the estimate may be short by.
    pub fn at_most(&self) -> u64 {
        (self.tokens as f64 * (1.0 + self.p95_error)).ceil() as u64
    }
}

impl Default for Calibration {
    /// Nothing was billed yet, and nothing is known of the model.
    fn default() -> Self {
        Self::for_model("")
    }
}

impl Calibration {
    /// Nothing was billed yet; the name of the model gives a first guess, for English and code.
    pub fn for_model(model: &str) -> Self {
        Self::for_mix(model, &Mix::default())
    }

    /// Nothing was billed yet; the name of the model and what the texts are made of give a first
    /// guess.
    ///
    /// ```
    /// use throughline_compact::tokens::{Calibration, Mix};
    ///
    /// let english = Calibration::for_model("claude-opus").estimate(1_000).tokens;
    /// let russian = Mix::of_text("Прилив в десять, отлив в четыре");
    /// let russian = Calibration::for_mix("claude-opus", &russian).estimate(1_000).tokens;
    /// assert!(russian > english * 3 / 2);
    /// ```
    pub fn for_mix(model: &str, mix: &Mix) -> Self {
        let scale = Family::of_model(model).scale(mix);
        Self {
            scale: scale.clamp(BOUNDS.0, BOUNDS.1),
            weight: GUESS,
            last: None,
            calls: 0,
            errors: Vec::new(),
        }
    }

    /// Learn what was billed for a view: everything that was sent, read from a cache or not.
    pub fn observe(&mut self, units: u64, billed: u64) {
        if billed == 0 {
            return;
        }
        if self.calls > 0 {
            let estimated = self.estimate(units).tokens;
            if self.errors.len() == ERRORS {
                self.errors.remove(0);
            }
            self.errors
                .push(estimated.abs_diff(billed) as f64 / billed as f64);
        }
        match self.last {
            Some(last) if units > last.units && billed > last.tokens => {
                let new = (units - last.units) as f64;
                self.learn((billed - last.tokens) as f64 / new, new);
            }
            // A smaller view: how much less was billed gives the scale as well.
            Some(last) if units < last.units && billed < last.tokens => {
                let less = (last.units - units) as f64;
                self.learn((last.tokens - billed) as f64 / less, less);
            }
            // A first bill that is smaller than the guess can only mean a smaller scale.
            None if (billed as f64) < self.scale * units as f64 => {
                self.learn(billed as f64 / units as f64, units as f64);
            }
            Some(_) | None => {}
        }
        self.last = Some(Bill {
            units,
            tokens: billed,
        });
        self.calls += 1;
    }

    /// What a view of so many units will be billed.
    pub fn estimate(&self, units: u64) -> Estimate {
        let tokens = match self.last {
            None => self.scale * units as f64,
            Some(last) => {
                let change = (units as f64 - last.units as f64) * self.scale;
                // A part of a view has at least its share of the whole.
                let share = last.tokens as f64 * units as f64 / (last.units as f64).max(1.0);
                let least = if units < last.units {
                    share.min(self.scale * units as f64)
                } else {
                    0.0
                };
                (last.tokens as f64 + change).max(least)
            }
        };
        Estimate {
            tokens: tokens.round().max(0.0) as u64,
            p95_error: self.p95_error(),
        }
    }

    /// The share by which the next bill, of a view that has so many units now, may be above its
    /// estimate: what estimates were lately wrong by, and more for what is new since the last bill.
    ///
    /// ```
    /// use throughline_compact::tokens::Calibration;
    ///
    /// let mut calibration = Calibration::default();
    /// for units in [10_000, 10_500, 11_000, 11_500] {
    ///     calibration.observe(units, units);
    /// }
    /// assert!(calibration.margin(11_600) < 0.01);
    /// // A user pasted a document.
    /// assert!(calibration.margin(23_000) > 0.04);
    /// ```
    pub fn margin(&self, units: u64) -> f64 {
        let billed = self.last.map_or(0, |last| last.units);
        let new = units.saturating_sub(billed) as f64 / units.max(1) as f64;
        self.p95_error().min(MOST_CAUTION) + UNBILLED * new
    }

    /// Thousandths of a token for each unit.
    pub fn per_mille(&self) -> u32 {
        (self.scale * 1_000.0).round() as u32
    }

    /// Tokens that are billed whatever the view: instructions, tool schemas, what the vendor adds.
    pub fn overhead(&self) -> u64 {
        self.last.map_or(0, |last| {
            let rest = last.tokens as f64 - self.scale * last.units as f64;
            rest.round().max(0.0) as u64
        })
    }

    /// How many bills were seen.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The stored form.
    pub fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object
                .number("v", VERSION)
                .raw("scale", &number(self.scale))
                .raw("weight", &number(self.weight))
                .number("calls", self.calls);
            if let Some(last) = self.last {
                object
                    .number("units", last.units)
                    .number("tokens", last.tokens);
            }
            let errors: Vec<String> = self.errors.iter().map(|error| number(*error)).collect();
            object.raw("errors", &format!("[{}]", errors.join(",")));
        })
    }

    /// From the stored form; `None` for what this version cannot read, which is no loss: the next
    /// bills teach the same again.
    pub fn from_json(text: &str) -> Option<Self> {
        Self::read(&json::parse(text).ok()?)
    }

    fn read(value: &Value<'_>) -> Option<Self> {
        if value.get("v")?.as_u64()? != VERSION {
            return None;
        }
        let units = value.get("units").and_then(Value::as_u64);
        let tokens = value.get("tokens").and_then(Value::as_u64);
        let errors = value.get("errors")?.as_array()?;
        let errors: Option<Vec<f64>> = errors.iter().take(ERRORS).map(float).collect();
        Some(Self {
            scale: float(value.get("scale")?)?.clamp(BOUNDS.0, BOUNDS.1),
            weight: float(value.get("weight")?)?.max(1.0),
            last: units
                .zip(tokens)
                .map(|(units, tokens)| Bill { units, tokens }),
            calls: value.get("calls")?.as_u64()?,
            errors: errors?,
        })
    }

    fn learn(&mut self, scale: f64, weight: f64) {
        let scale = scale.clamp(BOUNDS.0, BOUNDS.1);
        let kept = self.weight * DECAY;
        self.scale = (self.scale * kept + scale * weight) / (kept + weight);
        self.weight = kept + weight;
    }

    fn p95_error(&self) -> f64 {
        // Few errors are little evidence: each one missing counts as half of not knowing at all.
        if self.errors.len() < 3 {
            return UNKNOWN / (1.0 + self.errors.len() as f64);
        }
        let mut sorted = self.errors.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (sorted.len() * 95).div_ceil(100).saturating_sub(1);
        sorted.get(place).copied().unwrap_or(UNKNOWN)
    }
}

/// What is known about the bills of a conversation, for each model of each upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibrations {
    models: BTreeMap<(String, String), Calibration>,
}

impl Calibrations {
    /// What is known about a model of an upstream.
    pub fn of(&self, upstream: &str, model: &str) -> Calibration {
        let key = (upstream.to_owned(), model.to_owned());
        let known = self.models.get(&key).cloned();
        known.unwrap_or_else(|| Calibration::for_model(model))
    }

    /// Guess how a model counts texts of this mix, until its first bill.
    pub fn guess(&mut self, upstream: &str, model: &str, mix: &Mix) {
        let key = (upstream.to_owned(), model.to_owned());
        let guessed = Calibration::for_mix(model, mix);
        let known = self.models.entry(key).or_insert_with(|| guessed.clone());
        if known.calls == 0 {
            *known = guessed;
        }
    }

    /// Learn what an upstream billed for a view.
    pub fn observe(&mut self, upstream: &str, model: &str, units: u64, billed: u64) {
        let key = (upstream.to_owned(), model.to_owned());
        let fresh = || Calibration::for_model(model);
        let known = self.models.entry(key).or_insert_with(fresh);
        known.observe(units, billed);
    }

    /// The stored form.
    pub fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.number("v", VERSION);
            let mut models = ArrayWriter::new(object.key("models"));
            // A guess is made anew from what the conversation is then.
            let billed = self.models.iter().filter(|(_, known)| known.calls > 0);
            for ((upstream, model), known) in billed {
                let entry = RawJson::object(|object| {
                    object
                        .str("upstream", upstream)
                        .str("model", model)
                        .raw("calibration", known.to_json().get());
                });
                models.raw(entry.get());
            }
            models.end();
        })
    }

    /// From the stored form; what this version cannot read is left out and learnt again.
    pub fn from_json(text: &str) -> Self {
        let mut found = Self::default();
        let Ok(value) = json::parse(text) else {
            return found;
        };
        for entry in value
            .get("models")
            .and_then(Value::as_array)
            .unwrap_or_default()
        {
            let name = |key| entry.get(key).and_then(Value::as_str);
            let known = entry.get("calibration").and_then(Calibration::read);
            if let (Some(upstream), Some(model), Some(known)) =
                (name("upstream"), name("model"), known)
            {
                let key = (upstream.into_owned(), model.into_owned());
                found.models.insert(key, known);
            }
        }
        found
    }
}

/// A number as JSON. Rust writes the shortest digits that read back as the same number.
fn number(value: f64) -> String {
    match value.is_finite() {
        true => value.to_string(),
        false => "0".to_owned(),
    }
}

fn float(value: &Value<'_>) -> Option<f64> {
    let found: f64 = value.raw().parse().ok()?;
    (found.is_finite() && found >= 0.0).then_some(found)
}
