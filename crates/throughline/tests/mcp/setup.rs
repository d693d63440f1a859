//! Shared by these tests: the server, and calls of its tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use throughline::Tool;
use throughline::model::json::RawJson;
use throughline::model::{Body, Content, MediaKind, MediaSource, Output};
use throughline::tool::{CallContext, McpServer, McpTools, ToolError, ToolFault};

/// Longer than any of these tests takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The interpreter; `None` after printing that the test was skipped.
pub(crate) fn python(test: &str) -> Option<String> {
    let found = std::env::var("THROUGHLINE_PYTHON").ok();
    let found = found.filter(|path| !path.is_empty());
    if found.is_none() {
        println!("skipped {test}: THROUGHLINE_PYTHON names no Python with the MCP SDK");
    }
    found
}

/// Runs a test that needs Python, with a timeout.
pub(crate) fn with_python<F: Future<Output = ()>>(test: &str, run: impl FnOnce(String) -> F) {
    let Some(python) = python(test) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let done = runtime.block_on(async { tokio::time::timeout(PATIENCE, run(python)).await });
    done.unwrap_or_else(|_| panic!("{test} took too long"));
}

pub(crate) fn script() -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("tests/clients/python/mcp_server.py");
    script.to_str().unwrap().to_owned()
}

/// The server as a process.
pub(crate) fn stdio(python: &str) -> McpServer {
    McpServer::stdio(python, [script(), "stdio".to_owned()])
        .label("tides")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .show_stderr()
}

pub(crate) fn find(tools: &McpTools, name: &str) -> Arc<dyn Tool> {
    let tools = tools.tools();
    let found = tools.iter().find(|tool| tool.spec().name == name);
    Arc::clone(found.unwrap_or_else(|| panic!("there is no tool {name}")))
}

pub(crate) async fn call(
    tools: &McpTools,
    name: &str,
    arguments: &str,
) -> Result<Output, ToolError> {
    let arguments = RawJson::new(arguments).unwrap();
    let context = CallContext::detached();
    let output = find(tools, name).call(&arguments, context).await?;
    Ok(output.output)
}

pub(crate) async fn text(tools: &McpTools, name: &str, arguments: &str) -> String {
    match call(tools, name, arguments).await {
        Ok(Output::Text(text)) => text,
        other => panic!("{name} gave {other:?}"),
    }
}

/// Checks each kind of answer, over any transport.
pub(crate) async fn check_answers(tools: &McpTools) {
    // A result that is not an object is wrapped in the structured form, and also sent as text.
    assert_eq!(text(tools, "echo", r#"{"text":"ahoy é"}"#).await, "ahoy é");
    assert_eq!(
        call(tools, "tide", r#"{"port":"Dover"}"#).await.unwrap(),
        Output::Json(RawJson::new(r#"{"port":"Dover","metres":6.5}"#).unwrap())
    );
    assert_eq!(call(tools, "nothing", "{}").await.unwrap(), Output::None);
    assert_eq!(text(tools, "key", "{}").await, "detached");
    check_media(call(tools, "media", "{}").await.unwrap());

    let error = call(tools, "fail", "{}").await.unwrap_err();
    assert_eq!(error.fault(), ToolFault::Reported);
    assert!(
        error.to_string().contains("there is no port called Dovr"),
        "{error}"
    );
    // The model is shown errors of the server.
    let error = call(tools, "echo", r#"{"text":[]}"#).await.unwrap_err();
    assert_eq!(error.fault(), ToolFault::Reported, "{error}");
}

fn check_media(output: Output) {
    let Output::Parts(parts) = output else {
        panic!("{output:?}");
    };
    let told = parts.iter().map(|part| match &part.body {
        Body::Text(text) => text.text.clone(),
        Body::Media(media) => {
            let MediaSource::Data(data) = &media.source else {
                panic!("{media:?}");
            };
            let kind = match media.kind {
                MediaKind::Image => "image",
                MediaKind::Audio => "audio",
                MediaKind::Video => "video",
                MediaKind::File => "file",
            };
            format!(
                "{kind} {} {data}",
                media.media_type.as_deref().unwrap_or("-")
            )
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "see",
            "image image/png UE5H",
            "audio audio/wav V0FW",
            "low water",
            "file application/pdf UERG",
            "chart <file:///chart>: of Dover",
        ]
    );
    assert!(parts.iter().all(|part: &Content| part.vendor.is_none()));
}

/// Checks that the server is told about a cancelled call.
pub(crate) async fn check_cancelling(tools: &McpTools) {
    let slow = find(tools, "slow");
    let context = CallContext::detached();
    let cancel = context.cancel.clone();
    let arguments = RawJson::new("{}").unwrap();
    let running = slow.call(&arguments, context);
    let cancelling = async {
        // This call is answered after the slow one was sent, so that is under way.
        text(tools, "echo", r#"{"text":"go"}"#).await;
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(running, cancelling);
    assert_eq!(answer.unwrap_err().fault(), ToolFault::Lost);
    assert_eq!(text(tools, "was_cancelled", "{}").await, "yes");
}

/// Checks that the tools are listed again after a notification.
pub(crate) async fn check_growing(tools: &McpTools) {
    assert!(!tools.have_changed());
    let before = find(tools, "echo");
    assert_eq!(text(tools, "grow", "{}").await, "done");
    // A notification may arrive after the answer.
    while !tools.have_changed() {
        tokio::task::yield_now().await;
    }
    tools.refresh().await.unwrap();
    assert!(!tools.have_changed());
    assert_eq!(text(tools, "grown", "{}").await, "grown");
    assert!(Arc::ptr_eq(&before, &find(tools, "echo")));
}
