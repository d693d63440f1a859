//! A run that dies at any of its writes, before or after the write, is resumed by another process:
//! nothing finished is repeated, and the history ends closed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use throughline::model::{Body, Content, Message, Wire, json, pairs};
use throughline::store::{RunFilter, RunState, ThreadId};
use throughline::thread::{Awaits, Persistence};
use throughline::tool::{Effect, ToolOutput};
use throughline::{Agent, Outcome, StopReason};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{Asked, ScriptedClient, Step};
use throughline_testkit::stage::{Engine, Fake, How, Process, Stage, short};
use throughline_testkit::{Rng, property};
use throughline_wire::render::{Options, Target, render};
use throughline_wire::validate::{Profile, validate};

/// The rounds of a turn: for each, the tools that its calls name.
#[derive(Clone, Debug)]
struct Script {
    rounds: Vec<Vec<usize>>,
    mode: Persistence,
    serial: bool,
    how: How,
}

/// The tools, with their effect classes. The calls of the last two wait for an answer.
const TOOLS: [(&str, Effect); 7] = [
    ("once", Effect::Once),
    ("read_only", Effect::ReadOnly),
    ("idempotent", Effect::Idempotent),
    ("keyed", Effect::Keyed),
    ("transactional", Effect::Transactional),
    ("asked", Effect::Once),
    ("outside", Effect::Once),
];

impl Script {
    fn of(rng: &mut Rng) -> Self {
        let rounds = (0..rng.range(1..=3))
            .map(|_| {
                (0..rng.range(1..=3))
                    .map(|_| rng.below(TOOLS.len()))
                    .collect()
            })
            .collect();
        Self {
            rounds,
            mode: *rng.pick(&[Persistence::PerRun, Persistence::PerCall]),
            serial: rng.bool(),
            how: *rng.pick(&How::ALL),
        }
    }

    /// The answer to a request: the round follows from what the model is sent.
    fn answer(&self, asked: &Asked) -> Step {
        let done = asked
            .messages
            .iter()
            .flat_map(|message| &message.contents)
            .filter(|content| matches!(content.body, Body::ToolResult(_)))
            .count();
        let mut before = 0;
        for (place, round) in self.rounds.iter().enumerate() {
            if done == before {
                let calls = round
                    .iter()
                    .enumerate()
                    .map(|(at, tool)| (format!("c{place}_{at}"), TOOLS[*tool].0, "{}"));
                return Step::calls(calls);
            }
            before += round.len();
        }
        Step::text("done")
    }
}

/// What tools did, outside of the processes that die: how often each key ran.
type Ledger = Arc<Mutex<HashMap<String, (Effect, usize)>>>;

fn agent(process: &Process, script: &Script, ledger: &Ledger) -> (Agent, Arc<ScriptedClient>) {
    let answers = script.clone();
    let client = Arc::new(ScriptedClient::answering(move |asked| {
        answers.answer(asked)
    }));
    let mut builder = Agent::builder(Arc::clone(&client))
        .store(&process.store)
        .persistence(script.mode);
    if script.serial {
        builder = builder.serial_calls();
    }
    for (name, effect) in TOOLS {
        let ledger = Arc::clone(ledger);
        let tool = Fake::doing(name, move |_, context| {
            let mut ledger = ledger.lock().unwrap();
            ledger
                .entry(context.idempotency_key)
                .or_insert((effect, 0))
                .1 += 1;
            async { Ok(ToolOutput::text("done")) }
        });
        builder = builder.tool(tool.with(|spec| {
            spec.effect = effect;
            if name == "asked" {
                spec.approval = throughline::tool::Approval::Always;
            }
            if name == "outside" {
                spec.runs = throughline::tool::Runs::Outside;
            }
        }));
    }
    (builder.build().unwrap(), client)
}

/// Answers waiting calls until the run has ended.
async fn settle(agent: &Agent, how: How, id: &ThreadId, mut outcome: Outcome) -> Outcome {
    let thread = agent.open(id.clone()).await.unwrap();
    while outcome.stop == StopReason::Parked {
        let mut run = agent.resume(&thread);
        for waiting in &outcome.pending {
            run = match waiting.awaits {
                Awaits::Result => run.answer(waiting, "from outside"),
                Awaits::Approval | Awaits::VendorApproval => run.approve(waiting),
            };
        }
        outcome = how.finish(run).await.unwrap();
    }
    outcome
}

