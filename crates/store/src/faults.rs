//! Fault points: named places in the real code where a test can make something go wrong.
//!
//! They are compiled in with the feature `faults` only; without it each is an empty function. A
//! test steers them from outside, by environment:
//!
//! - `THROUGHLINE_FAULTS`: a list like `publish.pre=kill@3,step.commit_sent=lie`. After `@` stands
//!   at which pass it happens (the first, if nothing does; `*` is every pass, `%N` one in N by a
//!   seeded draw). What can happen: `kill` ends the process at once; `fail` reports an error and
//!   does nothing; `lie` does it and reports an error; `delay:MS` waits; `hang` never goes on.
//! - `THROUGHLINE_FAULT_SEED`: the seed of the draws.
//! - `THROUGHLINE_FAULT_LOG`: a file to which each point is written when it is first reached.

/// A place where something can go wrong.
macro_rules! points {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal,)*) => {
        /// A place where something can go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Point { $($(#[doc = $doc])* $name,)* }

        impl Point {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }
        }
    };
}

points! {
    /// Before a run begins.
    BeginPre = "begin.pre",
    /// After it is committed, before it is acknowledged.
    BeginPost = "begin.post",
    /// A run is about to be claimed.
    LeaseClaim = "lease.claim",
    /// A heartbeat is about to be written.
    LeaseRenew = "lease.renew",
    /// A write was refused because the lease is somebody else's.
    LeaseLost = "lease.lost",
    /// Before a step is recorded.
    StepPre = "step.pre",
    /// Its transaction is about to be committed.
    StepCommitSent = "step.commit_sent",
    /// It is committed.
    StepPost = "step.post",
    /// Before an intent is recorded.
    ToolPreIntent = "tool.pre_intent",
    /// It is committed.
    ToolPostIntent = "tool.post_intent",
    /// Before a result is recorded.
    ResultPre = "result.pre",
    /// Its transaction is about to be committed.
    ResultCommitSent = "result.commit_sent",
    /// It is committed.
    ResultPost = "result.post",
    /// Before a run is published.
    PublishPre = "publish.pre",
    /// Its items are written, its node and the head are not.
    PublishMid = "publish.mid",
    /// Its transaction is about to be committed.
    PublishCommitSent = "publish.commit_sent",
    /// It is committed.
    PublishPost = "publish.post",
    /// Before events are stored.
    EventAppend = "event.append",
    /// They are committed.
    EventFlush = "event.flush",
    /// A claimed run's journal is about to be read.
    RecoverClaim = "recover.claim",
    /// It was read.
    RecoverDecide = "recover.decide",
    /// Before a run is marked as cancelled.
    CancelMark = "cancel.mark",
    /// A cancelled run is about to be closed.
    CancelClose = "cancel.close",
    /// Before a run is parked.
    ParkPre = "park.pre",
    /// It is committed.
    ParkPost = "park.post",
    /// Before an approval is answered.
    AnswerPre = "answer.pre",
    /// Its transaction is about to be committed.
    AnswerCommitSent = "answer.commit_sent",
    /// It is committed.
    AnswerPost = "answer.post",
    /// Before a thread is marked as deleted.
    DeleteMark = "delete.mark",
    /// Before something is swept away.
    DeletePurge = "delete.purge",
    /// Between two steps of a migration.
    MigrateEach = "migrate.each",
}

/// What a point asks its place to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Go on.
    Nothing,
    /// Report a failure. Before a commit it must not happen, after it it has.
    Fail,
}

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) const fn reach(_: Point) -> Asked {
    Asked::Nothing
}

#[cfg(feature = "faults")]
pub(crate) use active::reach;

#[cfg(feature = "faults")]
mod active {
    use std::collections::{HashMap, HashSet};
    use std::io::Write;
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::time::Duration;

