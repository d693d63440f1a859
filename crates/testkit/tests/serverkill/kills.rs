use std::collections::BTreeMap;

use throughline_testkit::serverkill::Counts as Ledgered;
use throughline_testkit::{Rng, Scratch, property};

use crate::serverkill::callers::Caller;
use crate::serverkill::process::Process;
use crate::serverkill::readers::reader;
use crate::serverkill::settle;
use crate::serverkill::world::{Counts, World};

/// How often the server dies on one store, and how many clients use it.
const LIVES: u64 = 25;
const CALLERS: usize = 6;
const READERS: usize = 2;

/// How far each server's clock is ahead of the one before: more than a lease.
const APART: u64 = 10_500;

/// The points at which a server is killed; otherwise it dies at any moment.
const POINTS: [&str; 12] = [
    "begin.pre",
    "begin.post",
    "model.pre_send",
    "model.headers",
    "model.mid_stream",
    "step.pre",
    "step.post",
    "publish.commit_sent",
    "publish.post",
    "event.append",
    "event.flush",
    "recover.claim",
];

/// The upstream of the server, one for each case.
const WIRES: [&str; 4] = ["openai-chat", "anthropic", "gemini", "openai-responses"];

#[derive(Default)]
struct Sum {
    killed: u64,
    points: BTreeMap<&'static str, u64>,
    ledger: Ledgered,
    counts: Counts,
    chains: usize,
    runs: usize,
    responses: usize,
    events: usize,
}

/// R1, R8, R10 and R11: a server is killed under load and restarted, repeatedly. Acknowledged
/// responses read as before, every stream has one event per sequence number for all readers before
/// and after, retried requests begin no second run, and every chain continues with its whole
/// history.
#[test]
fn r1_a_killed_server_loses_nothing_and_doubles_nothing() {
    let mut sum = Sum::default();
    let mut case = 0;
    property("r1 server kills", 1, |rng: &mut Rng, _| {
        let wire = WIRES[(case + rng.below(WIRES.len())) % WIRES.len()];
        case += 1;
        line(wire, rng, &mut sum).map_err(|error| format!("{wire}: {error}"))
    });
    let Sum {
        killed,
        points,
        ledger,
        counts,
        chains,
        runs,
        responses,
        events,
    } = sum;
    let at_points: u64 = points.values().sum();
    println!(
        "campaign r1 server kills: kills={killed} at_points={at_points} points={} of {} turns={} across_kills={} reads={} lost=0 altered=0 chains={chains} gone_on={chains} given_up={}",
        points.len(),
        POINTS.len(),
        ledger.turns,
        ledger.crossed,
        counts.reads,
        ledger.given_up + counts.given_up
    );
    println!(
        "campaign r8 server retries: retries={} keyed_runs={runs} doubled=0 model_calls={} redone_after_a_kill={} left={} waited={}",
        counts.retries, ledger.asked, ledger.redone, counts.left, counts.waited
    );
    println!(
        "campaign r10 server streams: streams={} resumed={} cut={} responses={responses} events={events} disagreements=0 gaps=0 repeats=0",
        counts.streams, counts.resumed, counts.cut
    );
    assert!(
        ledger.crossed > killed / 2 && counts.resumed > killed && ledger.redone > 0,
        "void: the kills met too little"
    );
}

/// One store, its servers in sequence, and all of their clients.
fn line(wire: &str, rng: &mut Rng, sum: &mut Sum) -> Result<(), String> {
    let scratch = Scratch::in_memory("serverkill");
    let store = scratch.sqlite("store.db");
    let (mut models, url) = Process::start(&["models", wire], "")?;
    let mut life = 0;
    let mut start = |faults: &str| {
        life += 1;
        let ahead = (life * APART).to_string();
        Process::start(&["serve", &store, &ahead, wire, &url], faults)
    };
    let world = World::default();
    let names = ["up/a-model", "demo"];
    std::thread::scope(|scope| {
        let world = &world;
        let tell = |done: Result<(), String>| {
            if let Err(error) = done {
                world.wrong(error);
            }
        };
        for place in 0..CALLERS {
            let name = names[usize::from(place == CALLERS - 1)];
            let caller = Caller::new(world, place, name, rng.fork());
            scope.spawn(move || tell(caller.talk().map(|_| ())));
        }
        for _ in 0..READERS {
            let rng = rng.fork();
            scope.spawn(move || tell(reader(world, rng)));
        }
        let killed = (|| {
            for _ in 0..LIVES {
                let point = rng.chance(0.4).then(|| *rng.pick(&POINTS));
                let faults = point.map(|point| format!("{point}=kill@{}", 1 + rng.below(8)));
                let (mut server, address) = match start(&faults.unwrap_or_default()) {
                    Ok(started) => started,
                    Err(error) => {
                        // It takes over unfinished runs as soon as it starts.
                        let point = point.ok_or(error)?;
                        *sum.points.entry(point).or_default() += 1;
                        sum.killed += 1;
                        world.dies();
                        continue;
                    }
                };
                world.starts(&address);
                // Sometimes at once, mostly under load.
                let most = *rng.pick(&[3, 60, 400]);
                let more = rng.below(most) as u64 + if point.is_some() { 300 } else { 0 };
                world.happens(more, || server.is_gone());
                if let Some(point) = point.filter(|_| server.is_gone()) {
                    *sum.points.entry(point).or_default() += 1;
                }
                server.kill();
                world.dies();
                sum.killed += 1;
                world.verdict()?;
            }
            let last = start("")?;
            world.starts(&last.1);
            Ok(last.0)
        })();
        match killed {
            Ok(server) => {
                world.ends();
                Ok(server)
            }
            Err(error) => {
                world.wrong(error);
                Err(String::new())
            }
        }
    })
    .map_err(|error: String| world.verdict().err().unwrap_or(error))
    .and_then(|mut server| {
        world.verdict()?;
        settle::read_again(&world, rng)?;
        sum.chains += settle::go_on(&world, &names)?;
        server.kill();
        let asked = settle::asked(&models.said(1)?)?;
        let state = world.state();
        sum.ledger += state.ledger.judge(&asked, &state.parents)?;
        sum.runs += settle::runs(&store)?;
        let (responses, events) = state.streams_read.count();
        sum.responses += responses;
        sum.events += events;
        sum.counts += state.counts;
        Ok(())
    })
}
