//! The keys themselves.

use super::{Key, Section, Takes};

const DAY: u64 = 86_400;
const GIB: u64 = 1 << 30;
const MOST_TOKENS: u64 = 1_000_000_000;

const fn key(
    section: Section,
    name: &'static str,
    takes: Takes,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        section,
        name,
        takes,
        default,
        about,
        sample: "",
        seen: "",
        unbuilt: None,
    }
}

impl Key {
    const fn sample(mut self, sample: &'static str, seen: &'static str) -> Self {
        self.sample = sample;
        self.seen = seen;
        self
    }

    const fn unbuilt(mut self, feature: &'static str) -> Self {
        self.unbuilt = Some(feature);
        self
    }
}

/// All keys, in the order of the reference.
pub const KEYS: &[Key] = &[
    key(
        Section::Server,
        "listen",
        Takes::Text,
        "127.0.0.1:8377",
        "Address and port to listen on; port 0 takes a free one. `localhost` is 127.0.0.1.",
    )
    .sample("\"127.0.0.1:0\"", "the bound address"),
    key(
        Section::Server,
        "store",
        Takes::Text,
        "sqlite://throughline.db",
        "Where everything is kept: `sqlite://PATH` or `memory:`.",
    )
    .sample("\"memory:\"", "`/healthz` names another engine"),
    key(
        Section::Server,
        "auth",
        Takes::Words(&["open", "keys"]),
        "open",
        "Who may come in. `open` lets in everybody who can reach the address, and so only works on loopback addresses. `keys` is not built.",
    )
    .sample("\"keys\"", "refuses to start"),
    key(
        Section::Server,
        "dialect",
        Takes::Words(&["openai", "openresponses"]),
        "openai",
        "Whose events and members answers have where the two specifications differ.",
    )
    .sample("\"openresponses\"", "no `throughline` member in responses"),
    key(
        Section::Server,
        "unsupported",
        Takes::Words(&["report", "refuse"]),
        "report",
        "What becomes of a request with something that its upstream cannot do: it is carried out without that and the answer names it, or it gets 400.",
    )
    .sample("\"refuse\"", "a request with `temperature` to a model that has none gets 400"),
    key(
        Section::Server,
        "locked_status",
        Takes::Words(&["409", "400"]),
        "409",
        "The status for a conversation that is busy. 400 is not built: there are no conversations.",
    )
    .sample("400", "refuses to start"),
    key(
        Section::Server,
        "log",
        Takes::Text,
        "info",
        "What is logged: `off`, `error`, `warn`, `info`, `debug`, `trace`, or by module as in `warn,throughline_server=debug`.",
    )
    .sample("\"off\"", "no line for a request"),
    key(
        Section::Server,
        "log_format",
        Takes::Words(&["text", "json"]),
        "text",
        "How a line of the log looks.",
    )
    .sample("\"json\"", "lines are JSON objects"),
    key(
        Section::Upstream,
        "name",
        Takes::Text,
        "",
        "Its name: the model `NAME/MODEL` goes here. By environment it is in the variable's name.",
    )
    .sample("\"other\"", "`other/x` goes there"),
    key(
        Section::Upstream,
        "kind",
        Takes::Words(&[
            "openai-responses",
            "openai-chat",
            "anthropic",
            "gemini",
            "foundry",
            "foundry-classic",
            "a2a",
            "copilot-studio",
            "demo",
        ]),
        "",
        "What it speaks. `foundry-classic`, `a2a` and `copilot-studio` are not built.",
    )
    .sample("\"anthropic\"", "requests have another format"),
    key(
        Section::Upstream,
        "base_url",
        Takes::Text,
        "",
        "Its address, if it is not the vendor's own: a proxy, a local server, a test. Needed for `foundry`, where it is the project's endpoint.",
    )
    .sample("\"http://127.0.0.1:9/v2\"", "requests go there"),
    key(
        Section::Upstream,
        "api_key_env",
        Takes::Text,
        "",
        "The variable that holds the key. Without it, and without `base_url`, the vendor's usual one: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY`.",
    )
    .sample("\"SAMPLE_KEY\"", "requests are signed with it"),
    key(
        Section::Upstream,
        "token_command",
        Takes::Command,
        "",
        "A program that prints a short-lived token, as text or JSON, in place of a key. It is run without a shell.",
    )
    .sample("[\"print-token\"]", "requests are signed with what it prints"),
    key(
        Section::Upstream,
        "models",
        Takes::List,
        "[]",
        "Bare model names that go here, with `*` for anything. A single upstream gets every bare name.",
    )
    .sample("[\"sample-*\"]", "`sample-1` goes there"),
    key(
        Section::Upstream,
        "history",
        Takes::Words(&["local", "service"]),
        "local",
        "Who keeps conversations: the store, or the vendor where it can (`openai-responses`, `foundry`).",
    )
    .sample("\"service\"", "requests name what the vendor keeps"),
    key(
        Section::Upstream,
        "window",
        Takes::Number(1000, MOST_TOKENS),
        "that of `[compaction]`",
        "Tokens that the windows of its models hold.",
    )
    .sample("32000", "`truncation: \"auto\"` keeps to it"),
    key(
        Section::Agent,
        "id",
        Takes::Text,
        "",
        "Its name: it is the model `agent/ID`. By environment it is in the variable's name.",
    )
    .sample("\"other\"", "`/v1/models` lists `agent/other`"),
    key(
        Section::Agent,
        "model",
        Takes::Text,
        "",
        "The model that it asks, as in a request.",
    )
    .sample("\"demo/two\"", "another model is asked"),
    key(
        Section::Agent,
        "instructions",
        Takes::Text,
        "",
        "What it is told before everything else.",
    )
    .sample("\"Be brief.\"", "the model is told so"),
    key(
        Section::Agent,
        "tools",
        Takes::List,
        "[]",
        "Its tools: `mcp:LABEL` for all tools of `[mcp.LABEL]`.",
    )
    .sample("[\"mcp:sample\"]", "the model is offered them"),
    key(
        Section::Agent,
        "persistence",
        Takes::Words(&["per_run", "per_call"]),
        "that of `[history]`",
        "When its history moves: at the end of a run, or after each model call.",
    )
    .sample("\"per_call\"", "history moves after each model call"),
    key(
        Section::Mcp,
        "url",
        Takes::Text,
        "",
        "The server's address (streamable HTTP). This or `command`.",
    )
    .sample("\"http://127.0.0.1:9/other\"", "it is connected there"),
    key(
        Section::Mcp,
        "command",
        Takes::Command,
        "",
        "A program that speaks over its standard input and output. It is run without a shell.",
    )
    .sample("[\"orders-server\"]", "it is started"),
    key(
        Section::Mcp,
        "effects",
        Takes::Map,
        "{}",
        "What a lost result of a tool means, by the server's own name of it: `read_only`, `idempotent`, `keyed`, or `once` as for everything that is not named.",
    )
    .sample("{ get_order = \"read_only\" }", "the tool may run again after a crash"),
    key(
        Section::Mcp,
        "approval",
        Takes::List,
        "[]",
        "Tools that need somebody's word for each call, by the server's own names.",
    )
    .sample("[\"place_order\"]", "calls wait for approval"),
    key(
        Section::History,
        "persistence",
        Takes::Words(&["per_run", "per_call"]),
        "per_run",
        "When history moves, unless an agent or a request says otherwise.",
    )
    .sample("\"per_call\"", "history moves after each model call"),
    key(
        Section::History,
        "parity",
        Takes::Words(&["none", "service"]),
        "none",
        "Whether results that no model was shown are left out of the history until they are sent, as a vendor would.",
    )
    .sample("\"service\"", "trailing results are not in the history"),
    key(
        Section::History,
        "on_interrupt",
        Takes::Words(&["resume", "close", "reject"]),
        "resume",
        "What becomes of a run that died: it is finished, closed, or blocks the next one.",
    )
    .sample("\"close\"", "an orphaned run is closed"),
    key(
        Section::History,
        "on_open_calls",
        Takes::Words(&["reject", "close"]),
        "reject",
        "What new input does while the client owes tool outputs: it is refused, or the calls are closed.",
    )
    .sample("\"close\"", "such input is accepted"),
    key(
        Section::History,
        "on_busy",
        Takes::Words(&["reject", "queue", "branch", "interrupt"]),
        "reject",
        "What a run does on a busy conversation. All but `reject` are not built: there are no conversations, and continuing a response is never busy.",
    )
    .sample("\"queue\"", "refuses to start"),
    key(
        Section::History,
        "on_service_id",
        Takes::Words(&["throw", "warn", "clear", "warn+clear"]),
        "throw",
        "What to do when a vendor says that it keeps a conversation which is ours to keep: the run fails, it is logged, the thread is handed over, or both.",
    )
    .sample("\"warn\"", "the run goes on"),
    key(
        Section::Limits,
        "rounds",
        Takes::Number(1, 10_000),
        "40",
        "Rounds of tool calls in one run.",
    )
    .sample("2", "a run ends with `round_limit`"),
    key(
        Section::Limits,
        "failed_rounds",
        Takes::Number(1, 10_000),
        "3",
        "Rounds in a row in which a call failed.",
    )
    .sample("1", "a run ends with `error_limit`"),
    key(
        Section::Limits,
        "calls",
        Takes::Number(1, 1_000_000),
        "",
        "Tool calls in one run.",
    )
    .sample("5", "a run ends with its budget"),
    key(
        Section::Limits,
        "tokens",
        Takes::Number(1, u64::MAX >> 1),
        "",
        "Tokens of one run, sent and made, as vendors report them.",
    )
    .sample("1000", "a run ends with its budget"),
    key(
        Section::Limits,
        "seconds",
        Takes::Number(1, 30 * DAY),
        "",
        "Time for one run.",
    )
    .sample("60", "a run ends with its budget"),
    key(
        Section::Limits,
        "tool_seconds",
        Takes::Number(1, DAY),
        "",
        "Time for one tool call.",
    )
    .sample("10", "a slow tool is given up"),
    key(
        Section::Limits,
        "body_bytes",
        Takes::Number(1024, GIB),
        "50000000",
        "The largest request body, before and after decompression. `memory` may allow less.",
    )
    .sample("2048", "a larger body gets 413"),
    key(
        Section::Limits,
        "decoded_ratio",
        Takes::Number(2, 10_000),
        "100",
        "How many times its own size a compressed body may become, once it is larger than 1 MiB.",
    )
    .sample("10", "a body that grows more gets 413"),
    key(
        Section::Limits,
        "json_depth",
        Takes::Number(4, 64),
        "64",
        "How deep JSON in a request may be nested.",
    )
    .sample("8", "a deeper body gets 400"),
    key(
        Section::Limits,
        "header_seconds",
        Takes::Number(1, 3_600),
        "60",
        "How long a client may take to send the head of a request, and so how long an idle connection is kept.",
    )
    .sample("1", "an idle connection is closed sooner"),
    key(
        Section::Limits,
        "body_seconds",
        Takes::Number(1, 3_600),
        "60",
        "How long a client may take to send a body.",
    )
    .sample("1", "a slower body gets 408"),
    key(
        Section::Limits,
        "connections",
        Takes::Number(1, 1_000_000),
        "4096",
        "Open connections. For one more, the longest idle one is closed; if none is idle, it gets 503.",
    )
    .sample("1", "a second connection closes an idle first one, or gets 503"),
    key(
        Section::Limits,
        "streams",
        Takes::Number(1, 1_000_000),
        "2048",
        "Open event streams. One more gets 503.",
    )
    .sample("1", "a second stream gets 503"),
    key(
        Section::Limits,
        "keep_alive_seconds",
        Takes::Number(1, 3_600),
        "15",
        "How long an event stream may be silent before it gets a comment.",
    )
    .sample("1", "comments come sooner"),
    key(
        Section::Limits,
        "memory",
        Takes::Number(268_435_456, 1_099_511_627_776),
        "536870912",
        "Bytes of memory that the server may take, about. What goes beyond it is refused with 503.",
    )
    .sample("268435456", "large requests are refused sooner"),
    key(
        Section::Limits,
        "history_bytes",
        Takes::Number(0, GIB),
        "67108864",
        "How much of `memory` is for histories that are kept between turns; others are read again.",
    )
    .sample("0", "every history is read again"),
    key(
        Section::Limits,
        "answer_bytes",
        Takes::Number(1_024, 1_073_741_824),
        "16777216",
        "The largest answer of an upstream: its texts, arguments and results, not the events around them.",
    )
    .sample("1024", "a longer answer fails"),
    key(
        Section::Limits,
        "stall_seconds",
        Takes::Number(1, 3_600),
        "60",
        "How long a client may leave an answer unread before its connection is closed. A stored response can be read again.",
    )
    .sample("1", "a client that does not read is closed sooner"),
    key(
        Section::Limits,
        "drain_seconds",
        Takes::Number(0, 20),
        "20",
        "How long requests may go on after the server was told to stop. Everything is over within 25 seconds.",
    )
    .sample("0", "requests are cut at once"),
    key(
        Section::Compaction,
        "when",
        Takes::Words(&["asked", "always"]),
        "asked",
        "Which requests are compacted: those that ask for it, or all that do not refuse it.",
    )
    .sample("\"always\"", "a request that says nothing is compacted"),
    key(
        Section::Compaction,
        "recent_calls_to_keep",
        Takes::Number(0, 10_000),
        "6",
        "Tool calls that a model is always shown in full: the newest, in whole rounds, until there are so many.",
    )
    .sample("2", "fewer calls stay in full"),
    key(
        Section::Compaction,
        "truncation_threshold",
        Takes::Number(0, MOST_TOKENS),
        "10000",
        "Tokens of tool history above which it is compacted. With a budget or a window it is a floor: nothing is done for less, unless it would not fit.",
    )
    .sample("2000", "shorter histories are compacted"),
    key(
        Section::Compaction,
        "budget",
        Takes::Number(1000, MOST_TOKENS),
        "",
        "Tokens that a model is sent at most, instructions and tools included, wherever compaction is on.",
    )
    .sample("16000", "requests to vendors stay below it"),
    key(
        Section::Compaction,
        "window",
        Takes::Number(1000, MOST_TOKENS),
        "128000",
        "Tokens that a model's window holds, for upstreams that say nothing else.",
    )
    .sample("32000", "`truncation: \"auto\"` keeps to it"),
    key(
        Section::Compaction,
        "narrative_tokens",
        Takes::Number(100, 100_000),
        "",
        "Tokens that the model may write beside the digests after each compaction: what was decided and why. It costs a model call, for which no request waits. What the record does not bear out is left out; the rest is shown from the next compaction on. Without this key no model is asked.",
    )
    .sample("400", "the model is asked for a summary after a compaction"),
    key(
        Section::Compaction,
        "strategy",
        Takes::Words(&["auto", "native", "text"]),
        "auto",
        "How earlier tool calls and their results are shown to vendors. `native`: as the vendor's own items. `text`: results as text of the user, calls not at all. `auto`: native, and for a day text to an upstream and model that refused the items and took the text; one request is sent twice for that. What a vendor keeps itself (`history = \"service\"`) is always gone on with in its own items.",
    )
    .sample("\"text\"", "upstreams get results as text"),
    key(
        Section::Compaction,
        "text_before",
        Takes::Text,
        "[Result of {tool}]",
        "What stands before a result that is shown as text. `{tool}` is the tool and what it was given. Nothing that looks like a call is taken: models imitate it.",
    )
    .sample("\"({tool} said)\"", "upstreams that get text get this"),
    key(
        Section::Compaction,
        "text_after",
        Takes::Text,
        "[End of result]",
        "What stands after it; empty for nothing.",
    )
    .sample("\"(over)\"", "upstreams that get text get this"),
    key(
        Section::Compaction,
        "experimental.native_tool_history",
        Takes::Words(&["true", "false"]),
        "",
        "Deprecated, write `strategy`. `false` is `text`, `true` is `auto`; a `strategy` that says otherwise is refused. Goes once native is safe everywhere.",
    )
    .sample("false", "upstreams get results as text"),
    key(Section::Retention, "*", Takes::Anything, "", "Not built.")
        .sample("30", "refuses to start")
        .unbuilt("retention"),
    key(Section::Cors, "*", Takes::Anything, "", "Not built.")
        .sample("[\"*\"]", "refuses to start")
        .unbuilt("cors"),
    key(Section::Recall, "*", Takes::Anything, "", "Not built.")
        .sample("true", "refuses to start")
        .unbuilt("recall"),
];
