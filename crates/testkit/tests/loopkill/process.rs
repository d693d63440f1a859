//! Processes, and what they say.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A process that takes lines and says lines.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // What a process was doing when it was told to die is not worth a word.
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

    /// Tell it something. One that is dead does not hear it.
    pub(crate) fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{line}\n").as_bytes());
            let _ = input.flush();
        }
    }

    /// The next line that it says; none when it is dead or done.
    pub(crate) fn hear(&mut self) -> Option<String> {
        self.said.recv().ok()
    }

    /// The next line that it says, if it says one in time.
    pub(crate) fn hear_within(&mut self, time: Duration) -> Option<String> {
        self.said.recv_timeout(time).ok()
    }

    /// Tell it nothing more: it ends when it has done what it was told.
    pub(crate) fn finish(&mut self) {
        self.input = None;
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(sent.is_ok(), "`kill` is there");
    }

    /// Stop it, and wait until each of its threads stands still: the signal alone comes a moment later.
    pub(crate) fn stop(&self) {
        self.signal("-STOP");
        while !self.stands_still() {
            std::thread::yield_now();
        }
    }

    /// Let it go on.
    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn stands_still(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let moves = |task: std::fs::DirEntry| {
            // The state comes after the name in parentheses. A thread that has ended does not move.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let state = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next());
            !matches!(state, None | Some('T' | 'Z' | 'X'))
        };
        tasks.is_ok_and(|tasks| !tasks.flatten().any(moves))
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
    }

    /// Wait for its end. Whether it ended by itself, as it should.
    pub(crate) fn ended(&mut self) -> bool {
        self.input = None;
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It is the one that was started here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The servers of models and tools.
pub(crate) struct Servers {
    models: Process,
    tools: Process,
    /// Addresses, as arguments of a worker.
    pub(crate) at: Vec<String>,
    synced: u32,
}

fn server(kind: &str) -> Process {
    let mut command = crate::worker("loop-server");
    command.arg(kind);
    Process::start(command)
}

impl Servers {
    pub(crate) fn start() -> Self {
        let (mut models, mut tools) = (server("models"), server("tools"));
        let mut at = Vec::new();
        let mut address = |server: &mut Process| {
            let line = server.hear().unwrap_or_default();
            let rest = line.strip_prefix("at ").expect("a server says where it is");
            at.push(rest.replacen(' ', "=", 1));
        };
        for _ in throughline_testkit::loopkill::WIRES {
            address(&mut models);
        }
        address(&mut tools);
        Self {
            models,
            tools,
            at,
            synced: 0,
        }
    }

    /// Everything that they have said so far, and not told before.
    pub(crate) fn said(&mut self) -> Result<Vec<String>, String> {
        self.synced += 1;
        let word = format!("synced {}", self.synced);
        let mut lines = Vec::new();
        for server in [&mut self.models, &mut self.tools] {
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
}

/// A process whose runs wait for a thread, with a clock that is set by hand.
pub(crate) fn queue_worker(url: &str, clock: u64) -> Process {
    let mut command = crate::worker("queue-worker");
    command.arg(url).arg(clock.to_string());
    Process::start(command)
}

/// A process with an agent, steered by a plan for its fault points; those it reaches go to `log`.
pub(crate) fn worker(url: &str, settings: &[String], faults: &str, log: &Path) -> Process {
    let mut command = crate::worker("loop-worker");
    command
        .arg(url)
        .args(settings)
        .env("THROUGHLINE_FAULTS", faults)
        .env("THROUGHLINE_FAULT_LOG", log);
    Process::start(command)
}
