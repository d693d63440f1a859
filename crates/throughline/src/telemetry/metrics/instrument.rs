/// An instrument. Names, units and bounds follow OpenTelemetry's conventions for generative AI;
/// names that the conventions do not have start with `throughline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Instrument {
    /// Tokens of model calls, by type: `input`, `output`.
    TokenUsage,
    /// Parts of [`Instrument::TokenUsage`], by type: `cache_read`, `cache_write`, `reasoning`. A
    /// separate instrument, so that a sum over all types of one counts no token twice.
    TokenDetails,
    /// Duration of model calls, retries included.
    OperationDuration,
    /// Time until the first event of a streamed answer.
    TimeToFirstChunk,
    /// Duration of tool executions.
    ToolDuration,
    /// Duration of runs.
    RunDuration,
    /// Runs, by stop reason.
    Runs,
    /// Tool executions, by outcome.
    ToolCalls,
    /// Model calls that failed after all retries, by kind of error.
    ModelErrors,
    /// Requests to services, retries included.
    Attempts,
    /// Retries, by kind of error.
    Retries,
    /// Failed requests that are not retried, by kind of error and reason.
    GaveUp,
    /// Calls whose tool history a service refused as native items and accepted as text.
    Fallbacks,
    /// State of circuit breakers: 0 closed, 1 half open, 2 open.
    BreakerState,
    /// Compactions.
    Compactions,
    /// Tokens of the view, `before` and `after` a compaction.
    CompactionTokens,
}

/// The kind of an instrument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A value that only grows.
    Counter,
    /// The last value.
    Gauge,
    /// Counts of values in buckets with these upper bounds, and one bucket above them.
    Histogram(&'static [f64]),
}

/// A label of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) values: Values,
}

/// Where the values of a label come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// A short list in this crate.
    Closed,
    /// Configuration, or a service.
    Open,
}

const fn open(name: &'static str) -> Label {
    Label {
        name,
        values: Values::Open,
    }
}

const fn closed(name: &'static str) -> Label {
    Label {
        name,
        values: Values::Closed,
    }
}

const OPERATION: Label = closed("gen_ai.operation.name");
const PROVIDER: Label = open("gen_ai.provider.name");
const REQUEST_MODEL: Label = open("gen_ai.request.model");
const RESPONSE_MODEL: Label = open("gen_ai.response.model");
const TOKEN_TYPE: Label = closed("gen_ai.token.type");
const AGENT: Label = open("gen_ai.agent.name");
const TOOL: Label = open("gen_ai.tool.name");
const ERROR: Label = closed("error.type");
const UPSTREAM: Label = open("throughline.upstream");

/// The bounds that the conventions define for tokens.
const TOKENS: &[f64] = &[
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0, 67108864.0,
];

/// The bounds that the conventions define for model calls and tools, in seconds.
const SECONDS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/// The bounds that the conventions define for runs of agents, in seconds.
const LONG_SECONDS: &[f64] = &[
    0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6,
];

impl Instrument {
    /// All instruments.
    pub const ALL: [Self; 16] = [
        Self::TokenUsage,
        Self::TokenDetails,
        Self::OperationDuration,
        Self::TimeToFirstChunk,
        Self::ToolDuration,
        Self::RunDuration,
        Self::Runs,
        Self::ToolCalls,
        Self::ModelErrors,
        Self::Attempts,
        Self::Retries,
        Self::GaveUp,
        Self::Fallbacks,
        Self::BreakerState,
        Self::Compactions,
        Self::CompactionTokens,
    ];

