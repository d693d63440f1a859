//! Reports as JSON: in events, in responses, on the command line.

use throughline_model::json::{self, ObjectWriter};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Path, json::Value};

use crate::narrative_outcome::NarrativeOutcome;
use crate::report::{BudgetUnreachable, DigestCounts, Report, Trigger, UnchangedReason};

impl Report {
    /// The report as JSON, with the line for people.
    ///
    /// ```
    /// use throughline_compact::Report;
    ///
    /// let report = Report { tokens_before: 9_000, tokens_after: 2_000, ..Report::default() };
    /// assert_eq!(Report::from_json(&report.to_json()).unwrap(), report);
    /// ```
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.str("summary", &self.to_string());
        if let Some(trigger) = self.trigger {
            object.str("trigger", trigger.as_str());
        }
        if let Some(stayed) = self.stayed {
            object.str("stayed", stayed.word());
        }
        object
            .number("epoch", self.epoch)
            .bool("major", self.major)
            .number("groups_digested", self.groups_digested)
            .number("calls_digested", self.calls_digested)
            .number("results_shortened", self.results_shortened)
            .number("tokens_before", self.tokens_before)
            .number("tokens_after", self.tokens_after);
        let mut kept = ObjectWriter::new(object.key("kept"));
        for (key, count) in counts(&self.kept) {
            kept.number(key, count);
        }
        kept.end();
        if let Some(unreachable) = self.budget_unreachable {
            let mut over = ObjectWriter::new(object.key("budget_unreachable"));
            over.number("need", unreachable.need)
                .number("budget", unreachable.budget);
            over.end();
        }
        if let Some(narrated) = &self.narrative {
            narrated.write(object.key("narrative"));
        }
        object.end();
        out
    }

    /// Read what [`Report::to_json`] wrote.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn from_json(text: &str) -> Result<Self, StoredError> {
        let value = json::parse(text)?;
        let root = Path::Root;
        let mut fields = Fields::of(&value, &root)?;
        let trigger = fields.str("trigger")?;
        let stayed = fields.str("stayed")?;
        let is_true = |value: Option<&Value<'_>>| value.is_some_and(|value| value.raw() == "true");
        let major = is_true(fields.get("major"));
        let mut number = |key: &str| Ok::<u64, StoredError>(fields.number(key)?.unwrap_or(0));
        let mut report = Self {
            trigger: trigger.as_deref().and_then(Trigger::named),
            stayed: stayed.as_deref().and_then(UnchangedReason::named),
            epoch: number("epoch")?,
            major,
            groups_digested: number("groups_digested")?,
            calls_digested: number("calls_digested")?,
            results_shortened: number("results_shortened")?,
            tokens_before: number("tokens_before")?,
            tokens_after: number("tokens_after")?,
            kept: DigestCounts::default(),
            budget_unreachable: None,
            narrative: None,
        };
        if let Some(kept) = fields.get("kept") {
            let path = root.key("kept");
            let mut fields = Fields::of(kept, &path)?;
            let mut number = |key: &str| Ok::<u64, StoredError>(fields.number(key)?.unwrap_or(0));
            report.kept = DigestCounts {
                requests: number("requests")?,
                files_written: number("files_written")?,
                failures: number("failures")?,
                calls: number("calls")?,
                names: number("names")?,
                statements: number("statements")?,
            };
        }
        if let Some(over) = fields.get("budget_unreachable") {
            let path = root.key("budget_unreachable");
            let mut fields = Fields::of(over, &path)?;
            report.budget_unreachable = Some(BudgetUnreachable {
                need: fields.number("need")?.unwrap_or(0),
                budget: fields.number("budget")?.unwrap_or(0),
            });
        }
        if let Some(narrated) = fields.get("narrative") {
            report.narrative = Some(NarrativeOutcome::read(narrated, &root.key("narrative"))?);
        }
        Ok(report)
    }
}

fn counts(kept: &DigestCounts) -> [(&'static str, u64); 6] {
    [
        ("requests", kept.requests),
        ("files_written", kept.files_written),
        ("failures", kept.failures),
        ("calls", kept.calls),
        ("names", kept.names),
        ("statements", kept.statements),
    ]
}
