use std::collections::{BTreeMap, BTreeSet};

use throughline_testkit::loopkill::{Keeping, Kind, LoopCounts};
use throughline_testkit::{Rng, property};

use super::check::CallCounts;
use crate::loopkill::line::{End, Fate, Life, Line};
use crate::loopkill::process::Servers;
use crate::loopkill::thread::{Aim, Modes, Standing, Thread};

/// Points at which keepers and the journal can differ: some process dies at each of them in every
/// run.
const BETWEEN: [&str; 14] = [
    "append.before",
    "step.commit_sent",
    "append.answered",
    "model.mid_stream",
    "append.sent",
    "call.post",
    "model.last_chunk",
    "step.post",
    "call.commit_sent",
    "publish.commit_sent",
    "call.pre",
    "publish.post",
    "model.headers",
    "step.pre",
];

/// The other points of the loop and of the store.
const OTHERS: [&str; 23] = [
    "begin.pre",
    "begin.post",
    "lease.claim",
    "model.pre_send",
    "tool.pre_intent",
    "tool.post_intent",
    "tool.mid",
    "tool.returned",
    "result.pre",
    "result.commit_sent",
    "result.post",
    "publish.pre",
    "publish.mid",
    "park.pre",
    "park.post",
    "event.append",
    "event.flush",
    "terminal.pre",
    "terminal.post",
    "recover.claim",
    "recover.decide",
    "cancel.mark",
    "cancel.close",
];

/// The number of processes of a store: most are killed.
const LIVES: usize = 13;

/// The points at which processes are killed next.
struct Points {
    between: usize,
    others: usize,
}

impl Points {
    fn next(&mut self, rng: &mut Rng) -> &'static str {
        // So that each of the first ones is passed in every run.
        if rng.chance(0.75) {
            self.between += 1;
            return BETWEEN[self.between % BETWEEN.len()];
        }
        self.others += 1;
        OTHERS[self.others % OTHERS.len()]
    }
}

/// What a campaign counted.
#[derive(Default)]
struct Counts {
    killed: u64,
    by_hand: u64,
    unreached: u64,
    kills: BTreeMap<&'static str, u32>,
    reached: BTreeSet<String>,
    appends: u64,
    repeated: u64,
    declined: u64,
    looked_up: u64,
    askable: usize,
    turns: u64,
    calls: CallCounts,
    loops: LoopCounts,
}

/// R1, with B237, B240, B243 and B244: processes are killed while our store, storing services and the
/// application's store keep histories. Each of them has every acknowledged message once and in order,
/// and no model call is paid twice whose service can be asked for the answer.
#[test]
fn r1_b237_b244_keepers_have_every_message_once_wherever_a_process_dies() {
    let mut counts = Counts::default();
    let mut points = Points {
        between: 0,
        others: 0,
    };
    property("r1 b237 b244 keepers", 2, |rng: &mut Rng, _| {
        if counts.killed == 0 {
            points.others = rng.below(OTHERS.len());
        }
        let threads = Keeping::NAMES.iter().map(|name| Thread::kept_by_name(name));
        let mut line = Line::of(threads.collect(), Servers::with_keepers());
        for _ in 0..LIVES {
            line.rest(rng)?;
            let hand = rng.chance(0.2);
            let point = points.next(rng);
            let fate = Fate {
                faults: match hand {
                    true => String::new(),
                    false => format!("{point}=kill@{}", 1 + rng.below(5)),
                },
                kill_after: hand.then(|| 1 + rng.below(30)),
                orders: 4,
            };
            let what = || match hand {
                true => "a kill at any moment".to_owned(),
                false => fate.faults.clone(),
            };
            let end = line.live(&fate, Aim::Work(Modes::Both), rng, || Ok(()));
            let end = end.map_err(|error| format!("after {}: {error}", what()))?;
            line.check_keepers(end)
                .map_err(|error| format!("after {}: {error}", what()))?;
            match (end, hand) {
                (End::Killed, true) => counts.by_hand += 1,
                (End::Killed, false) => *counts.kills.entry(point).or_default() += 1,
                (End::ByItself, _) => counts.unreached += 1,
            }
            counts.killed += u64::from(end == End::Killed);
        }
        survive(&mut line, rng, &mut counts)
    });
    print(&counts);
    let missing: Vec<&str> = BETWEEN
        .into_iter()
        .filter(|point| !point.starts_with("append.") && !counts.reached.contains(*point))
        .collect();
    assert_eq!(
        missing,
        [] as [&str; 0],
        "void: points that nothing reached"
    );
    assert!(
        counts.killed > 2 * counts.unreached && counts.askable > 0 && counts.repeated > 0,
        "void: {} kills, {} points were not hit, {} calls could be asked about, {} appends were repeated",
        counts.killed,
        counts.unreached,
        counts.askable,
        counts.repeated
    );
}

