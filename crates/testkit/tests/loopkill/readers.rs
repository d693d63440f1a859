use std::sync::atomic::{AtomicBool, Ordering};

use throughline_testkit::loopkill::{LoopCounts, Readers};
use throughline_testkit::{Rng, property};

use crate::loopkill::line::{End, Fate, Line, open};
use crate::loopkill::thread::{Aim, Modes};

/// The minimum number of polls per case.
const POLLS: u64 = 5_000;

/// R2: while processes work and are killed, readers see none or all of a run that is published at
/// its end; after a kill it is resumed, and repeats no finished step.
#[test]
fn r2_readers_of_a_killed_loop_see_none_or_all_of_a_run() {
    let (mut killed, mut polls) = (0, 0);
    let mut counts = LoopCounts::default();
    property("r2 loop readers", 2, |rng: &mut Rng, _| {
        let mut line = Line::new(4);
        // The store is created before a reader opens it.
        line.live(&Fate::none(1), Aim::Work(Modes::PerRun), rng, || Ok(()))?;
        let (url, names) = (line.url.clone(), line.names());
        let done = AtomicBool::new(false);
        let mut readers = Readers::default();
        let worked = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let store = open(&url)?;
                while !done.load(Ordering::Relaxed) || readers.polls < POLLS {
                    for name in &names {
                        readers.poll(&store, name)?;
                    }
                }
                Ok::<(), String>(())
            });
            let worked = kills(&mut line, rng, &mut killed);
            done.store(true, Ordering::Relaxed);
            let watched = watch.join().map_err(|_| "a reader panicked".to_owned());
            worked.and(watched.and_then(|watched| watched))
        });
        worked?;
        readers.check(&open(&line.url)?)?;
        polls += readers.polls;
        line.survive(rng)?;
        counts += line.ledger.counts();
        Ok(())
    });
    println!(
        "campaign r2 loop readers: polls={polls} partial=0 kills={killed} {counts} steps_repeated=0 left_unsettled=0"
    );
    assert!(killed > 0, "void: nothing was killed");
}

fn kills(line: &mut Line, rng: &mut Rng, killed: &mut u32) -> Result<(), String> {
    for round in 0..5 {
        line.rest(rng)?;
        let point = *rng.pick(&[
            "publish.pre",
            "publish.mid",
            "publish.commit_sent",
            "publish.post",
            "step.post",
            "result.post",
            "terminal.pre",
        ]);
        let fate = Fate {
            faults: match round % 2 {
                0 => format!("{point}=kill@{}", 1 + rng.below(6)),
                _ => String::new(),
            },
            kill_after: (round % 2 == 1).then(|| 1 + rng.below(20)),
            orders: 6,
        };
        let end = line.live(&fate, Aim::Work(Modes::PerRun), rng, || Ok(()))?;
        *killed += u32::from(end == End::Killed);
    }
    line.settle(rng)
}
