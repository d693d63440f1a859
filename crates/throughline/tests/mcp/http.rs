use std::process::Stdio;

use throughline::tool::{McpError, McpServer, ToolFault};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::mcp::setup::{
    call, check_answers, check_cancelling, check_growing, script, text, with_python,
};

const TOKEN: &str = "canary-token-4711";

/// The server as a process, which ends with the test.
struct Served {
    child: Child,
    port: String,
}

impl Served {
    async fn start(python: &str, port: Option<&str>) -> Self {
        let mut child = Command::new(python)
            .arg(script())
            .arg("http")
            .args(port)
            .env("TIDE_TOKEN", TOKEN)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().unwrap();
        Self { child, port }
    }

    fn client(&self) -> McpServer {
        McpServer::http(format!("http://127.0.0.1:{}/mcp", self.port))
            .label("tides")
            .bearer(TOKEN)
    }
}

#[test]
fn a_server_at_an_address_answers_in_every_way() {
    let name = "a_server_at_an_address_answers_in_every_way";
    with_python(name, |python| async move {
        let served = Served::start(&python, None).await;
        let tools = served.client().connect().await.unwrap();
        check_answers(&tools).await;
        check_cancelling(&tools).await;
        check_growing(&tools).await;
        tools.close().await;
    });
}

#[test]
fn a_wrong_token_is_refused_and_never_shown() {
    with_python(
        "a_wrong_token_is_refused_and_never_shown",
        |python| async move {
            let served = Served::start(&python, None).await;
            let server = served.client().bearer("canary-wrong-4712");
            assert!(!format!("{server:?}").contains("canary-wrong"));
            let error = server.connect().await.unwrap_err();
            assert!(matches!(error, McpError::Connect { .. }), "{error}");
            assert!(!format!("{error:?}").contains("canary-wrong"), "{error:?}");
        },
    );
}

#[test]
fn a_server_that_comes_back_is_used_again() {
    with_python(
        "a_server_that_comes_back_is_used_again",
        |python| async move {
            let mut served = Served::start(&python, None).await;
            let tools = served.client().connect().await.unwrap();
            let first = text(&tools, "pid", "{}").await;
            let error = call(&tools, "crash", "{}").await.unwrap_err();
            assert_eq!(error.fault(), ToolFault::Lost, "{error}");
            served.child.wait().await.unwrap();
            // No process listens: the server was not even called.
            let error = call(&tools, "pid", "{}").await.unwrap_err();
            assert_eq!(error.fault(), ToolFault::Failed, "{error}");

            let served = Served::start(&python, Some(&served.port)).await;
            // After a failed attempt there is a pause.
            let second = loop {
                if let Ok(output) = call(&tools, "pid", "{}").await {
                    break output;
                }
                tokio::task::yield_now().await;
            };
            assert_ne!(second, throughline::model::Output::Text(first));
            drop(served);
        },
    );
}
