//! Processes of the campaigns.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};

use throughline_testkit::agent::Ledger;

/// A process with agents, and its output.
pub(crate) struct Worker {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a process. `faults` is a plan for its fault points; reached points are written to
    /// `log`.
    pub(crate) fn start(url: &str, settings: &[String], faults: &str, log: &Path) -> Self {
        let mut command = crate::worker("store-agent");
        command.arg(url).args(settings).stdout(Stdio::piped());
        command
            .env("THROUGHLINE_FAULTS", faults)
            .env("THROUGHLINE_FAULT_LOG", log);
        // Error output of a process that is killed is not interesting.
        command.stderr(Stdio::null());
        let mut child = command.spawn().expect("a process starts");
        let out = child.stdout.take().expect("its output is piped");
        Self {
            child,
            out: BufReader::new(out),
        }
    }

    /// Reads one line; false when there are no more.
    pub(crate) fn hear(&mut self, ledger: &mut Ledger) -> bool {
        let mut line = String::new();
        let read = self.out.read_line(&mut line).unwrap_or(0);
        // A line without its end was cut by the kill.
        match line.strip_suffix('\n').filter(|_| read > 0) {
            Some(line) => {
                ledger.line(line);
                true
            }
            None => false,
        }
    }

    /// Reads its output to its end.
    pub(crate) fn end(mut self, ledger: &mut Ledger) -> ExitStatus {
        while self.hear(ledger) {}
        self.child.wait().expect("a process ends")
    }
}

/// The reached fault points, from the log of a campaign.
pub(crate) fn reached(log: &Path) -> std::collections::BTreeSet<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
