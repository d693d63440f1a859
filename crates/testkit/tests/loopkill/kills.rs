use std::collections::{BTreeMap, BTreeSet};

use throughline_testkit::loopkill::LoopCounts;
use throughline_testkit::{Rng, property};

use crate::loopkill::line::{End, Fate, Line};
use crate::loopkill::thread::{Aim, Modes};

/// The fault points of an agent. Runs that are given up pass `cancel.close`.
const POINTS: [&str; 34] = [
    "begin.pre",
    "begin.post",
    "lease.claim",
    "model.pre_send",
    "model.headers",
    "model.mid_stream",
    "model.last_chunk",
    "step.pre",
    "step.commit_sent",
    "step.post",
    "tool.pre_intent",
    "tool.post_intent",
    "tool.mid",
    "tool.returned",
    "result.pre",
    "result.commit_sent",
    "result.post",
    "publish.pre",
    "publish.mid",
    "publish.commit_sent",
    "publish.post",
    "park.pre",
    "park.post",
    "answer.pre",
    "answer.commit_sent",
    "answer.post",
    "event.append",
    "event.flush",
    "terminal.pre",
    "terminal.post",
    "compact.write",
    "compact.swap",
    "recover.claim",
    "recover.decide",
];

/// The number of concurrent threads of a process, and the number of processes of a store.
const THREADS: usize = 4;
const LIVES: usize = 16;

/// R3, and with it R1, R2 and R4: a process is killed at each point of the loop, or stopped until
/// another process has taken its runs over. What was acknowledged is stored, nothing finished is
/// repeated, no tool runs twice that is not declared safe, a view is that of one epoch, and every
/// thread continues with every vendor.
#[test]
fn r3_a_loop_killed_at_any_point_runs_no_call_twice() {
    let (mut killed, mut unreached, mut stopped) = (0, 0, 0);
    let (mut threads, mut turns, mut fenced) = (0, 0, 0);
    let mut kills: BTreeMap<&str, u32> = BTreeMap::new();
    let mut reached = BTreeSet::new();
    let mut counts = LoopCounts::default();
    let mut next = 0;
    let mut epochs = 0;
    let aim = Aim::Work(Modes::Both);
    property("r3 loop kills", 3, |rng: &mut Rng, _| {
        let mut line = Line::new(THREADS);
        for _ in 0..LIVES {
            line.rest(rng)?;
            if rng.chance(0.1) {
                stopped += 1;
                stop(&mut line, rng)?;
                continue;
            }
            let point = POINTS[next % POINTS.len()];
            next += 1;
            let fate = Fate {
                faults: format!("{point}=kill@{}", 1 + rng.below(4)),
                kill_after: None,
                orders: 6,
            };
            let end = line.live(&fate, aim, rng, || Ok(()));
            let after = |error: String| format!("after {}: {error}", fate.faults);
            match end.map_err(after)? {
                End::Killed => {
                    killed += 1;
                    *kills.entry(point).or_default() += 1;
                }
                End::ByItself => unreached += 1,
            }
        }
        turns += line.survive(rng)?;
        threads += line.threads.len();
        counts += line.ledger.counts();
        fenced += line.fenced;
        epochs += line.epochs;
        reached.extend(line.reached());
        Ok(())
    });
    let points = kills.len();
    println!(
        "campaign r3 loop kills: kills={killed} points={points} of {} not_hit={unreached} stopped={stopped} fenced={fenced} told_too_early=0 epochs={epochs} mixed_views=0 {counts} double=0 lost=0",
        POINTS.len()
    );
    println!("campaign r4 survivors: threads={threads} turns={turns} refused=0 unusable=0");
    let missing: Vec<&str> = POINTS
        .iter()
        .filter(|point| !reached.contains(**point))
        .copied()
        .collect();
    println!("campaign loop points: unreached={missing:?}");
    assert_eq!(
        missing,
        [] as [&str; 0],
        "void: points that nothing reached"
    );
    assert!(
        killed > 2 * unreached,
        "void: {killed} kills, {unreached} points were not hit"
    );
}

/// Stops a process, lets another one take over, and continues the first one.
fn stop(line: &mut Line, rng: &mut Rng) -> Result<(), String> {
    let aim = Aim::Work(Modes::Both);
    let mut first = line.start("", 6);
    line.spare(&mut first);
    line.ledger.returned();
    line.work(&mut first, aim, Some(1 + rng.below(20)), rng, || Ok(()))?;
    first.worker.stop();
    // A stopped process that holds the file lock would block every other one, so it continues until
    // it does not.
    while line.is_locked()? {
        first.worker.go_on();
        std::thread::yield_now();
        first.worker.stop();
    }
    line.look()?;
    line.racing = true;
    line.live(&Fate::none(3), aim, rng, || Ok(()))?;
    first.worker.go_on();
    line.end(first)?;
    line.racing = false;
    Ok(())
}
