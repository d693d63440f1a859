//! MCP servers of the configuration: connected when they are needed, never a reason not to start.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use throughline::Tool;
use throughline::tool::{Approval, Effect};
use throughline_server::McpServers;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use crate::http::support::{config, end, start};

/// A tool that was called, and its arguments.
type Called = (String, serde_json::Value);

/// An MCP server over HTTP that has two tools.
pub(crate) struct Scripted {
    pub(crate) url: String,
    connected: Arc<AtomicUsize>,
    called: Arc<Mutex<Vec<Called>>>,
    /// Calls of tools wait for it.
    gate: Arc<RwLock<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scripted {
    /// The tools that were called.
    pub(crate) fn called(&self) -> Vec<String> {
        let called = self.called.lock().unwrap();
        called.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The arguments of all calls.
    pub(crate) fn arguments(&self) -> Vec<serde_json::Value> {
        let called = self.called.lock().unwrap();
        called.iter().map(|(_, given)| given.clone()).collect()
    }

    /// Lets no call of a tool through until the guard is dropped.
    pub(crate) async fn hold(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).write_owned().await
    }

    pub(crate) async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn on(listener: TcpListener) -> Self {
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let connected = Arc::new(AtomicUsize::new(0));
        let called = Arc::new(Mutex::new(Vec::new()));
        let gate = Arc::new(RwLock::new(()));
        let counts = (Arc::clone(&connected), Arc::clone(&called));
        let passed = Arc::clone(&gate);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream, counts.clone(), Arc::clone(&passed)));
            }
        });
        Self {
            url,
            connected,
            called,
            gate,
            task,
        }
    }
}

async fn answer(
    stream: TcpStream,
    (connected, called): (Arc<AtomicUsize>, Arc<Mutex<Vec<Called>>>),
    gate: Arc<RwLock<()>>,
) {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    let mut first = String::new();
    stream.read_line(&mut first).await.unwrap();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let line = line.trim_end().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let request: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match request["method"].as_str() {
        Some("initialize") => {
            connected.fetch_add(1, Ordering::SeqCst);
            serde_json::json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
            })
        }
        Some("tools/list") => serde_json::json!({"tools": [
            {"name": "get_order", "description": "Reads.", "inputSchema": {"type": "object"}},
            {"name": "place_order", "description": "Places.", "inputSchema": {"type": "object"}},
        ]}),
        Some("tools/call") => {
            drop(gate.read().await);
            let name = request["params"]["name"].as_str().unwrap();
            let given = request["params"]["arguments"].clone();
            let mut called = called.lock().unwrap();
            called.push((name.to_owned(), given.clone()));
            // The output of an execution that has an amount says which one it was.
            let text = match given["amount"].as_u64() {
                Some(amount) => format!("{amount} at place {}", called.len()),
                None => format!("{name} is done"),
            };
            serde_json::json!({"content": [{"type": "text", "text": text}]})
        }
        _ => serde_json::Value::Null,
    };
    let reply = match (first.starts_with("POST"), result.is_null()) {
        (false, _) => {
            "HTTP/1.1 405 Method Not AllowedTools\r\ncontent-length: 0\r\n\r\n".to_owned()
        }
        (true, true) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
        (true, false) => {
            let id = &request["id"];
            let body = serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result});
            let body = body.to_string();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            )
        }
    };
    // A client that has gone does not mind.
    let _ = stream.get_mut().write_all(reply.as_bytes()).await;
}

fn servers(url: &str, more: &str) -> McpServers {
    let file = format!("[mcp.orders]\nurl = \"{url}\"\n{more}");
    McpServers::of(&config(&file, &[]))
}

fn named<'t>(tools: &'t [Arc<dyn Tool>], name: &str) -> &'t throughline::tool::ToolSpec {
    tools
        .iter()
        .map(Tool::spec)
        .find(|spec| spec.name == name)
        .unwrap()
}

