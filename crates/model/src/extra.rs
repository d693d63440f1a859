use crate::json::RawJson;

/// Members of a stored object that this version does not know. They survive re-serialisation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Extra(Option<RawJson>);

impl Extra {
    /// No unknown members.
    pub const NONE: Self = Self(None);

    pub(crate) fn of(object: Option<RawJson>) -> Self {
        Self(object)
    }

    /// The unknown members as a JSON object; `None` if there are none.
    pub fn as_json(&self) -> Option<&RawJson> {
        self.0.as_ref()
    }

    /// Whether there is nothing unknown.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
