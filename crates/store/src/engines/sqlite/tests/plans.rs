//! Every statement that ran here is looked at: none may walk through a table that grows.

use std::collections::BTreeMap;
use std::sync::Mutex;

use rusqlite::{Statement, StatementStatus};
use throughline_model::json::RawJson;
use throughline_model::{CallId, Message, Outcome, Output, Role, ToolCall};

use super::{Fixture, block_on};
use crate::{
    AfterTurn, Anchor, Answer, ApprovalFilter, At, CallResult, CallState, Claim, ClaimInTurn,
    Decision, End, Engine, Flush, Fork, Idempotency, ItemRef, Mode, NewApproval, NewItem,
    NewThread, NodeRef, PlannedCall, RemoteCall, RunFilter, Span, Step, StepNode, Stopped,
    StoredEvent, ThreadFilter, ThreadId, ThreadPatch, Version, arguments_digest,
};

/// Statements that were prepared in this process, and how often each was prepared anew.
static SEEN: Mutex<BTreeMap<String, i32>> = Mutex::new(BTreeMap::new());

/// Called for each statement that is about to run.
pub(in crate::engines::sqlite) fn note(sql: &str, statement: &Statement<'_>) {
    let anew = statement.get_status(StatementStatus::RePrepare);
    let mut seen = SEEN.lock().unwrap();
    match seen.get_mut(sql) {
        Some(most) => *most = anew.max(*most),
        None => {
            seen.insert(sql.to_owned(), anew);
        }
    }
}

/// Tables that are walked through on purpose, with the statements that may.
const WALKS: &[(&str, &str)] = &[
    // Only what is not settled is in this index.
    ("INDEX run_live", "run_live"),
    // What live runs said, a page for some hundred flushes.
    ("SCAN event_log", "event_log"),
    // One row for each process.
    ("SCAN owner", "DELETE FROM owner"),
    // Forks that continue a node, found by an index.
    ("SCAN later", "WITH RECURSIVE later"),
    // The last nodes of a branch, found by an index, at most so many.
    ("SCAN lately", "LIMIT ?3) lately"),
    // The nodes of one run, found by an index.
    (
        "SCAN p",
        "UNION SELECT pub_tl, pub_first FROM run WHERE run=?1) p",
    ),
    // Only runs that wait are in it.
    ("SCAN waiter", "DELETE FROM waiter WHERE NOT EXISTS"),
];

fn head_of(thread: &ThreadId, expected: Version) -> Anchor {
    Anchor::Head {
        thread: thread.clone(),
        expected,
    }
}

