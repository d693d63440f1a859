//! Call ids that fit the slots of a target, the same at both ends of a pair.

use std::collections::HashSet;

use throughline_model::{CallId, Scope};

use super::target::IdRule;

/// The ids that were given out so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    used: HashSet<Box<str>>,
}

impl Ids {
    /// An id for one more call: its own if it fits and is new, else one derived from it. What is
    /// given out depends only on the calls before, so a longer history gives the same.
    pub(super) fn take(&mut self, id: &CallId, rule: IdRule) -> String {
        let mut value = fitting(id.value(), rule);
        let mut occurrence = 1;
        while !self.used.insert(value.as_str().into()) && rule.unique {
            occurrence += 1;
            value = fitting(&format!("{}_{occurrence}", id.value()), rule);
        }
        value
    }
}

/// The value if it fits, else a hash of it.
fn fitting(value: &str, rule: IdRule) -> String {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let fits = value.chars().count() <= rule.longest && (!rule.plain || value.bytes().all(allowed));
    if fits {
        value.to_owned()
    } else {
        CallId::minted(Scope::Response(value), 0).value().to_owned()
    }
}
