use std::fmt;

use throughline_model::json::{ArrayWriter, ObjectWriter, push_string};

/// One reason for a vendor to refuse a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, such as `O-1`; [`rule`](super::rule) describes it.
    pub rule: &'static str,
    /// Where, with the vendor's way to write an index and the keys of the request: `input[3].call_id`,
    /// `messages.3.content.1`. Of a bare array the place is given as if it stood in its body.
    pub path: String,
    /// The ids or tags concerned.
    pub items: Vec<String>,
    /// What is wrong and how to mend it.
    pub message: String,
    /// The vendor's error text, where it is known; `…` stands for a part that varies.
    pub vendor_text: Option<String>,
}

impl Violation {
    /// Append as JSON.
    ///
    /// ```
    /// use throughline_wire::validate::Violation;
    ///
    /// let violation = Violation {
    ///     rule: "O-16",
    ///     path: "input[0]".into(),
    ///     items: vec!["compaction_trigger".into()],
    ///     message: "it must be last".into(),
    ///     vendor_text: None,
    /// };
    /// let mut out = String::new();
    /// violation.write_json(&mut out);
    /// let expected = concat!(
    ///     r#"{"rule":"O-16","path":"input[0]","items":["compaction_trigger"],"#,
    ///     r#""message":"it must be last"}"#,
    /// );
    /// assert_eq!(out, expected);
    /// ```
    pub fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.str("rule", self.rule).str("path", &self.path);
        let mut items = ArrayWriter::new(object.key("items"));
        for item in &self.items {
            push_string(items.slot(), item);
        }
        items.end();
        object.str("message", &self.message);
        if let Some(text) = &self.vendor_text {
            object.str("vendor_text", text);
        }
        object.end();
    }

    /// The same about these ids or tags.
    pub(crate) fn about<S: Into<String>>(
        &mut self,
        items: impl IntoIterator<Item = S>,
    ) -> &mut Self {
        self.items = items.into_iter().map(Into::into).collect();
        self
    }

    /// The same with the vendor's words for this very case.
    pub(crate) fn with_vendor_text(&mut self, text: impl Into<String>) -> &mut Self {
        self.vendor_text = Some(text.into());
        self
    }

    /// The same where the rule's words do not fit the case and the right ones are not known. The
    /// report turns the empty text into none.
    pub(crate) fn without_vendor_text(&mut self) -> &mut Self {
        self.with_vendor_text("")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{} ({})", self.message, self.rule)
    }
}
