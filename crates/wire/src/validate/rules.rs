//! The rules as data. `docs/rules.md` shows the same table; a test holds the two together.

/// One rule of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name: a letter for the vendor and a number, as in the rule sheet; `S-…` are shapes.
    pub name: &'static str,
    /// What it takes to check it.
    pub class: RuleClass,
    /// Profile fields that matter beyond the class.
    pub fields: &'static [ProfileField],
    /// What the rule demands, in one line.
    pub says: &'static str,
    /// What of it is not seen here, if anything.
    pub unseen: Option<&'static str>,
    /// The vendor's words; `{path}`, `{item}` and `{items}` are filled in, `…` varies.
    pub error: Option<&'static str>,
}

/// What it takes to check a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleClass {
    /// The request alone is enough.
    History,
    /// It depends on this field of the profile.
    NeedsProfile(ProfileField),
    /// It is about the service's state or the connection, and is not checked.
    Transport,
}

/// A field of [`Profile`](super::Profile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileField {
    /// What the model can take.
    Generation,
    /// Whether items are kept by the service.
    Stored,
    /// Whether thinking is on.
    Thinking,
    /// Whether it is the account that everything came from.
    SameAccount,
    /// What the service issued.
    Issued,
    /// The calls that the service remembers.
    Chained,
}

impl ProfileField {
    /// The name of the field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generation => "generation",
            Self::Stored => "stored",
            Self::Thinking => "thinking",
            Self::SameAccount => "same_account",
            Self::Issued => "issued",
            Self::Chained => "chained",
        }
    }
}

/// The rule of a name.
///
/// ```
/// use throughline_wire::validate::{RuleClass, rule};
///
/// assert_eq!(rule("F-5").map(|rule| rule.class), Some(RuleClass::Transport));
/// ```
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

const fn with_class(name: &'static str, class: RuleClass, says: &'static str) -> Rule {
    Rule {
        name,
        class,
        fields: &[],
        says,
        unseen: None,
        error: None,
    }
}

const fn history(name: &'static str, says: &'static str) -> Rule {
    with_class(name, RuleClass::History, says)
}

const fn needs(name: &'static str, field: ProfileField, says: &'static str) -> Rule {
    with_class(name, RuleClass::NeedsProfile(field), says)
}

const fn transport(name: &'static str, says: &'static str) -> Rule {
    with_class(name, RuleClass::Transport, says)
}

impl Rule {
    const fn also(mut self, fields: &'static [ProfileField]) -> Self {
        self.fields = fields;
        self
    }

    const fn unseen(mut self, what: &'static str) -> Self {
        self.unseen = Some(what);
        self
    }

    const fn error(mut self, text: &'static str) -> Self {
        self.error = Some(text);
        self
    }
}

use ProfileField::{Chained, Generation, Issued, SameAccount, Stored, Thinking};

