//! What the environment asks of the fault points.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use super::{Commit, Point};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Kill,
    Fail,
    Lie,
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
    let point = Point::named(name)?;
    let (deed, when) = rest.split_once('@').unwrap_or((rest, "1"));
    let deed = match deed.split_once(':').unwrap_or((deed, "")) {
        ("kill", "") => Deed::Kill,
        ("fail", "") => Deed::Fail,
        ("lie", "") => Deed::Lie,
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
pub(super) fn stop(why: &str) -> ! {
    eprintln!("{why}");
    std::process::abort()
}

/// Pass a point.
pub(super) fn ask(point: Point) -> Commit {
    let name = point.as_str();
    let deed = {
        let mut plan = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        if plan.seen.insert(name)
            && let Some(log) = &plan.log
            && let Ok(mut file) = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(log)
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
                (plan.draw >> 33).is_multiple_of(n).then_some(deed)
            }
            None => None,
        }
    };
    match deed {
        None => Commit::Send,
        Some(Deed::Fail) => Commit::Withhold,
        Some(Deed::Lie) => Commit::Deny,
        Some(Deed::Kill) => std::process::abort(),
        Some(Deed::Delay(millis)) => {
            std::thread::sleep(Duration::from_millis(millis));
            Commit::Send
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
        assert_eq!(
            read("publish.pre=kill@3"),
            Some(("publish.pre", Deed::Kill, When::Pass(3)))
        );
        assert_eq!(
            read("step.post=lie"),
            Some(("step.post", Deed::Lie, When::Pass(1)))
        );
        assert_eq!(
            read("begin.pre=delay:5@*"),
            Some(("begin.pre", Deed::Delay(5), When::Always))
        );
        assert_eq!(
            read("begin.pre=hang@%7"),
            Some(("begin.pre", Deed::Hang, When::OneIn(7)))
        );
        for nonsense in [
            "",
            "publish.pre",
            "nowhere=kill",
            "begin.pre=maim",
            "begin.pre=kill@%0",
        ] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
        assert_eq!((Point::ALL.len(), Point::ABOVE.len()), (34, 10));
    }
}
