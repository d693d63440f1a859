//! Running a program with an SDK, and what it found.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// Where a program looks for the server and for the world around it.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) orders: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// What a program found.
#[derive(Default)]
pub(crate) struct Found {
    /// Its SDK with the version, if it came to its end.
    pub(crate) sdk: Option<String>,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// The checks that failed, and what else went wrong.
    pub(crate) problem: Option<String>,
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the workspace").to_owned()
}

/// A folder or file of an SDK: what the variable says, or where the test command installs it.
fn installed(variable: &str, place: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = named.unwrap_or_else(|| root().join("target/clients").join(place));
    assert!(
        path.exists(),
        "{} is missing: `cargo xtask test` installs the SDKs, or {variable} says where they are",
        path.display()
    );
    path
}

/// A program in Python.
pub(crate) fn python(name: &str) -> Command {
    let python = installed("THROUGHLINE_CLIENTS_PYTHON", "server-python/bin/python");
    let mut command = Command::new(python);
    command.arg(root().join("tests/clients/server-python").join(name));
    command.env("PYTHONUTF8", "1");
    command
}

/// A program in JavaScript. Node looks for packages beside a program, so it goes there.
pub(crate) fn node(name: &str) -> Command {
    let folder = installed("THROUGHLINE_CLIENTS_NODE", "server-node");
    let sources = root().join("tests/clients/server-node");
    for file in std::fs::read_dir(&sources).expect("the programs are there") {
        let path = file.expect("the folder can be read").path();
        if path.extension().is_some_and(|extension| extension == "mjs") {
            let name = path.file_name().expect("a file has a name");
            copy_atomically(&path, &folder.join(name));
        }
    }
    let mut command = Command::new("node");
    command.arg(folder.join(name));
    command
}

/// Copy a file so that a program of another test, which may be importing the target, reads the old one or the
/// new one and never a part.
fn copy_atomically(from: &Path, to: &Path) {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let mut part = to.as_os_str().to_owned();
    part.push(format!(".{}.{number}", std::process::id()));
    std::fs::copy(from, &part).expect("the folder can be written");
    std::fs::rename(&part, to).expect("the folder can be written");
}

/// The program that runs the codex command line. The variable in its environment names the executable.
pub(crate) fn codex() -> Command {
    let binary = installed("THROUGHLINE_CLIENTS_CODEX", "codex/node_modules/.bin/codex");
    let mut command = python("codex_cli.py");
    command.arg("--codex").arg(binary);
    command
}

/// The program that runs the Claude Code command line. The variable in its environment names the executable.
pub(crate) fn claude_code() -> Command {
    let binary = installed("THROUGHLINE_CLIENTS_CLAUDE_CODE", "claude-code/claude");
    let mut command = python("claude_code.py");
    command.arg("--claude").arg(binary);
    command
}

/// The program for the async-openai crate, which is a package of its own.
pub(crate) fn async_openai() -> Command {
    const BUILT: &str = "async-openai/release/throughline-async-openai";
    Command::new(installed("THROUGHLINE_CLIENTS_ASYNC_OPENAI", BUILT))
}

/// Run a program on a model; one without a vendor behind it is built in. Gives what it found.
/// `THROUGHLINE_SCENARIO` restricts the run to one scenario.
pub(crate) fn run(
    mut command: Command,
    places: Places,
    model: &str,
    vendor: Option<&str>,
) -> Found {
    command
        .arg("--base-url")
        .arg(format!("http://{}/v1", places.server));
    command.arg("--control").arg(places.orders.to_string());
    command.arg("--model").arg(model);
    if let Some(vendor) = vendor {
        command.arg("--upstream").arg(vendor);
    }
    if let Some(only) = std::env::var_os("THROUGHLINE_SCENARIO") {
        command.arg("--only").arg(only);
    }
    run_command(command, model)
}

/// Run a program with the arguments that it has, and read what it found about `what`.
pub(crate) fn run_command(mut command: Command, what: &str) -> Found {
    // Nothing is to leave the machine, whatever this one is set up for.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_lowercase();
        let settings = [
            "anthropic_",
            "claude_",
            "openai_",
            "langchain_",
            "langsmith_",
            "codex_",
            "logfire_",
        ];
        if text.ends_with("_proxy") || settings.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.env("NO_PROXY", "*").stdin(Stdio::null());
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let checks = |ok: bool| lines.iter().filter(move |line| line["ok"] == ok);
    let wrong: Vec<String> = checks(false).map(Value::to_string).collect();
    let end = lines.last().and_then(|line| line["sdk"].as_str());
    let mut found = Found {
        sdk: end.map(str::to_owned),
        passed: checks(true).count() as u64,
        failed: wrong.len() as u64,
        problem: None,
    };
    if !output.status.success() || found.failed > 0 || found.sdk.is_none() {
        // A program that did not come to its end has failed, whatever its checks say.
        found.failed = found.failed.max(1);
        found.problem = Some(format!(
            "{what}: {} checks failed\n{}\n{}",
            wrong.len(),
            wrong.join("\n"),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    found
}
