//! Call ids that fit the id_fields of a target, the same at both ends of a pair.

use std::borrow::Cow;
use std::collections::HashSet;

use throughline_model::{CallId, HeapSize, Scope};

use super::format::IdRule;

/// The ids that were given out so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    used: HashSet<Box<str>>,
}

impl Ids {
    /// An id for one more call: its own if it fits and is new, else one derived from it. What is
    /// given out depends only on the calls before, so a longer history gives the same.
    pub(super) fn take<'i>(&mut self, id: &'i CallId, rule: IdRule) -> Cow<'i, str> {
        let mut value = fitting(Cow::Borrowed(id.value()), rule);
        let mut occurrence = 1;
        while !self.used.insert((&*value).into()) && rule.unique {
            occurrence += 1;
            let next = format!("{}_{occurrence}", id.value());
            value = fitting(Cow::Owned(next), rule);
        }
        value
    }
}

impl HeapSize for Ids {
    fn heap_size(&self) -> usize {
        self.used.heap_size()
    }
}

/// The value if it fits, else a hash of it.
fn fitting(value: Cow<'_, str>, rule: IdRule) -> Cow<'_, str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let fits = value.chars().count() <= rule.longest && (!rule.plain || value.bytes().all(allowed));
    if fits {
        value
    } else {
        let minted = CallId::minted(Scope::Response(&value), 0);
        Cow::Owned(minted.value().to_owned())
    }
}
