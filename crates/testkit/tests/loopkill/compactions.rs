//! Concurrent writes while a history is being compacted.

use std::time::{Duration, Instant};

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::{Append, At, Fork, NewItem, NewThread, Store, TenantScope, ThreadId};
use throughline_testkit::Rng;
use throughline_testkit::loopkill::Kind;
use throughline_testkit::record::block_on;

use crate::loopkill::line::{Fate, Line, open};
use crate::loopkill::thread::{Aim, Modes};

const WIRE: &str = "openai-chat";

/// Sends a turn on the only thread, and waits for its result.
fn turn(
    line: &mut Line,
    life: &mut crate::loopkill::line::Life,
    rng: &mut Rng,
) -> Result<(), String> {
    send(line, life, rng);
    loop {
        let said = life.worker.hear().ok_or("the worker is gone")?;
        if line.take_in(life, &said)?.is_some() {
            return Ok(());
        }
    }
}

fn send(line: &mut Line, life: &mut crate::loopkill::line::Life, rng: &mut Rng) {
    let order = line.threads[0].turn(Kind::Plain, WIRE, Modes::PerRun, rng);
    line.send(life, 0, order);
}

/// How often to ask whether a process has done something, and for how long at most.
const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends turns until the process hangs at a fault point. How much a turn adds is left to chance.
fn until_it_hangs(
    line: &mut Line,
    life: &mut crate::loopkill::line::Life,
    point: &str,
    rng: &mut Rng,
) -> Result<(), String> {
    let begun = Instant::now();
    send(line, life, rng);
    while begun.elapsed() < PATIENCE {
        if line.reached().contains(point) {
            return Ok(());
        }
        let said = life.worker.hear_within(POLL);
        if let Some(said) = said
            && line.take_in(life, &said)?.is_some()
        {
            send(line, life, rng);
        }
    }
    Err(format!("{point} was not reached in {PATIENCE:?}"))
}

/// Another process appends to the same record.
fn append(store: &Store, thread: &ThreadId) -> Result<(), String> {
    let append = Append {
        run: store.ids().run(),
        thread: thread.clone(),
        expected: None,
        items: NewItem::of(&[Message::user("A word from elsewhere.")]),
        state: None,
        key: None,
    };
    let said = block_on(store.append(&TenantScope::local(), &append));
    said.map(drop).map_err(|error| error.to_string())
}

/// R20: a process hangs in the middle of an epoch. A process that appends on a fork of the same
/// record, and one that queues a message for the thread itself, do not wait for it; when it is
/// dead, the thread has the old view, and continues.
#[test]
fn r20_appends_go_on_while_an_epoch_is_being_made() {
    let mut appended = 0;
    for (seed, point) in [(7, "compact.write"), (11, "compact.swap")] {
        let work = || -> Result<u64, String> {
            let mut rng = Rng::new(seed);
            let mut line = Line::new(1);
            let mut life = line.start(&format!("{point}=hang@1"), 0);
            until_it_hangs(&mut line, &mut life, point, &mut rng)?;
            let store = open(&line.url)?;
            let name = ThreadId::new(&line.threads[0].name).map_err(|error| error.to_string())?;
            let other = store.ids().thread();
            let fork = Fork {
                from: At::Thread(name.clone()),
                thread: NewThread::new(other.clone()),
            };
            let scope = TenantScope::local();
            let said = |error: throughline_store::Error| error.to_string();
            block_on(store.fork(&scope, &fork)).map_err(said)?;
            let later = Message::user("For later.").to_json();
            let later = RawJson::new(&later).map_err(|error| error.to_string())?;
            let mut count = 0;
            for _ in 0..20 {
                append(&store, &other)?;
                block_on(store.enqueue(&scope, &name, &later)).map_err(said)?;
                count += 2;
            }
            block_on(store.close()).map_err(said)?;
            life.worker.kill();
            line.end(life)?;
            if line.epochs != 0 {
                return Err("what was never published holds".to_owned());
            }
            line.live(&Fate::none(4), Aim::Settle, &mut rng, || Ok(()))?;
            // Again, how much a turn adds is left to chance.
            let mut life = line.start("", 0);
            for _ in 0..8 {
                turn(&mut line, &mut life, &mut rng)?;
            }
            line.end(life)?;
            if line.epochs == 0 {
                return Err("nothing was folded in the end".to_owned());
            }
            Ok(count)
        };
        match work() {
            Ok(count) => appended += count,
            Err(error) => panic!("{point}, seed {seed}: {error}"),
        }
    }
    println!("campaign r20 appends: points=2 appended={appended} waited=0 mixed_views=0");
}
