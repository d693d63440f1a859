//! Many writers on few threads: what was appended and read, and when, for the checker of append
//! logs.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use throughline_store::{
    Anchor, Append as ByHand, At, Claim, End, Error, NewItem, NewThread, Publish, RunState, Span,
    Stopped, Store, TenantScope, ThreadId,
};

use crate::Rng;
use crate::checkers::append_log::{Append, History, Outcome, Read, Time};
use crate::record::{begin, user};

/// A report of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterEvent {
    /// A turn with these items is about to be tried.
    Called {
        /// The thread.
        thread: String,
        /// The first of its ids.
        id: u64,
        /// How many.
        count: u64,
        /// The writer.
        process: u64,
        /// The time.
        time: Time,
    },
    /// The turn ended.
    Returned {
        /// The thread.
        thread: String,
        /// The first of its ids.
        id: u64,
        /// The outcome.
        outcome: Outcome,
        /// The time.
        time: Time,
    },
    /// The whole thread was read.
    Saw {
        /// The thread.
        thread: String,
        /// The reader.
        process: u64,
        /// The begin of the read.
        begun: Time,
        /// The end of the read.
        ended: Time,
        /// The ids that were read.
        ids: Vec<u64>,
    },
    /// An error that no writer should get.
    Trouble(String),
}

impl fmt::Display for WriterEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called {
                thread,
                id,
                count,
                process,
                time,
            } => write!(f, "called {thread} {id} {count} {process} {time}"),
            Self::Returned {
                thread,
                id,
                outcome,
                time,
            } => {
                let outcome = match outcome {
                    Outcome::Acknowledged => "ok",
                    Outcome::Refused => "no",
                    Outcome::Unknown => "unknown",
                };
                write!(f, "returned {thread} {id} {outcome} {time}")
            }
            Self::Saw {
                thread,
                process,
                begun,
                ended,
                ids,
            } => {
                write!(f, "saw {thread} {process} {begun} {ended}")?;
                ids.iter().try_for_each(|id| write!(f, " {id}"))
            }
            Self::Trouble(what) => write!(f, "trouble {what}"),
        }
    }
}

impl FromStr for WriterEvent {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        read(line).ok_or_else(|| format!("not an event of a writer: {line}"))
    }
}

fn read(line: &str) -> Option<WriterEvent> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    if kind == "trouble" {
        return Some(WriterEvent::Trouble(line.to_owned()));
    }
    let thread = words.next()?.to_owned();
    let mut number = || words.next()?.parse::<u64>().ok();
    Some(match kind {
        "called" => WriterEvent::Called {
            thread,
            id: number()?,
            count: number()?,
            process: number()?,
            time: number()?,
        },
        "returned" => WriterEvent::Returned {
            thread,
            id: number()?,
            outcome: match words.next()? {
                "ok" => Outcome::Acknowledged,
                "no" => Outcome::Refused,
                "unknown" => Outcome::Unknown,
                _ => return None,
            },
            time: words.next()?.parse().ok()?,
        },
        "saw" => WriterEvent::Saw {
            thread,
            process: number()?,
            begun: number()?,
            ended: number()?,
            ids: words.map(|word| word.parse().ok()).collect::<Option<_>>()?,
        },
        _ => return None,
    })
}

/// The machine's clock, which all processes share.
fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// One writer of one thread.
pub struct Writer<'s> {
    /// The store.
    pub store: &'s Store,
    /// The thread.
    pub thread: String,
    /// The number of the writer.
    pub process: u64,
}

