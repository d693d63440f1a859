//! Random answers, forgeries and kills: a tool runs at most once, and only with the approval that
//! its record has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline::agent::RunError;
use throughline::model::{Outcome as Ending, Role};
use throughline::store::{
    Answer, Approval as Record, ApprovalState, Authority, Decision, Error, Tenant, ThreadId,
    arguments_digest,
};
use throughline::tool::{Approval, Parameters, ToolOutput};
use throughline::{Agent, StopReason, Threads};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Engine, Fake, How, MadeCalls, Process, Stage};
use throughline_testkit::{Rng, property};

use super::{answer, builder, journal, records};

/// How long an approval can be answered, in cases with an expiry.
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Counts {
    cases: u64,
    accepted: u64,
    refused: u64,
    kills: u64,
    resumes: u64,
    executed: u64,
}

#[test]
fn r25_no_answer_and_no_kill_makes_a_tool_run_twice_or_without_leave() {
    let mut counts = Counts::default();
    property("r25", 60, |rng, _| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let checked = runtime.block_on(case(rng, &mut counts));
        // Tasks of processes that count as dead never end.
        runtime.shutdown_background();
        checked
    });
    let Counts {
        cases,
        accepted,
        refused,
        kills,
        resumes,
        executed,
    } = counts;
    println!(
        "table r25 approvals: cases={cases} answers_accepted={accepted} answers_refused={refused} \
         kills={kills} resumes={resumes} executions={executed} wrong=0"
    );
}

/// What the test knows of a thread with waiting calls, independently of the store.
struct Case<'c> {
    stage: Stage,
    how: How,
    thread: ThreadId,
    processes: [Process; 2],
    model: Arc<ScriptedClient>,
    tool: Fake,
    expires: bool,
    /// What ran: call and arguments.
    ran: Arc<Mutex<Vec<(String, String)>>>,
    /// The first answer that was accepted for a call, by position.
    said: BTreeMap<u32, Decision>,
    counts: &'c mut Counts,
}

fn arguments(position: usize) -> String {
    format!(r#"{{"sum":{position}}}"#)
}

async fn case(rng: &mut Rng, counts: &mut Counts) -> Result<(), String> {
    let stage = Stage::new(*rng.pick(&Engine::ALL));
    let how = *rng.pick(&How::ALL);
    let asks = rng.range(1..=3);
    let model = ScriptedClient::answering(move |asked| {
        if asked.messages.iter().any(|one| one.role == Role::Tool) {
            return Step::text("done");
        }
        let ids: Vec<String> = (0..asks).map(|no| format!("c{no}")).collect();
        let calls = ids.iter().enumerate();
        Step::calls(calls.map(|(no, id)| (id, "pay", arguments(no))))
    });
    let ran = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&ran);
    let tool = Fake::doing("pay", move |arguments, context| {
        let notes = Arc::clone(&notes);
        async move {
            let call = context.call.value().to_owned();
            notes
                .lock()
                .unwrap()
                .push((call, arguments.get().to_owned()));
            Ok(ToolOutput::text("paid"))
        }
    });
    let tool = tool.with(|spec| {
        spec.approval = Approval::Always;
        spec.parameters = Parameters::any();
    });
    let processes = [stage.process().await, stage.process().await];
    let mut case = Case {
        thread: ThreadId::new("case").unwrap(),
        stage,
        how,
        processes,
        model: Arc::new(model),
        tool,
        expires: rng.bool(),
        ran,
        said: BTreeMap::new(),
        counts,
    };
    case.counts.cases += 1;
    case.begin(rng).await?;
    for _ in 0..rng.range(2..=7) {
        case.act(rng).await?;
        case.check().await?;
    }
    case.finish(rng).await?;
    case.check().await?;
    case.counts.executed += case.ran.lock().unwrap().len() as u64;
    Ok(())
}

