use throughline::thread::{OnOpenCalls, Persistence};
use throughline_model::{Effort, ToolChoice};

use super::{CreateRequest, Include, RequestTool, RequireApproval};
use crate::ApiError;

fn parse(body: &str) -> CreateRequest {
    CreateRequest::parse(body.as_bytes()).unwrap()
}

fn refused(body: &str) -> ApiError {
    CreateRequest::parse(body.as_bytes()).unwrap_err()
}

/// Status, code and parameter of a refusal.
fn why(body: &str) -> (u16, Option<String>, Option<String>) {
    let error = refused(body);
    (error.status, error.code.map(Into::into), error.param)
}

fn bad(code: &str, param: &str) -> (u16, Option<String>, Option<String>) {
    (400, Some(code.to_owned()), Some(param.to_owned()))
}

#[test]
fn what_is_not_said_has_its_default() {
    let request = parse("{}");
    assert_eq!(request.model(), None);
    assert!(request.store() && !request.stream() && request.input().is_empty());
    assert_eq!(request.stored_body().get(), "{}");
    assert_eq!(request.extra_for_responses(true), None);
    assert!(!request.seals_reasoning());
}

#[test]
fn wrong_members_are_named() {
    for (body, expected) in [
        (r#"{"model":1}"#, bad("invalid_type", "model")),
        (r#"{"store":"yes"}"#, bad("invalid_type", "store")),
        (r#"{"temperature":"1"}"#, bad("invalid_type", "temperature")),
        (
            r#"{"temperature":2.5}"#,
            bad("decimal_above_max_value", "temperature"),
        ),
        (r#"{"top_p":-0.1}"#, bad("decimal_below_min_value", "top_p")),
        (
            r#"{"max_output_tokens":0}"#,
            bad("integer_below_min_value", "max_output_tokens"),
        ),
        (
            r#"{"max_output_tokens":-3}"#,
            bad("integer_below_min_value", "max_output_tokens"),
        ),
        (
            r#"{"max_output_tokens":1.5}"#,
            bad("invalid_type", "max_output_tokens"),
        ),
        (
            r#"{"top_logprobs":21}"#,
            bad("integer_above_max_value", "top_logprobs"),
        ),
        (
            r#"{"include":["everything"]}"#,
            bad("invalid_value", "include[0]"),
        ),
        (
            r#"{"reasoning":{"effort":"huge"}}"#,
            bad("invalid_value", "reasoning.effort"),
        ),
        (
            r#"{"text":{"format":{"type":"json_schema","name":"a"}}}"#,
            bad("missing_required_parameter", "text.format.schema"),
        ),
        (
            r#"{"tools":[{"type":"function"}]}"#,
            bad("missing_required_parameter", "tools[0].name"),
        ),
        (
            r#"{"tools":[{"type":"function","name":"a b"}]}"#,
            bad("invalid_value", "tools[0].name"),
        ),
        (
            r#"{"tools":[{}]}"#,
            bad("missing_required_parameter", "tools[0].type"),
        ),
        (
            r#"{"tools":[{"type":"mcp","server_label":"a","server_url":"http://b"}]}"#,
            bad("unsupported_value", "tools[0].server_url"),
        ),
        (
            r#"{"tool_choice":"perhaps"}"#,
            bad("invalid_value", "tool_choice"),
        ),
        (
            r#"{"tool_choice":{"type":"function","name":"f"}}"#,
            bad("invalid_value", "tool_choice"),
        ),
        (r#"{"input":5}"#, bad("invalid_type", "input")),
        (r#"{"input":["a"]}"#, bad("invalid_type", "input[0]")),
        (
            r#"{"input":[{"type":"message","role":"tool","content":"a"}]}"#,
            bad("invalid_value", "input[0].role"),
        ),
        (
            r#"{"input":[{"role":"user"}]}"#,
            bad("missing_required_parameter", "input[0].content"),
        ),
        (
            r#"{"input":[{"id":"a"},{"type":"function_call","call_id":"c","arguments":"{}"}]}"#,
            bad("missing_required_parameter", "input[1].name"),
        ),
        (
            r#"{"input":[{"type":"function_call_output","call_id":"c"}]}"#,
            bad("missing_required_parameter", "input[0].output"),
        ),
        (r#"{"metadata":{"a":1}}"#, bad("invalid_type", "metadata.a")),
        (
            r#"{"throughline":{"on_busy":"wait"}}"#,
            bad("invalid_value", "throughline.on_busy"),
        ),
        (
            r#"{"previous_response_id":"resp_1","conversation":"conv_1"}"#,
            bad("mutually_exclusive_parameters", "conversation"),
        ),
    ] {
        assert_eq!(why(body), expected, "{body}");
    }
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    let error = refused("{\"model\": }");
    assert_eq!((error.status, &error.code), (400, &None));
    assert!(
        error.message.contains("line 1 column 11"),
        "{}",
        error.message
    );
    assert!(refused("[]").message.contains("an array"));
    let deep = format!("{{\"input\":{}{}}}", "[".repeat(64), "]".repeat(64));
    assert!(refused(&deep).message.contains("64 levels"));
}

#[test]
fn metadata_has_limits() {
    let pairs = |count: usize| {
        let pairs: Vec<String> = (0..count).map(|n| format!("\"k{n}\":\"v\"")).collect();
        format!("{{\"metadata\":{{{}}}}}", pairs.join(","))
    };
    assert_eq!(parse(&pairs(16)).metadata().len(), 16);
    assert_eq!(
        why(&pairs(17)),
        bad("object_above_max_properties", "metadata")
    );
    let long = |key: usize, value: usize| {
        let (key, value) = ("é".repeat(key), "ü".repeat(value));
        format!("{{\"metadata\":{{\"{key}\":\"{value}\"}}}}")
    };
    assert_eq!(parse(&long(64, 512)).metadata().len(), 1);
    assert_eq!(
        why(&long(65, 1)).1.as_deref(),
        Some("string_above_max_length")
    );
    assert_eq!(
        why(&long(1, 513)).1.as_deref(),
        Some("string_above_max_length")
    );
}

#[test]
fn texts_have_limits() {
    let text = "a".repeat(10_485_760);
    assert!(
        !parse(&format!("{{\"input\":\"{text}\"}}"))
            .input()
            .is_empty()
    );
    assert_eq!(
        why(&format!("{{\"input\":\"{text}b\"}}")),
        bad("string_above_max_length", "input")
    );
    let item = format!(
        "{{\"input\":[{{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"{text}b\"}}]}}"
    );
    assert_eq!(
        why(&item),
        bad("string_above_max_length", "input[0].output")
    );
}

#[test]
fn what_is_not_built_says_so() {
    let error = refused(r#"{"throughline":{"recall":true}}"#);
    assert_eq!(
        (error.status, error.code.as_deref()),
        (501, Some("not_implemented"))
    );
    assert_eq!(error.param.as_deref(), Some("throughline.recall"));
    parse(
        r#"{"conversation":null,"background":false,"truncation":"disabled","context_management":[]}"#,
    );
}

#[test]
fn the_same_request_is_kept_in_the_same_bytes() {
    let one = parse(
        r#"{"model":"m","input":"hi","tools":[],"stream":true,"user":null,"x":{"b":1,"a":2.0}}"#,
    );
    let two = parse(
        r#"{ "x": {"b": 1, "a": 2.0}, "tools": [], "model": "old", "input": "other",
             "previous_response_id": "resp_1", "throughline": {"on_open_calls": "close"},
             "model": "m"}"#,
    );
    assert_eq!(
        one.stored_body().get(),
        r#"{"model":"m","tools":[],"x":{"b":1,"a":2.0}}"#
    );
    assert_eq!(one.stored_body(), two.stored_body());
    assert_eq!(
        CreateRequest::from_stored(&one.stored_body())
            .unwrap()
            .stored_body(),
        one.stored_body()
    );
    assert_eq!(two.extras().on_open_calls, Some(OnOpenCalls::Close));
    assert_eq!(two.model(), Some("m"));
}

#[test]
fn settings_are_read_in_words_that_all_vendors_have() {
    let request = parse(
        r#"{"temperature":0.2,"top_p":1,"max_output_tokens":50,"parallel_tool_calls":false,
            "reasoning":{"effort":"xhigh","summary":"auto"},
            "text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}},"verbosity":"low"},
            "throughline":{"persistence":"per_call"},"store":false,"max_tool_calls":3}"#,
    );
    let settings = request.settings();
    assert_eq!(settings.temperature, Some(0.2));
    assert_eq!(settings.top_p, Some(1.0));
    assert_eq!(settings.max_output_tokens, Some(50));
    assert_eq!(settings.parallel_calls, Some(false));
    assert_eq!(settings.effort, Some(Effort::ExtraHigh));
    assert_eq!(settings.answer.unwrap().name, "n");
    assert_eq!(request.extras().persistence, Some(Persistence::PerCall));
    assert_eq!(request.max_tool_calls(), Some(3));
    assert!(request.seals_reasoning());
    let extra = request.extra_for_responses(true).unwrap();
    assert!(extra.get().contains(r#""effort":"xhigh""#), "{extra}");
}

#[test]
fn an_upstream_that_speaks_responses_gets_what_only_it_knows() {
    let request = parse(
        r#"{"model":"m","max_tool_calls":3,"service_tier":"flex","include":["message.output_text.logprobs"],
            "tools":[{"type":"function","name":"f","strict":true},{"type":"web_search"},
                     {"type":"mcp","server_label":"orders"}]}"#,
    );
    let extra = request.extra_for_responses(true).unwrap();
    assert_eq!(
        extra.get(),
        concat!(
            r#"{"service_tier":"flex","max_tool_calls":3,"#,
            r#""include":["message.output_text.logprobs","reasoning.encrypted_content"]}"#
        )
    );
}

#[test]
fn tools_are_told_apart() {
    let request = parse(
        r#"{"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},
             {"type":"mcp","server_label":"orders","allowed_tools":["a"],
              "require_approval":{"never":{"tool_names":["a"]}}},
             {"type":"namespace","name":"n","tools":[{"type":"function","name":"g"}]},
             {"type":"custom","name":"c"},{"type":"web_search"}],
            "tool_choice":{"type":"allowed_tools","mode":"required","tools":[
             {"type":"function","name":"f"},{"type":"mcp","server_label":"orders"},{"type":"web_search"}]}}"#,
    );
    let [
        RequestTool::Function { def, .. },
        RequestTool::Mcp(mcp),
        RequestTool::Namespace { name, .. },
        RequestTool::Custom { name: custom, .. },
        RequestTool::Hosted { tag, .. },
    ] = request.tools()
    else {
        panic!("{:?}", request.tools());
    };
    assert_eq!((def.name.as_str(), name.as_str()), ("f", "n"));
    assert_eq!((custom.as_str(), tag.as_str()), ("c", "web_search"));
    let names = request.tools().iter().flat_map(RequestTool::names);
    let offered: Vec<String> = names.map(|name| name.offered()).collect();
    assert_eq!(offered, ["f", "n__g", "c"]);
    assert_eq!(mcp.label, "orders");
    let allowed = mcp.allowed.as_ref().unwrap();
    assert!(allowed.matches("a", false) && !allowed.matches("b", true));
    assert!(!mcp.require_approval.asks("a", false) && mcp.require_approval.asks("b", false));
    assert!(RequireApproval::Always.asks("a", true) && !RequireApproval::Unset.asks("a", true));
    assert_eq!(request.tool_choice().choice, ToolChoice::Required);
    let allowed = request.tool_choice().allowed.as_ref().unwrap();
    assert!(allowed.has("f", None) && allowed.has("web_search", None));
    assert!(allowed.has("get_order", Some("orders")) && !allowed.has("c", None));
}

#[test]
fn a_tool_that_is_not_offered_cannot_be_chosen() {
    let choose = |more: &str| {
        let body =
            format!(r#"{{"tool_choice":{{"type":"function","name":"f"}},"tools":[{more}]}}"#);
        CreateRequest::parse(body.as_bytes()).map(|request| request.tool_choice().choice.clone())
    };
    let named = Ok(ToolChoice::Named("f".to_owned()));
    assert!(choose(r#"{"type":"function","name":"g"}"#).is_err());
    for tools in [
        r#"{"type":"function","name":"f"}"#,
        r#"{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}"#,
        r#"{"type":"mcp","server_label":"orders"}"#,
    ] {
        assert_eq!(choose(tools), named);
    }
    parse(r#"{"model":"agent/support","tool_choice":{"type":"function","name":"f"}}"#);
}

#[test]
fn all_eight_includes_are_known() {
    let words: Vec<String> = Include::ALL
        .map(|one| format!("\"{}\"", one.as_str()))
        .to_vec();
    let request = parse(&format!("{{\"include\":[{}]}}", words.join(",")));
    assert_eq!(request.include(), Include::ALL);
}
