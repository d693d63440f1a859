//! The MCP server whose tool must not run twice, and its log.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

use serde_json::Value;
use throughline_testkit::Scratch;

/// A trigger for a kill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The tool ran for this case.
    Charged(String),
    /// The upstream was sent results of this case.
    Asked(String),
    /// The client read an event of its stream.
    Event,
    /// The client has its answer, or lost the connection.
    Over,
}

/// An execution of the tool, from its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) amount: u64,
    /// Unique for each execution; part of the tool's output.
    pub(crate) receipt: String,
    /// The idempotency key that came with the call.
    pub(crate) key: String,
}

impl Charge {
    /// The output of the tool.
    pub(crate) fn output(&self) -> String {
        format!("charged {}, receipt {}", self.amount, self.receipt)
    }
}

/// The MCP server.
pub(crate) struct ChargeServer {
    child: Child,
    /// The server ends when this is closed.
    _input: Option<ChildStdin>,
    pub(crate) url: String,
    log: PathBuf,
    read: u64,
    charges: HashMap<String, Vec<Charge>>,
    /// The total number of executions.
    pub(crate) count: u64,
}

impl ChargeServer {
    pub(crate) fn start(
        python: &str,
        scratch: &Scratch,
        signals: Sender<Signal>,
    ) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = script.join("../../tests/clients/python/charge_server.py");
        let log = scratch.path().join("charges.jsonl");
        let failed = |error: std::io::Error| format!("the MCP server does not start: {error}");
        let mut child = Command::new(python)
            .arg(script)
            .arg(&log)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let input = child.stdin.take();
        let out = child.stdout.take().ok_or("its output is piped")?;
        let mut out = BufReader::new(out);
        let mut port = String::new();
        out.read_line(&mut port).map_err(failed)?;
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let Some(case) = line.strip_prefix("charged ") else {
                    continue;
                };
                // The test may have ended.
                let _ = signals.send(Signal::Charged(case.to_owned()));
            }
        });
        Ok(Self {
            child,
            _input: input,
            url: format!("http://127.0.0.1:{}/mcp", port.trim()),
            log,
            read: 0,
            charges: HashMap::new(),
            count: 0,
        })
    }

    /// The executions of a case so far, in order.
    pub(crate) fn charges(&mut self, case: &str) -> Result<Vec<Charge>, String> {
        self.read_log()
            .map_err(|error| format!("the log cannot be read: {error}"))?;
        Ok(self.charges.get(case).cloned().unwrap_or_default())
    }

    fn read_log(&mut self) -> std::io::Result<()> {
        let mut file = std::fs::File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // An incomplete line is read the next time.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        for line in text[..whole].lines() {
            let line: Value = serde_json::from_str(line)?;
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            self.count += 1;
            self.charges.entry(text("case")).or_default().push(Charge {
                amount: line["amount"].as_u64().unwrap_or_default(),
                receipt: text("receipt"),
                key: text("key"),
            });
        }
        Ok(())
    }
}

impl Drop for ChargeServer {
    fn drop(&mut self) {
        // This is the process that was started here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
