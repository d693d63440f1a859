//! What the record of requests must be.

use std::collections::{BTreeSet, HashMap};

use super::{By, Said};

/// How many messages of one kind a store finds again, the newest.
const FOUND: usize = 4;

/// The length from which an answer is recognised where it is quoted, and that of the line by which it is.
const LONG_ANSWER: usize = 1_000;
const LONG_LINE: usize = 80;

/// How a request was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A new thread.
    New,
    /// At the head of a thread.
    Continued,
    /// Beside what follows in a thread.
    Branched,
    /// In the thread of the same request, which has no answer.
    Retried,
}

/// Where a request was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The run.
    pub run: usize,
    /// Its thread.
    pub thread: usize,
    /// How.
    pub kind: Placement,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RefRun {
    /// Its thread.
    pub thread: usize,
    /// The run that it goes on from.
    pub base: Option<usize>,
    /// All messages before its answer.
    pub history: Vec<Said>,
    /// Its answer.
    pub answer: Option<Said>,
}

impl RefRun {
    /// The conversation with its answer.
    pub fn conversation(&self) -> Vec<Said> {
        let mut all = self.history.clone();
        all.extend(self.answer.clone());
        all
    }
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub struct RefThread {
    /// The run at its head.
    pub head: Option<usize>,
    /// The thread that it comes from.
    pub origin: Option<usize>,
    /// Its runs.
    pub runs: Vec<usize>,
}

/// What the record must be.
#[derive(Debug, Default)]
pub struct Reference {
    /// All runs, in the order in which they began.
    pub runs: Vec<RefRun>,
    /// All threads, in the order in which they began.
    pub threads: Vec<RefThread>,
    /// The runs whose answers end a conversation.
    ends: HashMap<Vec<Said>, Vec<usize>>,
    /// The runs that began threads with these messages.
    openings: HashMap<Vec<Said>, Vec<usize>>,
    /// The runs that hold a message in full.
    holders: HashMap<Said, Vec<usize>>,
    /// The runs whose answers have a long line.
    lines: HashMap<String, Vec<usize>>,
    /// Messages that are stored in full.
    pub stored: usize,
    /// Their bytes.
    pub stored_bytes: usize,
}

impl Reference {
    /// A request arrives.
    pub fn begin(&mut self, request: &[Said]) -> Placed {
        let base = (1..=request.len()).rev().find_map(|end| {
            let runs = newest(self.ends.get(&request[..end]))?;
            let head = runs.iter().find(|run| self.is_head(**run));
            Some((end, *head.or(runs.first())?))
        });
        let opening = newest(self.openings.get(request)).and_then(|runs| runs.first().copied());
        let again = opening.filter(|run| {
            let run = &self.runs[*run];
            run.answer.is_none() && self.threads[run.thread].head.is_none()
        });
        let (thread, kind, known) = match (base, again) {
            (Some((known, base)), _) => match self.is_head(base) {
                true => (self.runs[base].thread, Placement::Continued, known),
                false => (self.runs[base].thread, Placement::Branched, known),
            },
            (None, Some(run)) => (self.runs[run].thread, Placement::Retried, 0),
            (None, None) => {
                let origin = self.origin(request);
                self.threads.push(RefThread {
                    origin,
                    ..RefThread::default()
                });
                (self.threads.len() - 1, Placement::New, 0)
            }
        };
        let run = self.runs.len();
        // A message that stands twice in one request and nowhere else is stored twice.
        let new: Vec<&Said> = request[known..]
            .iter()
            .filter(|said| !self.holders.contains_key(said))
            .collect();
        for said in new {
            self.store(said, run);
        }
        if base.is_none() {
            let openings = self.openings.entry(request.to_vec()).or_default();
            openings.push(run);
        }
        self.threads[thread].runs.push(run);
        self.runs.push(RefRun {
            thread,
            base: base.map(|(_, base)| base),
            history: request.to_vec(),
            answer: None,
        });
        Placed { run, thread, kind }
    }

    /// A request is answered.
    pub fn answer(&mut self, run: usize, answer: Said) {
        self.store(&answer, run);
        if let Some(line) = quotable(&answer.text) {
            self.lines.entry(line.to_owned()).or_default().push(run);
        }
        let RefRun {
            thread,
            base,
            answer: place,
            ..
        } = &mut self.runs[run];
        *place = Some(answer);
        let (thread, base) = (*thread, *base);
        let conversation = self.runs[run].conversation();
        self.ends.entry(conversation).or_default().push(run);
        if self.threads[thread].head == base {
            self.threads[thread].head = Some(run);
        }
    }

    fn store(&mut self, said: &Said, run: usize) {
        self.stored += 1;
        self.stored_bytes += said.bytes();
        self.holders.entry(said.clone()).or_default().push(run);
    }

    fn is_head(&self, run: usize) -> bool {
        self.threads[self.runs[run].thread].head == Some(run)
    }

    /// The thread that a new conversation comes from.
    fn origin(&self, request: &[Said]) -> Option<usize> {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        let mut answers = BTreeSet::new();
        let mut places: Vec<Vec<usize>> = Vec::new();
        for said in request {
            let holders = newest(self.holders.get(said)).unwrap_or_default();
            let threads: Vec<usize> = holders.iter().map(|run| self.runs[*run].thread).collect();
            for thread in threads.iter().copied().collect::<BTreeSet<_>>() {
                *counts.entry(thread).or_default() += 1;
                if said.by == By::Model {
                    answers.insert(thread);
                }
            }
            places.push(threads);
        }
        let fits = |thread: &&usize| answers.contains(*thread) || counts[*thread] > 1;
        let known = places
            .iter()
            .rev()
            .find_map(|threads| threads.iter().find(fits));
        let quoted = || {
            let lines = request.first()?.text.lines().map(str::trim);
            let mut lines = lines.filter(|line| line.len() >= LONG_LINE);
            lines.find_map(|line| {
                let runs = newest(self.lines.get(line))?;
                Some(self.runs[*runs.first()?].thread)
            })
        };
        known.copied().or_else(quoted)
    }
}

/// The newest of a list, newest first.
fn newest(runs: Option<&Vec<usize>>) -> Option<Vec<usize>> {
    runs.map(|runs| runs.iter().rev().take(FOUND).copied().collect())
}

fn quotable(answer: &str) -> Option<&str> {
    if answer.len() < LONG_ANSWER {
        return None;
    }
    let longest = answer.lines().map(str::trim).max_by_key(|line| line.len());
    longest.filter(|line| line.len() >= LONG_LINE)
}
