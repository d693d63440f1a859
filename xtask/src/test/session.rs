//! Runs the sessions the README shows: commands and programs that belong together.
//!
//! Commands in blocks marked `console session` run one after the other in one shell, so that they
//! share variables and what they leave in the background. Blocks marked `python session` are
//! programs that run in between; behind two spaces and a `#`, a line that prints says what.
//!
//! Everything is run as it is written, but for three things: `cargo run --release` starts the
//! binary of the test build, the port is a free one, and the folder is a new one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::Counts;
use super::readme::{agree, binaries};
use crate::tool::{self, Failure};

/// The port that the README names.
const PORT: &str = "8377";

/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a line holds when a command is done, before its number and its exit code.
const DONE: &str = "=== done";

/// What stands in for cargo. The shell knows the server by the number of this process.
const CARGO: &str = "#!/bin/sh\n\
    [ \"$1 $2\" = \"run --release\" ] || { echo \"cargo is asked for: $*\" >&2; exit 2; }\n\
    shift 2; [ \"$1\" = -- ] && { shift; exec throughline \"$@\"; }\n\
    exec throughline >>server.log 2>&1\n";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    line: usize,
    text: String,
    kind: StepKind,
    output: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    Command,
    Program,
}

/// Every step of the sessions, in order.
pub(super) fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block = None;
    for (index, line) in readme.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            block = match (block, info.trim()) {
                (None, "console session") => Some(Some(StepKind::Command)),
                (None, "python session") => Some(Some(StepKind::Program)),
                (None, _) => Some(None),
                (Some(_), _) => None,
            };
            if block == Some(Some(StepKind::Program)) {
                steps.push(Step::new(index + 1, StepKind::Program, ""));
            }
            continue;
        }
        match (block, steps.last_mut()) {
            (Some(Some(StepKind::Command)), last) => match (line.strip_prefix("$ "), last) {
                (Some(command), _) => steps.push(Step::new(index + 1, StepKind::Command, command)),
                (None, Some(step)) => step.output.push(line.trim_end().to_owned()),
                (None, None) => {}
            },
            (Some(Some(StepKind::Program)), Some(step)) => {
                step.text.push_str(line);
                step.text.push('\n');
                let prints = line.trim_start().starts_with("print(");
                if let Some((_, said)) = line.rsplit_once("  # ").filter(|_| prints) {
                    step.output.push(said.trim_end().to_owned());
                }
            }
            _ => {}
        }
    }
    for step in &mut steps {
        while step.output.last().is_some_and(String::is_empty) {
            step.output.pop();
        }
    }
    steps
}

impl Step {
    fn new(line: usize, kind: StepKind, text: &str) -> Self {
        Self {
            line,
            text: text.to_owned(),
            kind,
            output: Vec::new(),
        }
    }

    fn label(&self) -> String {
        match self.kind {
            StepKind::Command => format!("README.md:{}: $ {}", self.line, self.text),
            StepKind::Program => format!("README.md:{}: the program", self.line),
        }
    }
}

/// Run the steps until one goes wrong: those after it rest on it.
pub(super) fn run(steps: &[Step], python: Option<&Path>) -> Counts {
    let mut counts = Counts::default();
    if steps.is_empty() {
        return counts;
    }
    let mut session = match Session::start(python) {
        Ok(session) => session,
        Err(failure) => {
            println!("{failure}");
            return Counts::ONE_FAILED;
        }
    };
    for step in steps {
        match session.step(step) {
            Ok(()) => counts.passed += 1,
            Err(failure) => {
                println!("{}\n{failure}", step.label());
                counts.failed += 1;
                break;
            }
        }
    }
    session.end(counts.failed > 0);
    counts
}

struct Session {
    shell: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    folder: PathBuf,
    port: String,
    python: Option<PathBuf>,
    done: usize,
}

