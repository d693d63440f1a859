use std::fmt;

use throughline_model::Path;
use throughline_model::json::{ObjectWriter, Value};

/// What kind of thing a target could not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossKind {
    /// A vendor's item that no other vendor understands.
    VendorItem,
    /// Vendor members of a content that is otherwise expressed.
    VendorFields,
    /// Reasoning, or its seal or signature.
    Reasoning,
    /// A call or result of a tool that the target's vendor does not run.
    HostedTool,
    /// An image, sound or file in a place where the target takes none.
    Media,
    /// Citations that the target has no form for.
    Citations,
    /// A refusal or an error that becomes plain text.
    Marking,
    /// A request for approval, or its answer.
    Approval,
    /// A result that no call asked for.
    StandaloneResult,
    /// System text where the target has no place for it.
    SystemText,
    /// A role that the target does not have.
    Role,
    /// The failure mark of a tool result.
    Outcome,
    /// Arguments of a call in a form that the target does not take.
    Arguments,
    /// A member of a request body.
    RequestKey,
    /// What a caller set for a model call.
    Setting,
    /// A tool definition that is not a plain function.
    ToolDefinition,
    /// An unpaired surrogate, shown as U+FFFD.
    LoneSurrogate,
    /// A message that holds nothing the target can take.
    EmptyMessage,
}

impl LossKind {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::VendorItem,
        Self::VendorFields,
        Self::Reasoning,
        Self::HostedTool,
        Self::Media,
        Self::Citations,
        Self::Marking,
        Self::Approval,
        Self::StandaloneResult,
        Self::SystemText,
        Self::Role,
        Self::Outcome,
        Self::Arguments,
        Self::RequestKey,
        Self::Setting,
        Self::ToolDefinition,
        Self::LoneSurrogate,
        Self::EmptyMessage,
    ];

    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VendorItem => "vendor_item",
            Self::VendorFields => "vendor_fields",
            Self::Reasoning => "reasoning",
            Self::HostedTool => "hosted_tool",
            Self::Media => "media",
            Self::Citations => "citations",
            Self::Marking => "marking",
            Self::Approval => "approval",
            Self::StandaloneResult => "standalone_result",
            Self::SystemText => "system_text",
            Self::Role => "role",
            Self::Outcome => "outcome",
            Self::Arguments => "arguments",
            Self::RequestKey => "request_key",
            Self::Setting => "setting",
            Self::ToolDefinition => "tool_definition",
            Self::LoneSurrogate => "lone_surrogate",
            Self::EmptyMessage => "empty_message",
        }
    }
}

/// One thing that could not be expressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where it stood: `messages[3].contents[1]`.
    pub path: String,
    /// What kind of thing.
    pub kind: LossKind,
    /// What exactly, in words.
    pub detail: String,
    /// What was sent in its place, as JSON, if something was.
    pub sent: Option<String>,
}

impl Loss {
    /// Read what [`Loss::write_json`] wrote; `None` if it is no loss, or of a kind that a later
    /// version has.
    pub fn read_json(value: &Value<'_>) -> Option<Self> {
        let text = |key: &str| value.get(key)?.as_str();
        let kind = text("kind")?;
        Some(Self {
            path: text("path")?.into_owned(),
            kind: LossKind::ALL
                .into_iter()
                .find(|known| known.as_str() == kind)?,
            detail: text("detail")?.into_owned(),
            sent: value.get("sent").map(|sent| sent.raw().to_owned()),
        })
    }

    /// Append as JSON.
    pub fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object
            .str("path", &self.path)
            .str("kind", self.kind.as_str())
            .str("detail", &self.detail);
        if let Some(sent) = &self.sent {
            object.raw("sent", sent);
        }
        object.end();
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.path, self.detail, self.kind.as_str())
    }
}

/// Gathers losses while something is encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(Vec<Loss>);

impl Losses {
    /// Record a loss at a path.
    pub fn note(&mut self, path: &Path<'_>, kind: LossKind, detail: impl Into<String>) {
        self.0.push(Loss {
            path: path.to_string(),
            kind,
            detail: detail.into(),
            sent: None,
        });
    }

    /// Note one in whose place something else was sent, given as JSON.
    pub fn replaced(
        &mut self,
        path: &Path<'_>,
        kind: LossKind,
        detail: impl Into<String>,
        sent: impl Into<String>,
    ) {
        self.0.push(Loss {
            path: path.to_string(),
            kind,
            detail: detail.into(),
            sent: Some(sent.into()),
        });
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was lost.
    pub fn as_slice(&self) -> &[Loss] {
        &self.0
    }

    /// Give the list away.
    pub fn into_vec(self) -> Vec<Loss> {
        self.0
    }
}
