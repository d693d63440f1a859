use std::io::{BufRead, BufReader};
use std::process::Stdio;

use throughline_store::Store;
use throughline_testkit::agent::turns::{Histories, whole};
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, Scratch, property};

/// Three processes with eight writers on every thread; returns their reports and the final order.
fn race(rng: &mut Rng, clocks: [(i64, i64); 3], visits: u32) -> Result<Histories, String> {
    let scratch = Scratch::in_memory("order");
    let url = scratch.sqlite("store.db");
    let seed = rng.below(1_000_000);
    let children: Vec<_> = (0..3)
        .map(|n| {
            let (clock, step) = clocks[n];
            crate::worker("store-agent")
                .arg(&url)
                .args(["work=turns", "threads=2", "agents=8"])
                .arg(format!("visits={visits}"))
                .arg(format!("seed={}", seed * 3 + n))
                .arg(format!("clock={clock}"))
                .arg(format!("step={step}"))
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process starts")
        })
        .collect();
    let mut histories = Histories::default();
    let said: Vec<Vec<String>> = std::thread::scope(|scope| {
        let readers: Vec<_> = children
            .into_iter()
            .map(|mut child| {
                scope.spawn(move || {
                    let out = child.stdout.take().expect("its output is piped");
                    let lines = BufReader::new(out).lines().map_while(Result::ok).collect();
                    let status = child.wait().expect("a process ends");
                    assert!(status.success(), "a process ended with {status}");
                    lines
                })
            })
            .collect();
        readers
            .into_iter()
            .map(|reader| reader.join().expect("a reader ends"))
            .collect()
    });
    for line in said.iter().flatten() {
        histories.line(line);
    }
    let store = block_on(Store::open(&url)).map_err(|error| error.to_string())?;
    for (thread, history) in &mut histories.threads {
        history.order = block_on(whole(&store, thread)).map_err(|error| error.to_string())?;
        if let Some(anomaly) = history.check().first() {
            return Err(format!("{thread}: {anomaly}"));
        }
    }
    let checked = block_on(store.check(&mut |_| {})).map_err(|error| error.to_string())?;
    if let Some(damage) = checked.damage.first() {
        return Err(format!("{damage:?}"));
    }
    block_on(store.close()).map_err(|error| error.to_string())?;
    match histories.trouble.first() {
        Some(trouble) => Err(trouble.clone()),
        None => Ok(histories),
    }
}

#[derive(Default)]
struct Sums {
    done: u64,
    refused: u64,
    unknown: u64,
    reads: usize,
    threads: usize,
}

impl Sums {
    fn add(&mut self, histories: &Histories) {
        let (done, refused, unknown) = histories.turns;
        self.done += done;
        self.refused += refused;
        self.unknown += unknown;
        self.reads += histories
            .threads
            .values()
            .map(|one| one.reads.len())
            .sum::<usize>();
        self.threads += histories.threads.len();
    }

    /// Prints the counts; fails if they are too small.
    #[expect(clippy::print_stdout, reason = "the test command shows this line")]
    fn finish(&self, name: &str, floor: f64) {
        let Self {
            done,
            refused,
            unknown,
            reads,
            threads,
        } = self;
        let rate = *done as f64 / (done + refused + unknown).max(1) as f64;
        println!(
            "campaign {name}: turns={done} refused={refused} unknown={unknown} reads={reads} threads={threads} success={:.1}% anomalies=0",
            rate * 100.0
        );
        assert!(rate >= floor, "void: {rate:.3} of the turns were done");
    }
}

/// R5: three processes with eight writers on each thread agree on one order.
#[test]
fn r5_writers_of_three_processes_agree_on_one_order() {
    let mut sums = Sums::default();
    // 528 turns each: 10,560 at `THROUGHLINE_SCALE=20`.
    property("r5 turns", 1, |rng, _| {
        sums.add(&race(rng, [(0, 0); 3], 11)?);
        Ok(())
    });
    sums.finish("r5", 0.95);
}

/// R19: the same with clocks that jump and are an hour apart. A jump may cost a takeover.
#[test]
fn r19_clocks_an_hour_apart_change_no_order() {
    const HOUR: i64 = 3_600_000;
    let mut sums = Sums::default();
    property("r19 turns", 1, |rng, _| {
        let clocks = [(0, 0), (HOUR, HOUR), (-HOUR, HOUR)];
        sums.add(&race(rng, clocks, 11)?);
        Ok(())
    });
    sums.finish("r19", 0.3);
}
