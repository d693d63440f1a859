use std::time::{Duration, Instant};

use throughline_testkit::loopkill::Kind;
use throughline_testkit::{Rng, property};

use crate::loopkill::line::{End, Line};
use crate::loopkill::thread::{Aim, Modes, Standing};

/// The attempt at which a run that kills its processes is given up, at the latest.
const SEALED: u32 = 5;

/// R9: runs of dead processes are taken over by the next one, many at once; and a run that kills
/// every process that works on it is given up, after which its thread continues.
#[test]
fn r9_orphans_of_the_loop_are_settled_and_poison_is_given_up() {
    let (mut orphans, mut poisoned, mut most) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    // A thousand at once at the scale of tier C, and fifty in later cases.
    let scale = std::env::var("THROUGHLINE_SCALE").ok();
    let scale = scale.and_then(|scale| scale.parse::<f64>().ok());
    let mut many = (50.0 * scale.unwrap_or(1.0)).clamp(50.0, 1000.0) as usize;
    property("r9 loop orphans", 1, |rng: &mut Rng, _| {
        let mut line = Line::new(std::mem::replace(&mut many, 50));
        let mut life = line.start("", 0);
        for place in 0..line.threads.len() {
            let order = line.threads[place].turn(Kind::Plain, "anthropic", Modes::Both, rng);
            line.send(&mut life, place, order);
        }
        line.work(&mut life, Aim::Settle, Some(5), rng, || Ok(()))?;
        life.worker.kill();
        line.end(life)?;
        let left = line
            .threads
            .iter()
            .filter(|one| one.standing != Standing::Free);
        orphans += left.count();
        let began = Instant::now();
        line.settle(rng)?;
        slowest = slowest.max(began.elapsed());
        Ok(())
    });
    property("r9 loop poison", 2, |rng: &mut Rng, _| {
        let mut line = Line::new(1);
        poisoned += 1;
        let mut attempts = 0;
        let mut sent = false;
        // The next run with new input gives it up.
        loop {
            // Giving up can be interrupted too.
            let faults = match attempts {
                4 => "cancel.close=kill@1",
                _ => "",
            };
            let mut life = line.start(faults, 0);
            let kind = if sent { Kind::Brief } else { Kind::Poison };
            sent = true;
            let order = line.threads[0].turn(kind, "gemini", Modes::PerRun, rng);
            line.send(&mut life, 0, order);
            let answered = line.answered(&mut life);
            if line.end(life)? == End::ByItself {
                answered?;
                break;
            }
            attempts += 1;
            if attempts > SEALED + 1 {
                return Err(format!("a run killed {attempts} processes and goes on"));
            }
        }
        most = most.max(attempts);
        line.survive(rng)?;
        Ok(())
    });
    println!(
        "campaign r9 loop orphans: orphans={orphans} settled=all slowest_ms={} poisoned={poisoned} attempts_at_most={most}",
        slowest.as_millis()
    );
    assert!(orphans > 0, "void: nothing was left");
    assert!(
        slowest < Duration::from_secs(30),
        "{slowest:?} for {orphans} runs"
    );
}