    /// The index in [`Instrument::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The name in OpenTelemetry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenUsage => "gen_ai.client.token.usage",
            Self::TokenDetails => "throughline.token.details",
            Self::OperationDuration => "gen_ai.client.operation.duration",
            Self::TimeToFirstChunk => "gen_ai.client.operation.time_to_first_chunk",
            Self::ToolDuration => "gen_ai.execute_tool.duration",
            Self::RunDuration => "gen_ai.invoke_agent.duration",
            Self::Runs => "throughline.runs",
            Self::ToolCalls => "throughline.tool.calls",
            Self::ModelErrors => "throughline.model.errors",
            Self::Attempts => "throughline.model.attempts",
            Self::Retries => "throughline.model.retries",
            Self::GaveUp => "throughline.model.gave_up",
            Self::Fallbacks => "throughline.model.fallbacks",
            Self::BreakerState => "throughline.breaker.state",
            Self::Compactions => "throughline.compactions",
            Self::CompactionTokens => "throughline.compaction.tokens",
        }
    }

    /// The unit, in UCUM notation.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::TokenUsage | Self::TokenDetails | Self::CompactionTokens => "{token}",
            Self::Compactions => "{compaction}",
            Self::OperationDuration
            | Self::TimeToFirstChunk
            | Self::ToolDuration
            | Self::RunDuration => "s",
            Self::Runs => "{run}",
            Self::ToolCalls => "{call}",
            Self::ModelErrors => "{error}",
            Self::Attempts | Self::Retries | Self::GaveUp | Self::Fallbacks => "{request}",
            Self::BreakerState => "1",
        }
    }

    /// The description.
    pub const fn help(self) -> &'static str {
        match self {
            Self::TokenUsage => "Number of input and output tokens used.",
            Self::TokenDetails => "Number of tokens read from or written to caches, or reasoned.",
            Self::OperationDuration => "GenAI operation duration.",
            Self::TimeToFirstChunk => "Time to receive the first chunk of a streamed answer.",
            Self::ToolDuration => "The duration of a single tool execution.",
            Self::RunDuration => "The duration of a single agent invocation.",
            Self::Runs => "Runs by stop reason.",
            Self::ToolCalls => "Tool executions by outcome.",
            Self::ModelErrors => "Model calls that failed after all retries.",
            Self::Attempts => "Requests to services, retries included.",
            Self::Retries => "Requests that are retried.",
            Self::GaveUp => "Failed requests that are not retried.",
            Self::Fallbacks => "Requests that were refused and repeated with tool history as text.",
            Self::BreakerState => "State of circuit breakers: 0 closed, 1 half open, 2 open.",
            Self::Compactions => "Compactions.",
            Self::CompactionTokens => "Tokens of the view before and after compactions.",
        }
    }

    /// The kind of the instrument.
    pub const fn shape(self) -> Shape {
        match self {
            Self::TokenUsage => Shape::Histogram(TOKENS),
            Self::OperationDuration | Self::TimeToFirstChunk | Self::ToolDuration => {
                Shape::Histogram(SECONDS)
            }
            Self::RunDuration => Shape::Histogram(LONG_SECONDS),
            Self::TokenDetails
            | Self::Runs
            | Self::ToolCalls
            | Self::ModelErrors
            | Self::Attempts
            | Self::Retries
            | Self::GaveUp
            | Self::Fallbacks
            | Self::Compactions
            | Self::CompactionTokens => Shape::Counter,
            Self::BreakerState => Shape::Gauge,
        }
    }

    pub(crate) const fn labels(self) -> &'static [Label] {
        match self {
            Self::TokenUsage | Self::TokenDetails => {
                const {
                    &[
                        OPERATION,
                        PROVIDER,
                        REQUEST_MODEL,
                        RESPONSE_MODEL,
                        TOKEN_TYPE,
                    ]
                }
            }
            Self::OperationDuration => {
                const { &[OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL, ERROR] }
            }
            Self::TimeToFirstChunk => {
                const { &[OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL] }
            }
            Self::ToolDuration => const { &[AGENT, TOOL, closed("gen_ai.tool.type"), ERROR] },
            Self::RunDuration => const { &[AGENT, ERROR] },
            Self::Runs => const { &[AGENT, closed("throughline.stop_reason")] },
            Self::ToolCalls => const { &[AGENT, TOOL, closed("throughline.outcome")] },
            Self::ModelErrors => const { &[PROVIDER, REQUEST_MODEL, ERROR] },
            Self::Attempts | Self::Fallbacks | Self::BreakerState => const { &[UPSTREAM] },
            Self::Compactions => const { &[AGENT] },
            Self::CompactionTokens => const { &[AGENT, closed("throughline.when")] },
            Self::Retries => const { &[UPSTREAM, ERROR] },
            Self::GaveUp => const { &[UPSTREAM, ERROR, closed("throughline.why")] },
        }
    }
}
