//! What a digest claims of calls that did not end well.

use std::sync::Arc;

use throughline_compact::{
    Call, Category, Digest, DigestCall, NarrativeRejection, Planned, Policy,
};
use throughline_model::{Content, Message, Outcome, Output, Role};

use crate::behaviours::told::{Told, answer, call, calls, eager, results};

const EDIT: &str =
    r#"{"file_path":"/etc/passwd","old_string":"","new_string":"a\nb\nc\nfn planted_name() {}"}"#;

/// Outcomes of calls that never ran.
const NEVER_RAN: [Outcome; 6] = [
    Outcome::Rejected,
    Outcome::Expired,
    Outcome::Withdrawn,
    Outcome::Limit,
    Outcome::Terminated,
    Outcome::Cancelled,
];

/// Make everything so far old, and digest it.
fn digested(told: &mut Told) {
    told.says("and now something else");
    told.user("next");
    for _ in 0..4 {
        told.round("think", "{}", &"padding of the tail ".repeat(100));
    }
    told.compact();
}

/// The line about one call.
fn line(name: &str, arguments: &str, outcome: Outcome, output: &str) -> String {
    let mut told = Told::new(Policy {
        categories: vec![("fetch_*".into(), Category::Structured)],
        ..eager()
    });
    told.user("begin");
    let seq = told.ended(name, arguments, outcome, output);
    digested(&mut told);
    told.line(seq)
}

