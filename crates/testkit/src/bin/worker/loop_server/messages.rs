//! The application's store of messages.
//!
//! It prints `at messages ADDRESS`, then `appended CASE VALUE first|again COUNT` for each append before
//! it answers, and `declined CASE VALUE` for one that it does not make. What no append may do is
//! printed as `conflict` (the same value for other messages) or `stale` (a key that is not the newest).
//! Some appends are made late, some get no answer, and some are declined.
//!
//! It answers `kept CASE` with the messages under a case as a JSON list. After `calm` it makes and
//! answers all appends at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use throughline_testkit::loopkill::{Keeping, KeptBy, answer_some_posts};

use super::{follow, say};

/// How long some appends are made late, or not answered.
const PAUSE: Duration = Duration::from_millis(15);

/// What is stored.
#[derive(Default)]
struct Stored {
    cases: HashMap<String, Case>,
    /// Appends that were made, by their values.
    made: HashMap<String, Made>,
    requests: u64,
}

/// The messages of one thread.
#[derive(Default)]
struct Case {
    messages: Vec<Box<RawValue>>,
    /// The number in its newest key.
    revision: u64,
}

struct Made {
    body: String,
    key: String,
}

/// What happens to an append besides being made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    AtOnce,
    Late,
    Declined,
    /// It is made, and the connection ends without an answer.
    Unanswered,
}

impl Manner {
    fn of(request: u64) -> Self {
        match request % 17 {
            3 | 8 => Self::Late,
            6 => Self::Declined,
            11 => Self::Unanswered,
            _ => Self::AtOnce,
        }
    }
}

pub(super) fn serve() -> Result<(), String> {
    let stored: Arc<Mutex<Stored>> = Arc::default();
    let calm = Arc::new(AtomicBool::new(false));
    let address = answer_some_posts({
        let (stored, calm) = (Arc::clone(&stored), Arc::clone(&calm));
        move |body| answer(&stored, body, calm.load(Ordering::SeqCst))
    });
    let address = address.map_err(|error| error.to_string())?;
    say(&format!("at messages {address}"));
    follow(
        || {},
        |words| match words {
            ["kept", case] => {
                let stored = lock(&stored);
                let messages = stored.cases.get(*case).map_or(&[][..], |one| &one.messages);
                serde_json::to_string(messages).ok()
            }
            ["calm"] => {
                calm.store(true, Ordering::SeqCst);
                Some("calm".to_owned())
            }
            _ => None,
        },
    )
}

fn lock(stored: &Mutex<Stored>) -> std::sync::MutexGuard<'_, Stored> {
    stored.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers `load` and `append`; the answer to an append is the key to use from then on.
fn answer(stored: &Mutex<Stored>, body: &str, calm: bool) -> Option<String> {
    let mut lines = body.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (verb, key, value, messages) = (next(), next(), next(), next());
    let parsed: Value = serde_json::from_str(key).unwrap_or_default();
    let case = parsed["case"].as_str()?.to_owned();
    let revision = parsed["revision"].as_u64().unwrap_or(0);
    if verb == "load" {
        let mut stored = lock(stored);
        let found = stored.cases.entry(case).or_default();
        // Under an old key there is nothing any more.
        return match found.revision == revision {
            true => serde_json::to_string(&found.messages).ok(),
            false => Some("[]".to_owned()),
        };
    }
    let manner = {
        let mut stored = lock(stored);
        stored.requests += 1;
        match calm {
            true => Manner::AtOnce,
            false => Manner::of(stored.requests),
        }
    };
    match manner {
        Manner::Late => std::thread::sleep(PAUSE),
        Manner::Declined => {
            say(&format!("declined {case} {value}"));
            return None;
        }
        Manner::AtOnce | Manner::Unanswered => {}
    }
    let given = lock(stored).append(&case, revision, value, messages);
    if manner == Manner::Unanswered {
        std::thread::sleep(PAUSE);
        return None;
    }
    given
}

impl Stored {
    /// Makes an append, unless it was made before.
    fn append(&mut self, case: &str, revision: u64, value: &str, messages: &str) -> Option<String> {
        let list: Vec<Box<RawValue>> = serde_json::from_str(messages).ok()?;
        if let Some(made) = self.made.get(value) {
            match same_ids(&made.body, messages) {
                true => say(&format!("appended {case} {value} again {}", list.len())),
                false => say(&format!("conflict {case} {value} {} {messages}", made.body)),
            }
            return Some(made.key.clone());
        }
        let found = self.cases.entry(case.to_owned()).or_default();
        if found.revision != revision {
            say(&format!("stale {case} {value} {revision}"));
        }
        say(&format!("appended {case} {value} first {}", list.len()));
        found.messages.extend(list);
        let moves = Keeping::of(case).by == KeptBy::Application { moves: true };
        found.revision += u64::from(moves);
        let key = format!(r#"{{"case":"{case}","revision":{}}}"#, found.revision);
        self.made.insert(
            value.to_owned(),
            Made {
                body: messages.to_owned(),
                key: key.clone(),
            },
        );
        Some(key)
    }
}

/// Whether two appends bring the same messages, by their ids: results may have other dates.
fn same_ids(one: &str, other: &str) -> bool {
    let ids = |text: &str| {
        let list: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        let ids = list.iter().map(|message| message["id"].clone());
        ids.collect::<Vec<_>>()
    };
    ids(one) == ids(other)
}
