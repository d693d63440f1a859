use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use throughline_store::Store;
use throughline_testkit::record::block_on;
use throughline_testkit::{Scratch, property};

use crate::record::ledger::{Ledger, Met};

/// A process that writes, and its output.
pub(crate) struct Writer {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Writer {
    pub(crate) fn start(url: &str, seed: u64) -> Self {
        Self::start_with(url, seed, &[])
    }

    /// Starts it with environment variables.
    pub(crate) fn start_with(url: &str, seed: u64, variables: &[(&str, String)]) -> Self {
        let mut child = crate::worker("store-child")
            .args(["write", url, &seed.to_string()])
            .envs(variables.iter().map(|(key, value)| (key, value)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Reads the next line; false when there is none.
    pub(crate) fn hear(&mut self, ledger: &mut Ledger) -> Result<bool, String> {
        let mut line = String::new();
        let read = self
            .out
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        // A line without its end was cut by the kill.
        let Some(whole) = line.strip_suffix('\n').filter(|_| read > 0) else {
            return Ok(false);
        };
        ledger.note(whole)?;
        Ok(true)
    }

    /// Waits until it aborts, and reads its output.
    pub(crate) fn wait(mut self, ledger: &mut Ledger) -> Result<(), String> {
        while self.hear(ledger)? {}
        let status = self.child.wait().map_err(|error| error.to_string())?;
        match status.code() {
            // A signal.
            None => Ok(()),
            Some(code) => Err(format!("the writer ended by itself with {code}")),
        }
    }

    /// Kills it and reads its output.
    pub(crate) fn kill(mut self, ledger: &mut Ledger) -> Result<(), String> {
        self.child.kill().map_err(|error| error.to_string())?;
        self.child.wait().map_err(|error| error.to_string())?;
        while self.hear(ledger)? {}
        Ok(())
    }
}

/// R1 and R2: kill -9 of a writing process at random. What it acknowledged is stored, and readers
/// see none or all of a `per_run` run.
#[test]
fn r1_a_killed_writer_loses_nothing_it_acknowledged() {
    let scratch = Scratch::new("kills");
    let url = scratch.sqlite("store.db");
    let mut total = 0;
    let mut published = 0;
    property("r1 kills", 25, |rng, _| {
        let mut ledger = Ledger::default();
        let mut writer = Writer::start(&url, rng.next_u64());
        // Some lines, then a moment that falls anywhere in a transaction.
        for _ in 0..rng.range(1..=60) {
            if !writer.hear(&mut ledger)? {
                return Err("the writer ended by itself".to_owned());
            }
        }
        std::thread::sleep(Duration::from_micros(rng.below(3000) as u64));
        writer.kill(&mut ledger)?;
        total += ledger.len();
        published += ledger.published();
        let store = block_on(Store::open(&url)).map_err(|error| error.to_string())?;
        ledger.check(&store, Met::Kill)?;
        block_on(store.close()).map_err(|error| error.to_string())
    });
    let store = block_on(Store::open(&url)).unwrap();
    let checked = block_on(store.check(&mut |_| {})).unwrap();
    assert_eq!(checked.damage, []);
    assert!(published > 0, "nothing was published before the kills");
    let items = checked.items;
    println!("table r1 kills: acknowledged={total} published={published} items={items} lost=0");
}
