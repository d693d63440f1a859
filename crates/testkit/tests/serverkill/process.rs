//! Processes, and their output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// A process with lines of input and output.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Process {
    /// Starts a process; returns its address.
    pub(crate) fn start(arguments: &[&str], faults: &str) -> Result<(Self, String), String> {
        let mut command = crate::worker("server-worker");
        command
            .args(arguments)
            .env("THROUGHLINE_FAULTS", faults)
            // As in `throughline serve`.
            .env("MIMALLOC_PURGE_DELAY", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Error output of a process that is killed is not interesting.
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let out = child.stdout.take().ok_or("its output is piped")?;
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
        let process = Self { child, input, said };
        let line = process.said.recv().unwrap_or_default();
        match line.strip_prefix("at ") {
            Some(address) => Ok((process, address.to_owned())),
            None => Err(format!("a process does not start: {line:?}")),
        }
    }

    /// All new lines of output.
    pub(crate) fn said(&mut self, word: u64) -> Result<Vec<String>, String> {
        let input = self.input.as_mut().ok_or("its input is closed")?;
        let order = format!("sync {word}\n");
        let sent = input
            .write_all(order.as_bytes())
            .and_then(|()| input.flush());
        sent.map_err(|error| error.to_string())?;
        let end = format!("synced {word}");
        let mut lines = Vec::new();
        loop {
            match self.said.recv() {
                Ok(line) if line == end => return Ok(lines),
                Ok(line) => lines.push(line),
                Err(_) => return Err("the upstream is gone".to_owned()),
            }
        }
    }

    /// Sends a command, and waits until it is done.
    pub(crate) fn order(&mut self, line: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("its input is closed")?;
        let sent = input
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| input.flush());
        sent.map_err(|error| error.to_string())?;
        match self.said.recv() {
            Ok(word) if word == "done" => Ok(()),
            other => Err(format!("{line:?} is answered with {other:?}")),
        }
    }

    /// Its peak resident memory, in bytes.
    pub(crate) fn peak_memory(&self) -> Result<usize, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        let kilobytes: usize = kilobytes.ok_or("the system says how much memory it had")?;
        Ok(kilobytes * 1024)
    }

    /// Its number in the system.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and waits for its end.
    pub(crate) fn kill(&mut self) {
        // It may have died at a planned point.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether it has ended.
    pub(crate) fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // This is the process that was started here.
        self.kill();
    }
}
