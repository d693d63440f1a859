//! Tools that run on the server, and agents that have them: listed once, called inside the run, and
//! only with approval where that is needed.

use serde_json::{Value, json};
use throughline_server::Server;

use crate::http::mcp::Scripted;
use crate::http::support::{Client, end, get, start};

async fn world(more: &str) -> (Scripted, Server) {
    let scripted = Scripted::start().await;
    let file = format!(
        "{more}\n[mcp.orders]\nurl = \"{}\"\neffects = {{ get_order = \"read_only\" }}\n\
         approval = [\"place_order\"]\n",
        scripted.url
    );
    let server = start(&file).await;
    (scripted, server)
}

async fn create(server: &Server, body: &Value) -> (u16, Value) {
    let mut client = Client::to(server.address).await;
    let body = body.to_string();
    let answer = client
        .send("POST /v1/responses", &[], body.as_bytes())
        .await;
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

async fn completed(server: &Server, body: &Value) -> Value {
    let (status, response) = create(server, body).await;
    assert_eq!(
        (status, &response["status"]),
        (200, &json!("completed")),
        "{response}"
    );
    response
}

fn types(response: &Value) -> Vec<&str> {
    let output = response["output"].as_array().unwrap().iter();
    output.map(|item| item["type"].as_str().unwrap()).collect()
}

fn orders() -> Value {
    json!([{"type": "mcp", "server_label": "orders", "require_approval": "never"}])
}

#[tokio::test]
async fn a_server_is_listed_once_in_a_chain_and_its_tools_run_here() {
    let (scripted, server) = world("").await;
    let first = completed(
        &server,
        &json!({"model": "demo", "input": "Call get_order with {}", "tools": orders()}),
    )
    .await;
    assert_eq!(types(&first), ["mcp_list_tools", "mcp_call", "message"]);
    let call = &first["output"][1];
    assert_eq!(call["server_label"], "orders");
    assert_eq!(
        (&call["name"], &call["output"]),
        (&json!("get_order"), &json!("get_order is done"))
    );
    let next = completed(
        &server,
        &json!({"model": "demo", "input": "Call get_order with {}", "tools": orders(),
            "previous_response_id": first["id"]}),
    )
    .await;
    assert_eq!(types(&next), ["mcp_call", "message"]);
    assert_eq!(scripted.called(), ["get_order", "get_order"]);
    // What was narrowed is not offered.
    let narrowed =
        json!([{"type": "mcp", "server_label": "orders", "allowed_tools": ["place_order"]}]);
    let without = completed(
        &server,
        &json!({"model": "demo", "input": "Call get_order with {}", "tools": narrowed}),
    )
    .await;
    assert_eq!(types(&without), ["mcp_list_tools", "message"]);
    end(server).await;
}

#[tokio::test]
async fn r25_an_approval_is_answered_by_the_next_response_once() {
    let (scripted, server) = world("").await;
    let ask = json!({"model": "demo", "input": "Call place_order with {}", "tools": orders()});
    let first = completed(&server, &ask).await;
    assert_eq!(types(&first), ["mcp_list_tools", "mcp_approval_request"]);
    assert!(scripted.called().is_empty());
    let request = first["output"][1]["id"].clone();
    let again = |input: Value| {
        json!({"model": "demo", "tools": orders(), "previous_response_id": first["id"],
            "input": input})
    };
    let (status, refused) = create(&server, &again(json!("never mind"))).await;
    assert_eq!(status, 400, "{refused}");
    let yes =
        json!([{"type": "mcp_approval_response", "approval_request_id": request, "approve": true}]);
    let told = completed(&server, &again(yes.clone())).await;
    assert_eq!(types(&told), ["mcp_call", "message"]);
    assert_eq!(told["output"][0]["output"], "place_order is done");
    assert_eq!(scripted.called(), ["place_order"]);
    // Another branch comes too late.
    let (status, late) = create(&server, &again(yes)).await;
    assert_eq!(status, 409, "{late}");
    assert_eq!(late["error"]["code"], "approval_already_answered");
    assert_eq!(late["error"]["response_id"], told["id"]);
    assert_eq!(scripted.called(), ["place_order"]);
    // Both are told again as they were.
    for response in [&first, &told] {
        let path = format!("GET /v1/responses/{}", response["id"].as_str().unwrap());
        let read = Client::to(server.address).await.send(&path, &[], b"").await;
        let read: Value = serde_json::from_str(&read.body).unwrap();
        assert_eq!(read, *response);
    }
    end(server).await;
}

#[tokio::test]
async fn a_refusal_is_told_to_the_model_and_nothing_runs() {
    let (scripted, server) = world("").await;
    let ask = json!({"model": "demo", "input": "Call place_order with {}", "tools": orders()});
    let first = completed(&server, &ask).await;
    let no = json!([{"type": "mcp_approval_response", "approve": false, "reason": "too dear",
        "approval_request_id": first["output"][1]["id"]}]);
    let told = completed(
        &server,
        &json!({"model": "demo", "tools": orders(), "previous_response_id": first["id"],
            "input": no}),
    )
    .await;
    assert!(types(&told).contains(&"message"), "{told}");
    assert!(scripted.called().is_empty());
    let unasked = json!([{"type": "mcp_approval_response", "approve": true,
        "approval_request_id": "mcpr_1"}]);
    let (status, error) = create(&server, &json!({"model": "demo", "input": unasked})).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (400, &json!("approval_not_found"))
    );
    let unkept = json!({"model": "demo", "input": "x", "tools": orders(), "store": false});
    let (status, error) = create(&server, &unkept).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (400, &json!("approval_requires_store"))
    );
    end(server).await;
}

