//! `throughline compact` as a process.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test says that it failed"
)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use throughline_compact::number_count;
use throughline_model::json::{ObjectWriter, parse};
use throughline_model::{Content, Message};
use throughline_testkit::{Rng, messages, property, trajectory};
use throughline_wire::Format;
use throughline_wire::transcript::{Limits, read};

/// The formats that can be written.
const FORMATS: [&str; 7] = [
    "neutral",
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
    "gemini-interactions",
    "foundry",
];

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn throughline(args: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_bytes().to_vec();
    let writer = std::thread::spawn(move || {
        // The program may refuse its input early and close the pipe.
        let _ = stdin.write_all(&input);
    });
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: status.code().unwrap(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs a command that must succeed.
fn ok(args: &[&str], input: &str) -> Run {
    let run = throughline(args, input);
    assert_eq!(run.code, 0, "{args:?}: {}{}", run.out, run.err);
    run
}

fn json(args: &[&str], input: &str) -> Value {
    serde_json::from_str(&ok(args, input).out).unwrap()
}

/// Messages as a file in our own format.
fn neutral<'m>(said: impl IntoIterator<Item = &'m Message>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("format", "throughline.neutral/1");
    let mut array = throughline_model::json::ArrayWriter::new(object.key("messages"));
    for message in said {
        message.write_json(array.slot());
    }
    array.end();
    object.end();
    out
}

/// A session of a coding agent, in a format.
fn session(format: &str) -> String {
    let session = trajectory::synthetic().swap_remove(0);
    let file = neutral(session.messages.iter().map(|message| &**message));
    ok(&["convert", "--from", "neutral", "--to", format], &file).out
}

/// The numbers of the messages of a file.
fn numbers(file: &str, format: &str) -> BTreeSet<u64> {
    let format: Format = format.parse().unwrap();
    let request = read(file.as_bytes(), &format, Limits::default())
        .unwrap()
        .request;
    let mut next = if request.system.is_empty() { 1 } else { 2 };
    let mut numbers = BTreeSet::new();
    for message in &request.messages {
        let taken = number_count(message);
        numbers.extend(next..next + taken);
        next += taken;
    }
    numbers
}

/// The numbers that digests name, after the last `#` of a line in brackets.
fn named(file: &str, format: &str) -> Vec<u64> {
    let format: Format = format.parse().unwrap();
    let request = read(file.as_bytes(), &format, Limits::default())
        .unwrap()
        .request;
    let texts = request.messages.iter().flat_map(|message| {
        let contents = message.contents.iter();
        contents.filter_map(Content::as_text)
    });
    let blocks = texts.filter(|text| text.starts_with("Earlier tool history in short."));
    let lines = blocks.flat_map(str::lines);
    lines
        .filter_map(|line| line.strip_suffix(']')?.rsplit_once('#')?.1.parse().ok())
        .collect()
}

fn accepted(format: &str, file: &str) {
    if format != "neutral" {
        let run = throughline(&["validate", "--for", format], file);
        assert_eq!(run.code, 0, "{format}: {}", run.out);
    }
}

#[test]
fn every_format_gives_a_smaller_history_that_its_vendor_accepts() {
    let mut count = 0;
    for format in FORMATS {
        let file = session(format);
        let run = ok(&["compact", "--from", format], &file);
        let first = run.err.lines().next().unwrap();
        assert!(
            first.starts_with("Compacted ") && first.ends_with("tokens. Nothing was deleted."),
            "{format}: {first}"
        );
        assert_eq!(run.out.matches('\n').count(), 1);
        assert!(
            run.out.len() * 2 < file.len(),
            "{format}: {} of {}",
            run.out.len(),
            file.len()
        );
        accepted(format, &run.out);
        let known = numbers(&file, format);
        let named = named(&run.out, format);
        assert!(!named.is_empty(), "{format}");
        for number in &named {
            assert!(known.contains(number), "{format}: #{number}");
        }
        count += named.len();
    }
    println!("{} formats, {count} numbers of messages", FORMATS.len());
}

#[test]
fn any_format_can_be_asked_for() {
    let file = session("anthropic");
    for to in FORMATS {
        let run = ok(&["compact", "--from", "anthropic", "--to", to], &file);
        accepted(to, &run.out);
        assert!(run.out.contains("[Earlier: "), "{to}");
    }
}

#[test]
fn a_history_below_every_trigger_comes_out_as_it_went_in() {
    let file = r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{ }"}}]},{"role":"tool","tool_call_id":"c","content":"\u00e9"}],"temperature":0.20,"x":null}"#;
    let run = ok(&["compact", "--from", "openai-chat"], file);
    assert_eq!(run.out, format!("{file}\n"));
    assert!(
        run.err.starts_with("Not compacted: within its limits."),
        "{}",
        run.err
    );
    let report = json(&["--json", "compact", "--from", "openai-chat"], file);
    assert_eq!(report["report"]["stayed"], "within");
    assert_eq!(report["losses"], Value::Array(Vec::new()));
    assert_eq!(report["repairs"], Value::Array(Vec::new()));
}

#[test]
fn a_request_keeps_every_key_around_its_messages() {
    let messages = session("openai-chat");
    let file = format!(
        r#"{{"model":"m","seed":12345678901234567890,"messages":{},"x":null}}"#,
        messages.trim_end()
    );
    let run = ok(&["compact", "--from", "openai-chat"], &file);
    assert!(
        run.out
            .starts_with(r#"{"model":"m","seed":12345678901234567890,"messages":["#)
    );
    assert!(run.out.trim_end().ends_with(r#","x":null}"#));
    accepted("openai-chat", &run.out);
}

#[test]
fn budgets_are_kept_and_named_if_they_cannot_be() {
    let file = session("openai-responses");
    for budget in ["8000", "16000", "32000"] {
        let args = ["--json", "compact", "--from", "openai-responses"];
        let said = json(&[&args[..], &["--budget", budget]].concat(), &file);
        let after = said["report"]["tokens_after"].as_u64().unwrap();
        assert!(after <= budget.parse().unwrap(), "{after} of {budget}");
        assert_eq!(said["report"]["trigger"], "budget", "{budget}");
        accepted("openai-responses", &said["output"].to_string());
    }
    let run = ok(
        &["compact", "--from", "openai-responses", "--budget", "10"],
        &file,
    );
    assert!(run.err.contains("Over budget: "), "{}", run.err);
    accepted("openai-responses", &run.out);
}

#[test]
fn more_calls_stay_in_full_if_more_are_asked_for() {
    let file = session("openai-chat");
    let whole = |recent: &str| {
        let args = ["compact", "--from", "openai-chat", "--recent", recent];
        ok(&args, &file).out.matches(r#""tool_call_id""#).count()
    };
    let counts = [whole("1"), whole("6"), whole("12")];
    assert!(counts[0] >= 1 && counts[1] >= 6 && counts[2] >= 12);
    assert!(counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
    let many = ok(
        &["compact", "--from", "openai-chat", "--threshold", "9999999"],
        &file,
    );
    assert_eq!(many.out, file);
}

#[test]
fn b173_the_text_strategy_has_no_call_items_and_keeps_the_same_calls() {
    for format in &FORMATS[1..] {
        let file = session(format);
        let args = ["--json", "compact", "--from", format, "--strategy"];
        let text = json(&[&args[..], &["text"]].concat(), &file);
        let native = json(&[&args[..], &["native"]].concat(), &file);
        assert_eq!(text["report"], native["report"], "{format}");
        let output = text["output"].to_string();
        accepted(format, &output);
        assert!(output.contains("[Result of "), "{format}");
        let format: Format = format.parse().unwrap();
        let read = read(output.as_bytes(), &format, Limits::default()).unwrap();
        let contents = read.request.messages.iter().flat_map(|one| &one.contents);
        for content in contents {
            assert!(
                content.as_tool_call().is_none() && content.as_tool_result().is_none(),
                "{format}: {content:?}"
            );
        }
    }
    let run = throughline(&["compact", "--strategy", "text"], &session("neutral"));
    assert_eq!(run.code, 2, "{}", run.err);
}

#[test]
fn b175_compacting_what_was_compacted_changes_nothing() {
    let mut count = 0;
    for format in FORMATS {
        let file = session(format);
        for flags in [
            &[][..],
            &["--recent", "2"],
            &["--threshold", "500"],
            &["--budget", "32000"],
            &["--budget", "8000"],
            &["--budget", "3000"],
        ] {
            let args = [&["compact", "--from", format], flags].concat();
            let once = ok(&args, &file);
            let twice = ok(&args, &once.out);
            assert!(
                once.out == twice.out,
                "{args:?}: {} then {}",
                once.err,
                twice.err
            );
            count += 1;
        }
    }
    println!("{count} files compacted twice");
}

/// A file without some of its messages: calls without results, and results without calls.
fn with_gaps(file: &str, rng: &mut Rng) -> String {
    let value = parse(file).unwrap();
    let mut some = |list: &[throughline_model::json::Value<'_>]| {
        let kept = list.iter().filter(|_| !rng.chance(0.2));
        let kept: Vec<&str> = kept.map(throughline_model::json::Value::raw).collect();
        format!("[{}]", kept.join(","))
    };
    if let Some(list) = value.as_array() {
        return some(list);
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    for member in value.members() {
        match member.value.as_array() {
            Some(list) => object.raw(&member.key.to_str(), &some(list)),
            None => object.raw(&member.key.to_str(), member.value.raw()),
        };
    }
    object.end();
    out
}

#[test]
fn generated_histories_stay_acceptable_and_settle() {
    let (mut smaller, mut refused) = (0, 0);
    property("compact on the command line", 60, |rng, size| {
        let file = neutral(&messages::history(rng, 4 + size));
        let format = FORMATS[rng.below(FORMATS.len())];
        let budget = (rng.below(4_000) + 50).to_string();
        let budget = ["compact", "--from", format, "--budget", &budget];
        let threshold = [
            "compact",
            "--from",
            format,
            "--threshold",
            "50",
            "--recent",
            "2",
        ];
        let flags: &[&str] = if rng.chance(0.5) { &budget } else { &threshold };
        let convert = ["convert", "--from", "neutral", "--to", format, "--repair"];
        let mut there = ok(&convert, &file).out;
        let mut accepted = true;
        if format != "neutral" && rng.bool() {
            there = with_gaps(&there, rng);
            let run = throughline(&["validate", "--for", format], &there);
            accepted = run.code == 0;
            refused += u64::from(!accepted);
        }
        let once = ok(flags, &there);
        smaller += u64::from(once.err.starts_with("Compacted "));
        if format != "neutral" {
            let run = throughline(&["validate", "--for", format], &once.out);
            if run.code != 0 {
                return Err(format!("{flags:?}: {}", run.out));
            }
        }
        let twice = ok(flags, &once.out);
        // Of a file that was refused the first output has calls closed that seemed to be running.
        match once.out == twice.out || !accepted {
            true => Ok(()),
            false => Err(format!("{flags:?}: {} then {}", once.err, twice.err)),
        }
    });
    assert!(refused > 0, "no vendor refused a history");
    println!("{smaller} of them were made smaller, {refused} had been refused");
}

#[test]
fn recorded_sessions_are_read_as_they_are() {
    let file = r#"{"format":"throughline.trajectory/1","messages":[
        {"role":"user","text":"fix it"},
        {"role":"assistant","tool_calls":[{"id":"a","name":"read_file","arguments":{"path":"a.rs"}}]},
        {"role":"tool","tool_call_id":"a","text":"fn a() {}"}]}"#;
    let run = ok(&["compact"], file);
    assert!(
        run.out
            .starts_with(r#"{"format":"throughline.neutral/1","messages":["#)
    );
    let sessions = trajectory::recorded().unwrap();
    let Some(sessions) = sessions else {
        println!("the recorded sessions are not there");
        return;
    };
    for session in &sessions {
        let file = neutral(session.messages.iter().map(|message| &**message));
        let run = ok(
            &["compact", "--to", "anthropic", "--budget", "32000"],
            &file,
        );
        accepted("anthropic", &run.out);
        println!("{}: {}", session.name, run.err.lines().next().unwrap());
    }
}

#[test]
fn what_cannot_be_read_says_where() {
    let file = "[{\"role\":\"user\",\n\"content\":}]";
    let run = throughline(&["compact", "--from", "openai-chat"], file);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("line 2"), "{}", run.err);
    let run = throughline(&["--json", "compact", "--from", "openai-chat"], file);
    let said: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &said["error"]["line"]), (1, &Value::from(2)));
    let run = throughline(
        &["compact", "--from", "openai-chat"],
        r#"[{"role":"user","content":7}]"#,
    );
    assert_eq!(run.code, 1);
    assert!(run.err.contains("[0].content"), "{}", run.err);
    let run = throughline(&["compact", "no-such-file.json"], "");
    assert_eq!((run.code, run.err.lines().count()), (1, 1), "{}", run.err);
}

#[test]
fn wrong_flags_are_wrong_usage() {
    for flags in [
        &["--budget", "0"][..],
        &["--budget", "many"],
        &["--recent", "-1"],
        &["--threshold", "x"],
        &["--strategy", "auto"],
        &["--from", "nobody"],
        &["--to", "nobody"],
        &["--listen", "127.0.0.1:0"],
    ] {
        let run = throughline(&[&["compact"], flags].concat(), "[]");
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{flags:?}");
    }
}

#[test]
fn long_results_are_shown_in_part_and_that_is_said() {
    let long = "the tide turns at ten\n".repeat(4_000);
    let file = format!(
        r#"[{{"role":"user","content":"hi"}},{{"role":"assistant","tool_calls":[{{"id":"c","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":{}}}]"#,
        Value::from(long)
    );
    let run = ok(&["compact", "--from", "openai-chat"], &file);
    assert!(run.out.len() < file.len());
    assert!(
        run.err.contains("Long results are shown in part"),
        "{}",
        run.err
    );
    accepted("openai-chat", &run.out);
    let again = ok(&["compact", "--from", "openai-chat"], &run.out);
    assert_eq!(again.out, run.out);
}

#[cfg(feature = "exact-tokens")]
#[test]
fn tokens_are_counted_exactly_beside_the_estimate() {
    let file = session("openai-chat");
    let asked = ["compact", "--from", "openai-chat", "--count", "exact"];
    let run = ok(&asked, &file);
    assert!(run.err.contains("Counted with o200k: "), "{}", run.err);
    for (vocabulary, name) in [("exact:o200k", "o200k"), ("exact:cl100k", "cl100k")] {
        let asked = [
            "--json",
            "compact",
            "--from",
            "openai-chat",
            "--count",
            vocabulary,
        ];
        let exact = &json(&asked, &file)["exact"];
        assert_eq!(exact["vocabulary"], name);
        let tokens = exact["tokens"].as_f64().unwrap();
        let estimated = exact["estimated"].as_f64().unwrap();
        assert!((0.8..=1.2).contains(&(estimated / tokens)), "{exact}");
    }
}

#[cfg(not(feature = "exact-tokens"))]
#[test]
fn a_build_without_vocabularies_says_what_to_do() {
    let file = session("openai-chat");
    let run = throughline(
        &["compact", "--from", "openai-chat", "--count", "exact"],
        &file,
    );
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("exact-tokens"), "{}", run.err);
    assert!(run.out.is_empty());
}

#[test]
fn an_unknown_vocabulary_is_refused() {
    let run = throughline(&["compact", "--count", "exact:p50k"], "");
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("exact:o200k"), "{}", run.err);
}
