//! Measures closures relative to each other in one process, and compares their ratios with limits.
//!
//! Absolute times depend on a shared machine; ratios of interleaved measurements hardly do: the
//! cases take turns, round after round, so whatever slows the machine down slows all of them. The
//! figure of a case is its median over the rounds, and a ratio is the median of the ratios of each
//! round.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub use std::hint::black_box;

/// The limit of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// The value may not be larger.
    AtMost(f64),
    /// The value may not be smaller.
    AtLeast(f64),
}

impl Limit {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "≤ {limit}x"),
            Self::AtLeast(limit) => write!(f, "≥ {limit}x"),
        }
    }
}

/// A set of closures that are measured together.
///
/// ```
/// use throughline_testkit::bench::{Bench, Limit, black_box};
///
/// let text = "word ".repeat(100);
/// let mut bench = Bench::new("words").with_rounds(5).with_sample(std::time::Duration::from_micros(100));
/// bench.case("count bytes", || { black_box(text.bytes().filter(|b| *b == b' ').count()); });
/// bench.against("split", "count bytes", Limit::AtMost(1000.0), || {
///     black_box(text.split(' ').count());
/// });
/// assert!(bench.run().holds());
/// ```
pub struct Bench<'a> {
    name: String,
    rounds: usize,
    sample: Duration,
    cases: Vec<Case<'a>>,
}

struct Case<'a> {
    name: String,
    against: Option<Against>,
    work: Box<dyn FnMut() + 'a>,
}

struct Against {
    base: usize,
    /// `None` shows the ratio without a limit.
    limit: Option<Limit>,
}

impl<'a> Bench<'a> {
    /// An empty set: 31 rounds, at least five milliseconds for each sample.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rounds: 31,
            sample: Duration::from_millis(5),
            cases: Vec::new(),
        }
    }

    /// The same set with this many rounds, one at least.
    pub fn with_rounds(self, rounds: usize) -> Self {
        Self {
            rounds: rounds.max(1),
            ..self
        }
    }

    /// The same set, repeating each closure until a sample takes this long.
    pub fn with_sample(self, sample: Duration) -> Self {
        Self { sample, ..self }
    }

    /// Adds a closure for the others to be compared with.
    pub fn case(&mut self, name: impl Into<String>, work: impl FnMut() + 'a) {
        self.cases.push(Case {
            name: name.into(),
            against: None,
            work: Box::new(work),
        });
    }

    /// Adds a closure whose time, divided by that of `base`, is compared with `limit`.
    ///
    /// # Panics
    ///
    /// When no case called `base` has been added before.
    pub fn against(
        &mut self,
        name: impl Into<String>,
        base: &str,
        limit: Limit,
        work: impl FnMut() + 'a,
    ) {
        self.compared(name.into(), base, Some(limit), Box::new(work));
    }

    /// Adds a closure whose ratio to `base` is shown without a limit.
    ///
    /// # Panics
    ///
    /// As for [`Bench::against`].
    pub fn shown_against(&mut self, name: impl Into<String>, base: &str, work: impl FnMut() + 'a) {
        self.compared(name.into(), base, None, Box::new(work));
    }

    fn compared(
        &mut self,
        name: String,
        base: &str,
        limit: Option<Limit>,
        work: Box<dyn FnMut() + 'a>,
    ) {
        let base = self
            .cases
            .iter()
            .position(|case| case.name == base)
            .expect("a bench program compares with a case that it has added before");
        self.cases.push(Case {
            name,
            against: Some(Against { base, limit }),
            work,
        });
    }

    /// Runs every case, interleaved, and returns a row for each.
    pub fn run(mut self) -> Report {
        let repeats: Vec<u32> = self
            .cases
            .iter_mut()
            .map(|case| calibrate(&mut case.work, self.sample))
            .collect();
        let mut times = vec![Vec::with_capacity(self.rounds); self.cases.len()];
        for round in 0..self.rounds {
            // Rotating the order keeps a case from always running with the caches that its
            // neighbour left.
            for turn in 0..self.cases.len() {
                let index = (round + turn) % self.cases.len();
                let taken = time(&mut self.cases[index].work, repeats[index]);
                times[index].push(taken.as_secs_f64() / f64::from(repeats[index]));
            }
        }
        let mut report = Report {
            name: self.name,
            rows: Vec::with_capacity(self.cases.len()),
        };
        for (case, own) in self.cases.iter().zip(&times) {
            let ratio = case.against.as_ref().map(|against| {
                let pairs = own.iter().zip(&times[against.base]);
                median(
                    pairs
                        .map(|(own, base)| own / base.max(f64::MIN_POSITIVE))
                        .collect(),
                )
            });
            report.push(Row {
                name: case.name.clone(),
                figure: duration(median(own.clone())),
                ratio,
                limit: case.against.as_ref().and_then(|against| against.limit),
            });
        }
        report
    }
}

/// One line of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The figure with its unit, ready to be read.
    pub figure: String,
    /// The figure divided by that of the case it is compared with.
    pub ratio: Option<f64>,
    /// The limit of the ratio; a row with a limit and no ratio does not hold.
    pub limit: Option<Limit>,
}

impl Row {
    /// Whether the ratio is within the limit.
    pub fn holds(&self) -> bool {
        self.limit
            .is_none_or(|limit| self.ratio.is_some_and(|ratio| limit.holds(ratio)))
    }
}

