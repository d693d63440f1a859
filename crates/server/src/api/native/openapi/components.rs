//! Schemas that several operations share. Closed sets of words come from the types that have them.

use throughline::client::BreakerState;
use throughline_store::{ApprovalState, CallState, Effect, MovedBy, RunKind, RunState};

use super::schema::{
    Schema, answer, any, flag, free_object, integer, list, named, pattern, text, text_of, word,
};
use crate::api::native::forms::{event, record};
use crate::config::{HistoryLocation, Kind};

/// What every error is.
pub(in crate::api::native) const ERROR: &str = "Error";

/// All schemas with their names.
pub(super) fn all() -> Vec<(&'static str, Schema)> {
    NAMES
        .iter()
        .filter_map(|name| Some((*name, schema(name)?)))
        .collect()
}

const NAMES: [&str; 20] = [
    ERROR,
    "Alias",
    "Approval",
    "Entry",
    "Event",
    "Execution",
    "Journal",
    "Loss",
    "Message",
    "Owner",
    "Report",
    "Run",
    "Service",
    "ShownThread",
    "Status",
    "Step",
    "Thread",
    "Tip",
    "TreeNode",
    "VendorCopy",
];

/// The schema with a name.
pub(super) fn schema(name: &str) -> Option<Schema> {
    Some(match name {
        ERROR => error(),
        "Alias" => answer().with("kind", text()).with("name", text()),
        "Approval" => approval(),
        "Entry" => entry(),
        "Event" => run_event(),
        "Execution" => execution(),
        "Journal" => journal(),
        "Loss" => loss(),
        "Message" => message(),
        "Owner" => owner(),
        "Report" => report(),
        "Run" => run(),
        "Service" => service(),
        "ShownThread" => shown_thread(),
        "Status" => status(),
        "Step" => step(),
        "Thread" => thread(),
        "Tip" => tip(),
        "TreeNode" => tree_node(),
        "VendorCopy" => vendor_copy(),
        _ => return None,
    })
}

/// The schema of a parameter of a path.
pub(super) fn path_parameter(name: &str) -> Schema {
    match name {
        "thread" => text_of(1, 512).about(
            "A thread: its id, an alias as KIND:NAME, or where that makes sense a run (run_…, \
             resp_…) or a node (node_…), which mean the branch that ends there.",
        ),
        "run" => run_id().about("A run: run_…, or resp_… as the Responses API names it."),
        "approval" => pattern("^appr_[0-9a-f]{32}$"),
        "number" => super::schema::integer_of(1, super::LARGEST)
            .about("The number of a message, as digests and views name it."),
        _ => text(),
    }
}

fn error() -> Schema {
    let inner = free_object()
        .with("message", text())
        .with("type", text())
        .with("param", text().nullable())
        .with("code", text().nullable());
    answer().with("error", inner)
}

fn run_id() -> Schema {
    pattern("^(run|resp)_[0-9a-f]{32}$")
}

fn node_id() -> Schema {
    pattern("^node_[0-9a-f]{32}_[0-9]+$")
}

fn millis() -> Schema {
    integer().about("Milliseconds since 1970.")
}

fn thread() -> Schema {
    answer()
        .with("id", text_of(1, 128))
        .with("title", text().nullable())
        .with("aliases", list(named("Alias")))
        .with(
            "meta",
            free_object().nullable().about("Data of the application."),
        )
        .with("settings", free_object().nullable())
        .with(
            "moved_by",
            word([MovedBy::AnyRun, MovedBy::LeasedRuns].map(record::moved_by)),
        )
        .with(
            "keep",
            integer()
                .nullable()
                .about("Milliseconds that it is kept after its head last moved."),
        )
        .with("head", named("Tip").nullable())
        .with("tokens", integer())
        .with("version", integer())
        .with("created", millis())
        .with("touched", millis())
}

