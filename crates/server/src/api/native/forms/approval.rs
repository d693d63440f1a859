//! Approvals, with what their record shows of the call.

use throughline_model::json::{Escapes, ObjectWriter, Text, Value};
use throughline_store::{Approval, ArgumentsDigest, arguments_digest};

use super::record;

/// What the record shows of the call. Every member can be missing: records outlive the program
/// that wrote them, and another one may write less.
pub struct ApprovalCall {
    /// The tool.
    pub tool: Option<RecordMember>,
    /// The id of the call.
    pub call: Option<RecordMember>,
    /// Its arguments.
    pub arguments: Option<RecordMember>,
    /// Whether the vendor's tool host asks, and nothing runs here.
    pub vendor: bool,
}

/// A member of the record.
pub struct RecordMember {
    /// Its JSON as it is stored.
    raw: String,
    /// Its text; the JSON itself if it is none.
    pub text: String,
    /// Whether it is a text, and one without unpaired surrogates, which only JSON can express.
    exact: bool,
}

impl ApprovalCall {
    /// Read the record of an approval.
    pub fn of(approval: &Approval) -> Self {
        let value = approval.detail.as_ref().map(|detail| detail.value());
        let member = |key: &str| value.as_ref()?.get(key).filter(|found| !found.is_null());
        let shows = |key: &str| member(key).map(RecordMember::of);
        Self {
            tool: shows("tool"),
            call: shows("call"),
            arguments: shows("arguments"),
            vendor: member("vendor").and_then(Value::as_bool).unwrap_or(false),
        }
    }

    /// Whether the record shows something else than its digest stands for.
    pub fn contradicts(&self, approval: &Approval) -> bool {
        match (&self.tool, &self.arguments) {
            (Some(tool), Some(arguments)) if tool.exact && arguments.exact => {
                arguments_digest(&tool.text, &arguments.text) != approval.shown
            }
            // What cannot be compared is no contradiction.
            _ => false,
        }
    }
}

impl RecordMember {
    fn of(value: &Value<'_>) -> Self {
        let text = value.as_text();
        let raw = value.raw().to_owned();
        Self {
            exact: text.is_some_and(|text| text.escapes() != Escapes::LoneSurrogate),
            text: text
                .as_ref()
                .map_or_else(|| raw.clone(), |text| Text::to_str(text).into_owned()),
            raw,
        }
    }
}

/// The digest as people copy it.
pub fn hex(digest: &ArgumentsDigest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The approval as JSON, with everything that the record shows.
pub fn form(out: &mut String, approval: &Approval) {
    let asked = ApprovalCall::of(approval);
    let mut object = ObjectWriter::new(out);
    object.str("id", &approval.id.to_string());
    object.str("thread", approval.thread.as_str());
    object.str("run", &approval.call.run.to_string());
    object.number("step", u64::from(approval.call.step));
    object.number("position", u64::from(approval.call.position));
    object.str("state", approval.state.as_str());
    for (key, shows) in [
        ("tool", &asked.tool),
        ("call", &asked.call),
        ("arguments", &asked.arguments),
    ] {
        object.raw(key, shows.as_ref().map_or("null", |shows| &shows.raw));
    }
    object.bool("vendor", asked.vendor);
    object.str("digest", &hex(&approval.shown));
    object.number("created", approval.created);
    record::opt_number(&mut object, "expires", approval.expires);
    match &approval.answered {
        Some((by, at)) => {
            let mut inner = ObjectWriter::new(object.key("answered"));
            inner.str("by", by).number("at", *at);
            inner.end();
        }
        None => {
            object.raw("answered", "null");
        }
    }
    record::opt_str(&mut object, "reason", approval.reason.as_deref());
    record::opt_raw(&mut object, "detail", approval.detail.as_ref());
    object.end();
}