/// The results of a bench, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The title of the rows.
    pub name: String,
    /// The rows in the order they were added.
    pub rows: Vec<Row>,
}

impl Report {
    /// A report without rows, for figures that no closure can give: bytes, memory, requests.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Whether every ratio is within its limit.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    /// Writes the rows to standard output and returns the exit code: 1 when a limit is broken.
    pub fn finish(&self) -> ExitCode {
        // A closed pipe does not change the verdict.
        let _ = write!(io::stdout().lock(), "{self}");
        if self.holds() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cells = vec![[
            self.name.clone(),
            "time".into(),
            "ratio".into(),
            "limit".into(),
            String::new(),
        ]];
        for row in &self.rows {
            cells.push([
                row.name.clone(),
                row.figure.clone(),
                row.ratio
                    .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}x")),
                row.limit
                    .map_or_else(|| "–".to_owned(), |limit| limit.to_string()),
                if row.holds() { "ok" } else { "OVER" }.to_owned(),
            ]);
        }
        let width = |column: usize| {
            cells
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: [usize; 5] = std::array::from_fn(width);
        for [name, figure, ratio, limit, verdict] in &cells {
            let line = format!(
                "{name:<0$}  {figure:>1$}  {ratio:>2$}  {limit:>3$}  {verdict}",
                widths[0], widths[1], widths[2], widths[3]
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The peak resident memory of this process, in bytes; `None` where the system does not say.
pub fn peak_rss() -> Option<u64> {
    status_bytes(
        &std::fs::read_to_string("/proc/self/status").ok()?,
        "VmHWM:",
    )
}

/// The resident memory of this process, in bytes; `None` where the system does not say.
pub fn current_rss() -> Option<u64> {
    status_bytes(
        &std::fs::read_to_string("/proc/self/status").ok()?,
        "VmRSS:",
    )
}

fn status_bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// How often to repeat the closure so that one sample takes about as long as requested.
fn calibrate(work: &mut dyn FnMut(), sample: Duration) -> u32 {
    let mut repeats = 1;
    loop {
        let taken = time(work, repeats);
        if taken >= sample || repeats >= 1 << 24 {
            return repeats;
        }
        let missing = sample.as_secs_f64() / taken.as_secs_f64().max(1e-9);
        // The first run is often slow, so the target is approached in steps.
        repeats = (f64::from(repeats) * missing.clamp(1.1, 10.0)).ceil() as u32;
    }
}

fn time(work: &mut dyn FnMut(), repeats: u32) -> Duration {
    let started = Instant::now();
    for _ in 0..repeats {
        work();
    }
    started.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[len / 2],
        len => f64::midpoint(values[len / 2 - 1], values[len / 2]),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.1} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Bench, Limit, Report, Row, current_rss, median, peak_rss, status_bytes};

    fn spin(n: u64) {
        (0..n).for_each(|i| {
            super::black_box(i);
        });
    }

    #[test]
    fn a_ratio_follows_the_work() {
        let mut bench = Bench::new("spin")
            .with_rounds(9)
            .with_sample(Duration::from_micros(500));
        bench.case("one", || spin(1000));
        bench.against("four", "one", Limit::AtMost(1.5), || spin(4000));
        bench.shown_against("two", "one", || spin(2000));
        let report = bench.run();
        let ratio = report.rows[1].ratio.unwrap();
        assert!(ratio > 1.5, "{report}");
        assert!(!report.holds());
        assert_eq!(report.rows[2].limit, None);
    }

    #[test]
    fn rows_are_aligned_and_say_which_limit_is_broken() {
        let mut report = Report::new("sizes");
        report.push(Row {
            name: "base".into(),
            figure: "9 B".into(),
            ratio: None,
            limit: None,
        });
        let limit = Some(Limit::AtMost(1.3));
        report.push(Row {
            name: "larger".into(),
            figure: "12 B".into(),
            ratio: Some(1.3333),
            limit,
        });
        let limit = Some(Limit::AtLeast(0.5));
        report.push(Row {
            name: "speed".into(),
            figure: "5/s".into(),
            ratio: Some(0.5),
            limit,
        });
        let expected = "\
sizes   time  ratio   limit
base     9 B      –       –  ok
larger  12 B  1.33x  ≤ 1.3x  OVER
speed    5/s  0.50x  ≥ 0.5x  ok
";
        assert_eq!(report.to_string(), expected);
        assert!(!report.holds());
        let unmeasured = Row {
            name: "lost".into(),
            figure: "–".into(),
            ratio: None,
            limit,
        };
        assert!(!unmeasured.holds());
    }

    #[test]
    fn medians_ignore_the_outliers() {
        assert_eq!(median(vec![1000.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 1000.0]), 3.0);
    }

    #[test]
    fn memory_is_read_from_the_status_of_the_process() {
        assert_eq!(
            status_bytes("Name:\tx\nVmHWM:\t    12 kB\n", "VmHWM:"),
            Some(12 * 1024)
        );
        assert_eq!(status_bytes("Name:\tx\n", "VmHWM:"), None);
        if cfg!(target_os = "linux") {
            let (peak, current) = (peak_rss().unwrap(), current_rss().unwrap());
            assert!(
                peak >= 100 * 1024 && current >= 100 * 1024,
                "{peak} {current}"
            );
        }
    }
}
