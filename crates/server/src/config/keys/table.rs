//! The keys themselves.

use super::Key;
use super::ValueType::{Command, List, Map, Number, OneOf, Text, Unread};

const DAY: u64 = 86_400;
const GIB: u64 = 1 << 30;
const MOST_TOKENS: u64 = 1_000_000_000;

/// Values that belong to a feature which this version does not have: key, value, feature.
pub(super) const NOT_BUILT: &[(&str, &str, &str)] = &[
    ("server.auth", "keys", "API keys"),
    (
        "upstream.kind",
        "foundry-classic",
        "a client for Foundry's classic agents",
    ),
    ("upstream.kind", "a2a", "A2A"),
    ("upstream.kind", "copilot-studio", "Copilot Studio"),
];

/// A row is: section, name, type of the value, default; what it does.
macro_rules! keys {
    ($($section:ident $name:literal [$value:expr] = $default:literal: $description:literal
        $(, not built: $feature:literal)?;)*) => {
        /// All keys, in the order of the reference.
        pub const KEYS: &[Key] = &[$(Key {
            section: stringify!($section),
            name: $name,
            value: $value,
            default: $default,
            description: $description,
            not_built: keys!(@feature $($feature)?),
        }),*];
    };
    (@feature) => { None };
    (@feature $feature:literal) => { Some($feature) };
}

