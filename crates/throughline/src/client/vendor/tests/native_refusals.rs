//! A response of a service for every row of the table, and responses with other causes.

use std::collections::BTreeSet;

use throughline_model::Wire;
use throughline_model::json::RawJson;

use super::support::{PROJECT, Reply, Service, both, respond};
use crate::client::ClientError;
use crate::client::vendor::native_refusals::{ROWS, matching_row};
use crate::client::vendor::{Anthropic, ClientBuilder, Foundry, Gemini, OpenAi};

fn client(wire: &Wire) -> ClientBuilder {
    let builder = match wire {
        Wire::OpenAiResponses => OpenAi::responses("m"),
        Wire::OpenAiChat => OpenAi::chat("m"),
        Wire::Anthropic => Anthropic::new("m"),
        Wire::Gemini => Gemini::new("m"),
        Wire::GeminiInteractions => Gemini::interactions("m"),
        Wire::Foundry | Wire::Other(_) => Foundry::new(PROJECT, "m"),
    };
    builder.api_key("sk-canary-1")
}

/// The row that matches a response.
async fn row(wire: &Wire, status: u16, body: &str) -> (Option<&'static str>, ClientError) {
    let service = Service::always(Reply::json(status, body));
    let client = client(wire).transport(service).build_bare().unwrap();
    let error = respond(&client).await.unwrap_err();
    (matching_row(wire, &error).map(|row| row.name), error)
}

