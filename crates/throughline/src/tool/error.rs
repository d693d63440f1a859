use std::error::Error;
use std::fmt;

/// Why a tool call failed. The model is shown a general cause, or the whole text if the agent shows
/// tool errors.
pub struct ToolError {
    fault: ToolFault,
    source: Box<dyn Error + Send + Sync>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolFault {
    /// The tool failed.
    Failed,
    /// The arguments are not valid for the tool. The model is always shown the text.
    Arguments,
    /// The tool reports that it was cancelled.
    Cancelled,
    /// The tool failed, and the text is written for the model, which is always shown it.
    Reported,
    /// The call was sent somewhere and got no answer: whether it had an effect is unknown.
    Lost,
}

impl ToolFault {
    /// The stable name, for telemetry and the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Arguments => "arguments",
            Self::Cancelled => "cancelled",
            Self::Reported => "reported",
            Self::Lost => "lost",
        }
    }
}

impl ToolError {
    /// The tool failed.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Failed,
            source: source.into(),
        }
    }

    /// The arguments are not valid; the model is shown the text and can correct its call.
    pub fn arguments(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Arguments,
            source: source.into(),
        }
    }

    /// The tool was cancelled before it had an effect.
    pub fn cancelled(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Cancelled,
            source: source.into(),
        }
    }

    /// The tool failed, and the text is written for the model.
    ///
    /// ```
    /// use throughline::tool::{ToolError, ToolFault};
    ///
    /// let error = ToolError::reported("there is no port called Dovr");
    /// assert_eq!(error.fault(), ToolFault::Reported);
    /// ```
    pub fn reported(text: impl Into<String>) -> Self {
        Self {
            fault: ToolFault::Reported,
            source: text.into().into(),
        }
    }

    /// The call was sent and its result is lost: it may or may not have had an effect.
    pub fn lost(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Lost,
            source: source.into(),
        }
    }

    /// The kind of the failure.
    pub fn fault(&self) -> ToolFault {
        self.fault
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(source: E) -> Self {
        Self::new(source)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)?;
        let mut source = self.source.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("fault", &self.fault)
            .field("source", &self.source)
            .finish()
    }
}
