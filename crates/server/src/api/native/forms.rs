//! The JSON forms of the native API. They are stable: members are added, never changed.

use throughline::agent::{HandedOver, ReadBack, ReadBackOutcome};
use throughline::thread::{CopyOutcome, Owner, VendorCopy};
use throughline_model::json::{ArrayWriter, ObjectWriter, push_string};
use throughline_store::{RunId, ServiceId};

/// Who owns a history: `{"kind": "local"}`, `{"kind": "service", "upstreams": […]}` or
/// `{"kind": "external", "store": …, "key": …}`.
pub fn owner(out: &mut String, owner: &Owner) {
    let mut object = ObjectWriter::new(out);
    object.str("kind", owner.kind());
    match owner {
        Owner::Local => {}
        Owner::Services(services) => {
            let mut list = ArrayWriter::new(object.key("upstreams"));
            for upstream in services.iter() {
                push_string(list.slot(), upstream);
            }
            list.end();
        }
        Owner::External { store, key } => {
            object.str("store", store).raw("key", key.get());
        }
    }
    object.end();
}

/// The ids that services issued for a conversation: `[{"upstream", "agent", "id"}]`.
pub fn services(out: &mut String, services: &[ServiceId]) {
    array(out, services, |object, one| {
        object
            .str("upstream", &one.upstream)
            .str("agent", &one.agent)
            .str("id", &one.id);
    });
}

/// What vendors have of a thread, and what was done about it:
/// `[{"upstream", "agent", "id", "outcome", "reason"}]`.
pub fn vendor_copies(out: &mut String, copies: &[VendorCopy]) {
    array(out, copies, |object, copy| {
        object
            .str("upstream", &copy.upstream)
            .str("agent", &copy.agent)
            .str("id", &copy.id)
            .str("outcome", copy.outcome.as_str());
        match &copy.outcome {
            CopyOutcome::Failed { reason } => object.str("reason", reason),
            CopyOutcome::Remains
            | CopyOutcome::Inherited
            | CopyOutcome::Deleted
            | CopyOutcome::Absent
            | CopyOutcome::Unsupported => object.raw("reason", "null"),
        };
    });
}

/// The members of a thread that was handed over: `from`, `to`, `read_back`, a list of
/// `{"upstream", "id", "outcome", "messages"}`, and `previous_response_id`, from which a chain goes on
/// behind the messages that were added; null if there are none. `head` is the run at the head.
pub fn handed_over(object: &mut ObjectWriter<'_>, handed: &HandedOver, head: Option<RunId>) {
    owner(object.key("from"), &handed.from);
    owner(object.key("to"), &handed.to);
    array(object.key("read_back"), &handed.read_back, read_back);
    match head.filter(|_| has_more(handed)) {
        Some(run) => object.str("previous_response_id", &format!("resp_{}", run.to_hex())),
        None => object.raw("previous_response_id", "null"),
    };
}

/// Whether a service had messages that our record had not.
pub fn has_more(handed: &HandedOver) -> bool {
    let mut read_back = handed.read_back.iter();
    read_back.any(|one| matches!(one.outcome, ReadBackOutcome::Added(_)))
}

fn read_back(object: &mut ObjectWriter<'_>, one: &ReadBack) {
    let added = match one.outcome {
        ReadBackOutcome::Added(added) => added,
        ReadBackOutcome::Same
        | ReadBackOutcome::Differs
        | ReadBackOutcome::NotAsked
        | ReadBackOutcome::Absent => 0,
    };
    object
        .str("upstream", &one.upstream)
        .str("id", &one.id)
        .str("outcome", one.outcome.as_str())
        .number("messages", added as u64);
}

fn array<T>(out: &mut String, values: &[T], write: impl Fn(&mut ObjectWriter<'_>, &T)) {
    let mut array = ArrayWriter::new(out);
    for value in values {
        let mut object = ObjectWriter::new(array.slot());
        write(&mut object, value);
        object.end();
    }
    array.end();
}