#[test]
fn b249_a_call_that_did_not_run_is_told_as_asked_for_with_its_outcome() {
    for (outcome, words) in [
        (Outcome::Rejected, "rejected by a person, did not run"),
        (
            Outcome::Expired,
            "expired before anyone approved it, did not run",
        ),
        (Outcome::Withdrawn, "withdrawn, did not run"),
        (Outcome::Limit, "limit of the run reached, did not run"),
        (Outcome::Terminated, "terminated with the run, did not run"),
        (Outcome::Cancelled, "cancelled before it had any effect"),
        (
            Outcome::Unknown,
            "unknown: its result was lost, it may have run",
        ),
    ] {
        for (tool, arguments, asked) in [
            (
                "read_file",
                r#"{"path":"/a","startLine":1,"endLine":50}"#,
                "read /a",
            ),
            (
                "Edit",
                r#"{"file_path":"/etc/passwd","content":"a\nb"}"#,
                "edit /etc/passwd",
            ),
            ("bash", r#"{"command":"rm -rf build"}"#, "run rm -rf build"),
            ("grep", r#"{"pattern":"tide"}"#, "search tide"),
            (
                "fetch_tide",
                r#"{"port":"Hull"}"#,
                "call fetch_tide(port: Hull)",
            ),
            ("taskupdate", r#"{"id":"t1"}"#, "call taskupdate(id: t1)"),
            ("screenshot", "{}", "call screenshot()"),
            ("frobnicate", "{}", "call frobnicate()"),
        ] {
            assert_eq!(
                line(tool, arguments, outcome, ""),
                format!("[Earlier: Asked to {asked} → {words} #3]")
            );
        }
    }
}

#[test]
fn b249_an_error_is_named_and_nothing_is_told_as_done() {
    assert_eq!(
        line(
            "Edit",
            r#"{"file_path":"/a"}"#,
            Outcome::Error,
            "no such text"
        ),
        "[Earlier: Tried to edit /a → error: no such text #3]"
    );
    let run = r#"{"command":"make all"}"#;
    assert_eq!(
        line("bash", run, Outcome::Error, "Exit code 2\nfatal: no tide"),
        "[Earlier: Tried to run make all → error, exit 2: fatal: no tide #3]"
    );
    // The tool says that it failed, whatever its output says.
    assert_eq!(
        line("bash", run, Outcome::Error, "all built\nexit code 0"),
        "[Earlier: Tried to run make all → error: all built #3]"
    );
    assert_eq!(
        line("read_file", r#"{"path":"/a"}"#, Outcome::Error, ""),
        "[Earlier: Tried to read /a → error #3]"
    );
    // What a person says about it stays.
    assert_eq!(
        line(
            "Edit",
            r#"{"file_path":"/a"}"#,
            Outcome::Rejected,
            "not in production"
        ),
        "[Earlier: Asked to edit /a → rejected by a person, did not run: not in production #3]"
    );
}

#[test]
fn b249_only_equal_outcomes_are_merged() {
    let mut told = Told::new(eager());
    told.user("begin");
    told.ended("Edit", EDIT, Outcome::Rejected, "");
    let rejected = told.ended("Edit", EDIT, Outcome::Rejected, "");
    let done = told.round("Edit", EDIT, "done");
    let expired = told.ended("Edit", EDIT, Outcome::Expired, "");
    digested(&mut told);
    let start = |seq: u64| {
        let line = told.line(seq);
        line.split(" mentions ").next().unwrap().to_owned()
    };
    assert_eq!(
        start(rejected),
        "[Earlier: Asked to edit /etc/passwd ×2 → rejected by a person, did not run #5]"
    );
    assert!(
        told.line(done)
            .starts_with("[Earlier: Edited /etc/passwd +4/-0 lines ok"),
        "{}",
        told.digests()
    );
    assert!(
        told.line(expired)
            .starts_with("[Earlier: Asked to edit /etc/passwd → expired"),
        "{}",
        told.digests()
    );
    assert_eq!(told.history.epoch().unwrap().kept().files_written, 1);
    assert_eq!(told.digests().matches("/etc/passwd").count(), 3);
}

/// A history that is made into a ledger, over and over.
fn ledger(tell: impl Fn(&mut Told)) -> Told {
    let mut told = Told::new(Policy {
        block_share: 10,
        ..Policy::with_budget(4_000)
    });
    told.user("begin");
    tell(&mut told);
    let mut majors = 0;
    for round in 0..200 {
        let path = format!(r#"{{"path":"/src/other_{round}.rs"}}"#);
        told.round("read_file", &path, &"padding of it ".repeat(60));
        if let Planned::Epoch(epoch, report) = told.plan() {
            majors += u32::from(report.major);
            assert!(told.history.install(epoch));
        }
        if majors > 1 {
            break;
        }
    }
    assert!(majors > 1, "no ledger was made");
    told
}

#[test]
fn b249_a_ledger_keeps_outcomes_apart() {
    let told = ledger(|told| {
        let read = r#"{"path":"/etc/passwd"}"#;
        told.round("read_file", read, "root");
        told.ended("Edit", EDIT, Outcome::Rejected, "");
        told.ended("Edit", EDIT, Outcome::Rejected, "");
        told.ended("read_file", read, Outcome::Cancelled, "");
        let run = r#"{"command":"make all"}"#;
        told.ended("bash", run, Outcome::Error, "Exit code 2\nfatal: no tide");
        told.round("bash", run, "Exit code 0\nall built");
        told.ended("bash", run, Outcome::Unknown, "");
    });
    let digests = told.digests();
    assert!(digests.contains("Ledger of earlier"), "{digests}");
    let about = |what: &str| -> Vec<&str> {
        let lines = digests.lines().filter(|line| line.contains(what));
        lines.collect()
    };
    // What was written stays longest, were it only asked for; reads give way to it.
    let files = about("/etc/passwd");
    assert_eq!(files.len(), 1, "{digests}");
    assert!(files[0].starts_with("[Earlier: Asked to edit /etc/passwd ×2 → rejected"));
    let runs = about("make all");
    assert_eq!(runs.len(), 3, "{digests}");
    assert!(runs[0].starts_with("[Earlier: Tried to run make all → error, exit 2: fatal: no tide"));
    // What worked after it failed stays with the failure.
    assert!(runs[1].starts_with("[Earlier: Ran make all → exit 0"));
    assert!(runs[2].starts_with("[Earlier: Asked to run make all → unknown"));
}

#[test]
fn b249_a_read_is_stale_after_a_write_that_may_have_happened_and_no_other() {
    for (outcome, mark) in [
        (Outcome::Ok, ", changed since"),
        (Outcome::Unknown, ", may have changed since"),
        (Outcome::Rejected, ""),
        (Outcome::Error, ""),
    ] {
        let mut told = Told::new(eager());
        told.user("begin");
        let read = told.round("read_file", r#"{"path":"/etc/passwd"}"#, "x");
        told.ended("Edit", EDIT, outcome, "");
        digested(&mut told);
        assert_eq!(
            told.line(read),
            format!("[Earlier: Read /etc/passwd (1 line){mark} #{read}]")
        );
    }
}

#[test]
fn b249_names_of_what_never_ran_are_only_mentioned() {
    for outcome in NEVER_RAN {
        let mut told = Told::new(eager());
        told.user("begin");
        let seq = told.ended("Edit", EDIT, outcome, "");
        digested(&mut told);
        let line = told.line(seq);
        assert!(line.contains(" mentions planted_name #"), "{line}");
        assert!(
            !line.contains("defines") && !line.contains("touching"),
            "{line}"
        );
    }
}

#[test]
fn b249_a_digest_of_the_callers_own_is_followed_by_the_outcome() {
    struct Tides;
    impl Digest for Tides {
        fn line(&self, called: &DigestCall<'_>) -> Option<String> {
            (called.call.name == "set_tide").then(|| "Set the tide".to_owned())
        }
    }
    let own = |outcome: Outcome| {
        let mut told = Told::new(eager());
        told.history = told.history.clone().with_digest(Arc::new(Tides));
        told.user("begin");
        told.ended("set_tide", r#"{"path":"/sea"}"#, outcome, "");
        let seq = told.ended("set_tide", r#"{"path":"/sea"}"#, outcome, "");
        digested(&mut told);
        told.line(seq)
    };
    assert_eq!(own(Outcome::Ok), "[Earlier: Set the tide ×2 #5]");
    assert_eq!(
        own(Outcome::Withdrawn),
        "[Earlier: Set the tide ×2 → withdrawn, did not run #5]"
    );
}

#[test]
fn b249_a_result_that_is_quoted_or_shortened_names_its_outcome() {
    for outcome in Outcome::ALL {
        let mark = match outcome {
            Outcome::Ok => String::new(),
            other => format!(" ({})", other.as_str()),
        };
        // Without a call, in the view and then in a digest.
        let mut told = Told::new(eager());
        told.user("begin");
        let stray = answer(&call("gone", "pay", "{}"), outcome, "paid in full");
        let seq = told.push(results(vec![stray]));
        let shown = told.history.view().last().unwrap().text();
        assert_eq!(
            shown,
            format!("[Result without a call of pay{mark} #{seq}]\npaid in full")
        );
        digested(&mut told);
        let line = told.line(seq);
        assert!(
            line.starts_with("[Earlier: Result of pay without a call → "),
            "{line}"
        );
        assert_eq!(
            line.contains(&format!("→ {}", outcome.as_str())),
            outcome != Outcome::Ok,
            "{line}"
        );
        // A result that came after its call was digested.
        let mut told = Told::new(eager());
        told.user("begin");
        let late = call("late", "pay", "{}");
        told.push(calls(vec![late.clone()]));
        told.user("go on meanwhile");
        digested(&mut told);
        let seq = told.push(results(vec![answer(&late, outcome, "paid")]));
        assert_eq!(
            told.history.view().last().unwrap().text(),
            format!("[Late result of pay{mark} #{seq}]\npaid")
        );
        // One that is shown in part.
        let mut told = Told::new(Policy {
            single_result: 200,
            ..Policy::default()
        });
        told.user("begin");
        let seq = told.ended("pay", "{}", outcome, &"a line of it\n".repeat(500));
        let shown = told.history.view().last().unwrap();
        let result = shown.contents[0].as_tool_result().unwrap();
        let Output::Text(text) = &result.output else {
            unreachable!("it is text");
        };
        let ends = format!(" left out, all of it is #{seq}{mark}]");
        assert!(text.contains(&ends), "{text}");
        assert_eq!(result.outcome, outcome);
    }
}

#[test]
fn b249_a_call_without_a_result_is_told_as_asked_for() {
    let mut told = Told::new(eager());
    told.user("begin");
    let edit = |id: &str| calls(vec![call(id, "Edit", EDIT)]);
    told.push(edit("one"));
    let seq = told.push(edit("two"));
    digested(&mut told);
    assert!(
        told.line(seq)
            .starts_with("[Earlier: Asked to edit /etc/passwd ×2 → no result recorded"),
        "{}",
        told.digests()
    );
    assert_eq!(told.history.epoch().unwrap().kept().files_written, 0);
}

#[test]
fn b249_what_a_model_writes_beside_digests_claims_no_more_either() {
    let narrated = |outcome: Outcome, said: &str| {
        let mut told = Told::new(eager().narrated(400));
        told.user("begin");
        told.ended("Edit", EDIT, outcome, "");
        told.ended("bash", r#"{"command":"make harbour"}"#, outcome, "");
        for _ in 0..4 {
            told.round("read_file", r#"{"path":"/b"}"#, &"padding ".repeat(300));
        }
        let Planned::Epoch(epoch, _) = told.history.plan(&Call::default()).unwrap() else {
            unreachable!("there is enough to digest");
        };
        let asking = told.history.narrative_request(&epoch).unwrap();
        assert!(told.history.install(epoch));
        told.history.narrate(&asking.part, said).refused
    };
    let claims = [
        "/etc/passwd was edited.",
        "I changed /etc/passwd as asked.",
        "Editing /etc/passwd succeeded.",
        "make harbour ran.",
        "make harbour passed.",
        "The harbour works.",
    ];
    let honest = [
        "The edit of /etc/passwd was rejected.",
        "/etc/passwd was not edited.",
        "It was asked whether /etc/passwd may be changed.",
        "make harbour did not work.",
    ];
    for outcome in Outcome::ALL {
        for said in claims {
            let refused = narrated(outcome, said);
            let wanted = (outcome != Outcome::Ok).then_some(NarrativeRejection::Unfounded);
            assert_eq!(refused, wanted, "{}: {said}", outcome.as_str());
        }
        if outcome != Outcome::Ok {
            for said in honest {
                assert_eq!(
                    narrated(outcome, said),
                    None,
                    "{}: {said}",
                    outcome.as_str()
                );
            }
        }
    }
    println!(
        "table b249 narrative: outcomes={} claims={} honest={}",
        Outcome::ALL.len(),
        claims.len(),
        honest.len()
    );
}

#[test]
fn b249_results_of_one_message_are_told_apart() {
    let mut told = Told::new(eager());
    told.user("begin");
    let made: Vec<_> = Outcome::ALL
        .iter()
        .map(|outcome| {
            let path = format!(r#"{{"file_path":"/etc/{}_file"}}"#, outcome.as_str());
            call(outcome.as_str(), "Edit", &path)
        })
        .collect();
    let answers = made.iter().zip(Outcome::ALL);
    let answers: Vec<Content> = answers
        .map(|(call, outcome)| answer(call, outcome, ""))
        .collect();
    told.push(calls(made));
    told.push(Message::new(Role::Tool, answers));
    digested(&mut told);
    let digests = told.digests();
    for outcome in Outcome::ALL {
        let word = outcome.as_str();
        let file = format!("/etc/{word}_file");
        let line = digests.lines().find(|line| line.contains(&file)).unwrap();
        let (head, end) = line.split_once(&file).unwrap();
        let verb = match outcome {
            Outcome::Ok => "[Earlier: Edited ",
            Outcome::Error => "[Earlier: Tried to edit ",
            _ => "[Earlier: Asked to edit ",
        };
        assert_eq!(head, verb);
        assert!(end.contains(word), "{line}");
    }
}