fn tip() -> Schema {
    answer()
        .with("node", node_id())
        .with("last", integer())
        .with("tokens", integer())
        .with("open", flag().about("Calls of it wait for their results."))
        .with(
            "unsent",
            flag().about("It has results that no model was sent."),
        )
}

fn message() -> Schema {
    free_object()
        .about("A message in the neutral form. `contents` says what is in it, by `kind`.")
        .with("v", integer())
        .with("role", text())
        .with("contents", list(free_object()))
        .maybe("id", text())
        .maybe("source", text())
        .maybe("created", millis())
}

fn entry() -> Schema {
    let redacted = answer().with("by", text()).with("at", millis());
    answer()
        .with("first", integer().nullable())
        .with("last", integer().nullable())
        .with("run", run_id())
        .with("no", integer())
        .with("tokens", integer())
        .with("redacted", redacted.nullable())
        .with("message", named("Message"))
}

fn tree_node() -> Schema {
    answer()
        .with("node", node_id())
        .with("parent", node_id().nullable())
        .with("first", integer())
        .with("last", integer())
        .with("first_item", integer())
        .with("run", run_id())
        .with("response", run_id())
        .with("messages", integer())
        .with("open", flag())
        .with("head", flag())
        .with("created", millis())
}

fn run() -> Schema {
    answer()
        .with("id", run_id())
        .with("thread", text())
        .with(
            "kind",
            word([RunKind::Turn, RunKind::Append].map(record::run_kind)),
        )
        .with("mode", word(["per_run", "per_call"]))
        .with("state", word(RunState::ALL.map(RunState::as_str)))
        .with("leased", flag())
        .with("epoch", integer())
        .with("attempt", integer())
        .with("base", node_id().nullable())
        .with("published", node_id().nullable())
        .with("cancelling", flag())
        .with("created", millis())
        .with("progress", millis())
        .with("key", text().nullable())
        .with("note", free_object().nullable())
}

fn step() -> Schema {
    answer()
        .with("no", integer())
        .with("first", integer())
        .with("items", integer())
        .with("node", node_id().nullable())
        .with("note", free_object().nullable())
}

fn execution() -> Schema {
    answer()
        .with("step", integer())
        .with("position", integer())
        .with("call", text())
        .with("tool", text())
        .with("effect", word(Effect::ALL.map(Effect::as_str)))
        .with("state", word(CallState::ALL.map(CallState::as_str)))
        .with("key", text())
        .with("result", integer())
        .with("approval", text().nullable())
        .with("taken_by", run_id().nullable())
}

fn journal() -> Schema {
    answer()
        .with("run", named("Run"))
        .with("request", free_object().nullable())
        .with("inputs", integer())
        .with("entries", list(named("Entry")))
        .with("steps", list(named("Step")))
        .with("calls", list(named("Execution")))
        .with("unsent", list(named("Entry")))
}

fn run_event() -> Schema {
    let at = answer()
        .with("choice", integer())
        .with("item", integer())
        .with("part", integer());
    answer()
        .about("What stands beside `no` and `type` depends on the type.")
        .with("no", integer())
        .with("type", word(event::TYPES))
        .maybe("run", run_id())
        .maybe("thread", text())
        .maybe("step", integer())
        .maybe("position", integer())
        .maybe("at", at)
        .maybe("part", integer())
        .maybe("delta", text())
        .maybe("content", free_object())
        .maybe("call", text())
        .maybe("tool", text())
        .maybe("result", free_object())
        .maybe("message", named("Message"))
        .maybe("report", named("Report"))
        .maybe("narrated", free_object())
        .maybe("stop", text())
}

fn approval() -> Schema {
    let answered = answer().with("by", text()).with("at", millis());
    answer()
        .with("id", pattern("^appr_[0-9a-f]{32}$"))
        .with("thread", text())
        .with("run", run_id())
        .with("step", integer())
        .with("position", integer())
        .with("state", word(ApprovalState::ALL.map(ApprovalState::as_str)))
        .with("tool", any())
        .with("call", any())
        .with("arguments", any())
        .with("vendor", flag())
        .with("digest", pattern("^[0-9a-f]{32}$"))
        .with("created", millis())
        .with("expires", millis().nullable())
        .with("answered", answered.nullable())
        .with("reason", text().nullable())
        .with("detail", free_object().nullable())
}

