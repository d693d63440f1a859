//! The call of an approval, as text and as JSON.

use throughline_model::json::{Escapes, ObjectWriter, Text, Value};
use throughline_store::{Approval, ArgumentsDigest, arguments_digest};

use super::json_form;
use crate::time;

/// Characters of a text that are shown in a list.
const SHORT: usize = 160;

/// How much of a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    Whole,
}

/// What the record shows of the call. Every member can be missing: records outlive the program
/// that wrote them, and another one may write less.
pub(super) struct ApprovalCall {
    tool: Option<RecordMember>,
    call: Option<RecordMember>,
    arguments: Option<RecordMember>,
    /// Whether the vendor's tool host asks, and nothing runs here.
    pub(super) vendor: bool,
}

/// A member of the record.
struct RecordMember {
    /// Its JSON as it is stored.
    raw: String,
    /// Its text; the JSON itself if it is none.
    text: String,
    /// Whether it is a text, and one without unpaired surrogates, which only JSON can express.
    exact: bool,
}

impl ApprovalCall {
    pub(super) fn of(approval: &Approval) -> Self {
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
    pub(super) fn contradicts(&self, approval: &Approval) -> bool {
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
pub(super) fn hex(digest: &ArgumentsDigest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The approval as JSON, with everything that the record shows.
pub(super) fn form(out: &mut String, approval: &Approval) {
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
    json_form::opt_number(&mut object, "expires", approval.expires);
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
    json_form::opt_str(&mut object, "reason", approval.reason.as_deref());
    json_form::opt_raw(&mut object, "detail", approval.detail.as_ref());
    object.end();
}

/// The approval in some lines.
pub(super) fn words(approval: &Approval, length: Length) -> String {
    let asked = ApprovalCall::of(approval);
    let expires = match approval.expires {
        Some(at) => format!("expires {}", time::format_utc(at)),
        None => "never expires".to_owned(),
    };
    let mut lines = vec![format!(
        "{}  {}  thread {}  {}  asked {}, {expires}",
        approval.id,
        approval.state.as_str(),
        approval.thread,
        approval.call.run,
        time::format_utc(approval.created)
    )];
    let part = |shows: &Option<RecordMember>, missing: &str| match shows {
        Some(shows) => exact(&shows.text, length),
        None => missing.to_owned(),
    };
    let mut call = format!(
        "    -> {} {}",
        part(&asked.tool, "[no tool recorded]"),
        part(&asked.arguments, "[no arguments recorded]"),
    );
    if asked.call.is_some() {
        call.push_str(&format!(" ({})", part(&asked.call, "")));
    }
    if asked.vendor {
        call.push_str(", asked by the vendor's tool host");
    }
    lines.push(call);
    let mut digest = format!("    digest {}", hex(&approval.shown));
    if asked.contradicts(approval) {
        digest.push_str(", which is not that of these arguments");
    }
    lines.push(digest);
    if let Some(answered) = answered(approval, length) {
        lines.push(format!("    {answered}"));
    }
    lines.join("\n")
}

/// The decision, with who decided, when and why.
pub(super) fn answered(approval: &Approval, length: Length) -> Option<String> {
    use throughline_store::ApprovalState as State;
    let (by, at) = approval.answered.as_ref()?;
    let word = match approval.state {
        State::Approved | State::Used => "approved",
        State::Denied => "denied",
        // An answer that a later version gave, or one that came to nothing.
        State::Waiting | State::Expired | State::Withdrawn => "answered",
    };
    let mut line = format!("{word} by {}, {}", exact(by, length), time::format_utc(*at));
    if let Some(reason) = &approval.reason {
        line.push_str(&format!(": {}", exact(reason, length)));
    }
    Some(line)
}

/// A text in one line in which nothing hides: what moves the cursor, turns the direction of
/// writing or has no width is spelt out, and spaces stay.
fn exact(text: &str, length: Length) -> String {
    let most = match length {
        Length::Short => SHORT,
        Length::Whole => usize::MAX,
    };
    let mut out = String::new();
    for c in text.chars().take(most) {
        match c {
            c if c.is_control() || hides(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    let count = text.chars().count();
    if count > most {
        out.push_str(&format!("… [{count} characters, --json has all]"));
    }
    out
}

fn hides(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::{Length, exact};

    #[test]
    fn nothing_hides_in_what_is_asked() {
        assert_eq!(
            exact("a\n\x1b[2J  \u{202e}b\u{200b}", Length::Whole),
            "a\\n\\u{1b}[2J  \\u{202e}b\\u{200b}"
        );
        let long = "ä".repeat(161);
        assert_eq!(exact(&long, Length::Whole), long);
        assert_eq!(
            exact(&long, Length::Short),
            format!("{}… [161 characters, --json has all]", "ä".repeat(160))
        );
    }
}
