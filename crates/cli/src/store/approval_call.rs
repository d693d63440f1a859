//! The call of an approval, as text.

use throughline_server::api::native::forms::approval::RecordMember;
pub(super) use throughline_server::api::native::forms::approval::{ApprovalCall, form, hex};
use throughline_store::Approval;

use crate::time;

/// Characters of a text that are shown in a list.
const SHORT: usize = 160;

/// How much of a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    Whole,
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
