//! Recognises responses in which a service refuses calls and results as native items.
//!
//! This is a table, because every service has its own error texts and they change. Errors that
//! match no row have other causes: a request that is too long, a missing model, a schema, a
//! setting, a filter. Repeating those as text would hide the cause.

use throughline_model::{VendorError, Wire};

use crate::client::{ClientError, ErrorKind};

/// One error text of a service.
pub(super) struct Row {
    /// The service and the cause; tests refer to rows by this name.
    pub(super) name: &'static str,
    wires: &'static [Wire],
    /// The statuses of the response; errors in the middle of a stream have none.
    statuses: &'static [u16],
    /// The required code or type of the error, if any.
    word: Option<&'static str>,
    param: Param,
    /// The texts of the message: one of each list, in lower case, with every quote as `'`.
    says: &'static [&'static [&'static str]],
    /// Whether the message may contain more.
    more: More,
}

/// The required `param` of the error. An error whose param names another part of the request never
/// matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Param {
    /// Absent, or part of the conversation.
    Any,
    /// Part of the conversation.
    Conversation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

const RESPONSES: &[Wire] = &[Wire::OpenAiResponses, Wire::Foundry];
const CHAT: &[Wire] = &[Wire::OpenAiChat];
const ANTHROPIC: &[Wire] = &[Wire::Anthropic];
const GOOGLE: &[Wire] = &[Wire::Gemini, Wire::GeminiInteractions];
/// Formats that gateways to other services speak.
const GATEWAYS: &[Wire] = &[Wire::OpenAiChat, Wire::Anthropic, Wire::OpenAiResponses];
const EVERYONE: &[Wire] = &Wire::KNOWN;

const INVALID: &[u16] = &[400, 422];
/// Servers that apply the model's chat template report its errors as their own failures.
const TEMPLATE: &[u16] = &[400, 422, 500];

const fn row(
    name: &'static str,
    wires: &'static [Wire],
    says: &'static [&'static [&'static str]],
) -> Row {
    Row {
        name,
        wires,
        statuses: INVALID,
        word: None,
        param: Param::Any,
        says,
        more: More::Yes,
    }
}

impl Row {
    const fn with_word(mut self, word: &'static str) -> Self {
        self.word = Some(word);
        self
    }

    const fn in_conversation(mut self) -> Self {
        self.param = Param::Conversation;
        self
    }

    const fn nothing_more(mut self) -> Self {
        self.more = More::No;
        self
    }

    const fn by_template(mut self) -> Self {
        self.statuses = TEMPLATE;
        self
    }
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row("anyone: invalid input", EVERYONE, &[&["invalid input"]]).nothing_more(),
    // OpenAI Responses, and services that speak it.
    row(
        "responses: an item of a type that it does not know",
        RESPONSES,
        &[&[
            "invalid value: 'function_call",
            "invalid value: 'custom_tool_call",
            "invalid value: 'computer_call",
            "invalid value: 'local_shell_call",
            "invalid value: 'shell_call",
            "invalid value: 'apply_patch_call",
        ]],
    )
    .in_conversation(),
    row(
        "responses: unknown input item",
        RESPONSES,
        &[
            &["input item"],
            &["unknown", "unsupported", "not supported", "unexpected"],
            &["function_call", "custom_tool_call"],
        ],
    ),
    row(
        "lm studio: no member of a union",
        RESPONSES,
        &[&["invalid type for 'input'"]],
    )
    .with_word("invalid_union")
    .in_conversation(),
    row(
        "foundry: items that its schema does not have",
        RESPONSES,
        &[&["does not match the expected schema"]],
    )
    .with_word("invalid_payload")
    .in_conversation(),
    row(
        "vllm: items that its types do not have",
        RESPONSES,
        &[
            &["validation error"],
            &["responsefunctiontoolcall", "functioncalloutput"],
        ],
    ),
    row(
        "responses: a call without its output",
        RESPONSES,
        &[&[
            "no tool output found for function call",
            "no tool output found for tool call",
            "no tool output found for custom tool call",
        ]],
    ),
    row(
        "responses: an output without its call",
        RESPONSES,
        &[&[
            "no tool call found for function call output",
            "no tool call found for custom tool call output",
        ]],
    ),
    row(
        "responses: a call without its reasoning",
        RESPONSES,
        &[
            &["of type 'function_call'", "of type 'custom_tool_call'"],
            &["without its required 'reasoning' item"],
        ],
    ),
    // Chat Completions, and servers that speak it.
    row(
        "chat: calls without their results",
        CHAT,
        &[
            &["tool_calls"],
            &[
                "must be followed by tool messages",
                "insufficient tool messages",
            ],
        ],
    ),
    row(
        "chat: a result without its call",
        CHAT,
        &[&["role 'tool' must be a response to a prece"]],
    ),
    row(
        "ollama, openai: no such role",
        CHAT,
        &[&[
            "invalid role: tool",
            "unknown role: tool",
            "unsupported role: tool",
            "invalid role 'tool'",
            "unknown role 'tool'",
            "unsupported role 'tool'",
            "unexpected role 'tool'",
            "role 'tool' is not supported",
            "invalid value: 'tool'",
            "does not support 'tool' with this model",
        ]],
    )
    .by_template(),
    row(
        "fastapi: a role that its types do not have",
        CHAT,
        &[
            &["messages."],
            &[".role: "],
            &[
                "input should be",
                "unexpected value",
                "not a valid enumeration member",
            ],
        ],
    ),
    row(
        "anyone: tool_calls in a message",
        CHAT,
        &[
            &["tool_calls"],
            &[
                "not supported",
                "unsupported",
                "not permitted",
                "unknown field",
                "unrecognized key",
                "unexpected keyword",
            ],
        ],
    ),
    row(
        "lm studio: a message of calls alone",
        CHAT,
        &[&["must only contain objects with a 'content' field that is not empty"]],
    ),
    row(
        "ollama: a message of calls alone",
        CHAT,
        &[&["invalid message content type: <nil>"]],
    ),
    row(
        "deepseek: messages that its types do not have",
        CHAT,
        &[
            &["failed to deserialize"],
            &["messages["],
            &["tool_call", "unknown variant 'tool'"],
        ],
    ),
    row(
        "groq: a message of results",
        CHAT,
        &[&["for 'role:tool' the following must be satisfied"]],
    ),
    row("mistral: an order that it does not take", CHAT, &[])
        .with_word("invalid_request_message_order"),
    row(
        "mistral: calls and results do not match",
        CHAT,
        &[&["not the same number of function calls and responses"]],
    ),
    row(
        "templates: roles that they do not have",
        CHAT,
        &[&["only user"], &["assistant roles are supported"]],
    )
    .by_template(),
    row(
        "templates: roles that do not alternate",
        CHAT,
        &[&[
            "roles must alternate user",
            "tool message(s) should alternate with assistant",
        ]],
    )
    .by_template(),
    // Gateways to services that require tools wherever there are calls.
    row(
        "bedrock: calls without tools on offer",
        GATEWAYS,
        &[&[
            "toolconfig field must be defined when using",
            "blocks must define tools",
            "doesn't support tool calling without 'tools='",
        ]],
    ),
    row(
        "bedrock: calls and results do not match",
        GATEWAYS,
        &[&[
            "'tooluse' ids were found without 'toolresult'",
            "number of toolresult blocks",
        ]],
    ),
    // Anthropic, and servers that speak its format.
    row(
        "anthropic: calls without their results",
        ANTHROPIC,
        &[&[
            "'tool_use' ids were found without 'tool_result' blocks",
            "tool_result block(s) at the beginning of this message",
        ]],
    ),
    row(
        "anthropic: results without their calls",
        ANTHROPIC,
        &[&["found in 'tool_result' blocks"]],
    ),
    row(
        "anthropic: calls or results twice",
        ANTHROPIC,
        &[&[
            "each tool_use must have a single result",
            "'tool_use' ids must be unique",
        ]],
    ),
    row(
        "anthropic: ids of another form",
        ANTHROPIC,
        &[
            &[".tool_use.id: ", ".tool_result.tool_use_id: "],
            &["should match pattern"],
        ],
    ),
    row(
        "anthropic: a round without thoughts",
        ANTHROPIC,
        &[&["expected 'thinking' or 'redacted_thinking', but found 'tool_use'"]],
    ),
    row(
        "compatible: blocks that its types do not have",
        ANTHROPIC,
        &[
            &["input tag 'tool_use'", "input tag 'tool_result'"],
            &["does not match any of the expected tags"],
        ],
    ),
    // Google.
    row(
        "gemini: calls in the wrong place",
        GOOGLE,
        &[&[
            "function call turn comes immediately after a user turn",
            "function response turn comes immediately after a function call turn",
        ]],
    ),
    row(
        "gemini: calls and results do not match",
        GOOGLE,
        &[&["number of function response parts is equal to the number of function call parts"]],
    ),
    row(
        "gemini: calls that are not signed",
        GOOGLE,
        &[&["function call is missing a thought_signature"]],
    ),
    row(
        "gemini: members that calls do not have",
        GOOGLE,
        &[
            &["unknown name"],
            &["at 'contents["],
            &["function_call'", "function_response'"],
        ],
    ),
    row(
        "gemini: results without a name",
        GOOGLE,
        &[&["function_response.name: name cannot be empty"]],
    ),
];

/// Words that indicate another cause, whatever else the message contains.
const OTHER_CAUSES: &[&str] = &[
    "parallel_tool_calls",
    "max_tool_calls",
    "tool_choice",
    "tool-choice",
    "does not support tools",
    "invalid schema",
    "schema for function",
    "response_format",
    "max_tokens",
    "context length",
    "context window",
    "content management policy",
];

/// The row that matches an error: the service refuses calls and results as native items.
pub(super) fn matching_row(wire: &Wire, error: &ClientError) -> Option<&'static Row> {
    let vendor = error.vendor()?;
    let status = error.status().filter(|status| *status >= 300);
    let message = plain(&vendor.message);
    if OTHER_CAUSES.iter().any(|words| message.contains(words)) {
        return None;
    }
    ROWS.iter().find(|row| {
        let expected = match status {
            Some(status) => row.statuses.contains(&status),
            None => true,
        };
        // Only a template's error may come with a status that is not a refusal of the request.
        let kind = match error.kind() {
            ErrorKind::Invalid => true,
            ErrorKind::Unavailable => status == Some(500),
            _ => false,
        };
        expected && kind && row.wires.contains(wire) && row.fits(vendor, &message)
    })
}

impl Row {
    fn fits(&self, error: &VendorError, message: &str) -> bool {
        let param = error.param.as_deref().unwrap_or_default();
        let param = match (param.trim_matches(['/', '$', '.']), self.param) {
            ("", Param::Any) => true,
            ("", Param::Conversation) => false,
            (param, _) => is_conversation(param),
        };
        let word = self.word.is_none_or(|word| {
            let words = [error.code.as_deref(), error.kind.as_deref()];
            words.contains(&Some(word))
        });
        let says = |list: &&[&str]| list.iter().any(|text| message.contains(text));
        let whole = match self.more {
            More::Yes => true,
            More::No => {
                let bare = message.trim_matches(|c: char| !c.is_ascii_alphanumeric());
                self.says.iter().all(|list| list.contains(&bare))
            }
        };
        param && word && whole && self.says.iter().all(says)
    }
}

/// Whether a parameter is the conversation or a part of it.
fn is_conversation(param: &str) -> bool {
    let param = param.strip_prefix("body").unwrap_or(param);
    let param = param.trim_start_matches(['.', '/']);
    ["input", "messages", "contents"].iter().any(|name| {
        param
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.', '/']))
    })
}

/// Lower case, with every quote as `'`: services quote in many ways.
fn plain(message: &str) -> String {
    let quoted = |c: char| match c {
        '"' | '`' | '‘' | '’' | '“' | '”' => '\'',
        c => c.to_ascii_lowercase(),
    };
    message.chars().map(quoted).collect()
}