    use super::{Asked, Point};

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Deed {
        Kill,
        Fail,
        Delay(u64),
        Hang,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum When {
        Pass(u64),
        Always,
        OneIn(u64),
    }

    struct Plan {
        deeds: HashMap<&'static str, (Deed, When)>,
        passes: HashMap<&'static str, u64>,
        seen: HashSet<&'static str>,
        log: Option<String>,
        draw: u64,
    }

    static PLAN: LazyLock<Mutex<Plan>> = LazyLock::new(|| Mutex::new(plan()));

    fn plan() -> Plan {
        let text = std::env::var("THROUGHLINE_FAULTS").unwrap_or_default();
        let seed = std::env::var("THROUGHLINE_FAULT_SEED").ok();
        let mut deeds = HashMap::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            match parse(word) {
                Some((point, deed, when)) => {
                    deeds.insert(point.as_str(), (deed, when));
                }
                // A test that steers nothing would pass for the wrong reason.
                None => stop(&format!("THROUGHLINE_FAULTS has no meaning: {word}")),
            }
        }
        Plan {
            deeds,
            passes: HashMap::new(),
            seen: HashSet::new(),
            log: std::env::var("THROUGHLINE_FAULT_LOG").ok(),
            draw: seed.and_then(|seed| seed.parse().ok()).unwrap_or(1),
        }
    }

    fn parse(word: &str) -> Option<(Point, Deed, When)> {
        let (name, rest) = word.split_once('=')?;
        let point = *Point::ALL.iter().find(|point| point.as_str() == name)?;
        let (deed, when) = rest.split_once('@').unwrap_or((rest, "1"));
        let deed = match deed.split_once(':').unwrap_or((deed, "")) {
            ("kill", "") => Deed::Kill,
            ("fail" | "lie", "") => Deed::Fail,
            ("delay", millis) => Deed::Delay(millis.parse().ok()?),
            ("hang", "") => Deed::Hang,
            _ => return None,
        };
        let when = match when.strip_prefix('%') {
            Some(n) => When::OneIn(n.parse().ok().filter(|n| *n > 0)?),
            None if when == "*" => When::Always,
            None => When::Pass(when.parse().ok()?),
        };
        Some((point, deed, when))
    }

    #[expect(clippy::print_stderr, reason = "the process ends here")]
    fn stop(why: &str) -> ! {
        eprintln!("{why}");
        std::process::abort()
    }

    /// Pass a point.
    pub(crate) fn reach(point: Point) -> Asked {
        let name = point.as_str();
        let deed = {
            let mut plan = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
            if plan.seen.insert(name)
                && let Some(log) = &plan.log
                && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(log)
            {
                let _ = file.write_all(format!("{name}\n").as_bytes());
            }
            let pass = plan.passes.entry(name).or_default();
            *pass += 1;
            let pass = *pass;
            match plan.deeds.get(name).copied() {
                Some((deed, When::Always)) => Some(deed),
                Some((deed, When::Pass(at))) => (pass == at).then_some(deed),
                Some((deed, When::OneIn(n))) => {
                    plan.draw = plan
                        .draw
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    ((plan.draw >> 33) % n == 0).then_some(deed)
                }
                None => None,
            }
        };
        match deed {
            None => Asked::Nothing,
            Some(Deed::Fail) => Asked::Fail,
            Some(Deed::Kill) => std::process::abort(),
            Some(Deed::Delay(millis)) => {
                std::thread::sleep(Duration::from_millis(millis));
                Asked::Nothing
            }
            Some(Deed::Hang) => loop {
                std::thread::park();
            },
        }
    }

    #[cfg(test)]
    mod tests {
        use super::{Deed, Point, When, parse};

        #[test]
        fn plans_are_read_and_nonsense_is_not() {
            let read = |word| parse(word).map(|(point, deed, when)| (point.as_str(), deed, when));
            assert_eq!(read("publish.pre=kill@3"), Some(("publish.pre", Deed::Kill, When::Pass(3))));
            assert_eq!(read("step.post=lie"), Some(("step.post", Deed::Fail, When::Pass(1))));
            assert_eq!(read("begin.pre=delay:5@*"), Some(("begin.pre", Deed::Delay(5), When::Always)));
            assert_eq!(read("begin.pre=hang@%7"), Some(("begin.pre", Deed::Hang, When::OneIn(7))));
            for nonsense in ["", "publish.pre", "nowhere=kill", "begin.pre=maim", "begin.pre=kill@%0"] {
                assert_eq!(read(nonsense), None, "{nonsense}");
            }
            assert_eq!(Point::ALL.len(), 31);
        }
    }
}
