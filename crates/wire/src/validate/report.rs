//! Gathers violations while a request is read.

use std::fmt::Write as _;

use throughline_model::Path;

use super::rules::rule;
use super::violation::Violation;

/// How a vendor writes an index into a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathStyle {
    /// `input[3].call_id`
    Brackets,
    /// `messages.3.content.1`
    Dots,
}

pub(crate) struct Report {
    style: PathStyle,
    /// With the place in the history, for sorting.
    found: Vec<(usize, Violation)>,
}

impl Report {
    pub(crate) fn new(style: PathStyle) -> Self {
        Self {
            style,
            found: Vec::new(),
        }
    }

    /// Note one; the ids concerned and the vendor's words can be added to what is returned.
    pub(crate) fn add(
        &mut self,
        rule: &'static str,
        path: &Path<'_>,
        message: impl Into<String>,
    ) -> &mut Violation {
        let written = match self.style {
            PathStyle::Brackets => path.to_string(),
            PathStyle::Dots => dotted(path),
        };
        let violation = Violation {
            rule,
            path: written,
            items: Vec::new(),
            message: message.into(),
            vendor_text: None,
        };
        self.found.push((first_index(path), violation));
        let last = self.found.len() - 1;
        &mut self.found[last].1
    }

    pub(crate) fn finish(mut self) -> Vec<Violation> {
        self.found.sort_by_key(|(place, _)| *place);
        let mut violations: Vec<Violation> =
            self.found.into_iter().map(|(_, found)| found).collect();
        for violation in &mut violations {
            let words = rule(violation.rule).and_then(|rule| rule.error);
            violation.vendor_text = match violation.vendor_text.take() {
                Some(text) => Some(text).filter(|text| !text.is_empty()),
                None => words.map(|text| restore(text, violation)),
            };
        }
        violations
    }
}

/// The vendor's words with the varying parts put in.
fn restore(text: &str, violation: &Violation) -> String {
    let first = violation.items.first().map_or("…", String::as_str);
    text.replace("{path}", &violation.path)
        .replace("{item}", first)
        .replace("{items}", &violation.items.join(", "))
}

fn dotted(path: &Path<'_>) -> String {
    match path {
        Path::Root => String::new(),
        Path::Key(Path::Root, key) => (*key).to_owned(),
        Path::Key(parent, key) => {
            let mut text = dotted(parent);
            text.push('.');
            text.push_str(key);
            text
        }
        Path::Index(parent, index) => {
            let mut text = dotted(parent);
            // Writing to a string cannot fail.
            let _ = write!(text, ".{index}");
            text
        }
    }
}

/// The place in the history; what is about the whole comes after it.
fn first_index(path: &Path<'_>) -> usize {
    match path {
        Path::Root => usize::MAX,
        Path::Key(parent, _) => first_index(parent),
        Path::Index(parent, index) => match first_index(parent) {
            usize::MAX => *index,
            outer => outer,
        },
    }
}
