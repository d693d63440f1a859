use std::collections::BTreeMap;

use throughline_testkit::loopkill::{Kind, LoopCounts};
use throughline_testkit::{Rng, property};

use crate::loopkill::line::{End, Line};
use crate::loopkill::thread::{Modes, Order, Standing};

/// The number of concurrently waiting runs.
const THREADS: usize = 5;

/// R25: runs wait for approvals and are answered in other processes: twice, with both decisions,
/// for other arguments, by another tenant; processes are killed around the request, the answer and
/// the execution. Calls that ran were approved with the arguments that were shown, and ran once.
#[test]
fn r25_an_approval_is_used_once_whichever_process_is_killed() {
    let (mut cases, mut killed) = (0, 0);
    let mut decided: BTreeMap<String, u64> = BTreeMap::new();
    let mut counts = LoopCounts::default();
    property("r25 loop approvals", 5, |rng: &mut Rng, _| {
        let mut line = Line::new(THREADS);
        let stages: [(&[&str], Stage); 5] = [
            (&["", "park.pre", "park.post", "step.post"], Stage::Ask),
            (&[""], Stage::Recover),
            (
                &["", "answer.pre", "answer.commit_sent", "answer.post"],
                Stage::Answer,
            ),
            (
                &[
                    "",
                    "tool.post_intent",
                    "tool.mid",
                    "tool.returned",
                    "result.pre",
                ],
                Stage::GoOn,
            ),
            (
                &["", "tool.pre_intent", "tool.mid", "publish.pre"],
                Stage::GoOn,
            ),
        ];
        for _ in 0..2 {
            for (points, stage) in stages {
                let point = *rng.pick(points);
                let faults = match point {
                    "" => String::new(),
                    _ => format!("{point}=kill@{}", 1 + rng.below(THREADS)),
                };
                let mut life = line.start(&faults, 0);
                for place in 0..THREADS {
                    for order in orders(&mut line, place, stage, rng) {
                        line.send(&mut life, place, order);
                    }
                }
                let answered = line.answered(&mut life);
                match line.end(life)? {
                    End::Killed => killed += 1,
                    End::ByItself => answered?,
                }
            }
            cases += THREADS;
            line.settle(rng)?;
        }
        line.survive(rng)?;
        counts += line.ledger.counts();
        for (word, count) in &line.decided {
            *decided.entry(word.clone()).or_default() += count;
        }
        Ok(())
    });
    println!(
        "campaign r25 loop approvals: cases={cases} kills={killed} answers={decided:?} {counts} wrong=0"
    );
    assert!(killed > 0, "void: nothing was killed");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ask,
    /// Resumes runs that died before they waited.
    Recover,
    Answer,
    GoOn,
}

/// The actions on a thread in a stage. Several answers race.
fn orders(line: &mut Line, place: usize, stage: Stage, rng: &mut Rng) -> Vec<Order> {
    let thread = &mut line.threads[place];
    let name = thread.name.clone();
    let wire = *rng.pick(&["openai-responses", "anthropic"]);
    let plain = |line: String| Order {
        line,
        sends: None,
        answers: true,
    };
    match (stage, thread.standing) {
        (Stage::Ask, Standing::Free) => vec![thread.turn(Kind::Sign, wire, Modes::Both, rng)],
        (Stage::Answer, Standing::Parked) => {
            let words = ["yes", "no", "yes", "forged", "foreign"];
            let count = 1 + rng.below(3);
            let said = (0..count).map(|_| *rng.pick(&words));
            said.map(|word| plain(format!("decide {name} {word}")))
                .collect()
        }
        (Stage::Recover, Standing::Left)
        | (Stage::GoOn, Standing::Parked | Standing::Answered | Standing::Left) => {
            vec![plain(format!("resume {name} {wire} whole streamed"))]
        }
        _ => Vec::new(),
    }
}