#[tokio::test]
async fn tools_have_the_effects_and_guards_of_the_configuration() {
    let scripted = Scripted::start().await;
    let more = "effects = { get_order = \"read_only\" }\napproval = [\"place_order\"]\n";
    let servers = servers(&scripted.url, more);
    assert_eq!(scripted.connected.load(Ordering::SeqCst), 0);
    let tools = servers.tools("orders").await.unwrap();
    let read = named(&tools, "get_order");
    assert_eq!(
        (read.effect, read.approval),
        (Effect::ReadOnly, Approval::Never)
    );
    let place = named(&tools, "place_order");
    assert_eq!(
        (place.effect, place.approval),
        (Effect::Once, Approval::Always)
    );
    // The connection is kept, and so are the tools.
    let again = servers.tools("orders").await.unwrap();
    assert!(Arc::ptr_eq(&tools[0], &again[0]));
    assert_eq!(scripted.connected.load(Ordering::SeqCst), 1);
    servers.close().await;
    let error = servers.tools("orders").await.err().unwrap();
    assert_eq!(error.status, 502);
}

#[tokio::test]
async fn many_that_ask_at_once_make_one_connection() {
    let scripted = Scripted::start().await;
    let servers = servers(&scripted.url, "");
    let asked = (0..8).map(|_| servers.tools("orders"));
    let answers = futures_util::future::join_all(asked).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(scripted.connected.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_label_that_nobody_has_is_a_mistake_of_the_request() {
    let servers = servers("http://127.0.0.1:9/mcp", "");
    assert_eq!(servers.labels().collect::<Vec<_>>(), ["orders"]);
    let error = servers.tools("oders").await.err().unwrap();
    assert_eq!((error.status, error.param.as_deref()), (400, Some("tools")));
    assert!(error.message.contains("\"orders\""), "{}", error.message);
}

#[tokio::test]
async fn a_server_that_is_down_is_an_error_and_tried_again_later() {
    // A port without a listener, until there is one.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let servers = servers(&format!("http://{address}/mcp"), "");
    let error = servers.tools("orders").await.err().unwrap();
    assert_eq!(
        (error.status, error.code.as_deref()),
        (502, Some("upstream_unavailable"))
    );
    assert_eq!(error.should_retry, Some(true));
    let wait = error.retry_after.unwrap();
    assert!(
        !error.message.contains(&address.port().to_string()),
        "{}",
        error.message
    );

    let scripted = Scripted::on(TcpListener::bind(address).await.unwrap());
    // There is no attempt before the pause is over.
    let resting = servers.tools("orders").await.err().unwrap();
    assert!(resting.retry_after.unwrap() <= wait);
    assert_eq!(scripted.connected.load(Ordering::SeqCst), 0);
    tokio::time::pause();
    tokio::time::advance(wait).await;
    tokio::time::resume();
    let tools = servers.tools("orders").await.unwrap();
    assert_eq!(tools.len(), 2);
}

#[tokio::test]
async fn a_slip_in_the_configuration_is_said_and_leaves_no_tool_unguarded() {
    let scripted = Scripted::start().await;
    let servers = servers(&scripted.url, "approval = [\"place_oder\"]\n");
    let error = servers.tools("orders").await.err().unwrap();
    assert_eq!(
        (error.status, error.code.as_deref()),
        (500, Some("mcp_misconfigured"))
    );
    assert!(error.message.contains("place_oder"), "{}", error.message);
    assert!(error.message.contains("[mcp.orders]"), "{}", error.message);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_of_its_own() {
    let file = "[mcp.gone]\ncommand = [\"throughline-no-such-program\"]\n";
    let servers = McpServers::of(&config(file, &[]));
    let error = servers.tools("gone").await.err().unwrap();
    assert_eq!(error.status, 502);
    assert!(
        !error.message.contains("no-such-program"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_server_starts_and_stops_whatever_its_mcp_servers_do() {
    let file = "[mcp.gone]\nurl = \"http://127.0.0.1:9/mcp\"\n\
                [[agent]]\nid = \"a\"\nmodel = \"demo\"\ntools = [\"mcp:gone\"]\n";
    let server = start(file).await;
    assert_eq!(server.app().mcp.labels().collect::<Vec<_>>(), ["gone"]);
    end(server).await;
}