#[tokio::test]
async fn an_agent_is_a_model_with_instructions_and_tools_of_its_own() {
    let agent = "[[agent]]\nid = \"support\"\nmodel = \"demo\"\ninstructions = \"Be kind.\"\n\
                 tools = [\"mcp:orders\"]\n";
    let (scripted, server) = world(agent).await;
    let ask = json!({"model": "agent/support", "input": "Call get_order with {}"});
    let told = completed(&server, &ask).await;
    assert_eq!(types(&told), ["mcp_list_tools", "mcp_call", "message"]);
    assert_eq!(told["model"], "agent/support");
    assert_eq!(scripted.called(), ["get_order"]);
    let clash = json!({"model": "agent/support", "input": "x",
        "tools": [{"type": "function", "name": "get_order", "parameters": {"type": "object"}}]});
    let (status, error) = create(&server, &clash).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (400, &json!("duplicate_tool"))
    );
    let nowhere = json!([{"type": "mcp", "server_label": "nowhere"}]);
    let (status, _) = create(
        &server,
        &json!({"model": "demo", "input": "x", "tools": nowhere}),
    )
    .await;
    assert_eq!(status, 400);
    end(server).await;
}

#[tokio::test]
async fn a_budget_of_tokens_that_is_used_up_leaves_a_response_incomplete() {
    let (scripted, server) = world("[limits]\ntokens = 1\n").await;
    let ask = json!({"model": "demo", "input": "Call get_order with {}", "tools": orders()});
    let (status, response) = create(&server, &ask).await;
    assert_eq!(
        (
            status,
            &response["status"],
            &response["incomplete_details"]["reason"],
            &response["throughline"]["stop_reason"],
        ),
        (
            200,
            &json!("incomplete"),
            &json!("max_output_tokens"),
            &json!("budget"),
        ),
        "{response}"
    );
    assert!(scripted.called().is_empty());
    // It is told again as it was.
    let id = response["id"].as_str().unwrap();
    let again = get(server.address, &format!("/v1/responses/{id}")).await;
    let again: Value = serde_json::from_str(&again.body).unwrap();
    assert_eq!(again["status"], "incomplete");
    end(server).await;
}
