use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use throughline_store::{Heartbeat, Ids, ManualClock, Memory, Options, Store};
use throughline_testkit::agent::{AgentEvent, Driver, EventSink, Ledger};
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, property};

const LEASE: Duration = Duration::from_secs(10);
const THREADS: usize = 2;

/// A ledger to which agents report directly, and whether other agents may act between their
/// operations.
#[derive(Clone)]
struct LedgerSink {
    ledger: Arc<Mutex<Ledger>>,
    yields: bool,
}

impl EventSink for LedgerSink {
    fn event(&self, event: AgentEvent) {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.event(event);
    }

    fn yields(&self) -> bool {
        self.yields
    }
}

type Work = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// A process with an agent that goes from thread to thread.
fn agent(driver: Driver<LedgerSink>, mut rng: Rng) -> Work {
    Box::pin(async move {
        for _ in 0..2 {
            let thread = format!("t{}", rng.below(THREADS));
            // Whatever stops it, it continues with the next thread.
            let _ = driver.visit(&thread, &mut rng).await;
        }
    })
}

/// The counts of a schedule.
#[derive(Default)]
struct Events {
    polls: u64,
    crashes: u64,
    expired: u64,
}

/// Lets three agents alternate as the seed says, with crashes and expiring leases anywhere.
fn schedule(rng: &mut Rng, events: &mut Events) -> Result<Ledger, String> {
    let clock = Arc::new(ManualClock::at(1_790_000_000_000));
    let options = || Options {
        clock: Arc::<ManualClock>::clone(&clock),
        heartbeat: Heartbeat::Manual,
        lease: LEASE,
    };
    let ids = Arc::new(Ids::seeded(
        Arc::<ManualClock>::clone(&clock),
        rng.next_u64(),
    ));
    let memory = Memory::new(options(), &ids);
    let process = || Store::on(Arc::new(memory.handle(options())), Arc::clone(&ids));
    let ledger = Arc::new(Mutex::new(Ledger::unordered()));
    let heard = |yields| LedgerSink {
        ledger: Arc::clone(&ledger),
        yields,
    };
    let start = |rng: &mut Rng| agent(Driver::new(process(), None, heard(true)), rng.fork());
    let mut agents: Vec<Option<Work>> = (0..3).map(|_| Some(start(rng))).collect();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..60 {
        let place = rng.below(agents.len());
        match rng.below(100) {
            // Its process dies in the middle of any operation, and another one starts.
            0..5 => {
                agents[place] = Some(start(rng));
                events.crashes += 1;
            }
            // The owner was silent for longer than its lease; it may still be alive.
            5..9 => {
                clock.advance(LEASE * 2);
                events.expired += 1;
            }
            _ => {
                let Some(work) = &mut agents[place] else {
                    continue;
                };
                events.polls += 1;
                if work.as_mut().poll(&mut context).is_ready() {
                    agents[place] = None;
                }
            }
        }
        if agents.iter().all(Option::is_none) {
            break;
        }
    }
    drop(agents);
    // All workers are gone. Another one settles the unfinished runs.
    clock.advance(LEASE * 2);
    let store = process();
    let last = Driver::new(store.clone(), None, heard(false));
    for round in 0.. {
        match block_on(last.drain()) {
            Ok(0) => break,
            _ if round == 20 => return Err("runs are left that nobody can settle".to_owned()),
            _ => {}
        }
    }
    for thread in 0..THREADS {
        Ledger::poll(&store, &format!("t{thread}"), 100_000)?;
    }
    let mut ledger = std::mem::take(&mut *ledger.lock().unwrap_or_else(PoisonError::into_inner));
    ledger.check(&store)?;
    Ok(ledger)
}

/// R1, R2 and R3 in memory, on one OS thread and with a manual clock: crashes, pauses and takeovers
/// between any two operations. A seed always gives the same schedule.
#[test]
fn r3_simulated_crashes_lose_nothing_and_repeat_nothing() {
    let mut events = Events::default();
    let mut total = throughline_testkit::agent::Audit::default();
    let started = Instant::now();
    let mut schedules = 0;
    property("r3 simulation", 5_000, |rng, _| {
        let ledger = schedule(rng, &mut events)?;
        schedules += 1;
        total += ledger.audit();
        Ok(())
    });
    let rate = f64::from(schedules) / started.elapsed().as_secs_f64();
    let Events {
        polls,
        crashes,
        expired,
    } = events;
    println!(
        "campaign r3 simulation: schedules={schedules} moves={polls} crashes={crashes} leases_ended={expired} {total} double=0 lost=0 per_second={rate:.0}"
    );
    assert!(total.claimed > 0, "void: nothing was taken over");
}

/// A schedule depends on its seed alone.
#[test]
fn a_seed_gives_the_same_schedule() {
    let one = |seed| {
        let mut events = Events::default();
        let ledger = schedule(&mut Rng::new(seed), &mut events).expect("it holds");
        (events.polls, events.crashes, events.expired, ledger.audit())
    };
    for seed in 0..20 {
        assert_eq!(one(seed), one(seed), "seed {seed}");
    }
}
