//! The JSON forms of the native API and of the command line's `--json`. They are stable: members are
//! added, never changed.

pub mod approval;
pub mod event;
pub mod record;

use throughline::agent::{HandedOver, ReadBack, ReadBackOutcome};
use throughline::thread::{CopyOutcome, DiscardedRun, Owner, PublishedRun, Redacted, VendorCopy};
use throughline_model::json::{ArrayWriter, ObjectWriter, push_string};
use throughline_store::transfer::Imported;
use throughline_store::{Entry, Opened, RunId, ServiceId};

use record::opt_str;

/// A thread with some of its messages.
pub struct ShownThread<'a> {
    /// What was opened.
    pub opened: &'a Opened,
    /// Messages of its branch.
    pub entries: &'a [Entry],
    /// Whether there are more messages in the direction in which they were read.
    pub more: bool,
    /// Who owns the history.
    pub owner: &'a Owner,
    /// What vendors have of it.
    pub copies: &'a [VendorCopy],
}

impl ShownThread<'_> {
    /// `{"thread","tip","messages","more","unsent","state","unsettled","queued","owner","services",
    /// "vendor_copies"}`
    pub fn to_json(&self) -> String {
        record::object(|object| self.write(object))
    }

    /// The same, with the members of the thread beside `thread`, and `object`.
    pub fn to_flat_json(&self) -> String {
        let mut thread = String::new();
        record::thread(&mut thread, &self.opened.thread);
        record::object(|object| {
            object.members_of(&thread).str("object", "thread");
            self.write(object);
        })
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        let opened = self.opened;
        record::thread(object.key("thread"), &opened.thread);
        record::tip(object.key("tip"), opened.tip.as_ref());
        record::array(object.key("messages"), self.entries, record::entry);
        object.bool("more", self.more);
        record::array(object.key("unsent"), &opened.unsent, record::entry);
        object.raw("state", &opened.state.to_json());
        match &opened.unsettled {
            Some(run) => record::run(object.key("unsettled"), run),
            None => object.key("unsettled").push_str("null"),
        }
        object.number("queued", opened.queued);
        owner(object.key("owner"), self.owner);
        services(object.key("services"), opened.state.services());
        vendor_copies(object.key("vendor_copies"), self.copies);
    }
}

/// The members of a run that was published after it was left.
pub fn published_run(object: &mut ObjectWriter<'_>, done: &PublishedRun) {
    let published = &done.published;
    object
        .str("run", &done.run.to_string())
        .str("thread", done.thread.as_str());
    record::opt_node(object, "node", published.node);
    object
        .number("last", published.last)
        .bool("moved", published.moved)
        .number("version", published.version.0)
        .number("calls_closed", done.calls_closed);
}

/// The members of a run that was discarded.
pub fn discarded_run(object: &mut ObjectWriter<'_>, done: &DiscardedRun) {
    object
        .str("discarded", &done.run.to_string())
        .str("thread", done.thread.as_str());
    record::opt_node(object, "published", done.published);
}

/// The members of a message that was redacted: `redacted`, and `vendor_copies`, which may still hold it.
pub fn redaction(object: &mut ObjectWriter<'_>, redacted: &Redacted) {
    record::redacted(object.key("redacted"), redacted);
    vendor_copies(object.key("vendor_copies"), &redacted.vendor_copies);
}

/// The members of what was imported.
pub fn imported(object: &mut ObjectWriter<'_>, imported: &Imported) {
    object
        .str("thread", imported.thread.as_str())
        .number("nodes", imported.nodes)
        .number("items", imported.items)
        .number("tokens", imported.tokens)
        .number("aliases_left_out", imported.aliases_left_out);
}

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
        let reason = match &copy.outcome {
            CopyOutcome::Failed { reason } => Some(reason.as_str()),
            CopyOutcome::Remains
            | CopyOutcome::Inherited
            | CopyOutcome::Deleted
            | CopyOutcome::Absent
            | CopyOutcome::Unsupported => None,
        };
        opt_str(object, "reason", reason);
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
