use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_testkit::agent::Ledger;
use throughline_testkit::{Rng, Scratch, property};

/// A process that reports to a shared ledger.
struct Rival {
    child: Child,
    hears: Option<std::thread::JoinHandle<()>>,
}

impl Rival {
    fn start(url: &str, seed: usize, visits: u32, ledger: &Arc<Mutex<Ledger>>) -> Self {
        let mut child = crate::worker("store-agent")
            .arg(url)
            .args([format!("seed={seed}"), format!("visits={visits}")])
            .args(["agents=2", "threads=3", "lease=120"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process starts");
        let out = child.stdout.take().expect("its output is piped");
        let ledger = Arc::clone(ledger);
        let hears = std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|read| read > 0) {
                // A line without its end was cut by the kill.
                if let Some(line) = line.strip_suffix('\n') {
                    ledger.lock().expect("nobody panicked").line(line);
                }
                line.clear();
            }
        });
        Self {
            child,
            hears: Some(hears),
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(sent.is_ok(), "`kill` is there");
    }

    fn end(mut self, kill: bool) {
        if kill {
            // It may have ended already.
            let _ = self.child.kill();
        }
        self.child.wait().expect("a process ends");
        if let Some(hears) = self.hears.take() {
            hears.join().expect("a reader ends");
        }
    }
}

/// R3: processes are killed, or stopped until their leases have expired and then continued, while
/// others take their runs over. A tool that is not declared safe is called at most once per call;
/// the others get the same key each time.
#[test]
fn r3_no_call_is_dispatched_twice_through_takeovers() {
    let mut faults = 0;
    let (mut faulted, mut dispatched, mut claimed) = (0, 0, 0);
    property("r3 takeovers", 2, |rng: &mut Rng, _| {
        let scratch = Scratch::in_memory("takeovers");
        let url = scratch.sqlite("store.db");
        let ledger = Arc::new(Mutex::new(Ledger::unordered()));
        let mut seed = rng.below(1_000_000) * 100;
        let mut start = |visits| {
            seed += 1;
            Rival::start(&url, seed, visits, &ledger)
        };
        let mut rivals: VecDeque<Rival> = (0..3).map(|_| start(1_000_000)).collect();
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(20 + rng.below(60) as u64));
            let rival = rivals.pop_front().ok_or("no process")?;
            faults += 1;
            if rng.bool() {
                rival.signal("-STOP");
                // Other processes see its lease expire, and take its runs over.
                std::thread::sleep(Duration::from_millis(200));
                rival.signal("-CONT");
                rivals.push_back(rival);
            } else {
                rival.end(true);
                rivals.push_back(start(1_000_000));
            }
        }
        for rival in rivals {
            rival.end(true);
        }
        // An undisturbed worker settles the unfinished runs.
        std::thread::sleep(Duration::from_millis(150));
        start(30).end(false);
        let store = super::kills::open(&url)?;
        let mut ledger = ledger.lock().map_err(|error| error.to_string())?;
        ledger.check(&store)?;
        let audit = ledger.audit();
        faulted += ledger.faulted_calls();
        dispatched += audit.dispatched;
        claimed += audit.claimed;
        Ok(())
    });
    println!(
        "campaign r3 takeovers: faults={faults} takeovers={claimed} faulted_calls={faulted} dispatched={dispatched} double=0"
    );
    assert!(claimed > 0 && faulted > 0, "void: nothing was taken over");
}
