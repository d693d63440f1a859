use rmcp::model::{CallToolResult, ContentBlock, Tool as Listed};
use throughline_model::json::RawJson;
use throughline_model::{Content, Output};

use super::{McpServer, mcp_tool, output};
use crate::tool::ToolFault;

fn result(json: &str) -> CallToolResult {
    serde_json::from_str(json).unwrap()
}

fn read(json: &str) -> Output {
    output::read(result(json)).unwrap().output
}

#[test]
fn a_structured_result_is_read_once() {
    let json = |text| Output::Json(RawJson::new(text).unwrap());
    assert_eq!(
        read(r#"{"content":[],"structuredContent":{"a":1}}"#),
        json(r#"{"a":1}"#)
    );
    let echoed =
        r#"{"content":[{"type":"text","text":"{ \"a\": 1 }"}],"structuredContent":{"a":1}}"#;
    assert_eq!(read(echoed), json(r#"{"a":1}"#));
    let wrapped = r#"{"content":[{"type":"text","text":"4"}],"structuredContent":{"result":4}}"#;
    assert_eq!(read(wrapped), Output::Text("4".to_owned()));
    // Text that differs is kept beside it.
    let both = r#"{"content":[{"type":"text","text":"one order"}],"structuredContent":{"a":1}}"#;
    let parts = vec![Content::text("one order"), Content::text(r#"{"a":1}"#)];
    assert_eq!(read(both), Output::Parts(parts));
    assert_eq!(
        read(r#"{"content":[],"structuredContent":null}"#),
        Output::None
    );
}

#[test]
fn what_a_server_reports_as_an_error_is_for_the_model() {
    let told = |json| {
        let error = output::read(result(json)).unwrap_err();
        assert_eq!(error.fault(), ToolFault::Reported);
        error.to_string()
    };
    let texts =
        r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}"#;
    assert_eq!(told(texts), "a\nb");
    let structured = r#"{"content":[],"structuredContent":{"code":7},"isError":true}"#;
    assert_eq!(told(structured), r#"{"code":7}"#);
    let silent = r#"{"content":[],"isError":true}"#;
    assert_eq!(told(silent), "the tool failed and does not say why");
}

#[test]
fn a_lone_image_is_a_part() {
    let mut result = result(r#"{"content":[]}"#);
    result
        .content
        .push(ContentBlock::image("UE5H", "image/png"));
    let Output::Parts(parts) = output::read(result).unwrap().output else {
        panic!("it is not in parts");
    };
    assert_eq!(parts.len(), 1);
}

#[test]
fn names_that_vendors_refuse_are_made_to_fit() {
    let named = |server: &McpServer, name: &str| {
        let json = format!(r#"{{"name":{name:?},"inputSchema":{{}}}}"#);
        let tool: Listed = serde_json::from_str(&json).unwrap();
        mcp_tool::spec(server, &tool).name
    };
    let plain = McpServer::http("http://127.0.0.1:1/mcp").label("orders");
    assert_eq!(named(&plain, "get_order"), "get_order");
    assert_eq!(
        named(&plain.clone().prefixed(), "get_order"),
        "orders__get_order"
    );
    let (dotted, slashed) = (named(&plain, "get.order"), named(&plain, "get/order"));
    assert!(dotted.starts_with("get_order_") && slashed.starts_with("get_order_"));
    assert_ne!(dotted, slashed);
    let long = named(&plain, &"x".repeat(100));
    assert_eq!(long.len(), 64);
    assert_ne!(long, named(&plain, &"x".repeat(101)));
    assert_eq!(named(&plain, "é".repeat(80).as_str()).len(), 64);
}
