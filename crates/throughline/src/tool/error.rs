use std::error::Error;
use std::fmt;

/// Why a tool call failed. The model reads a general cause, or the whole text where an agent is
/// told to show details.
pub struct ToolError {
    fault: ToolFault,
    source: Box<dyn Error + Send + Sync>,
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolFault {
    /// The tool itself failed.
    Failed,
    /// The arguments are not what it takes. The model always reads why.
    Arguments,
    /// The tool says that it was cancelled.
    Cancelled,
    /// The tool failed and says why in words that are meant for the model, which always reads them.
    Reported,
    /// The call was sent somewhere and no answer came back: whether it was done is not known.
    Lost,
}

impl ToolFault {
    /// The stable name.
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
    /// The tool itself failed.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Failed,
            source: source.into(),
        }
    }

    /// The arguments are not what the tool takes; the model reads the text and can correct itself.
    pub fn arguments(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Arguments,
            source: source.into(),
        }
    }

    /// It was cancelled before it had an effect.
    pub fn cancelled(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Cancelled,
            source: source.into(),
        }
    }

    /// The tool failed, and the text is meant for the model.
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

    /// The call was sent and its result is lost: it may have been done or not.
    pub fn lost(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault: ToolFault::Lost,
            source: source.into(),
        }
    }

    /// What kind of failure.
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