/// An error in OpenAI's form.
fn openai(message: &str, code: Option<&str>, param: Option<&str>) -> String {
    let error = RawJson::object(|object| {
        object
            .str("message", message)
            .str("type", "invalid_request_error");
        for (key, value) in [("param", param), ("code", code)] {
            match value {
                Some(value) => object.str(key, value),
                None => object.raw(key, "null"),
            };
        }
    });
    format!(r#"{{"error":{}}}"#, error.get())
}

fn said(message: &str) -> String {
    openai(message, None, None)
}

fn anthropic(message: &str) -> String {
    let error = RawJson::object(|object| {
        object
            .str("type", "invalid_request_error")
            .str("message", message);
    });
    format!(
        r#"{{"type":"error","error":{},"request_id":"req_1"}}"#,
        error.get()
    )
}

fn google(message: &str) -> String {
    let error = RawJson::object(|object| {
        object
            .number("code", 400)
            .str("message", message)
            .str("status", "INVALID_ARGUMENT");
    });
    format!(r#"{{"error":{}}}"#, error.get())
}

/// In the form of vLLM and similar servers.
fn bare(message: &str, kind: &str, code: &str) -> String {
    RawJson::object(|object| {
        object
            .str("object", "error")
            .str("message", message)
            .str("type", kind)
            .raw("param", "null")
            .raw("code", code);
    })
    .get()
    .to_owned()
}

type Sample = (&'static str, Wire, u16, String);

fn openai_samples() -> Vec<Sample> {
    use Wire::{Foundry, OpenAiChat as Chat, OpenAiResponses as Responses};
    vec![
        ("anyone: invalid input", Responses, 400, openai("Invalid input", None, Some("input"))),
        ("anyone: invalid input", Foundry, 400, said("Invalid input.")),
        ("anyone: invalid input", Chat, 422, r#"{"detail":"Invalid input"}"#.into()),
        (
            "responses: an item of a type that it does not know", Responses, 400,
            openai("Invalid value: 'function_call_output'. Supported values are: 'message', 'reasoning'.", Some("invalid_value"), Some("input[2]")),
        ),
        (
            "responses: unknown input item", Responses, 400,
            said("unknown input item type: function_call_output"),
        ),
        (
            "lm studio: no member of a union", Responses, 400,
            openai("Invalid type for 'input'.", Some("invalid_union"), Some("input")),
        ),
        (
            "foundry: items that its schema does not have", Foundry, 400,
            openai("The provided data does not match the expected schema", Some("invalid_payload"), Some("/input/3")),
        ),
        (
            "vllm: items that its types do not have", Responses, 400,
            bare("3 validation errors for ValidatorIterator\n1.ResponseFunctionToolCall.arguments\n  Field required", "BadRequestError", "400"),
        ),
        (
            "responses: a call without its output", Responses, 400,
            openai("No tool output found for function call call_abc.", None, Some("input")),
        ),
        (
            "responses: an output without its call", Foundry, 400,
            openai("No tool call found for function call output with call_id call_abc.", None, Some("input")),
        ),
        (
            "responses: a call without its reasoning", Responses, 400,
            openai("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.", None, Some("input")),
        ),
        (
            "chat: calls without their results", Chat, 400,
            openai("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1", None, Some("messages.[3].role")),
        ),
        (
            "chat: a result without its call", Chat, 400,
            openai("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", None, Some("messages.[3].role")),
        ),
        (
            "chat: a result without its call", Chat, 400,
            openai("<400> InternalError.Algo.InvalidParameter: messages with role \"tool\" must be a response to a preceeding message with \"tool_calls\".", Some("invalid_parameter_error"), None),
        ),
        (
            "ollama, openai: no such role", Chat, 400,
            said("invalid role: tool, must be one of [system, user or assistant]"),
        ),
        (
            "ollama, openai: no such role", Chat, 400,
            openai("Unsupported value: 'messages[2].role' does not support 'tool' with this model.", Some("unsupported_value"), Some("messages[2].role")),
        ),
        (
            "ollama, openai: no such role", Chat, 500,
            r#"{"error":{"code":500,"message":"Unexpected role 'tool'","type":"server_error"}}"#.into(),
        ),
        (
            "fastapi: a role that its types do not have", Chat, 422,
            r#"{"detail":[{"type":"literal_error","loc":["body","messages",2,"role"],"msg":"Input should be 'system', 'user' or 'assistant'","input":"tool"}]}"#.into(),
        ),
        (
            "anyone: tool_calls in a message", Chat, 422,
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"tool_calls"],"msg":"Extra inputs are not permitted"}]}"#.into(),
        ),
        ("anyone: tool_calls in a message", Chat, 400, said("tool_calls not supported")),
        (
            "lm studio: a message of calls alone", Chat, 400,
            r#"{"error":"'messages' array must only contain objects with a 'content' field that is not empty."}"#.into(),
        ),
        (
            "ollama: a message of calls alone", Chat, 400,
            said("invalid message content type: <nil>"),
        ),
        (
            "deepseek: messages that its types do not have", Chat, 400,
            said("Failed to deserialize the JSON body into the target type: messages[2]: unknown variant `tool`, expected one of `system`, `user`, `assistant` at line 1 column 300"),
        ),
        (
            "groq: a message of results", Chat, 400,
            said("'messages.2' : for 'role:tool' the following must be satisfied[('messages.2.content' : value must be a string)]"),
        ),
        (
            "mistral: an order that it does not take", Chat, 400,
            bare("Expected last role User or Tool for serving but got assistant", "invalid_request_message_order", "\"3230\""),
        ),
        (
            "mistral: calls and results do not match", Chat, 400,
            bare("Not the same number of function calls and responses", "invalid_request_error", "\"3230\""),
        ),
        (
            "templates: roles that they do not have", Chat, 400,
            bare("Only user and assistant roles are supported, with the exception of an initial optional system message!", "BadRequestError", "400"),
        ),
        (
            "templates: roles that do not alternate", Chat, 400,
            bare("Conversation roles must alternate user/assistant/user/assistant/...", "BadRequestError", "400"),
        ),
        (
            "templates: roles that do not alternate", Chat, 500,
            r#"{"error":{"code":500,"message":"After the optional system message, conversation roles must alternate user/assistant/user/assistant/... at row 1","type":"server_error"}}"#.into(),
        ),
        (
            "bedrock: calls without tools on offer", Chat, 400,
            said("litellm.BadRequestError: BedrockException - {\"message\":\"The toolConfig field must be defined when using toolUse and toolResult content blocks.\"}"),
        ),
        (
            "bedrock: calls and results do not match", Chat, 400,
            said("messages.2: `toolUse` ids were found without `toolResult` blocks immediately after: tooluse_1."),
        ),
    ]
}