impl Case<'_> {
    fn agent(&self, process: &Process) -> Agent {
        let builder = builder(&self.stage, process, &self.model).tool(self.tool.clone());
        let builder = match self.expires {
            true => builder.approvals_expire_after(HOUR),
            false => builder,
        };
        builder.build().unwrap()
    }

    /// Makes the calls, and parks, or dies.
    async fn begin(&mut self, rng: &mut Rng) -> Result<(), String> {
        let dies = *rng.pick(&[
            None,
            None,
            Some(("step", Fault::HangAfter)),
            Some(("park", Fault::HangBefore)),
            Some(("park", Fault::HangAfter)),
        ]);
        let process = self.stage.process().await;
        let agent = self.agent(&process);
        let thread = agent.new_thread();
        self.thread = thread.id().clone();
        let run = agent.run_on(&thread, "go");
        self.until_dead(process, dies, run).await;
        let asked = records(&self.processes[0], &self.thread).await;
        match asked.is_empty() {
            true => Err("nobody was asked".to_owned()),
            false => Ok(()),
        }
    }

    /// Resumes a run in a process that dies at a given point, if it gets there.
    async fn until_dead(
        &mut self,
        process: Process,
        dies: Option<(&str, Fault)>,
        run: throughline::agent::Run<impl throughline::agent::order::Order>,
    ) {
        if let Some((method, fault)) = dies {
            process.die_in(method, fault);
        }
        let how = self.how;
        let mut task = tokio::spawn(async move { how.finish(run).await });
        tokio::select! {
            // Its outcome does not matter here: the record counts.
            _ = &mut task => {}
            () = process.faulty.hung(1) => self.counts.kills += 1,
        }
        // The run has ended or its process is dead: it acts no more.
        process.kill();
        for process in &self.processes {
            process.live().await;
        }
    }

    async fn record(&self, rng: &mut Rng) -> Record {
        let all = records(&self.processes[0], &self.thread).await;
        rng.pick(&all).clone()
    }

    /// One random action.
    async fn act(&mut self, rng: &mut Rng) -> Result<(), String> {
        let record = self.record(rng).await;
        let decision = *rng.pick(&[Decision::Approved, Decision::Denied]);
        let honest = answer(&record, decision);
        match rng.below(10) {
            0 | 1 => self.give(rng, &honest).await,
            2 => {
                // Twice, possibly by two operators.
                self.give(rng, &honest).await?;
                self.give(rng, &honest).await
            }
            3 => self.race(&record).await,
            4 => self.forge(rng, &record).await,
            5 => self.stranger(&honest).await,
            6 => {
                self.stage.clock.advance(Duration::from_secs(61 * 60));
                for process in &self.processes {
                    process.live().await;
                }
                self.give(rng, &honest).await
            }
            7 => self.die_answering(rng, &honest).await,
            _ => self.resume(rng).await,
        }
    }

    async fn give(&mut self, rng: &mut Rng, answer: &Answer) -> Result<(), String> {
        let process = rng.pick(&self.processes);
        let before = find(process, &self.thread, answer).await;
        let given = process.threads().answer(answer).await;
        self.note(&before, answer, given.map(|_| ()))
    }

    /// Records the result of an answer. An accepted answer must be the first one, in time, or the
    /// same again.
    fn note(
        &mut self,
        before: &Record,
        answer: &Answer,
        given: Result<(), Error>,
    ) -> Result<(), String> {
        let position = before.call.position;
        match given {
            Ok(()) => {
                self.counts.accepted += 1;
                let first = *self.said.entry(position).or_insert(answer.decision);
                let closed = matches!(
                    before.state,
                    ApprovalState::Expired | ApprovalState::Withdrawn
                );
                if first != answer.decision || closed {
                    return Err(format!("{answer:?} was accepted on {before:?}"));
                }
                Ok(())
            }
            Err(Error::NotAnswerable { .. }) if before.state != ApprovalState::Waiting => {
                self.counts.refused += 1;
                Ok(())
            }
            Err(error) => Err(format!("{answer:?} on {before:?}: {error}")),
        }
    }

    /// Approved and denied at the same moment, in two processes.
    async fn race(&mut self, record: &Record) -> Result<(), String> {
        let [one, two] = &self.processes;
        let before = find(one, &self.thread, &answer(record, Decision::Approved)).await;
        let (yes, no) = (
            answer(record, Decision::Approved),
            answer(record, Decision::Denied),
        );
        let (one, two) = (one.threads(), two.threads());
        let (first, second) = tokio::join!(one.answer(&yes), two.answer(&no));
        let accepted = [(first.is_ok(), yes), (second.is_ok(), no)];
        let accepted: Vec<&Answer> = accepted
            .iter()
            .filter(|(ok, _)| *ok)
            .map(|(_, answer)| answer)
            .collect();
        let open = before.state == ApprovalState::Waiting;
        if accepted.len() > 1 || (open && accepted.is_empty()) {
            return Err(format!("{} answers were accepted", accepted.len()));
        }
        self.counts.refused += 2 - accepted.len() as u64;
        match accepted.first() {
            Some(answer) => self.note(&before, answer, Ok(())),
            None => Ok(()),
        }
    }

    /// An answer for other arguments than those that were shown.
    async fn forge(&mut self, rng: &mut Rng, record: &Record) -> Result<(), String> {
        let position = record.call.position as usize;
        let digest = match rng.below(3) {
            0 => arguments_digest("pay", &arguments(position + 1)),
            1 => arguments_digest("pay", &format!(" {}", arguments(position))),
            _ => rng.bytes(16).try_into().unwrap(),
        };
        let forged = Answer {
            shown: digest,
            ..answer(record, Decision::Approved)
        };
        let given = rng.pick(&self.processes).threads().answer(&forged).await;
        self.counts.refused += 1;
        match given {
            Err(Error::NotAnswerable { .. }) => Ok(()),
            other => Err(format!("a forged answer gave {other:?}")),
        }
    }

    async fn stranger(&mut self, honest: &Answer) -> Result<(), String> {
        let scope = Authority::assume().scope(Tenant::new("stranger").unwrap());
        let strange = Threads::scoped(&self.processes[0].store, scope);
        self.counts.refused += 1;
        match strange.answer(honest).await {
            Err(Error::NotFound { .. }) => Ok(()),
            other => Err(format!("a stranger's answer gave {other:?}")),
        }
    }

    /// Answers in a process that is killed at a given point.
    async fn die_answering(&mut self, rng: &mut Rng, honest: &Answer) -> Result<(), String> {
        let fault = *rng.pick(&[Fault::HangBefore, Fault::HangAfter]);
        let process = self.stage.process().await;
        process.die_in("answer", fault);
        let before = find(&self.processes[0], &self.thread, honest).await;
        let (threads, given) = (process.threads(), honest.clone());
        tokio::spawn(async move { threads.answer(&given).await });
        process.died().await;
        self.counts.kills += 1;
        for process in &self.processes {
            process.live().await;
        }
        let after = find(&self.processes[0], &self.thread, honest).await;
        let open = before.state == ApprovalState::Waiting;
        if fault == Fault::HangBefore || !open {
            let same = (after.state, &after.answered) == (before.state, &before.answered);
            // Time has passed, too.
            let late = open && after.state == ApprovalState::Expired;
            return match same || late {
                true => Ok(()),
                false => Err(format!("{before:?} became {after:?}")),
            };
        }
        self.note(&before, honest, Ok(()))
    }

    /// Resumes in a process, with or without answers, killed or not; or in two at once.
    async fn resume(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.counts.resumes += 1;
        let dies = *rng.pick(&[
            None,
            None,
            Some(("claim", Fault::HangAfter)),
            Some(("intend", Fault::HangBefore)),
            Some(("intend", Fault::HangAfter)),
            Some(("results", Fault::HangBefore)),
            Some(("results", Fault::HangAfter)),
            Some(("park", Fault::HangBefore)),
            Some(("park", Fault::HangAfter)),
            Some(("answer", Fault::HangBefore)),
            Some(("answer", Fault::HangAfter)),
        ]);
        let beside = rng.chance(0.3);
        let process = self.stage.process().await;
        let agent = self.agent(&process);
        let thread = agent.open(self.thread.clone()).await.unwrap();
        let mut run = agent.resume(&thread);
        if rng.chance(0.4) {
            let position = self.record(rng).await.call.position;
            let calls = MadeCalls::on(agent.threads().unwrap(), &self.thread).await;
            let call = calls.of(&format!("c{position}"));
            run = match rng.below(3) {
                0 => run.approve(&call),
                1 => run.reject(&call, None),
                _ => run.approve(&call).approve(&call),
            };
        }
        if beside {
            let other = self.agent(&self.processes[1]);
            let again = other.open(self.thread.clone()).await.unwrap();
            let second = self.how.finish(other.resume(&again));
            let second = tokio::spawn(second);
            self.until_dead(process, dies, run).await;
            drop(second.await);
        } else {
            self.until_dead(process, dies, run).await;
        }
        // Answers through the run are in the record.
        for record in records(&self.processes[0], &self.thread).await {
            if let Some(decision) = decided(&record) {
                self.said.entry(record.call.position).or_insert(decision);
            }
        }
        Ok(())
    }

    /// All processes live: every call is answered and ends.
    async fn finish(&mut self, rng: &mut Rng) -> Result<(), String> {
        for _ in 0..8 {
            for record in records(&self.processes[0], &self.thread).await {
                if record.state == ApprovalState::Waiting {
                    let decision = *rng.pick(&[Decision::Approved, Decision::Denied]);
                    self.give(rng, &answer(&record, decision)).await?;
                }
            }
            let process = self.stage.process().await;
            let agent = self.agent(&process);
            let thread = agent.open(self.thread.clone()).await.unwrap();
            match self.how.finish(agent.resume(&thread)).await {
                Ok(outcome) if outcome.stop == StopReason::Parked => {}
                Ok(outcome) if outcome.stop == StopReason::Done => return Ok(()),
                Err(failed) if matches!(failed.source, RunError::NothingToResume { .. }) => {
                    return Ok(());
                }
                Ok(outcome) => return Err(format!("it stopped: {:?}", outcome.stop)),
                Err(failed) => return Err(format!("it failed: {:?}", failed.source)),
            }
        }
        Err("it does not come to its end".to_owned())
    }

    /// Every call that ran, ran once, with the arguments that were shown and an approval in the
    /// record; and the record of each call matches what happened to it.
    async fn check(&self) -> Result<(), String> {
        let all = records(&self.processes[0], &self.thread).await;
        let ran = self.ran.lock().unwrap().clone();
        let journal = journal(&self.processes[0], &self.thread).await;
        let results = journal
            .entries
            .iter()
            .flat_map(|entry| &entry.message.contents);
        let results: Vec<_> = results.filter_map(|one| one.as_tool_result()).collect();
        for record in &all {
            let position = record.call.position;
            let call = format!("c{position}");
            let times = ran.iter().filter(|(ran, _)| *ran == call).count();
            let shown_to_all = (call.clone(), arguments(position as usize));
            let fits = ran.iter().all(|one| one.0 != call || *one == shown_to_all);
            let wrong = |why: &str| Err(format!("{call} {why}: ran {ran:?}, {record:?}"));
            if times > 1 || !fits {
                return wrong("ran twice, or with something else");
            }
            if times == 1 && record.state != ApprovalState::Used {
                return wrong("ran without leave");
            }
            if decided(record) != self.said.get(&position).copied() {
                return wrong("has another answer than was accepted");
            }
            let result = results.iter().find(|one| one.call().value() == call);
            let expected: &[(Option<Ending>, usize)] = match record.state {
                ApprovalState::Waiting => &[(None, 0)],
                ApprovalState::Approved => &[(None, 0)],
                ApprovalState::Denied => &[(None, 0), (Some(Ending::Rejected), 0)],
                ApprovalState::Expired => &[(None, 0), (Some(Ending::Expired), 0)],
                ApprovalState::Withdrawn => &[(Some(Ending::Expired), 0)],
                // The result may be lost with the process, before or after the tool ran.
                ApprovalState::Used => &[
                    (None, 0),
                    (None, 1),
                    (Some(Ending::Ok), 1),
                    (Some(Ending::Unknown), 0),
                    (Some(Ending::Unknown), 1),
                ],
            };
            if !expected.contains(&(result.map(|one| one.outcome), times)) {
                return wrong(&format!("ended as {result:?}"));
            }
        }
        Ok(())
    }
}

/// A record as it is now.
async fn find(process: &Process, thread: &ThreadId, answer: &Answer) -> Record {
    let all = records(process, thread).await;
    let found = all.into_iter().find(|one| one.id == answer.approval);
    found.unwrap()
}

fn decided(record: &Record) -> Option<Decision> {
    match record.state {
        ApprovalState::Approved | ApprovalState::Used => Some(Decision::Approved),
        ApprovalState::Denied => Some(Decision::Denied),
        ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Withdrawn => None,
    }
}
