//! Calls that wait for approval.

use std::process::Command;
use std::sync::Arc;

use throughline_model::json::RawJson;
use throughline_model::{CallId, Content, Message, Role, ToolCall};
use throughline_store::{
    Anchor, ApprovalId, ArgumentsDigest, Begin, Begun, CallState, Effect, Heartbeat, Leasing,
    ManualClock, Millis, NewApproval, NewItem, NewThread, Options, PlannedCall, RunId, Step, Store,
    TenantScope, ThreadId, arguments_digest,
};
use throughline_testkit::record::block_on;

use super::{Place, length, number, text};

/// 2023-11-14 22:13:20
const ASKED: Millis = 1_700_000_000_000;
/// 2100-01-01 00:00:00
const FAR: Millis = 4_102_444_800_000;

/// A waiting call, the only one of its run.
struct Waits {
    /// The number from which the ids of approval and run are made.
    id: u8,
    thread: &'static str,
    shown: ArgumentsDigest,
    expires: Option<Millis>,
    detail: Option<String>,
}

impl Waits {
    /// A payment, in the form in which the library stores it.
    fn new(id: u8, thread: &'static str, arguments: &str) -> Self {
        let mut detail = String::from(r#"{"tool":"pay","call":"call_1","arguments":"#);
        throughline_model::json::push_string(&mut detail, arguments);
        detail.push('}');
        Self {
            id,
            thread,
            shown: arguments_digest("pay", arguments),
            expires: Some(FAR),
            detail: Some(detail),
        }
    }

    fn approval(&self) -> String {
        ApprovalId::from_bytes([self.id; 16]).to_string()
    }

    fn run(&self) -> String {
        RunId::from_bytes([self.id; 16]).to_string()
    }

    fn digest(&self) -> String {
        self.shown
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Parks its run in a store, in the past.
    fn park(self, place: &Place) -> Self {
        let options = Options {
            clock: Arc::new(ManualClock::at(ASKED)),
            heartbeat: Heartbeat::Manual,
            ..Options::default()
        };
        block_on(async {
            let store = Store::open_with(&place.url, options).await.unwrap();
            let scope = TenantScope::local();
            let at = Anchor::New {
                thread: NewThread::new(ThreadId::new(self.thread).unwrap()),
                leasing: Leasing::Thread,
            };
            let input = NewItem::of(&[Message::user("Pay them.")]);
            let begin = Begin::new(RunId::from_bytes([self.id; 16]), at, input);
            let Begun::Started(started) = store.begin(&scope, &begin).await.unwrap() else {
                panic!("a repetition");
            };
            let call = ToolCall::function(CallId::natural("call_1").unwrap(), "pay", "{}");
            let said = Message::new(Role::Assistant, vec![Content::from(call)]);
            let step = Step {
                items: NewItem::of(&[said]),
                calls: vec![PlannedCall {
                    call: "call_1".into(),
                    tool: "pay".into(),
                    effect: Effect::Once,
                    state: CallState::Approval,
                }],
                approvals: vec![NewApproval {
                    id: ApprovalId::from_bytes([self.id; 16]),
                    step: 0,
                    position: 0,
                    shown: self.shown,
                    expires: self.expires,
                    detail: self
                        .detail
                        .as_deref()
                        .map(|detail| RawJson::new(detail).unwrap()),
                }],
                ..Step::default()
            };
            store.step(&scope, started.lease, &step).await.unwrap();
            store.park(&scope, started.lease, None).await.unwrap();
            store.close().await.unwrap();
        });
        self
    }
}

/// The state of a run's only call.
fn call_state(place: &Place, run: &str) -> String {
    let form = place.json(&["runs", "show", run]);
    text(&only(&form, "calls"), &["state"])
}

fn state(place: &Place, thread: &str) -> String {
    let form = place.json(&["approvals", "list", "--all", "--thread", thread]);
    text(&only(&form, "approvals"), &["state"])
}

/// The only member of a list.
fn only(form: &RawJson, list: &str) -> RawJson {
    assert_eq!(length(form, &[list]), 1, "{form}");
    let value = form.value();
    RawJson::new(value.get(list).unwrap().as_array().unwrap()[0].raw()).unwrap()
}

#[test]
fn what_waits_is_listed_with_its_arguments() {
    let place = Place::new("approvals-list");
    let paid = Waits::new(1, "bills", r#"{"to":"a"}"#).park(&place);
    let bare = Waits {
        detail: None,
        expires: None,
        ..Waits::new(2, "bare", "")
    }
    .park(&place);
    let hosted = Waits {
        detail: Some(r#"{"tool":"deploy","arguments":{"to":1},"vendor":true}"#.into()),
        ..Waits::new(3, "hosted", "")
    }
    .park(&place);
    let late = Waits {
        expires: Some(ASKED + 3_600_000),
        ..Waits::new(4, "late", "{}")
    }
    .park(&place);

    let listed = [
        format!(
            "{}  waiting  thread hosted  {}  asked 2023-11-14 22:13:20, expires 2100-01-01 00:00:00
    -> deploy {{\"to\":1}}, asked by the vendor's tool host
    digest {}\n",
            hosted.approval(),
            hosted.run(),
            hosted.digest()
        ),
        format!(
            "{}  waiting  thread bare  {}  asked 2023-11-14 22:13:20, never expires
    -> [no tool recorded] [no arguments recorded]
    digest {}\n",
            bare.approval(),
            bare.run(),
            bare.digest()
        ),
        format!(
            "{}  waiting  thread bills  {}  asked 2023-11-14 22:13:20, expires 2100-01-01 00:00:00
    -> pay {{\"to\":\"a\"}} (call_1)
    digest {}\n",
            paid.approval(),
            paid.run(),
            paid.digest()
        ),
    ];
    assert_eq!(place.ok(&["approvals", "list"]), listed.concat());
    assert_eq!(
        place.ok(&["approvals", "list", "--thread", "bare"]),
        listed[1]
    );
    assert_eq!(
        place.ok(&["approvals", "list", "--tenant", "other"]),
        "nothing waits for an answer\n"
    );
    assert_eq!(
        place.ok(&["approvals", "list", "--tenant", "other", "--all"]),
        "no approvals\n"
    );
    let all = place.ok(&["approvals", "list", "--all"]);
    assert!(
        all.starts_with(&format!("{}  expired  thread late", late.approval())),
        "{all}"
    );

    let first = place.json(&["approvals", "list", "--limit", "2"]);
    assert_eq!(length(&first, &["approvals"]), 2);
    let next = text(&first, &["next"]);
    let rest = place.json(&["approvals", "list", "--limit", "2", "--after", &next]);
    let expected = format!(
        concat!(
            r#"{{"approvals":[{{"id":"{id}","thread":"bills","run":"{run}","step":0,"position":0,"#,
            r#""state":"waiting","tool":"pay","call":"call_1","arguments":"{{\"to\":\"a\"}}","#,
            r#""vendor":false,"digest":"{digest}","created":1700000000000,"#,
            r#""expires":4102444800000,"answered":null,"reason":null,"detail":{detail}}}],"#,
            r#""next":null}}"#,
        ),
        id = paid.approval(),
        run = paid.run(),
        digest = paid.digest(),
        detail = paid.detail.as_deref().unwrap(),
    );
    assert_eq!(rest.get().trim_end(), expected);
}

#[test]
fn long_arguments_are_cut_for_people_and_whole_in_json() {
    let place = Place::new("approvals-long");
    let arguments = format!("{{\"to\":\"{}\"}}", "ab  \u{202e}".repeat(60));
    Waits::new(1, "bills", &arguments).park(&place);
    let list = place.ok(&["approvals", "list"]);
    assert!(
        list.contains("ab  \\u{202e}ab") && list.contains("… [309 characters, --json has all]"),
        "{list}"
    );
    let form = place.json(&["approvals", "list"]);
    assert_eq!(text(&only(&form, "approvals"), &["arguments"]), arguments);
}

#[test]
fn an_answer_is_recorded_once_and_runs_nothing() {
    let place = Place::new("approvals-answer");
    let call = Waits::new(1, "bills", r#"{"to":"a"}"#).park(&place);
    let (id, run) = (call.approval(), call.run());
    let approve = ["approvals", "answer", &id, "--approve", "--by", "ada"];

    let out = place.ok(&approve);
    assert!(
        out.starts_with(&format!("{id}  approved  thread bills  {run}  asked"))
            && out.contains("\n    -> pay {\"to\":\"a\"} (call_1)\n")
            && out.contains("\n    approved by ada, 20"),
        "{out}"
    );
    let goes_on = format!("'throughline runs resume {run}', or agent.resume in the application");
    assert!(
        out.ends_with(&format!(
            "\nrecorded; nothing ran yet: the tool runs when its run goes on ({goes_on})\n"
        )),
        "{out}"
    );
    assert_eq!(call_state(&place, &run), "approval");
    assert_eq!(
        place.ok(&["approvals", "list"]),
        "nothing waits for an answer\n"
    );

    // The same answer again changes nothing, not even its time.
    let form = place.json(&approve);
    assert!(form.get().contains(r#""repeated":true"#), "{form}");
    let listed = place.json(&["approvals", "list", "--all"]);
    assert_eq!(
        number(&form, &["approval", "answered", "at"]),
        number(&only(&listed, "approvals"), &["answered", "at"])
    );
    assert!(
        place
            .ok(&approve)
            .contains("\nthis answer was recorded before; nothing ran yet")
    );

    // A different answer is too late, from every operator.
    for other in [
        &["--deny", "--by", "ada"][..],
        &["--approve", "--by", "bob"],
    ] {
        let message = place.fails(&[&["approvals", "answer", &id], other].concat(), 1);
        assert!(
            message.starts_with(&format!("{id} was answered, approved by ada, 20"))
                && message.ends_with(&format!(
                    "; the first answer stands, 'throughline runs show {run}' shows what came of it"
                )),
            "{message}"
        );
    }
    assert_eq!(state(&place, "bills"), "approved");
}

#[test]
fn a_denial_carries_its_reason() {
    let place = Place::new("approvals-deny");
    let why = Waits::new(1, "why", "{}").park(&place);
    let blank = Waits::new(2, "blank", "{}").park(&place);
    let deny = |id: &str, reason: &str| {
        let args = ["approvals", "answer", id, "--deny", "--reason", reason];
        place.json(&[&args[..], &["--by", "ada"]].concat())
    };
    let form = deny(&why.approval(), "too  much");
    assert_eq!(text(&form, &["approval", "reason"]), "too  much");
    assert_eq!(text(&form, &["approval", "state"]), "denied");
    assert!(form.get().contains(r#""repeated":false"#), "{form}");
    let form = deny(&blank.approval(), " \t");
    assert!(form.get().contains(r#""reason":null"#), "{form}");
    let list = place.ok(&["approvals", "list", "--all", "--thread", "why"]);
    assert!(list.contains("\n    denied by ada, 20"), "{list}");
    assert!(list.ends_with(": too  much\n"), "{list}");
    let again = [
        "approvals",
        "answer",
        &blank.approval(),
        "--deny",
        "--by",
        "ada",
    ];
    let out = place.ok(&again);
    assert!(
        out.contains("\nthis answer was recorded before; the tool does not run, and the model"),
        "{out}"
    );
}

#[test]
fn an_answer_has_the_name_of_the_user() {
    let place = Place::new("approvals-by");
    let cases = [
        (1, "u", &[("USER", "ada"), ("USERNAME", "bob")][..], "ada"),
        (2, "n", &[("USER", " "), ("USERNAME", "bob")], "bob"),
        (3, "c", &[], "cli"),
    ];
    for (id, thread, variables, by) in cases {
        let call = Waits::new(id, thread, "{}").park(&place);
        let run = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["--store", &place.url, "--json"])
            .args(["approvals", "answer", &call.approval(), "--deny"])
            .env_remove("USER")
            .env_remove("USERNAME")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let form = RawJson::new(&String::from_utf8(run.stdout).unwrap()).unwrap();
        assert_eq!(text(&form, &["approval", "answered", "by"]), by);
    }
}

#[test]
fn an_answer_is_for_the_arguments_that_were_shown() {
    let place = Place::new("approvals-digest");
    let call = Waits::new(1, "bills", r#"{"to":"a"}"#).park(&place);
    let id = call.approval();
    let other = Waits::new(9, "bills", r#"{"to":"b"}"#).digest();
    for word in ["--approve", "--deny"] {
        let message = place.fails(&["approvals", "answer", &id, word, "--digest", &other], 1);
        assert_eq!(
            message,
            format!(
                "{id} was asked for other arguments: their digest is {}, not {other}; look at it \
                 again with 'throughline approvals list'",
                call.digest()
            )
        );
    }
    assert_eq!(state(&place, "bills"), "waiting");
    let digest = call.digest().to_uppercase();
    place.ok(&["approvals", "answer", &id, "--approve", "--digest", &digest]);
    assert_eq!(state(&place, "bills"), "approved");

    // An approval that shows one thing and is bound to another is refused.
    let odd = Waits {
        shown: arguments_digest("pay", r#"{"to":"b"}"#),
        ..Waits::new(2, "odd", r#"{"to":"a"}"#)
    }
    .park(&place);
    let list = place.ok(&["approvals", "list"]);
    assert!(
        list.ends_with(&format!(
            "digest {}, which is not that of these arguments\n",
            odd.digest()
        )),
        "{list}"
    );
    let message = place.fails(&["approvals", "answer", &odd.approval(), "--approve"], 1);
    assert!(
        message.contains("shows other arguments than it was asked for; deny it, or give --digest"),
        "{message}"
    );
    assert_eq!(state(&place, "odd"), "waiting");
    place.ok(&["approvals", "answer", &odd.approval(), "--deny"]);
    assert_eq!(state(&place, "odd"), "denied");
}

#[test]
fn what_cannot_be_answered_says_why_and_what_to_do() {
    let place = Place::new("approvals-refused");
    let late = Waits {
        expires: Some(ASKED + 3_600_000),
        ..Waits::new(1, "late", "{}")
    }
    .park(&place);
    let gone = Waits::new(2, "gone", "{}").park(&place);
    place.ok(&["runs", "discard", &gone.run()]);

    let message = place.fails(&["approvals", "answer", &late.approval(), "--approve"], 1);
    let run = late.run();
    assert_eq!(
        message,
        format!(
            "{} expired 2023-11-14 23:13:20; the call is closed without running when {run} goes \
             on ('throughline runs resume {run}', or agent.resume in the application)",
            late.approval()
        )
    );
    let message = place.fails(&["approvals", "answer", &gone.approval(), "--approve"], 1);
    let run = gone.run();
    assert_eq!(
        message,
        format!(
            "{} was withdrawn: {run} ended without it and the call never runs; 'throughline runs \
             show {run}' shows how, a new run asks anew",
            gone.approval()
        )
    );
    assert_eq!(state(&place, "late"), "expired");
    assert_eq!(state(&place, "gone"), "withdrawn");

    // The answer does not reveal whether another tenant has it.
    let nobody = ApprovalId::from_bytes([9; 16]).to_string();
    let late = late.approval();
    for (id, tenant) in [(&nobody, "local"), (&late, "other")] {
        let args = ["approvals", "answer", id, "--deny", "--tenant", tenant];
        assert_eq!(
            place.fails(&args, 1),
            format!(
                "there is no approval {id} for tenant {tenant} in {}; 'throughline approvals list \
                 --all' shows what is there",
                place.url
            )
        );
    }
    let message = place.fails(&["approvals", "list", "--thread", "nobody"], 1);
    assert!(
        message.contains("'throughline threads list' shows what is there"),
        "{message}"
    );
}

#[test]
fn an_answer_needs_a_decision_and_a_name() {
    let place = Place::new("approvals-usage");
    let call = Waits::new(1, "bills", "{}").park(&place);
    let id = call.approval();
    for (args, said) in [
        (&["answer", &id][..], "<--approve|--deny>"),
        (
            &["answer", &id, "--approve", "--deny"],
            "cannot be used with",
        ),
        (&["answer", &id, "--deny", "--by", " "], "say who answers"),
        (
            &["answer", &id, "--deny", "--digest", "12"],
            "32 hex digits",
        ),
        (&["answer", "x", "--deny"], "one is appr_ and 32 hex digits"),
        (&["dance"], "unrecognized subcommand"),
        (&["list", "--thread", ""], "thread id"),
        (&["list", "--after", "x"], "--after"),
    ] {
        let run = place.run(&[&["approvals"], args].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(said), "{args:?}: {}", run.err);
        let form = place.run(&[&["--json", "approvals"], args].concat());
        assert_eq!((form.code, form.err.as_str()), (2, ""), "{args:?}");
        assert!(form.out.starts_with(r#"{"error":{"message":"#), "{args:?}");
    }
    assert_eq!(state(&place, "bills"), "waiting");
}

#[test]
fn approvals_are_in_the_help_and_the_completions() {
    let place = Place::new("approvals-help");
    assert!(place.ok(&["--help"]).contains("  approvals  "));
    let help = place.ok(&["approvals", "answer", "--help"]);
    for word in ["--approve", "--deny", "--reason", "--by", "--digest"] {
        assert!(help.contains(word), "{help}");
    }
    let script = place.ok(&["completions", "bash"]);
    assert!(script.contains("approvals__subcmd__answer") || script.contains("approvals__answer"));
}
