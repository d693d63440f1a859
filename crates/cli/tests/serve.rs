//! `throughline serve` as a process.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use throughline_testkit::Scratch;

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.args(args).current_dir(folder);
    // Variables of the machine must not have an effect.
    for (name, _) in std::env::vars() {
        let vendors = ["OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_"];
        if name.starts_with("THROUGHLINE_") || vendors.iter().any(|v| name.starts_with(v)) {
            command.env_remove(name);
        }
    }
    command
}

/// A server that has printed its address.
struct Running {
    child: Child,
    banner: serde_json::Value,
    _out: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let banner = serde_json::from_str(&line);
        if banner.is_err() {
            let mut said = String::new();
            let stderr = child.stderr.as_mut().unwrap();
            stderr.read_to_string(&mut said).unwrap();
            panic!("{line:?} {said}");
        }
        Self {
            child,
            banner: banner.unwrap(),
            _out: out,
        }
    }

    fn address(&self) -> &str {
        self.banner["address"].as_str().unwrap()
    }

    /// The response to a request, head and body.
    fn ask(&self, line: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let length = body.len();
        write!(
            stream,
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Asks the server to stop; returns its exit code and its standard error.
    fn stop(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

/// Runs a command to its end.
fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

const FREE: [&str; 3] = ["--json", "--listen", "127.0.0.1:0"];

#[test]
fn without_anything_it_serves_the_demo_from_a_file_of_its_own() {
    let folder = Scratch::new("serve");
    for words in [&FREE[..], &["--json", "serve", "--listen", "127.0.0.1:0"]] {
        let server = Running::start(command(folder.path(), words));
        assert_eq!(server.banner["store"], "sqlite://throughline.db");
        assert_eq!(server.banner["durability"], "durable");
        assert_eq!(server.banner["config"], serde_json::Value::Null);
        assert_eq!(server.banner["upstreams"][0]["name"], "demo");
        let url = format!("http://{}/v1", server.address());
        assert_eq!(server.banner["url"], url.as_str());
        let health = server.ask("GET /healthz", "", "");
        assert!(health.starts_with("HTTP/1.1 200 OK\r\n"), "{health}");
        assert!(health.contains("\"durability\":\"durable\""), "{health}");
        assert!(
            server
                .ask("GET /v1/models", "", "")
                .contains("\"id\":\"demo\"")
        );
        let (code, _) = server.stop();
        assert_eq!(code, Some(0));
        assert!(folder.path().join("throughline.db").exists());
    }
}

#[test]
fn the_banner_says_where_and_what_to_try() {
    let folder = Scratch::new("serve");
    std::fs::write(
        folder.path().join("throughline.toml"),
        "[server]\nlisten = \"127.0.0.1:0\"\nstore = \"memory:\"\nlog = \"off\"\n\
         [[agent]]\nid = \"keeper\"\nmodel = \"demo\"\n",
    )
    .unwrap();
    let mut child = command(folder.path(), &[])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let banner: Vec<String> = (0..5).map(|_| lines.next().unwrap().unwrap()).collect();
    let address = banner[0].split(" listens on http://").nth(1).unwrap();
    assert!(TcpStream::connect(address).is_ok(), "{}", banner[0]);
    assert_eq!(banner[1], "  store      memory: (relaxed)");
    assert_eq!(banner[2], "  config     throughline.toml");
    assert_eq!(banner[3], "  upstreams  demo (demo)");
    assert_eq!(
        banner[4],
        format!(
            "  try        curl http://{address}/v1/responses -H 'content-type: application/json' \
             -d '{{\"model\":\"agent/keeper\",\"input\":\"Hello\"}}'"
        )
    );
    assert!(
        Command::new("kill")
            .arg(child.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // The log is disabled.
    assert_eq!(lines.count(), 0);
}

#[test]
fn the_log_holds_no_key_and_nothing_that_was_said() {
    let folder = Scratch::new("serve");
    for format in ["text", "json"] {
        let mut command = command(folder.path(), &FREE);
        command
            .env("THROUGHLINE_STORE", "memory:")
            .env("THROUGHLINE_LOG", "trace")
            .env("THROUGHLINE_SERVER_LOG_FORMAT", format)
            .env("OPENAI_API_KEY", "sk-canary-openai")
            .env("ANTHROPIC_API_KEY", "sk-canary-anthropic");
        let server = Running::start(command);
        let names: Vec<&str> = server.banner["upstreams"]
            .as_array()
            .unwrap()
            .iter()
            .map(|upstream| upstream["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["openai", "anthropic", "demo"]);
        assert!(!server.banner.to_string().contains("canary"));
        let headers = "authorization: Bearer canary-bearer\r\ncookie: canary-cookie\r\n";
        server.ask(
            "POST /v1/responses?canary=canary",
            headers,
            "{\"model\":\"demo\",\"input\":\"canary-input\"}",
        );
        server.ask("GET /v1/models/canary-model", headers, "");
        let (code, said) = server.stop();
        assert_eq!(code, Some(0));
        assert!(said.contains("/v1/models/{*id}"), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
}

#[test]
fn what_is_wrong_is_one_line() {
    let folder = Scratch::new("serve");
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[server]\nlistn = 1\n").unwrap();
    let bad = ["--config", "bad.toml"];
    let (code, out, err) = ended(command(folder.path(), &bad));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert_eq!(
        err,
        "throughline: bad.toml:2: server.listn: unknown key; did you mean \"listen\"?\n"
    );
    let (code, out, err) = ended(command(
        folder.path(),
        &["--json", "serve", "--config", "bad.toml"],
    ));
    assert_eq!((code, err.as_str()), (Some(2), ""));
    let error: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(error["error"]["path"], "server.listn");
    assert_eq!(error["error"]["line"], 2);

    for (words, expected) in [
        (
            &["--listen", "0.0.0.0:0"][..],
            "throughline: --listen: server.listen: 0.0.0.0:0 can be reached from elsewhere",
        ),
        (
            &["--store", "redis://x"],
            "throughline: redis://x: the store cannot be opened",
        ),
        (
            &["--config", "none.toml"],
            "throughline: none.toml: cannot be read",
        ),
        (
            &["--tenant", "other"],
            "throughline: a server that is open to all",
        ),
    ] {
        let (code, out, err) = ended(command(folder.path(), words));
        assert_ne!(code, Some(0), "{words:?}");
        assert_eq!(out, "");
        assert!(err.starts_with(expected), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    let (code, _, err) = ended(command(
        folder.path(),
        &["--listen", "x", "threads", "list"],
    ));
    assert_eq!(code, Some(2));
    assert!(err.contains("--listen is for serve alone"), "{err}");
    let mut log = command(folder.path(), &["--store", "memory:"]);
    log.env("THROUGHLINE_LOG", "a=b=c");
    let (code, _, err) = ended(log);
    assert_eq!(code, Some(2));
    assert!(err.contains("server.log"), "{err}");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let folder = Scratch::new("serve");
    let mut first = command(folder.path(), &FREE);
    first.env("THROUGHLINE_STORE", "memory:");
    let first = Running::start(first);
    let address = first.address().to_owned();
    let second = command(folder.path(), &["--listen", &address]);
    let (code, _, err) = ended(second);
    assert_eq!(code, Some(1));
    assert!(
        err.contains(&address) && err.contains("cannot be listened on"),
        "{err}"
    );
    // No store was created.
    assert!(!folder.path().join("throughline.db").exists());
    first.stop();
}

#[test]
fn a_configuration_can_be_named_by_environment() {
    let folder = Scratch::new("serve");
    let file = folder.path().join("other.toml");
    std::fs::write(&file, "[server]\nstore = \"memory:\"\n").unwrap();
    let mut command = command(folder.path(), &FREE);
    command.env("THROUGHLINE_CONFIG", &file);
    let server = Running::start(command);
    assert_eq!(server.banner["store"], "memory:");
    assert_eq!(server.banner["config"], file.display().to_string());
    server.stop();
}