/// Settles everything, lets each thread take a turn with each of its services, and compares all.
fn survive(line: &mut Line, rng: &mut Rng, counts: &mut Counts) -> Result<(), String> {
    line.servers.ask("messages", "calm")?;
    line.settle(rng)?;
    line.check_keepers(End::ByItself)?;
    let mut life = line.start("", 0);
    cut_answers(line, &mut life, rng)?;
    counts.turns += line.check_at_end(|line, place, service| {
        let kind = if rng.bool() { Kind::Brief } else { Kind::Plain };
        let wire = service.unwrap_or("anthropic");
        let order = line.threads[place].turn(kind, wire, Modes::Both, rng);
        line.send(&mut life, place, order);
        line.answered(&mut life)
    })?;
    line.end(life)?;
    line.check_settled()?;
    let calls = line.count_calls()?;
    let all = &mut counts.calls;
    all.made += calls.made;
    all.kept += calls.kept;
    all.unasked += calls.unasked;
    all.cut += calls.cut;
    all.elsewhere += calls.elsewhere;
    counts.looked_up += line.looked_up()?;
    counts.askable += line.keepers.askable();
    counts.appends += line.keepers.appends;
    counts.repeated += line.keepers.repeated;
    counts.declined += line.keepers.declined;
    counts.loops += line.ledger.counts();
    counts.reached.extend(line.reached());
    debug_assert!(
        line.threads
            .iter()
            .all(|one| one.standing == Standing::Free)
    );
    Ok(())
}

/// With parity, cancels turns in the middle of an answer: nothing of that may be history.
fn cut_answers(line: &mut Line, life: &mut Life, rng: &mut Rng) -> Result<(), String> {
    line.keepers.cancels_all = true;
    for place in 0..line.threads.len() {
        let keeping = Keeping::of(&line.threads[place].name);
        let Some(service) = keeping.services().first().filter(|_| keeping.parity) else {
            continue;
        };
        // Not every answer pauses in its middle.
        for _ in 0..4 {
            let order = loop {
                let order = line.threads[place].turn(Kind::Plain, service, Modes::Both, rng);
                if order.line.contains(" events streamed ") {
                    break order;
                }
            };
            line.send(life, place, order);
            line.answered(life)?;
            // Before the next turn: that would send the service what was kept.
            line.check_keepers(End::ByItself)?;
        }
    }
    line.keepers.cancels_all = false;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the campaign command shows counts")]
fn print(counts: &Counts) {
    let Counts {
        killed,
        by_hand,
        unreached,
        kills,
        reached,
        appends,
        repeated,
        declined,
        looked_up,
        askable,
        turns,
        calls,
        loops,
    } = counts;
    let points = kills.len();
    let all = BETWEEN.len() + OTHERS.len();
    println!(
        "campaign r1 keepers: kills={killed} points={points} of {all} reached={} at_any_moment={by_hand} not_hit={unreached} {loops} turns_after={turns} doubled=0 lost=0",
        reached.len()
    );
    println!(
        "campaign r1 keepers: appends={appends} repeated_with_the_same_value={repeated} declined={declined} doubled=0 lost=0"
    );
    let CallCounts {
        made,
        kept,
        unasked,
        cut,
        elsewhere,
    } = calls;
    println!(
        "campaign r1 keepers: service_calls={made} steps={kept} died_before_the_handle={unasked} turn_ended={cut} continued_elsewhere={elsewhere} could_be_asked={askable} looked_up={looked_up} paid_twice=0"
    );
}