impl Session {
    fn start(python: Option<&Path>) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::new(format!("no session starts: {error}"));
        let folder = tool::root().join("target/readme");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("bin")).map_err(failed)?;
        let cargo = folder.join("bin/cargo");
        fs::write(&cargo, CARGO).map_err(failed)?;
        tool::run(tool::command("chmod").arg("+x").arg(&cargo))?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port().to_string();
        // The port is free again when this ends; no other process knows its number meanwhile.
        drop(listener);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [folder.join("bin"), binaries()];
        let folders = folders.into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders)
            .map_err(|error| Failure::new(format!("the search path: {error}")))?;
        let log = fs::File::create(folder.join("shell.log")).map_err(failed)?;
        let mut shell = tool::command("sh")
            .current_dir(&folder)
            .env("PATH", path)
            .env("THROUGHLINE_LISTEN", format!("127.0.0.1:{port}"))
            .env("NO_PROXY", "*")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let (sender, lines) = mpsc::channel();
        if let Some(stdout) = shell.stdout.take() {
            // It ends with the shell and with whatever the shell has left behind.
            std::thread::spawn(move || {
                let read = BufReader::new(stdout).lines().map_while(Result::ok);
                read.map(|line| sender.send(line))
                    .take_while(Result::is_ok)
                    .count()
            });
        }
        Ok(Self {
            stdin: shell.stdin.take(),
            shell,
            lines,
            folder,
            port,
            python: python.map(Path::to_owned),
            done: 0,
        })
    }

    fn step(&mut self, step: &Step) -> Result<(), Failure> {
        let text = step.text.replace(PORT, &self.port);
        let printed = match step.kind {
            StepKind::Command => self.command(&text)?,
            StepKind::Program => self.program(&text)?,
        };
        let wanted: Vec<String> = step
            .output
            .iter()
            .map(|line| line.replace(PORT, &self.port))
            .collect();
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
        if wanted.is_empty() || agree(&wanted, &printed) {
            return Ok(());
        }
        Err(Failure::new(format!("printed:\n{}", printed.join("\n"))))
    }

    fn command(&mut self, text: &str) -> Result<Vec<String>, Failure> {
        self.done += 1;
        let mark = format!("{DONE} {}", self.done);
        let stdin = self.stdin.as_mut();
        let stdin = stdin.ok_or_else(|| Failure::new("the shell has ended"))?;
        // The code of the command, not of the empty line that its output may need.
        writeln!(stdin, "{text}\ncode=$?; echo; echo {mark} $code")
            .map_err(|error| Failure::new(format!("the shell has ended: {error}")))?;
        let mut printed = Vec::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).map_err(|_| {
                let far = printed.join("\n");
                Failure::new(format!("no end within {PATIENCE:?}; printed:\n{far}"))
            })?;
            match line.strip_prefix(&mark) {
                Some(code) if code.trim() == "0" => break,
                Some(code) => {
                    let far = printed.join("\n");
                    let problem = format!("ended with{code}; printed:\n{far}");
                    return Err(Failure::new(problem));
                }
                None => printed.push(line.trim_end().to_owned()),
            }
        }
        while printed.last().is_some_and(String::is_empty) {
            printed.pop();
        }
        Ok(printed)
    }

    fn program(&self, text: &str) -> Result<Vec<String>, Failure> {
        let python = self.python.as_deref();
        let python = python.ok_or_else(|| Failure::new("the SDKs are not installed"))?;
        let path = self.folder.join("program.py");
        fs::write(&path, text)
            .map_err(|error| Failure::new(format!("cannot write the program: {error}")))?;
        let mut command = tool::command(python);
        let clean = BTreeMap::from([("NO_PROXY", "*"), ("PYTHONUTF8", "1")]);
        let printed = tool::output(command.arg(&path).current_dir(&self.folder).envs(clean))?;
        Ok(printed
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect())
    }

    /// Ends the shell and the last thing that it left in the background.
    fn end(mut self, failed: bool) {
        if let Some(mut stdin) = self.stdin.take() {
            // A shell that is gone has nothing left to end.
            let _ = writeln!(stdin, "kill -9 $! 2>/dev/null; wait; exit");
        }
        let _ = self.shell.wait();
        for log in ["server.log", "shell.log"] {
            let text = fs::read_to_string(self.folder.join(log)).unwrap_or_default();
            if failed && !text.is_empty() {
                println!("{log}:\n{text}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, StepKind, steps};

    #[test]
    fn sessions_are_taken_apart_into_steps() {
        let text = "\
```console session
$ cargo run --release &
$ curl -s x
{\"a\":1}

```
```python session
import x
print(x.y)  # the words
```
```console
$ throughline no
```
";
        let step = |line, kind, text: &str, output: &[&str]| Step {
            line,
            kind,
            text: text.to_owned(),
            output: output.iter().map(|&line| line.to_owned()).collect(),
        };
        let wanted = [
            step(2, StepKind::Command, "cargo run --release &", &[]),
            step(3, StepKind::Command, "curl -s x", &["{\"a\":1}"]),
            step(
                7,
                StepKind::Program,
                "import x\nprint(x.y)  # the words\n",
                &["the words"],
            ),
        ];
        assert_eq!(steps(text), wanted);
    }
}
