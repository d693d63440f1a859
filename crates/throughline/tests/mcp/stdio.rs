use std::path::Path;

use throughline::tool::{Approval, Effect, McpError, ToolFault};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::mcp::setup::{
    call, check_answers, check_cancelling, check_growing, find, script, stdio, text, with_python,
};

#[test]
fn a_process_answers_in_every_way() {
    with_python("a_process_answers_in_every_way", |python| async move {
        let tools = stdio(&python).connect().await.unwrap();
        check_answers(&tools).await;
        check_cancelling(&tools).await;
        check_growing(&tools).await;
        tools.close().await;
    });
}

#[test]
fn hints_of_a_server_never_raise_a_class() {
    with_python(
        "hints_of_a_server_never_raise_a_class",
        |python| async move {
            let tools = stdio(&python)
                .prefixed()
                .effect("echo", Effect::Idempotent)
                .approval(["tide"])
                .allowed(["peek", "echo", "tide", "odd", "files.read"])
                .call_timeout(std::time::Duration::from_secs(7))
                .connect()
                .await
                .unwrap();
            let offered = tools.tools();
            let mut names: Vec<_> = offered
                .iter()
                .map(|tool| tool.spec().name.as_str())
                .collect();
            names.sort_unstable();
            assert!(names[1].starts_with("tides__files_read_"), "{names:?}");
            let odd_one = names.remove(1).to_owned();
            assert_eq!(
                names,
                ["tides__echo", "tides__odd", "tides__peek", "tides__tide"]
            );
            assert_eq!(text(&tools, &odd_one, "{}").await, "read");

            let peek = find(&tools, "tides__peek");
            assert_eq!(peek.spec().effect, Effect::Once);
            assert_eq!(peek.spec().approval, Approval::Never);
            assert_eq!(peek.spec().timeout, Some(std::time::Duration::from_secs(7)));
            let echo = find(&tools, "tides__echo");
            assert_eq!(echo.spec().effect, Effect::Idempotent);
            assert_eq!(echo.spec().description.as_deref(), Some("Say it again"));
            assert_eq!(
                find(&tools, "tides__tide").spec().approval,
                Approval::Always
            );

            // An invalid schema does not make the tool unusable.
            let odd = find(&tools, "tides__odd");
            assert_eq!(
                odd.spec().parameters.as_json().get(),
                r#"{"type":"object","properties":{},"additionalProperties":true}"#
            );
            assert_eq!(text(&tools, "tides__odd", r#"{"days":3}"#).await, "odd 3");
            tools.close().await;
        },
    );
}

#[test]
fn a_slip_in_a_name_is_refused() {
    with_python("a_slip_in_a_name_is_refused", |python| async move {
        let refused = stdio(&python)
            .approval(["tyde"])
            .connect()
            .await
            .unwrap_err();
        assert!(matches!(&refused, McpError::NoSuchTool { name, .. } if name == "tyde"));
        assert!(refused.to_string().contains(r#""tide""#), "{refused}");
    });
}

#[test]
fn a_crashed_server_is_started_again_by_the_next_call() {
    let name = "a_crashed_server_is_started_again_by_the_next_call";
    with_python(name, |python| async move {
        let tools = stdio(&python).connect().await.unwrap();
        let first = text(&tools, "pid", "{}").await;
        // The call was sent and never answered: its outcome is unknown.
        let error = call(&tools, "crash", "{}").await.unwrap_err();
        assert_eq!(error.fault(), ToolFault::Lost, "{error}");
        let second = text(&tools, "pid", "{}").await;
        assert_ne!(first, second);
        assert!(is_gone(&first));
        tools.close().await;
        assert!(is_gone(&second));
        let error = call(&tools, "pid", "{}").await.unwrap_err();
        assert_eq!(error.fault(), ToolFault::Failed);
        assert!(error.to_string().contains("was closed"), "{error}");
    });
}

/// Whether a process is neither running nor a zombie. Known on Linux only.
fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

#[test]
fn a_process_ends_with_the_last_of_its_tools() {
    with_python(
        "a_process_ends_with_the_last_of_its_tools",
        |python| async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = stdio(&python).env("WATCH_PORT", port.to_string());
            let (tools, accepted) = tokio::join!(server.connect(), listener.accept());
            let (mut watched, _) = accepted.unwrap();
            let tools = tools.unwrap();
            let echo = find(&tools, "echo");
            drop(tools);
            let arguments = throughline::model::json::RawJson::new(r#"{"text":"still"}"#).unwrap();
            let context = throughline::tool::CallContext::detached();
            assert!(echo.call(&arguments, context).await.is_ok());
            drop(echo);
            // The end of the process closes its connection.
            assert_eq!(watched.read(&mut [0]).await.unwrap_or(0), 0);
        },
    );
}

#[test]
fn a_process_does_not_see_our_environment() {
    with_python(
        "a_process_does_not_see_our_environment",
        |python| async move {
            let server = stdio(&python).env("TIDE_SECRET", "canary-4711");
            assert!(!format!("{server:?}").contains("canary-4711"));
            let tools = server.connect().await.unwrap();
            let seen = text(&tools, "environment", "{}").await;
            assert!(seen.contains("TIDE_SECRET=canary-4711"));
            assert!(seen.contains("PATH="));
            assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
            assert!(!seen.contains("CARGO_MANIFEST_DIR"));
            tools.close().await;
        },
    );
}

#[test]
fn a_command_that_is_not_there_is_said_to_be_missing() {
    with_python(
        "a_command_that_is_not_there_is_said_to_be_missing",
        |_| async {
            let server = throughline::tool::McpServer::stdio("no-such-tide-server", ["x"]);
            let error = server.connect().await.unwrap_err();
            assert!(matches!(error, McpError::Connect { .. }), "{error}");
        },
    );
}

/// Runs the example, which starts the server itself.
#[test]
fn the_example_gives_the_tools_of_a_server_to_an_agent() {
    with_python("mcp example", |python| async move {
        let test = std::env::current_exe().unwrap();
        // target/PROFILE/deps/THIS beside target/PROFILE/examples/mcp
        let profile = test.ancestors().nth(2).unwrap();
        let output = tokio::process::Command::new(profile.join("examples/mcp"))
            .args(["use echo with text=ahoy", &python, &script(), "stdio"])
            .output()
            .await
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("ahoy"), "{said}");
    });
}
