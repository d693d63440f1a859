//! What stands around a tool result that is shown as text.

/// What stands before and after a tool result that is shown as text. Models imitate what they read,
/// so nothing that looks like a call is taken.
///
/// ```
/// use throughline_wire::render::Markers;
///
/// let markers = Markers::new("--- {tool} said ---", "--- end ---")?;
/// assert_eq!(markers.before(), "--- {tool} said ---");
/// assert!(Markers::new("<tool_call>{tool}", "").is_err());
/// # Ok::<(), throughline_wire::render::MarkersError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Markers {
    // `before` names the tool, neither looks like a call.
    before: String,
    after: String,
}

/// What cannot stand around a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MarkersError {
    /// The marker before a result does not name the tool.
    #[error("the marker before a result must hold {TOOL} once, where the name of the tool goes")]
    NoTool,
    /// A model could take a marker for the form of a call and imitate it.
    #[error("the marker {marker:?} looks like a tool call, because of {sign:?}")]
    Callable {
        /// The marker that was refused.
        marker: String,
        /// What in it looks like a call.
        sign: &'static str,
    },
    /// A marker is longer than it may be, or not plain text.
    #[error("a marker is plain text of at most {LONGEST} bytes")]
    NotPlain,
}

/// Where the name of the tool goes.
const TOOL: &str = "{tool}";

/// Markers are sent with each result.
const LONGEST: usize = 256;

/// What calls look like to the models that are known to write them as text.
const CALLABLE: &[&str] = &[
    "tool_call",
    "toolcall",
    "tool_use",
    "tooluse",
    "tool_code",
    "function_call",
    "functioncall",
    "<function",
    "<tool",
    "</tool",
    "<invoke",
    "<call",
    "<|",
    "|>",
    "```",
    "{tool}(",
    "{tool}{",
    "{tool} {",
    "\"name\"",
    "\"arguments\"",
    "\"parameters\"",
];

impl Markers {
    /// Markers: `{tool}` in the first stands for the tool and what it was given. An empty `after`
    /// is none.
    pub fn new(before: impl Into<String>, after: impl Into<String>) -> Result<Self, MarkersError> {
        let markers = Self {
            before: before.into(),
            after: after.into(),
        };
        if markers.before.matches(TOOL).count() != 1 {
            return Err(MarkersError::NoTool);
        }
        for marker in [&markers.before, &markers.after] {
            let plain = |c: char| c == '\n' || !c.is_control();
            if marker.len() > LONGEST || !marker.chars().all(plain) {
                return Err(MarkersError::NotPlain);
            }
            let lower = marker.to_ascii_lowercase();
            if let Some(sign) = CALLABLE.iter().find(|sign| lower.contains(**sign)) {
                return Err(MarkersError::Callable {
                    marker: marker.clone(),
                    sign,
                });
            }
        }
        Ok(markers)
    }

    /// What stands before a result.
    pub fn before(&self) -> &str {
        &self.before
    }

    /// What stands after it; empty for nothing.
    pub fn after(&self) -> &str {
        &self.after
    }

    /// A text between the markers.
    pub(super) fn around(&self, tool: &str, text: &str) -> String {
        let mut out = self.before.replace(TOOL, tool);
        for piece in [text, &self.after] {
            if !piece.is_empty() {
                out.push('\n');
                out.push_str(piece);
            }
        }
        out
    }
}

impl Default for Markers {
    /// `[Result of {tool}]` and `[End of result]`.
    fn default() -> Self {
        Self {
            before: format!("[Result of {TOOL}]"),
            after: "[End of result]".to_owned(),
        }
    }
}
