//! Processes, and their output.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use throughline_testkit::loopkill::{SERVICES, WIRES};

/// A process with lines of input and output.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Error output of a process that is killed is not interesting.
        command.stderr(Stdio::null());
        let mut child = command.spawn().expect("a process starts");
        let out = child.stdout.take().expect("its output is piped");
        let (say, said) = channel();
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|read| read > 0) {
                // A line without its end was cut by the kill.
                let Some(whole) = line.strip_suffix('\n') else {
                    break;
                };
                if say.send(whole.to_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let input = child.stdin.take();
        Self { child, input, said }
    }

    /// Sends a line. Ignored if the process is dead.
    pub(crate) fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{line}\n").as_bytes());
            let _ = input.flush();
        }
    }

    /// The next line of output; `None` when the process has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        self.said.recv().ok()
    }

    /// The next line of output, within a time limit.
    pub(crate) fn hear_within(&mut self, time: Duration) -> Option<String> {
        self.said.recv_timeout(time).ok()
    }

    /// Closes its input: it ends when it has executed its commands.
    pub(crate) fn finish(&mut self) {
        self.input = None;
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(sent.is_ok(), "`kill` is there");
    }

    /// Stops it (SIGSTOP), and waits until each of its threads has stopped.
    pub(crate) fn stop(&self) {
        self.signal("-STOP");
        while !self.stands_still() {
            std::thread::yield_now();
        }
    }

    /// Continues it (SIGCONT).
    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn stands_still(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let moves = |task: std::fs::DirEntry| {
            // The state follows the name in parentheses. An ended thread counts as stopped.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let state = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next());
            !matches!(state, None | Some('T' | 'Z' | 'X'))
        };
        tasks.is_ok_and(|tasks| !tasks.flatten().any(moves))
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
    }

    /// Waits for its end; returns whether it exited successfully.
    pub(crate) fn ended(&mut self) -> bool {
        self.input = None;
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // This is the process that was started here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The servers of models and tools, and those that keep histories.
pub(crate) struct Servers {
    processes: Vec<(&'static str, Process)>,
    /// The addresses, as arguments of a worker.
    pub(crate) at: Vec<String>,
    synced: u32,
    /// Lines that were read while something else was waited for.
    unread: Vec<String>,
}

impl Servers {
    /// Those of models and tools.
    pub(crate) fn start() -> Self {
        Self::of(&[("models", WIRES.len()), ("tools", 1)])
    }

    /// Also those that keep histories: storing services, and the application's store of messages.
    pub(crate) fn with_keepers() -> Self {
        Self::of(&[
            ("models", WIRES.len()),
            ("tools", 1),
            ("services", SERVICES.len()),
            ("messages", 1),
        ])
    }

    /// Starts processes of these kinds, with so many addresses.
    fn of(kinds: &[(&'static str, usize)]) -> Self {
        let mut processes = Vec::new();
        for (kind, _) in kinds {
            let mut command = crate::worker("loop-server");
            command.arg(kind);
            processes.push((*kind, Process::start(command)));
        }
        let mut at = Vec::new();
        for ((_, server), (_, addresses)) in processes.iter_mut().zip(kinds) {
            for _ in 0..*addresses {
                let line = server.hear().unwrap_or_default();
                let rest = line.strip_prefix("at ").expect("a server says where it is");
                at.push(rest.replacen(' ', "=", 1));
            }
        }
        Self {
            processes,
            at,
            synced: 0,
            unread: Vec::new(),
        }
    }

    /// All new lines of output.
    pub(crate) fn said(&mut self) -> Result<Vec<String>, String> {
        self.synced += 1;
        let word = format!("synced {}", self.synced);
        let mut lines = std::mem::take(&mut self.unread);
        for (_, server) in &mut self.processes {
            server.tell(&format!("sync {}", self.synced));
            loop {
                match server.hear() {
                    Some(line) if line == word => break,
                    Some(line) => lines.push(line),
                    None => return Err("a server is gone".to_owned()),
                }
            }
        }
        Ok(lines)
    }

    /// The answer of the server of a kind to a question.
    pub(crate) fn ask(&mut self, kind: &str, question: &str) -> Result<String, String> {
        let found = self.processes.iter_mut().find(|(of, _)| *of == kind);
        let (_, server) = found.ok_or_else(|| format!("there is no server of {kind}"))?;
        server.tell(question);
        loop {
            let line = server.hear();
            let line = line.ok_or_else(|| format!("the server of {kind} is gone"))?;
            match line.strip_prefix("reply ") {
                Some(answer) => return Ok(answer.to_owned()),
                None => self.unread.push(line),
            }
        }
    }
}

/// A process whose runs wait for a thread, with a manual clock.
pub(crate) fn queue_worker(url: &str, clock: u64) -> Process {
    let mut command = crate::worker("queue-worker");
    command.arg(url).arg(clock.to_string());
    Process::start(command)
}

/// A process with an agent and a plan for its fault points; reached points are written to `log`.
pub(crate) fn worker(url: &str, settings: &[String], faults: &str, log: &Path) -> Process {
    let mut command = crate::worker("loop-worker");
    command
        .arg(url)
        .args(settings)
        .env("THROUGHLINE_FAULTS", faults)
        .env("THROUGHLINE_FAULT_LOG", log);
    Process::start(command)
}
