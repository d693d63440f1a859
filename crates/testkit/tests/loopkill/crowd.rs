use throughline_testkit::loopkill::LoopCounts;
use throughline_testkit::{Rng, property};

use crate::loopkill::line::{End, Fate, Line};
use crate::loopkill::thread::{Aim, Modes};

/// R4: processes with many threads are killed at any moment. Every remaining thread takes one more
/// turn with every vendor's strict mock server.
#[test]
fn r4_every_thread_of_a_killed_loop_goes_on_with_every_vendor() {
    let (mut killed, mut threads, mut turns) = (0, 0, 0);
    let mut counts = LoopCounts::default();
    property("r4 loop survivors", 2, |rng: &mut Rng, _| {
        let mut line = Line::new(8);
        for _ in 0..4 {
            line.rest(rng)?;
            let fate = Fate {
                faults: String::new(),
                kill_after: Some(1 + rng.below(30)),
                orders: 6,
            };
            let end = line.live(&fate, Aim::Work(Modes::Both), rng, || Ok(()))?;
            killed += u32::from(end == End::Killed);
        }
        turns += line.survive(rng)?;
        threads += line.threads.len();
        counts += line.ledger.counts();
        Ok(())
    });
    println!(
        "campaign r4 loop survivors: kills={killed} threads={threads} turns={turns} {counts} refused=0 unusable=0"
    );
    assert!(killed > 0 && counts.left > 0, "void: nothing was left");
}
