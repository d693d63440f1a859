//! Which result answers which call, where the wire has no ids.

use throughline_model::{CallId, Family, Role, Scope};

use crate::flat::STANDALONE;

/// Counts the calls and results of one scope: a response, or one content of an array.
#[derive(Debug, Default)]
pub(super) struct Ordinals {
    calls: usize,
    results: usize,
}

impl Ordinals {
    /// The id of the next call.
    pub(super) fn call(&mut self, given: Option<CallId>, scope: Scope<'_>) -> CallId {
        let ordinal = self.calls;
        self.calls += 1;
        given.unwrap_or_else(|| CallId::minted(scope, ordinal))
    }

    /// A handle for a result that nothing asked for.
    pub(super) fn standalone(&mut self, scope: Scope<'_>) -> CallId {
        let ordinal = STANDALONE + self.results;
        self.results += 1;
        CallId::minted(scope, ordinal)
    }
}

/// The calls that wait for a result, in order.
///
/// A result with an id answers the call of that id. Without one it answers by place: function
/// responses the functions of the nearest content before that calls any; code results and tool
/// responses what came before them in the same content, or else in the contents of the model right
/// before it, in case one was split. Of several the first that waits under the same name
/// is taken, since order and name agree unless the results were sorted; if no name fits, the
/// first that waits at all.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    calls: Vec<Call>,
    /// The number of the content that is being read.
    content: usize,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    family: Family,
    name: String,
    content: usize,
}

impl PendingCalls {
    /// A content of this role begins.
    pub(super) fn begin_content(&mut self, role: &Role) {
        self.content += 1;
        if *role != Role::Assistant {
            // The service waits for its own tools within a turn of the model only.
            self.calls.retain(|call| call.family == Family::FUNCTION);
        }
    }

    /// A call was made.
    pub(super) fn push(&mut self, id: CallId, family: &Family, name: &str) {
        if *family == Family::FUNCTION {
            // A call before this one that has no answer by now stays unanswered.
            let content = self.content;
            self.calls
                .retain(|call| call.family != Family::FUNCTION || call.content == content);
        }
        self.calls.push(Call {
            id,
            family: family.clone(),
            name: name.to_owned(),
            content: self.content,
        });
    }

    /// The call of this id has its result.
    pub(super) fn answered(&mut self, id: &CallId) {
        let place = self
            .calls
            .iter()
            .position(|call| call.id.value() == id.value());
        if let Some(place) = place {
            self.calls.remove(place);
        }
    }

    /// The call that a result without an id answers.
    pub(super) fn claim(&mut self, family: &Family, name: &str) -> Option<CallId> {
        let of_family = |call: &Call| call.family == *family;
        let here = |call: &Call| of_family(call) && call.content == self.content;
        let named = |call: &Call| call.name == name;
        let first = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().position(wanted);
        let place = first(&|call| here(call) && named(call))
            .or_else(|| first(&here))
            .or_else(|| first(&|call| of_family(call) && named(call)))
            .or_else(|| first(&of_family))?;
        Some(self.calls.remove(place).id)
    }
}
