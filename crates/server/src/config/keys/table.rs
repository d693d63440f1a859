//! The keys themselves.

use super::Takes::{Anything, Command, List, Map, Number, Text, Words};
use super::{Key, Section};

const DAY: u64 = 86_400;
const GIB: u64 = 1 << 30;
const MOST_TOKENS: u64 = 1_000_000_000;

/// A row is: section, name, what the key takes, its default; what it does; a sample value and the
/// effect of that.
macro_rules! keys {
    ($($section:ident $name:literal [$takes:expr] = $default:literal: $about:literal;
        $sample:literal => $seen:literal $(, not built: $feature:literal)?;)*) => {
        /// All keys, in the order of the reference.
        pub const KEYS: &[Key] = &[$(Key {
            section: Section::$section,
            name: $name,
            takes: $takes,
            default: $default,
            about: $about,
            sample: $sample,
            seen: $seen,
            unbuilt: keys!(@feature $($feature)?),
        }),*];
    };
    (@feature) => { None };
    (@feature $feature:literal) => { Some($feature) };
}

keys! {
    Server "listen" [Text] = "127.0.0.1:8377":
        "Address and port to listen on; port 0 takes a free one. `localhost` is 127.0.0.1.";
        "\"127.0.0.1:0\"" => "the bound address";
    Server "store" [Text] = "sqlite://throughline.db":
        "Where everything is kept: `sqlite://PATH` or `memory:`.";
        "\"memory:\"" => "`/healthz` names another engine";
    Server "auth" [Words(&["open", "keys"])] = "open":
        "Who may come in. `open` lets in everybody who can reach the address, and so only works on loopback addresses. `keys` is not built.";
        "\"keys\"" => "refuses to start";
    Server "dialect" [Words(&["openai", "openresponses"])] = "openai":
        "Whose events and members answers have where the two specifications differ.";
        "\"openresponses\"" => "no `throughline` member in responses";
    Server "unsupported" [Words(&["report", "refuse"])] = "report":
        "What becomes of a request with something that its upstream cannot do: it is carried out without that and the answer names it, or it gets 400.";
        "\"refuse\"" => "a request with `temperature` to a model that has none gets 400";
    Server "runtimes" [Words(&["per_core", "shared"])] = "per_core":
        "Which threads serve connections. `per_core`: each connection stays on one thread. `shared`: all threads serve all connections; choose it if a few busy connections keep one thread busy while others are idle.";
        "\"shared\"" => "no threads named `connections` are started";
    Server "locked_status" [Words(&["409", "400"])] = "409":
        "The status for a conversation that is busy. 400 is not built: there are no conversations.";
        "400" => "refuses to start";
    Server "log" [Text] = "info":
        "What is logged: `off`, `error`, `warn`, `info`, `debug`, `trace`, or by module as in `warn,throughline_server=debug`.";
        "\"off\"" => "no line for a request";
    Server "log_format" [Words(&["text", "json"])] = "text":
        "How a line of the log looks.";
        "\"json\"" => "lines are JSON objects";

    Upstream "name" [Text] = "":
        "Its name: the model `NAME/MODEL` goes here. By environment it is in the variable's name.";
        "\"other\"" => "`other/x` goes there";
    Upstream "kind" [Words(&["openai-responses", "openai-chat", "anthropic", "gemini", "foundry", "foundry-classic", "a2a", "copilot-studio", "demo"])] = "":
        "What it speaks. `foundry-classic`, `a2a` and `copilot-studio` are not built.";
        "\"anthropic\"" => "requests have another format";
    Upstream "base_url" [Text] = "":
        "Its address, if it is not the vendor's own: a proxy, a local server, a test. Needed for `foundry`, where it is the project's endpoint.";
        "\"http://127.0.0.1:9/v2\"" => "requests go there";
    Upstream "api_key_env" [Text] = "":
        "The variable that holds the key. Without it, and without `base_url`, the vendor's usual one: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY`.";
        "\"SAMPLE_KEY\"" => "requests are signed with it";
    Upstream "token_command" [Command] = "":
        "A program that prints a short-lived token, as text or JSON, in place of a key. It is run without a shell.";
        "[\"print-token\"]" => "requests are signed with what it prints";
    Upstream "models" [List] = "[]":
        "Bare model names that go here, with `*` for anything. A single upstream gets every bare name.";
        "[\"sample-*\"]" => "`sample-1` goes there";
    Upstream "history" [Words(&["local", "service"])] = "local":
        "Who keeps conversations: the store, or the vendor where it can (`openai-responses`, `foundry`).";
        "\"service\"" => "requests name what the vendor keeps";
    Upstream "window" [Number(1000, MOST_TOKENS)] = "that of `[compaction]`":
        "Tokens that the windows of its models hold.";
        "32000" => "`truncation: \"auto\"` keeps to it";

    Agent "id" [Text] = "":
        "Its name: it is the model `agent/ID`. By environment it is in the variable's name.";
        "\"other\"" => "`/v1/models` lists `agent/other`";
    Agent "model" [Text] = "":
        "The model that it asks, as in a request.";
        "\"demo/two\"" => "another model is asked";
    Agent "instructions" [Text] = "":
        "What it is told before everything else.";
        "\"Be brief.\"" => "the model is told so";
    Agent "tools" [List] = "[]":
        "Its tools: `mcp:LABEL` for all tools of `[mcp.LABEL]`.";
        "[\"mcp:sample\"]" => "the model is offered them";
    Agent "persistence" [Words(&["per_run", "per_call"])] = "that of `[history]`":
        "When its history moves: at the end of a run, or after each model call.";
        "\"per_call\"" => "history moves after each model call";

    Mcp "url" [Text] = "":
        "The server's address (streamable HTTP). This or `command`.";
        "\"http://127.0.0.1:9/other\"" => "it is connected there";
    Mcp "command" [Command] = "":
        "A program that speaks over its standard input and output. It is run without a shell.";
        "[\"orders-server\"]" => "it is started";
    Mcp "effects" [Map] = "{}":
        "What a lost result of a tool means, by the server's own name of it: `read_only`, `idempotent`, `keyed`, or `once` as for everything that is not named.";
        "{ get_order = \"read_only\" }" => "the tool may run again after a crash";
    Mcp "approval" [List] = "[]":
        "Tools that need approval for each call, by the server's own names.";
        "[\"place_order\"]" => "calls wait for approval";

    History "persistence" [Words(&["per_run", "per_call"])] = "per_run":
        "When history moves, unless an agent or a request says otherwise.";
        "\"per_call\"" => "history moves after each model call";
    History "parity" [Words(&["none", "service"])] = "none":
        "Whether results that no model was shown are left out of the history until they are sent, as a vendor would.";
        "\"service\"" => "trailing results are not in the history";
    History "on_interrupt" [Words(&["resume", "close", "reject"])] = "resume":
        "What becomes of a run that died: it is finished, closed, or blocks the next one.";
        "\"close\"" => "an orphaned run is closed";
    History "on_open_calls" [Words(&["reject", "close"])] = "reject":
        "What new input does while the client owes tool outputs: it is refused, or the calls are closed.";
        "\"close\"" => "such input is accepted";
    History "on_busy" [Words(&["reject", "queue", "branch", "interrupt"])] = "reject":
        "What a run does on a busy conversation. All but `reject` are not built: there are no conversations, and continuing a response is never busy.";
        "\"queue\"" => "refuses to start";
    History "on_service_id" [Words(&["throw", "warn", "clear", "warn+clear"])] = "throw":
        "What to do when a vendor says that it keeps a conversation which is ours to keep: the run fails, it is logged, the thread is handed over, or both.";
        "\"warn\"" => "the run goes on";

    Limits "rounds" [Number(1, 10_000)] = "40":
        "Rounds of tool calls in one run.";
        "2" => "a run ends with `round_limit`";
    Limits "failed_rounds" [Number(1, 10_000)] = "3":
        "Rounds in a row in which a call failed.";
        "1" => "a run ends with `error_limit`";
    Limits "calls" [Number(1, 1_000_000)] = "":
        "Tool calls in one run.";
        "5" => "a run ends with its budget";
    Limits "tokens" [Number(1, u64::MAX >> 1)] = "":
        "Tokens of one run, sent and made, as vendors report them.";
        "1000" => "a run ends with its budget";
    Limits "seconds" [Number(1, 30 * DAY)] = "":
        "Time for one run.";
        "60" => "a run ends with its budget";
    Limits "tool_seconds" [Number(1, DAY)] = "":
        "Time for one tool call.";
        "10" => "a slow tool is given up";
    Limits "body_bytes" [Number(1024, GIB)] = "50000000":
        "The largest request body, before and after decompression. `memory` may allow less.";
        "2048" => "a larger body gets 413";
    Limits "decoded_ratio" [Number(2, 10_000)] = "100":
        "How many times its own size a compressed body may become, once it is larger than 1 MiB.";
        "10" => "a body that grows more gets 413";
    Limits "json_depth" [Number(4, 64)] = "64":
        "How deep JSON in a request may be nested.";
        "8" => "a deeper body gets 400";
    Limits "header_seconds" [Number(1, 3_600)] = "60":
        "How long a client may take to send the head of a request, and so how long an idle connection is kept.";
        "1" => "an idle connection is closed sooner";
    Limits "body_seconds" [Number(1, 3_600)] = "60":
        "How long a client may take to send a body.";
        "1" => "a slower body gets 408";
    Limits "connections" [Number(1, 1_000_000)] = "4096":
        "Open connections. For one more, the longest idle one is closed; if none is idle, it gets 503.";
        "1" => "a second connection closes an idle first one, or gets 503";
    Limits "streams" [Number(1, 1_000_000)] = "2048":
        "Open event streams. One more gets 503.";
        "1" => "a second stream gets 503";
    Limits "keep_alive_seconds" [Number(1, 3_600)] = "15":
        "How long an event stream may be silent before it gets a comment.";
        "1" => "comments come sooner";
    Limits "memory" [Number(268_435_456, 1_099_511_627_776)] = "536870912":
        "Bytes of memory that the server may take, about. What goes beyond it is refused with 503.";
        "268435456" => "large requests are refused sooner";
    Limits "history_bytes" [Number(0, GIB)] = "67108864":
        "How much of `memory` is for histories that are kept between turns; others are read again.";
        "0" => "every history is read again";
    Limits "answer_bytes" [Number(1_024, 1_073_741_824)] = "16777216":
        "The largest answer of an upstream: its texts, arguments and results, not the events around them.";
        "1024" => "a longer answer fails";
    Limits "stall_seconds" [Number(1, 3_600)] = "60":
        "How long a client may leave an answer unread before its connection is closed. A stored response can be read again.";
        "1" => "a client that does not read is closed sooner";
    Limits "drain_seconds" [Number(0, 20)] = "20":
        "How long requests may go on after the server was told to stop. Everything is over within 25 seconds.";
        "0" => "requests are cut at once";

    Compaction "when" [Words(&["asked", "always"])] = "asked":
        "Which requests are compacted: those that ask for it, or all that do not refuse it.";
        "\"always\"" => "a request that says nothing is compacted";
    Compaction "recent_calls_to_keep" [Number(0, 10_000)] = "6":
        "Tool calls that a model is always shown in full: the newest, in whole rounds, until there are so many.";
        "2" => "fewer calls stay in full";
    Compaction "truncation_threshold" [Number(0, MOST_TOKENS)] = "10000":
        "Tokens of tool history above which it is compacted. With a budget or a window it is a floor: nothing is done for less, unless it would not fit.";
        "2000" => "shorter histories are compacted";
    Compaction "budget" [Number(1000, MOST_TOKENS)] = "":
        "Tokens that a model is sent at most, instructions and tools included, wherever compaction is on.";
        "16000" => "requests to vendors stay below it";
    Compaction "window" [Number(1000, MOST_TOKENS)] = "128000":
        "Tokens that a model's window holds, for upstreams that say nothing else.";
        "32000" => "`truncation: \"auto\"` keeps to it";
    Compaction "narrative_tokens" [Number(100, 100_000)] = "":
        "Tokens that the model may write beside the digests after each compaction: what was decided and why. It costs a model call, for which no request waits. What the record does not bear out is left out; the rest is shown from the next compaction on. Without this key no model is asked.";
        "400" => "the model is asked for a summary after a compaction";
    Compaction "strategy" [Words(&["auto", "native", "text"])] = "auto":
        "How earlier tool calls and their results are shown to vendors. `native`: as the vendor's own items. `text`: results as text of the user, calls not at all. `auto`: native, and for a day text to an upstream and model that refused the items and took the text; one request is sent twice for that. What a vendor keeps itself (`history = \"service\"`) is always gone on with in its own items.";
        "\"text\"" => "upstreams get results as text";
    Compaction "text_before" [Text] = "[Result of {tool}]":
        "What stands before a result that is shown as text. `{tool}` is the tool and what it was given. Nothing that looks like a call is taken: models imitate it.";
        "\"({tool} said)\"" => "upstreams that get text get this";
    Compaction "text_after" [Text] = "[End of result]":
        "What stands after it; empty for nothing.";
        "\"(over)\"" => "upstreams that get text get this";
    Compaction "experimental.native_tool_history" [Words(&["true", "false"])] = "":
        "Deprecated, write `strategy`. `false` is `text`, `true` is `auto`; a `strategy` that says otherwise is refused. Goes once native is safe everywhere.";
        "false" => "upstreams get results as text";

    Retention "*" [Anything] = "":
        "Not built.";
        "30" => "refuses to start", not built: "retention";

    Cors "*" [Anything] = "":
        "Not built.";
        "[\"*\"]" => "refuses to start", not built: "cors";

    Recall "*" [Anything] = "":
        "Not built.";
        "true" => "refuses to start", not built: "recall";
}