/// Begins, dies in one call, and resumes in another process; `None` if that call was never made.
async fn dies(
    stage: &Stage,
    script: &Script,
    (method, occurrence): (&'static str, usize),
    fault: Fault,
) -> Option<Result<(), String>> {
    let how = script.how;
    let ledger = Ledger::default();
    let first = stage.process().await;
    let (agent_, asked) = agent(&first, script, &ledger);
    first.faulty.skip(method, occurrence);
    first.die_in(method, fault);
    let thread = agent_.new_thread();
    let id = thread.id().clone();
    let run = agent_.run_on(&thread, "go");
    let (whole, place) = (agent_.clone(), id.clone());
    let ended = tokio::spawn(async move {
        let outcome = how.finish(run).await.unwrap();
        settle(&whole, how, &place, outcome).await
    });
    let died = tokio::select! {
        () = first.died() => true,
        _ = ended => false,
    };
    if !died {
        return None;
    }
    let asked_before = asked.calls();
    let second = stage.process().await;
    let (agent_, asked_after) = agent(&second, script, &ledger);
    let Ok(thread) = agent_.open(id.clone()).await else {
        // Nothing was stored: sending the input again is safe.
        return Some(match ledger.lock().unwrap().is_empty() {
            true => Ok(()),
            false => Err("a tool ran in a run that was never begun".to_owned()),
        });
    };
    let seen = short(thread.history().iter().map(|message| &**message));
    let resumed = how.finish(agent_.resume(&thread)).await;
    let outcome = match resumed {
        Ok(outcome) => settle(&agent_, how, &id, outcome).await,
        // The run had ended when the process died.
        Err(failed) if is_nothing(&failed) => return Some(check(&second, &id, &ledger).await),
        Err(failed) => return Some(Err(format!("{failed}: {:?}", failed.source))),
    };
    if outcome.stop != StopReason::Done {
        return Some(Err(format!("ended {}", outcome.stop)));
    }
    if script.mode == Persistence::PerRun && !seen.is_empty() && seen != second.history(&id).await {
        return Some(Err(format!("a reader saw a part: {seen}")));
    }
    // One per round, the last call, and the call in which it died.
    let most = script.rounds.len() + 2;
    let calls = asked_before + asked_after.calls();
    if calls > most {
        return Some(Err(format!(
            "{calls} model calls, at most {most} are needed"
        )));
    }
    Some(check(&second, &id, &ledger).await)
}

fn is_nothing(failed: &throughline::agent::RunFailed) -> bool {
    matches!(
        failed.source,
        throughline::agent::RunError::NothingToResume { .. }
    )
}

/// The history is closed and valid for every vendor; no tool that is not declared safe ran twice.
async fn check(process: &Process, id: &ThreadId, ledger: &Ledger) -> Result<(), String> {
    for (key, (effect, runs)) in &*ledger.lock().unwrap() {
        if *effect == Effect::Once && *runs > 1 {
            return Err(format!("{key} of class once ran {runs} times"));
        }
    }
    let opened = process.threads().open(id.clone()).await;
    let opened = opened.map_err(|error| error.to_string())?;
    let messages: Vec<Message> = opened
        .history()
        .iter()
        .map(|message| Message::clone(message))
        .collect();
    let calls = contents(&messages, |body| matches!(body, Body::ToolCall(_)));
    let results = contents(&messages, |body| matches!(body, Body::ToolResult(_)));
    if pairs(&messages).len() != calls || calls != results {
        return Err(format!(
            "{calls} calls, {results} results: {}",
            short(&messages)
        ));
    }
    for wire in [
        Wire::OpenAiResponses,
        Wire::OpenAiChat,
        Wire::Anthropic,
        Wire::Gemini,
        Wire::Foundry,
    ] {
        let (target, options) = (Target::newest(wire.clone()), Options::default());
        let body = render(&messages, &target, &options).body(&target, &options);
        let value = json::parse(&body).map_err(|error| error.to_string())?;
        if let Some(violation) = validate(&value, &Profile::newest(wire.clone())).first() {
            return Err(format!("{wire}: {violation:?}"));
        }
    }
    Ok(())
}

fn contents(messages: &[Message], which: impl Fn(&Body) -> bool) -> usize {
    let all = messages.iter().flat_map(|message| &message.contents);
    all.filter(|content: &&Content| which(&content.body))
        .count()
}

/// The writes of an undisturbed run, each with how often its method was called before.
async fn writes(stage: &Stage, script: &Script) -> Vec<(&'static str, usize)> {
    let ledger = Ledger::default();
    let process = stage.process().await;
    let (agent_, _) = agent(&process, script, &ledger);
    let thread = agent_.new_thread();
    let id = thread.id().clone();
    let outcome = script.how.finish(agent_.run_on(&thread, "go")).await;
    settle(&agent_, script.how, &id, outcome.unwrap()).await;
    let (scope, filter) = (process.scope(), RunFilter::default());
    let runs = process.store.runs(&scope, &filter, None, 10).await.unwrap();
    let states: Vec<RunState> = runs.found.iter().map(|run| run.state).collect();
    assert_eq!(states, [RunState::Committed]);
    let mut seen: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut writes = Vec::new();
    for method in process.counted.log() {
        let before = seen.entry(method).or_default();
        if matches!(
            method,
            "begin"
                | "step"
                | "intend"
                | "results"
                | "flush"
                | "publish"
                | "park"
                | "claim"
                | "answer"
        ) {
            writes.push((method, *before));
        }
        *before += 1;
    }
    writes
}

#[test]
fn r2_a_run_that_dies_at_any_write_is_gone_on_with_and_repeats_nothing() {
    let mut killed: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut missed = 0_u64;
    property("runs that die at any write", 12, |rng, _| {
        let script = Script::of(rng);
        let engine = *rng.pick(&Engine::ALL);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let result = runtime.block_on(async {
            for at in writes(&Stage::new(engine), &script).await {
                for fault in [Fault::HangBefore, Fault::HangAfter] {
                    let died = dies(&Stage::new(engine), &script, at, fault).await;
                    match died {
                        None => missed += 1,
                        Some(Ok(())) => *killed.entry(at.0).or_default() += 1,
                        Some(Err(error)) => {
                            return Err(format!("{engine:?} {script:?} {at:?} {fault:?}: {error}"));
                        }
                    }
                }
            }
            Ok(())
        });
        runtime.shutdown_background();
        result
    });
    println!("table deaths at writes: {killed:?} not reached again={missed} violations=0");
    for method in ["begin", "step", "intend", "results", "publish", "park"] {
        assert!(killed.contains_key(method), "nobody died in {method}");
    }
}