fn owner() -> Schema {
    answer()
        .with("kind", word(["local", "service", "external"]))
        .maybe("upstreams", list(text()))
        .maybe("store", text())
        .maybe("key", any())
}

fn service() -> Schema {
    answer()
        .with("upstream", text())
        .with("agent", text())
        .with("id", text())
}

fn vendor_copy() -> Schema {
    let outcomes = [
        "remains",
        "inherited",
        "deleted",
        "absent",
        "unsupported",
        "failed",
    ];
    answer()
        .with("upstream", text())
        .with("agent", text())
        .with("id", text())
        .with("outcome", word(outcomes))
        .with("reason", text().nullable())
}

fn shown_thread() -> Schema {
    thread()
        .about("A thread: its own members, what is known of it, and messages of its branch.")
        .with("object", word(["thread"]))
        .with("thread", named("Thread"))
        .with("tip", named("Tip").nullable())
        .with("messages", list(named("Entry")))
        .with("more", flag())
        .with("unsent", list(named("Entry")))
        .with("state", free_object())
        .with("unsettled", named("Run").nullable())
        .with("queued", integer())
        .with("owner", named("Owner"))
        .with("services", list(named("Service")))
        .with("vendor_copies", list(named("VendorCopy")))
}

fn report() -> Schema {
    let unreachable = answer().with("need", integer()).with("budget", integer());
    answer()
        .about("What a compaction did, and why.")
        .with("summary", text())
        .maybe("trigger", text())
        .maybe("stayed", text())
        .with("epoch", integer())
        .with("major", flag())
        .with("groups_digested", integer())
        .with("calls_digested", integer())
        .with("results_shortened", integer())
        .with("tokens_before", integer())
        .with("tokens_after", integer())
        .with("kept", free_object())
        .maybe("budget_unreachable", unreachable)
        .maybe("narrative", free_object())
}

fn loss() -> Schema {
    answer()
        .with("path", text())
        .with("kind", text())
        .with("detail", text())
        .maybe("sent", any())
}

fn status() -> Schema {
    let setting = answer()
        .with("name", text())
        .with("value", text())
        .with("right", flag());
    let store = answer()
        .with("engine", text())
        .with("durability", word(["durable", "relaxed", "memory"]))
        .with("schema", integer())
        .with("settings", list(setting));
    let states = [
        BreakerState::Closed,
        BreakerState::Open,
        BreakerState::HalfOpen,
    ];
    let upstream = answer()
        .with("name", text())
        .with("kind", word(Kind::ALL.map(Kind::as_str)))
        .with(
            "history",
            word([HistoryLocation::Local, HistoryLocation::Service].map(HistoryLocation::as_str)),
        )
        .with("models", list(text()))
        .with(
            "breaker",
            word(states.map(BreakerState::as_str))
                .about(
                    "The state of the circuit breaker, of the worst model if it has several. `open`: the server refuses calls to this upstream until a pause is over.",
                ),
        );
    let in_flight = answer()
        .with("here", integer().about("Runs that this process works on."))
        .with(
            "running",
            integer().about("Of the tenant, in any process, up to 1,000."),
        )
        .with("parked", integer())
        .with("interrupted", integer());
    let rates = answer()
        .about("What this process did in the last whole minute.")
        .with("requests", integer())
        .with("server_errors", integer())
        .with("runs", integer());
    answer()
        .with("status", word(["ok", "stopping"]))
        .with("version", text())
        .with("started", integer().about("Seconds since 1970."))
        .with("store", store)
        .with("upstreams", list(upstream))
        .with("runs", in_flight)
        .with("rates", rates)
        .with("requests_at_work", integer())
        .with("connections", integer())
}