/// Every rule, in the order of the rule sheet.
pub static RULES: &[Rule] = &[
    // OpenAI Responses, and Foundry.
    history("O-1", "Every call that the client runs has an output in the request; an `async` call may wait.")
        .also(&[Chained])
        .error("No tool output found for function call {item}."),
    history("O-2", "Every output with a `call_id` has its call before it in `input`, or in the chain.")
        .also(&[Chained])
        .error("No tool call found for function call output with call_id {item}."),
    history("O-3", "The output's tag belongs to the call's tag, and a call has one output.").also(&[Chained]),
    history("O-4", "Item `id`s are unique in `input`.")
        .unseen("ids that number items by position")
        .error("Duplicate item found with id {item}. Remove duplicate items from your input and try again."),
    history("O-5", "A `reasoning` item with `id` is followed by the item it led to.")
        .unseen("whether it is the very item")
        .error("Item '{item}' of type 'reasoning' was provided without its required following item."),
    needs("O-6", Issued, "An item that was issued after reasoning is preceded by that reasoning item.")
        .error("Item '{item}' of type '…' was provided without its required 'reasoning' item: 'rs_…'."),
    needs("O-7", Stored, "Without stored items: no `item_reference`, and reasoning in full.")
        .error("Item with id '{item}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."),
    needs("O-8", SameAccount, "`encrypted_content` goes back only to the organisation or tenant that made it.")
        .also(&[Issued])
        .error("The encrypted content {item} could not be verified."),
    history("O-9", "`call_id` is 1 to 64 characters.")
        .error("Invalid '{path}': string too long. Expected a string with maximum length 64, but got a string with length … instead."),
    history("O-10", "An item `id` has the prefix of its kind and was issued by the service.")
        .also(&[Issued])
        .error("Invalid '{path}': '{item}'. Expected an ID that begins with '…'."),
    history("O-11", "No unknown keys on message items; `phase` only on assistant messages.")
        .error("400, code `unknown_parameter`, param `{path}`"),
    history("O-12", "`type` is one of the published item types.")
        .error("Invalid value: '{item}'. Supported values are: 'additional_tools', 'agent_message', …"),
    history("O-13", "Content parts match the role of their message.")
        .error("400, code `invalid_value`, param `{path}`"),
    history("O-14", "The safety checks of a computer call are echoed in its output.")
        .unseen("whether a person accepted them"),
    needs("O-15", Issued, "`fingerprint`, `tools`, `caller`, `namespace` and the content of a compaction are replayed unchanged."),
    history("O-16", "`compaction_trigger` is the last input item.").unseen("whether it was stored"),
    history("S-O1", "`input` is a string or an array of objects."),
    history("S-O2", "A known item has its required members, of the right type; result parts are of a known kind."),
    history("S-O3", "A message has a known role, and its content is a string or an array of parts."),
    history("S-O4", "`previous_response_id` and `conversation` exclude each other."),
    // OpenAI Chat Completions.
    history("C-1", "Every tool call is answered before any other message.")
        .error("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {items}"),
    history("C-2", "A tool message follows the assistant message that called.")
        .error("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."),
    history("C-3", "`tool_calls` is absent rather than empty.")
        .error("Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead."),
    history("C-4", "Call ids are 1 to 40 characters.")
        .error("Invalid '{path}': string too long. Expected a string with maximum length 40, but got a string with length … instead."),
    history("C-5", "The content of a tool message is text only."),
    history("S-C1", "`messages` is an array of objects."),
    history("S-C2", "A message has a known role and its required members, of the right type."),
    history("S-C3", "A tool call has an `id`, a known `type`, and the name and arguments of that type."),
    history("S-C4", "A call has one tool message."),
    history("S-C5", "Images, files and sound stand in user messages only."),
    // Anthropic.
    history("A-1", "Every `tool_use` is answered in the next message.")
        .also(&[Chained])
        .error("{path}: `tool_use` ids were found without `tool_result` blocks immediately after: {items}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."),
    history("A-2", "Every `tool_result` names a `tool_use` of the previous message.")
        .also(&[Chained])
        .error("{path}: unexpected `tool_use_id` found in `tool_result` blocks: {item}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."),
    history("A-3", "One result per call in the whole request.")
        .error("{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {item}"),
    history("A-4", "`tool_use` ids are unique in the whole request.")
        .error("{path}: `tool_use` ids must be unique"),
    history("A-5", "A server or MCP result has its call before it.")
        .also(&[Chained])
        .error("{path}: unexpected `tool_use_id` found in `…` blocks: {item}. Each `…` block must have a corresponding `server_tool_use` block before it."),
    history("A-6", "A server or MCP call has its result, unless the message is sent back to resume a paused turn.")
        .error("{path}: `…` tool use with id `{item}` was found without a corresponding `…` block"),
    history("A-7", "Ids match their pattern; the names of server tools are a closed list.")
        .also(&[Issued])
        .error("{path}: String should match pattern '…'"),
    history("A-8", "`tool_result` blocks stand first in their message, and only in user messages.")
        .error("Did not find 1 tool_result block(s) at the beginning of this message. Messages following tool_use blocks must begin with a matching number of tool_result blocks."),
    needs("A-9", Issued, "Thinking blocks of the latest assistant message are as they were issued, in order.")
        .unseen("blocks that were left out or moved among other blocks")
        .error("{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."),
    history("A-10", "Thinking is signed, and goes back unchanged to the organisation that it came from.")
        .also(&[SameAccount, Issued])
        .unseen("whether the signature fits the position and the model")
        .error("{path}: Invalid `signature` in `thinking` block"),
    needs("A-11", Thinking, "With a thinking budget (`thinking.type` `enabled`), the assistant message of an open tool loop starts with its thinking block; with adaptive thinking it may start with anything.")
        .error("{path}: Expected `thinking` or `redacted_thinking`, but found `…`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."),
    history("A-12", "No empty text, no empty message but a last one of the assistant, no trailing space there.")
        .error("messages: text content blocks must be non-empty"),
    needs("A-13", Generation, "Models that refuse prefill: the history ends with a user message, or a system message after it.")
        .error("This model does not support assistant message prefill. The conversation must end with a user message."),
    history("A-14", "At most one `compaction` block with content; it is the first block of its message (if signed, of the request) and as it was issued.")
        .also(&[Issued])
        .error("`error_code` `compaction_…`"),
    needs("A-15", Generation, "A system message follows a user message or a server result, and precedes an assistant message or ends the array; older models take none.")
        .error("role 'system' is not supported on this model"),
    history("A-16", "While a programmatic call is pending the body names its `container`.")
        .unseen("whether it is the right one; a bare array has no body to look at")
        .error("container_id is required when there are pending tool uses generated by code execution with tools."),
    transport("A-17", "A thread is continued only from its newest response, with the same fixed fields.")
        .error("`error_code` `thread_already_continued`, `thread_continue_in_flight`, `thread_fingerprint_mismatch`, `thread_not_found`, `thread_unsupported_request`"),
    history("A-18", "The first message is the user's; neighbours of one role count as one message.")
        .also(&[Chained])
        .error("messages: first message must use the \"user\" role"),
    history("A-19", "No unknown keys in the body, in a message or in a known block.")
        .error("{path}: Extra inputs are not permitted"),
    history("S-A1", "`messages` is an array of objects."),
    history("S-A2", "A message has a known role, and its content is a string or an array of objects."),
    history("S-A3", "A known block has its required members, of the right type."),
    history("S-A4", "A block has a `type`, and not one of another vendor."),
    history("S-A5", "Calls and the results of server tools stand in assistant messages."),
    // Gemini generateContent.
    history("G-1", "As many `functionResponse` parts as `functionCall` parts in the content before.")
        .error("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."),
    history("G-2", "A content with calls follows a user content or a result content.")
        .error("Please ensure that function call turn comes immediately after a user turn or after a function response turn."),
    history("G-3", "A result content follows directly on its call content.")
        .error("Please ensure that function response turn comes immediately after a function call turn."),
    needs("G-4", Generation, "A result echoes the id of its call and has none if the call has none; models that issue no ids take none.")
        .also(&[Issued])
        .error("Invalid JSON payload received. Unknown name \"id\" at '{path}': Cannot find field."),
    needs("G-5", Generation, "Gemini 3 and later: in the current turn the first call of each step has its own `thoughtSignature`.")
        .unseen("signatures that were moved from one step to another")
        .error("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `{item}` , position …."),
    history("G-6", "A `thoughtSignature` is one that Gemini issued, or the documented placeholder.")
        .also(&[Issued])
        .unseen("without `issued`: invented values that are valid base64")
        .error("Corrupted thought signature."),
    history("G-7", "The history ends with a user content or with results.")
        .error("Please ensure that multiturn requests ends with a user role or a function response."),
    history("G-8", "No empty content, no empty part; empty text only with a signature.")
        .error("* GenerateContentRequest.{path}.data: required oneof field 'data' must have one initialized field"),
    history("G-9", "`functionResponse.name` is the name of the function that was called.")
        .error("* GenerateContentRequest.{path}: Name cannot be empty."),
    needs("G-10", Generation, "`toolCall` and `toolResponse` have ids that Gemini issued, and go only to models that know tool combination.")
        .also(&[Issued]),
    history("S-G1", "`contents` is an array of objects; `parts` is an array of objects."),
    history("S-G2", "The role is `user` or `model`; `function` still stands on results."),
    history("S-G3", "A part has one data key, with its required members, of the right type."),
    history("S-G4", "Calls stand in model contents, results in user contents."),
    needs("S-G5", Generation, "Images and files inside results go only to Gemini 3 and later."),
    // Gemini Interactions.
    history("I-1", "Every call step has an `id`, every result step a `call_id`."),
    history("I-2", "Every result comes after its call, which is of the same kind.").also(&[Chained]),
    history("I-3", "A call has one result; a call that the client runs has one at all.").also(&[Chained]),
    history("S-I1", "`input` is a string, a content, or an array of objects."),
    history("S-I2", "A known step has its required members, of the right type."),
    // Foundry, beyond OpenAI Responses.
    history("F-1", "Every input item has an explicit `type`, messages too.")
        .error("Invalid value: ''. Supported values are: 'additional_tools', 'agent_message', …, 'message', …"),
    history("F-2", "Items that only Foundry has are no input, but for `memory_search_call`.")
        .error("Invalid value: '{item}'. Supported values are: 'additional_tools', 'agent_message', …, 'message', …"),
    history("F-3", "At most the newest turn's sealed reasoning is replayed.")
        .error("Conflicting authenticated continuation identities"),
    needs("F-4", Chained, "A call that the chain holds is not sent again together with its output.")
        .error("No tool output found for function call {item}."),
    transport("F-5", "Project endpoints speak Responses only and refuse `api-version` on `/openai/v1`."),
    history("F-6", "`agent_reference`, `response_id` and `created_by` are output only."),
    // Any format.
    history("S-1", "The format is one whose rules are known."),
];