fn other_samples() -> Vec<Sample> {
    use Wire::{Anthropic, Gemini, GeminiInteractions as Interactions};
    vec![
        (
            "anyone: invalid input",
            Anthropic,
            400,
            anthropic("invalid input"),
        ),
        (
            "anyone: invalid input",
            Interactions,
            400,
            google("Invalid input"),
        ),
        (
            "bedrock: calls without tools on offer",
            Anthropic,
            400,
            anthropic(
                "Requests which include `tool_use` or `tool_result` blocks must define tools",
            ),
        ),
        (
            "anthropic: calls without their results",
            Anthropic,
            400,
            anthropic(
                "messages.125: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            ),
        ),
        (
            "anthropic: results without their calls",
            Anthropic,
            400,
            anthropic(
                "messages.48.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
            ),
        ),
        (
            "anthropic: calls or results twice",
            Anthropic,
            400,
            anthropic("messages.1.content.1: `tool_use` ids must be unique"),
        ),
        (
            "anthropic: ids of another form",
            Anthropic,
            400,
            anthropic(
                "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            ),
        ),
        (
            "anthropic: a round without thoughts",
            Anthropic,
            400,
            anthropic(
                "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
            ),
        ),
        (
            "compatible: blocks that its types do not have",
            Anthropic,
            400,
            anthropic(
                "messages.2.content.0: Input tag 'tool_result' found using 'type' does not match any of the expected tags: 'text', 'image'",
            ),
        ),
        (
            "gemini: calls in the wrong place",
            Gemini,
            400,
            google(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            ),
        ),
        (
            "gemini: calls in the wrong place",
            Gemini,
            400,
            google(
                "Please ensure that function response turn comes immediately after a function call turn.",
            ),
        ),
        (
            "gemini: calls and results do not match",
            Gemini,
            400,
            google(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            ),
        ),
        (
            "gemini: calls that are not signed",
            Gemini,
            400,
            google(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.",
            ),
        ),
        (
            "gemini: members that calls do not have",
            Gemini,
            400,
            google(
                "Invalid JSON payload received. Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot find field.",
            ),
        ),
        (
            "gemini: results without a name",
            Gemini,
            400,
            google(
                "* GenerateContentRequest.contents[12].parts[0].function_response.name: Name cannot be empty.",
            ),
        ),
    ]
}

#[tokio::test]
async fn b177_every_row_of_the_table_knows_an_answer_of_its_own() {
    let mut met = BTreeSet::new();
    let samples = [openai_samples(), other_samples()].concat();
    for (name, wire, status, body) in &samples {
        let (found, error) = row(wire, *status, body).await;
        assert_eq!(found, Some(*name), "{wire} {status} {body}: {error:?}");
        met.insert(*name);
    }
    let missed: Vec<&str> = ROWS
        .iter()
        .map(|row| row.name)
        .filter(|name| !met.contains(name))
        .collect();
    assert!(missed.is_empty(), "rows without an answer: {missed:?}");
    let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ROWS.len(), "a name stands for one row");
    println!("rows={} answers={}", ROWS.len(), samples.len());
}

/// Responses with another cause, for each format with such errors.
fn others() -> Vec<(Vec<Wire>, u16, String)> {
    let openai_like = vec![Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Foundry];
    let google_like = vec![Wire::Gemini, Wire::GeminiInteractions];
    let mut others = Vec::new();
    for (message, code, param) in [
        (
            "This model's maximum context length is 8192 tokens.",
            Some("context_length_exceeded"),
            Some("messages"),
        ),
        (
            "Your input exceeds the context window of this model.",
            Some("context_length_exceeded"),
            Some("input"),
        ),
        (
            "Invalid input: the context length of 4096 tool_calls tokens is exceeded",
            None,
            None,
        ),
        (
            "The model `x` does not exist or you do not have access to it.",
            Some("model_not_found"),
            Some("model"),
        ),
        (
            "Invalid schema for function 'tide': schema must be a JSON Schema of 'type: \"object\"'.",
            Some("invalid_function_parameters"),
            Some("tools[0].function.parameters"),
        ),
        (
            "The provided data does not match the expected schema",
            Some("invalid_payload"),
            Some("/tools/0"),
        ),
        (
            "The provided data does not match the expected schema",
            Some("invalid_payload"),
            Some("/"),
        ),
        (
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            Some("content_filter"),
            Some("prompt"),
        ),
        (
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
            Some("invalid_prompt"),
            None,
        ),
        (
            "Missing required parameter: 'messages'.",
            Some("missing_required_parameter"),
            Some("messages"),
        ),
        ("you must provide a model parameter", None, None),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            Some("unsupported_parameter"),
            Some("max_tokens"),
        ),
        (
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
            Some("unsupported_parameter"),
            Some("parallel_tool_calls"),
        ),
        ("parallel_tool_calls is not supported", None, None),
        (
            "registry.ollama.ai/library/gemma:latest does not support tools",
            None,
            None,
        ),
        (
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            None,
            None,
        ),
        (
            "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
            None,
            None,
        ),
        (
            "'response_format.type' must be 'json_schema' or 'text'",
            None,
            None,
        ),
        (
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            Some("invalid_value"),
            Some("input[1].content[0]"),
        ),
        (
            "Invalid value: 'function_call'. Supported values are: 'function' and 'custom'.",
            Some("invalid_value"),
            Some("tools[0].type"),
        ),
        (
            "The encrypted content gAAA could not be verified.",
            Some("invalid_encrypted_content"),
            None,
        ),
        ("Invalid image data", None, Some("messages[0].content[1]")),
        ("Invalid input image", None, None),
        ("Invalid request Error", None, None),
        ("", None, None),
    ] {
        others.push((openai_like.clone(), 400, openai(message, code, param)));
    }
    for message in [
        "max_tokens: Field required",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "tools.0.custom.input_schema: JSON schema is invalid",
        "messages: text content blocks must be non-empty",
        "messages.1.content.1.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
        "messages.3.content.0: unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_1.",
        "`temperature` may only be set to 1 when thinking is enabled.",
        "Thinking may not be enabled when tool_choice forces tool use.",
        "Your credit balance is too low to access the Anthropic API.",
    ] {
        others.push((vec![Wire::Anthropic], 400, anthropic(message)));
    }
    for message in [
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "API key not valid. Please pass a valid API key.",
        "Function calling is not enabled for models/gemma-3-27b-it",
        "Invalid JSON payload received. Unknown name \"strict\" at 'tools[0].function_declarations[0]': Cannot find field.",
        "* GenerateContentRequest.contents: contents is not specified",
        "Request contains an invalid argument.",
    ] {
        others.push((google_like.clone(), 400, google(message)));
    }
    // The right words with a status that means something else.
    for status in [401, 403, 404, 409, 413, 429, 502, 503] {
        others.push((openai_like.clone(), status, said("Invalid input")));
        others.push((vec![Wire::Anthropic], status, anthropic("Invalid input")));
    }
    others.push((openai_like, 500, said("Invalid input")));
    others
}

#[tokio::test]
async fn b177_answers_with_another_reason_are_in_no_row() {
    let mut looked = 0;
    for (wires, status, body) in others() {
        for wire in wires {
            let (found, error) = row(&wire, status, &body).await;
            assert_eq!(found, None, "{wire} {status} {body}: {error:?}");
            looked += 1;
        }
    }
    println!("answers={looked}");
}

#[tokio::test]
async fn an_answer_that_is_no_refusal_is_in_no_row() {
    // Cut, empty, not JSON, an HTML page: none of them names a cause.
    for reply in [
        Reply::json(200, "{"),
        Reply::json(200, ""),
        Reply::new(400, "text/html", "<h1>Invalid input</h1>"),
        Reply::json(400, ""),
        Reply::json(400, "[]"),
    ] {
        for result in both(|| client(&Wire::OpenAiChat), &reply).await {
            let error = result.unwrap_err();
            assert!(
                matching_row(&Wire::OpenAiChat, &error).is_none(),
                "{error:?}"
            );
        }
    }
}