/// Do everything once, and some of it more often.
fn work(f: &Fixture) {
    let s = &f.store;
    let scope = &f.scope;
    let new = NewThread {
        aliases: vec![crate::Alias::new("a2a", "ctx")],
        keep: Some(1_000_000),
        ..NewThread::new(ThreadId::new("t").unwrap())
    };
    let id = new.id.clone();
    block_on(async {
        s.open_or_create(scope, &new, 5).await.unwrap();
        for n in 0..5 {
            f.clock.advance(std::time::Duration::from_secs(61));
            let mut begin = crate::Begin::new(
                f.ids.run(),
                Anchor::Head {
                    thread: id.clone(),
                    expected: Version(n),
                },
                NewItem::of(&[Message::user("x".repeat(5000))]),
            );
            begin.request = Some(RawJson::new(r#"{"v":1}"#).unwrap());
            begin.key = Some(Idempotency {
                key: n.to_string(),
                request: [0; 16],
            });
            let crate::Begun::Started(started) = s.begin(scope, &begin).await.unwrap() else {
                panic!()
            };
            let event = Flush::new(
                0,
                &[StoredEvent {
                    kind: 1,
                    body: vec![1],
                }],
            );
            s.flush(scope, started.lease, &event).await.unwrap();
            f.publish(started.lease, 0, "y");
        }
        let call = ToolCall::function(CallId::natural("c").unwrap(), "f", "{}");
        let answer = Message::new(
            Role::Tool,
            vec![call.answer(Outcome::Ok, Output::Text("r".into())).into()],
        );
        let mut run = None;
        for n in 0..3 {
            let mut begin = crate::Begin::new(
                f.ids.run(),
                Anchor::Head {
                    thread: id.clone(),
                    expected: Version(5 + 2 * n),
                },
                NewItem::of(&[Message::user("x")]),
            );
            begin.mode = Mode::PerCall;
            let crate::Begun::Started(started) = s.begin(scope, &begin).await.unwrap() else {
                panic!()
            };
            let approval = f.ids.approval();
            let step = Step {
                items: NewItem::of(&[Message::new(Role::Assistant, vec![call.clone().into()])]),
                calls: vec![PlannedCall {
                    call: "c".into(),
                    tool: "f".into(),
                    effect: crate::Effect::Once,
                    state: CallState::Approval,
                }],
                approvals: vec![NewApproval {
                    id: approval,
                    step: 0,
                    position: 0,
                    shown: arguments_digest("f", "{}"),
                    expires: None,
                    detail: None,
                }],
                node: Some(StepNode::default()),
                ..Step::default()
            };
            let lease = started.lease;
            let remote = RemoteCall {
                step: 0,
                handle: RawJson::new("{}").unwrap(),
            };
            s.remote_call(scope, lease, &remote).await.unwrap();
            s.step(scope, lease, &step).await.unwrap();
            s.park(scope, lease, None).await.unwrap();
            let yes = Answer {
                approval,
                shown: arguments_digest("f", "{}"),
                decision: Decision::Approved,
                by: "ada".into(),
                reason: None,
            };
            s.answer(scope, &yes).await.unwrap();
            s.cancel(scope, lease.run).await.unwrap();
            let lease = s
                .claim(scope, lease.run, 1, Claim::Parked)
                .await
                .unwrap()
                .lease;
            s.intend(scope, lease, 0, &[0]).await.unwrap();
            let result = CallResult::new(0, 0, &answer);
            s.results(scope, lease, &[result]).await.unwrap();
            f.publish(lease, 1, "end");
            run = Some(lease.run);
        }
        let run = run.unwrap();
        let free = f.begin_at(Anchor::Node(NodeRef::Run(run)), "free");
        f.publish(free, 0, "f");
        let branch = f.begin_at(Anchor::Node(NodeRef::Run(run)), "branch");
        f.publish(branch, 0, "b");
        let failed = f.begin(&id, "fails");
        let end = End {
            how: Stopped::Failed,
            note: None,
            events: None,
        };
        let waiter = f.ids.run();
        s.join_wait_queue(scope, &id, waiter).await.unwrap();
        s.join_wait_queue(scope, &id, f.ids.run()).await.unwrap();
        s.open(scope, &At::Thread(id.clone()), 0).await.unwrap();
        s.end(scope, failed, &end).await.unwrap();
        let opened = s.open(scope, &At::Thread(id.clone()), 0).await.unwrap();
        let begin = crate::Begin::new(waiter, head_of(&id, opened.thread.version), Vec::new());
        s.begin(scope, &begin).await.unwrap();
        let asked = ClaimInTurn {
            run: waiter,
            seen: 1,
            claim: Claim::Own,
            waiter: s.wait_queue(scope, &id).await.unwrap()[0].run,
            after: AfterTurn::Keep,
        };
        let claimed = s.claim_in_turn(scope, &asked).await.unwrap();
        s.leave_wait_queue(scope, &id, asked.waiter).await.unwrap();
        s.end(scope, claimed.lease, &end).await.unwrap();
        let again = vec![NewItem::Repeat(ItemRef { run, no: 1 })];
        for _ in 0..2 {
            let append = crate::Append {
                run: f.ids.run(),
                thread: id.clone(),
                expected: None,
                items: again.clone(),
                state: None,
                key: None,
            };
            s.append(scope, &append).await.unwrap();
        }
        let fork = Fork {
            from: At::Node(NodeRef::Run(run)),
            thread: NewThread::new(ThreadId::new("fork").unwrap()),
        };
        s.fork(scope, &fork).await.unwrap();
        f.turn(&fork.thread.id, "forked", "on");
        let raw = RawJson::new("{}").unwrap();
        s.enqueue(scope, &id, &raw).await.unwrap();
        s.patch(scope, &id, &ThreadPatch::default()).await.unwrap();
        for _ in 0..3 {
            let at = At::Thread(id.clone());
            let alias = At::Alias(crate::Alias::new("a2a", "ctx"));
            let tip = s.open(scope, &at, 3).await.unwrap().tip.unwrap();
            s.open(scope, &alias, 3).await.unwrap();
            s.open(scope, &At::Node(NodeRef::Run(run)), 3)
                .await
                .unwrap();
            s.open(scope, &At::Thread(fork.thread.id.clone()), 3)
                .await
                .unwrap();
            for span in [Span::Tail, Span::After(2), Span::Before(4)] {
                s.read(scope, &at, span, 2).await.unwrap();
            }
            let next = s.increment(scope, &id, None, 2).await.unwrap().next;
            s.increment(scope, &id, Some(&next), 2).await.unwrap();
            s.cursor(scope, &id, 3).await.unwrap();
            let first = s.tree(scope, &id, None, 2).await.unwrap()[1].node;
            s.tree(scope, &id, Some(first), 100).await.unwrap();
            s.node(scope, tip.node, 1, 10).await.unwrap();
            s.journal(scope, run).await.unwrap();
            s.events(scope, run, 0, 10).await.unwrap();
            s.queue(scope, &id).await.unwrap();
            s.orphans(10).await.unwrap();
            s.changed(scope, &id, Version(0)).await.unwrap();
            for thread in [None, Some(id.clone())] {
                let filter = RunFilter {
                    thread: thread.clone(),
                    states: Vec::new(),
                };
                let token = s.runs(scope, &filter, None, 2).await.unwrap().next;
                s.runs(scope, &filter, token, 100).await.unwrap();
                for waiting in [false, true] {
                    let filter = ApprovalFilter {
                        thread: thread.clone(),
                        waiting,
                    };
                    s.approvals(scope, &filter, None, 10).await.unwrap();
                }
            }
            let filter = ThreadFilter::default();
            let token = s.threads(scope, &filter, None, 1).await.unwrap().next;
            s.threads(scope, &filter, token, 10).await.unwrap();
            let filter = ThreadFilter {
                agent: Some("desk".into()),
                states: crate::RunState::ALL.to_vec(),
                ..ThreadFilter::default()
            };
            s.threads(scope, &filter, None, 10).await.unwrap();
        }
        s.redact(scope, ItemRef { run, no: 1 }, "ada")
            .await
            .unwrap();
        s.hide(scope, run).await.unwrap();
        s.renew().await.unwrap();
        s.delete(scope, &id).await.unwrap();
        while s.purge(10).await.unwrap().more {}
        s.delete(scope, &fork.thread.id).await.unwrap();
        while s.purge(10).await.unwrap().more {}
    });
}

#[test]
fn no_statement_walks_through_a_table_or_is_prepared_twice() {
    let f = Fixture::new();
    work(&f);
    let conn = f.raw();
    let seen = SEEN.lock().unwrap().clone();
    assert!(seen.len() > 90, "only {} statements ran", seen.len());
    let mut walks: Vec<String> = Vec::new();
    for (sql, anew) in &seen {
        assert_eq!(*anew, 0, "prepared anew: {sql}");
        let Ok(mut explain) = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")) else {
            // Statements of other tests, on tables of their own.
            continue;
        };
        let none: Vec<Option<i64>> = vec![None; explain.parameter_count()];
        let plan = explain
            .query_map(rusqlite::params_from_iter(none), |row| {
                row.get::<_, String>(3)
            })
            .unwrap();
        for line in plan {
            let line = line.unwrap();
            let on_purpose = |(walk, of): &(&str, &str)| line.contains(walk) && sql.contains(of);
            let harmless = !line.starts_with("SCAN ")
                || line == "SCAN CONSTANT ROW"
                || WALKS.iter().any(on_purpose);
            if !harmless {
                walks.push(format!("{line}: {sql}"));
            }
        }
    }
    assert_eq!(walks, [""; 0]);
}