impl Writer<'_> {
    /// Tries one turn until it is done, refused for good, or of unknown outcome.
    pub async fn turn(&self, id: u64, rng: &mut Rng, say: impl Fn(WriterEvent)) {
        let count = rng.range(1..=3) as u64;
        let thread = self.thread.clone();
        say(WriterEvent::Called {
            thread,
            id,
            count,
            process: self.process,
            time: now(),
        });
        let mut outcome = Outcome::Refused;
        for _ in 0..3_000 {
            match self.attempt(id, count, rng.bool()).await {
                Ok(()) => {
                    outcome = Outcome::Acknowledged;
                    break;
                }
                // Another writer was faster.
                Err(Error::Busy { .. } | Error::HeadMoved { .. } | Error::Fenced { .. }) => {
                    std::thread::sleep(Duration::from_micros(200 + rng.below(800) as u64));
                }
                Err(Error::Io { .. } | Error::Locked | Error::Full) => {
                    outcome = Outcome::Unknown;
                    break;
                }
                Err(error) => {
                    say(WriterEvent::Trouble(format!("{error} ({error:?})")));
                    break;
                }
            }
        }
        let thread = self.thread.clone();
        say(WriterEvent::Returned {
            thread,
            id,
            outcome,
            time: now(),
        });
    }

    async fn attempt(&self, id: u64, count: u64, by_hand: bool) -> Result<(), Error> {
        let scope = TenantScope::local();
        let texts: Vec<_> = (id..id + count).map(|id| user(&id.to_string())).collect();
        let Ok(thread) = ThreadId::new(&self.thread) else {
            return Ok(());
        };
        let new = NewThread::new(thread.clone());
        let opened = self.store.open_or_create(&scope, &new, 0).await?;
        if let Some(run) = opened
            .unsettled
            .filter(|run| run.state == RunState::Interrupted)
        {
            let claimed = self
                .store
                .claim(&scope, run.id, run.epoch, Claim::Settle)
                .await;
            if let Ok(started) = claimed {
                let end = End {
                    how: Stopped::Discarded,
                    note: None,
                    events: None,
                };
                self.store.end(&scope, started.lease, &end).await?;
            }
        }
        let run = self.store.ids().run();
        if by_hand {
            let append = ByHand {
                run,
                thread,
                expected: None,
                items: NewItem::of(&texts),
                state: None,
                key: None,
            };
            return self.store.append(&scope, &append).await.map(drop);
        }
        let at = Anchor::Head {
            thread,
            expected: opened.thread.version,
        };
        let (first, rest) = texts.split_at(1);
        let value = throughline_store::Begin::new(run, at, NewItem::of(first));
        let lease = begin(self.store, &scope, &value).await?.lease;
        let publish = Publish::new(0, NewItem::of(rest));
        match self.store.publish(&scope, lease, &publish).await {
            Ok(_) => Ok(()),
            Err(error) => {
                // No other process will publish it; a waiting writer need not wait longer.
                let end = End {
                    how: Stopped::Discarded,
                    note: None,
                    events: None,
                };
                let _ = self.store.end(&scope, lease, &end).await;
                Err(error)
            }
        }
    }

    /// Reads the whole thread.
    pub async fn look(&self, say: impl Fn(WriterEvent)) {
        let begun = now();
        match whole(self.store, &self.thread).await {
            Ok(ids) => say(WriterEvent::Saw {
                thread: self.thread.clone(),
                process: self.process,
                begun,
                ended: now(),
                ids,
            }),
            Err(Error::NotFound { .. }) => {}
            Err(error) => say(WriterEvent::Trouble(format!("{error} ({error:?})"))),
        }
    }
}

/// The ids of a thread, in order: one read from the node that the first page named.
///
/// # Errors
///
/// Errors of the store.
pub async fn whole(store: &Store, thread: &str) -> Result<Vec<u64>, Error> {
    let scope = TenantScope::local();
    let id = ThreadId::new(thread).map_err(|error| Error::Invalid {
        what: "a thread",
        why: error.to_string(),
    })?;
    let page = store
        .read(&scope, &At::Thread(id), Span::Tail, 1_000_000)
        .await?;
    let entries = page.entries.iter();
    Ok(entries
        .map(|entry| entry.message.text().parse().unwrap_or(u64::MAX))
        .collect())
}

/// The reports of all writers, by thread.
#[derive(Debug, Default)]
pub struct Histories {
    /// By thread.
    pub threads: BTreeMap<String, History>,
    /// Turns that were acknowledged, refused, and of unknown outcome.
    pub turns: (u64, u64, u64),
    /// Errors that no writer should get.
    pub trouble: Vec<String>,
}

impl Histories {
    /// Records a line that a writer printed.
    pub fn line(&mut self, line: &str) {
        let said = match line.parse() {
            Ok(said) => said,
            Err(error) => {
                self.trouble.push(error);
                return;
            }
        };
        match said {
            WriterEvent::Called {
                thread,
                id,
                count,
                process,
                time,
            } => {
                let history = self.threads.entry(thread).or_default();
                history.appends.extend((id..id + count).map(|one| Append {
                    id: one,
                    run: id,
                    process,
                    begun: time,
                    ended: None,
                    outcome: Outcome::Unknown,
                }));
            }
            WriterEvent::Returned {
                thread,
                id,
                outcome,
                time,
            } => {
                match outcome {
                    Outcome::Acknowledged => self.turns.0 += 1,
                    Outcome::Refused => self.turns.1 += 1,
                    Outcome::Unknown => self.turns.2 += 1,
                }
                let history = self.threads.entry(thread).or_default();
                let mine = history.appends.iter_mut().rev().take(500);
                for append in mine.filter(|append| append.run == id) {
                    append.outcome = outcome;
                    append.ended = Some(time);
                }
            }
            WriterEvent::Saw {
                thread,
                process,
                begun,
                ended,
                ids,
            } => {
                let history = self.threads.entry(thread).or_default();
                history.reads.push(Read {
                    process,
                    begun,
                    ended,
                    ids,
                });
            }
            WriterEvent::Trouble(what) => self.trouble.push(what),
        }
    }
}
