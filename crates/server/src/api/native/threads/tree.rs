//! `GET /api/v1/threads/{thread}/tree`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::json::ArrayWriter;
use throughline_store::NodeId;

use super::find::{about, find_whole};
use crate::api::native::forms::record;
use crate::api::native::openapi::{
    Operation, Verb, answer, integer_of, list, named, pattern, text,
};
use crate::api::native::request::{Call, LARGEST_PAGE, Route, json_text};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/threads/{thread}/tree",
        "getThreadTree",
        "The nodes of a thread and what they follow, parents before children.",
    )
    .about("Its own nodes, and those that it shares on the way to its head.")
    .query("limit", integer_of(1, LARGEST_PAGE))
    .query(
        "after",
        pattern("^node_[0-9a-f]{32}_[0-9]+$").about("The last node of the page before."),
    )
    .answers(
        200,
        "A page of nodes.",
        answer()
            .with("thread", named("Thread"))
            .with("nodes", list(named("TreeNode")))
            .with(
                "next",
                text().nullable().about("The last node, if there are more."),
            ),
    )
    .fails(404, "There is no such thread.");
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let after: Option<NodeId> = call.parsed("after")?;
    let limit = call.limit();
    let thread = find_whole(&call).await?.thread;
    let head = thread.head.map(|head| head.node);
    // One more, to know whether there are more.
    let nodes = call
        .app
        .store
        .tree(&call.scope, &thread.id, after, limit + 1)
        .await;
    let mut nodes = nodes.map_err(|error| about(&call, &error))?;
    let more = nodes.len() > limit;
    nodes.truncate(limit);
    let body = record::object(|object| {
        record::thread(object.key("thread"), &thread);
        let mut array = ArrayWriter::new(object.key("nodes"));
        for node in &nodes {
            record::tree_node(array.slot(), node, head);
        }
        array.end();
        let next = nodes.last().filter(|_| more).map(|node| node.node);
        record::opt_node(object, "next", next);
    });
    Ok(json_text(StatusCode::OK, body))
}