keys! {
    server "listen" [Text] = "127.0.0.1:8377":
        "Address and port to listen on; port 0 takes a free one. `localhost` is 127.0.0.1.";
    server "store" [Text] = "sqlite://throughline.db":
        "Where everything is kept: `sqlite://PATH` or `memory:`.";
    server "auth" [OneOf(&["open", "keys"])] = "open":
        "Who may come in. `open` admits every client that can reach the address, and so only works on loopback addresses. `keys` is not built.";
    server "dialect" [OneOf(&["openai", "openresponses"])] = "openai":
        "Whose events and members answers have where the two specifications differ.";
    server "unsupported" [OneOf(&["report", "refuse"])] = "report":
        "What becomes of a request with something that its upstream cannot do: it is carried out without that and the answer names it, or it gets 400.";
    server "runtimes" [OneOf(&["per_core", "shared"])] = "per_core":
        "Which threads serve connections. `per_core`: each connection stays on one thread. `shared`: all threads serve all connections; choose it if a few busy connections keep one thread busy while others are idle.";
    server "locked_status" [OneOf(&["409", "400"])] = "409":
        "The status of the error `conversation_locked`. OpenAI answers 400, which SDKs do not repeat.";
    server "log" [Text] = "info":
        "What is logged: `off`, `error`, `warn`, `info`, `debug`, `trace`, or by module as in `warn,throughline_server=debug`.";
    server "log_format" [OneOf(&["text", "json"])] = "text":
        "How a line of the log looks.";

    upstream "name" [Text] = "":
        "Its name: the model `NAME/MODEL` goes here. By environment it is in the variable's name.";
    upstream "kind" [OneOf(&["openai-responses", "openai-chat", "anthropic", "gemini", "foundry", "demo", "foundry-classic", "a2a", "copilot-studio"])] = "":
        "What it speaks. `foundry-classic`, `a2a` and `copilot-studio` are not built.";
    upstream "base_url" [Text] = "":
        "Its address, if it is not the vendor's own: a proxy, a local server, a test. Needed for `foundry`, where it is the project's endpoint.";
    upstream "api_key_env" [Text] = "":
        "The variable that holds the key. Without it, and without `base_url`, the vendor's usual one: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY`.";
    upstream "token_command" [Command] = "":
        "A program that prints a short-lived token, as text or JSON, in place of a key. It is run without a shell.";
    upstream "models" [List] = "[]":
        "Bare model names that go here, with `*` for anything. A single upstream gets every bare name.";
    upstream "history" [OneOf(&["local", "service"])] = "local":
        "Who keeps conversations: the store, or the vendor where it can (`openai-responses`, `foundry`).";
    upstream "window" [Number(1000, MOST_TOKENS)] = "that of `[compaction]`":
        "Tokens that the windows of its models hold.";

    agent "id" [Text] = "":
        "Its name: it is the model `agent/ID`. By environment it is in the variable's name.";
    agent "model" [Text] = "":
        "The model that it asks, as in a request.";
    agent "instructions" [Text] = "":
        "What it is told before everything else.";
    agent "tools" [List] = "[]":
        "Its tools: `mcp:LABEL` for all tools of `[mcp.LABEL]`.";
    agent "persistence" [OneOf(&["per_run", "per_call"])] = "that of `[history]`":
        "When its history moves: at the end of a run, or after each model call.";
    agent "message_store" [Text] = "":
        "The message store that keeps the histories of its new threads, by the name under which the embedding application registered it. `throughline serve` has none.";

    mcp "url" [Text] = "":
        "The server's address (streamable HTTP). This or `command`.";
    mcp "command" [Command] = "":
        "A program that speaks over its standard input and output. It is run without a shell.";
    mcp "effects" [Map] = "{}":
        "What a lost result of a tool means, by the server's own name of it: `read_only`, `idempotent`, `keyed`, or `once` as for everything that is not named.";
    mcp "approval" [List] = "[]":
        "Tools that need approval for each call, by the server's own names.";

    webhook "name" [Text] = "`url`":
        "Its name: what is still to be delivered is kept under it. By environment it is in the variable's name.";
    webhook "url" [Text] = "":
        "Where events of background responses are posted.";
    webhook "secret_env" [Text] = "":
        "The variable that holds the secret with which they are signed: `whsec_` and base64, or any text.";
    webhook "events" [List] = "[\"response.completed\", \"response.failed\", \"response.incomplete\", \"response.cancelled\"]":
        "Which events are posted.";

    history "persistence" [OneOf(&["per_run", "per_call"])] = "per_run":
        "When history moves, unless an agent or a request says otherwise.";
    history "parity" [OneOf(&["none", "service"])] = "none":
        "Whether results that no model was shown are left out of the history until they are sent, as a vendor would.";
    history "on_interrupt" [OneOf(&["resume", "close", "reject"])] = "resume":
        "What becomes of a run that died: it is finished, closed, or blocks the next one.";
    history "on_open_calls" [OneOf(&["reject", "close"])] = "reject":
        "What new input does while the client owes tool outputs: it is refused, or the calls are closed.";
    history "on_busy" [OneOf(&["reject", "queue", "branch", "interrupt"])] = "reject":
        "What a run does on a busy conversation: it is refused, waits its turn, continues from the old head as a branch, or cancels the run before it. Continuing a response is never busy.";
    history "on_service_id" [OneOf(&["throw", "warn", "clear", "warn+clear"])] = "throw":
        "What to do when a vendor says that it keeps a conversation which is ours to keep: the run fails, it is logged, the thread is handed over, or both.";
    history "on_other_upstream" [OneOf(&["refuse", "hand_over"])] = "refuse":
        "What to do with a request that continues a conversation which the vendor of another upstream keeps: it gets 409 and the ways to go on, or the thread is handed over first.";

    limits "rounds" [Number(1, 10_000)] = "40":
        "Rounds of tool calls in one run.";
    limits "failed_rounds" [Number(1, 10_000)] = "3":
        "Rounds in a row in which a call failed.";
    limits "calls" [Number(1, 1_000_000)] = "":
        "Tool calls in one run.";
    limits "tokens" [Number(1, u64::MAX >> 1)] = "":
        "Tokens of one run, sent and made, as vendors report them.";
    limits "seconds" [Number(1, 30 * DAY)] = "":
        "Time for one run.";
    limits "tool_seconds" [Number(1, DAY)] = "":
        "Time for one tool call.";
    limits "body_bytes" [Number(1024, GIB)] = "50000000":
        "The largest request body, before and after decompression. `memory` may allow less.";
    limits "decoded_ratio" [Number(2, 10_000)] = "100":
        "How many times its own size a compressed body may become, once it is larger than 1 MiB.";
    limits "json_depth" [Number(4, 64)] = "64":
        "How deep JSON in a request may be nested.";
    limits "header_seconds" [Number(1, 3_600)] = "60":
        "How long a client may take to send the head of a request, and so how long an idle connection is kept.";
    limits "body_seconds" [Number(1, 3_600)] = "60":
        "How long a client may take to send a body.";
    limits "connections" [Number(1, 1_000_000)] = "4096":
        "Open connections. For one more, the longest idle one is closed; if none is idle, it gets 503.";
    limits "streams" [Number(1, 1_000_000)] = "2048":
        "Open event streams. One more gets 503.";
    limits "keep_alive_seconds" [Number(1, 3_600)] = "15":
        "How long an event stream may be silent before it gets a comment.";
    limits "memory" [Number(268_435_456, 1_099_511_627_776)] = "536870912":
        "Bytes of memory that the server may take, about. What goes beyond it is refused with 503.";
    limits "history_bytes" [Number(0, GIB)] = "67108864":
        "How much of `memory` is for histories that are kept between turns; others are read again.";
    limits "answer_bytes" [Number(1_024, 1_073_741_824)] = "16777216":
        "The largest answer of an upstream: its texts, arguments and results, not the events around them.";
    limits "stall_seconds" [Number(1, 3_600)] = "60":
        "How long a client may leave an answer unread before its connection is closed. A stored response can be read again.";
    limits "socket_seconds" [Number(1, 30 * DAY)] = "3600":
        "How long a WebSocket may be open. A response that is being sent then is finished.";
    limits "drain_seconds" [Number(0, 20)] = "20":
        "How long requests may go on after the server was told to stop. Everything is over within 25 seconds.";

    compaction "when" [OneOf(&["asked", "always"])] = "asked":
        "Which requests are compacted: those that ask for it, or all that do not refuse it.";
    compaction "recent_calls_to_keep" [Number(0, 10_000)] = "6":
        "Tool calls that a model is always shown in full: the newest, in whole rounds, until there are so many.";
    compaction "truncation_threshold" [Number(0, MOST_TOKENS)] = "10000":
        "Tokens of tool history above which it is compacted. With a budget or a window it is a floor: nothing is done for less, unless it would not fit.";
    compaction "budget" [Number(1000, MOST_TOKENS)] = "":
        "Tokens that a model is sent at most, instructions and tools included, wherever compaction is on.";
    compaction "window" [Number(1000, MOST_TOKENS)] = "128000":
        "Tokens that a model's window holds, for upstreams that say nothing else.";
    compaction "narrative_tokens" [Number(100, 100_000)] = "":
        "Tokens that the model may write beside the digests after each compaction: what was decided and why. It costs a model call, for which no request waits. What the record does not bear out is left out; the rest is shown from the next compaction on. Without this key no model is asked.";
    compaction "strategy" [OneOf(&["auto", "native", "text"])] = "auto":
        "How earlier tool calls and their results are shown to vendors. `native`: as the vendor's own items. `text`: results as text of the user, calls not at all. `auto`: native, and for a day text to an upstream and model that refused the items and took the text; one request is sent twice for that. What a vendor keeps itself (`history = \"service\"`) is always gone on with in its own items.";
    compaction "text_before" [Text] = "[Result of {tool}]":
        "What stands before a result that is shown as text. `{tool}` is the tool and what it was given. Nothing that looks like a call is taken: models imitate it.";
    compaction "text_after" [Text] = "[End of result]":
        "What stands after it; empty for nothing.";
    compaction "experimental.native_tool_history" [OneOf(&["true", "false"])] = "":
        "Deprecated, write `strategy`. `false` is `text`, `true` is `auto`; a `strategy` that says otherwise is refused. Goes once native is safe everywhere.";

    record "stateless" [OneOf(&["true", "false"])] = "false":
        "Whether requests of `/v1/chat/completions` and `/v1/messages`, which carry their whole conversation, are recorded as threads.";
    record "on_failure" [OneOf(&["ignore", "error"])] = "ignore":
        "What becomes of a request that cannot be recorded. `ignore`: it is answered, and the failure is logged and counted. `error`: it fails.";

    retention "*" [Unread] = "":
        "Not built.", not built: "retention";

    cors "*" [Unread] = "":
        "Not built.", not built: "cors";

    recall "*" [Unread] = "":
        "Not built.", not built: "recall";
}
