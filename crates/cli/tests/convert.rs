//! `throughline convert` as a process.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn throughline(args: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The program may refuse its input early and close the pipe.
        let _ = stdin.write_all(&input);
    });
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer ends");
    Run {
        code: status.code().expect("the program was not killed"),
        out: String::from_utf8(stdout).expect("standard output is UTF-8"),
        err: String::from_utf8(stderr).expect("standard error is UTF-8"),
    }
}

fn convert(from: &str, to: &str, more: &[&str], input: &str) -> Run {
    let mut args = vec!["convert", "--from", from, "--to", to];
    args.extend(more);
    throughline(&args, input.as_bytes())
}

const RESPONSES: &str = "openai-responses";

#[test]
fn an_array_gives_an_array_exactly() {
    let file = r#"[{"role":"user","content":"hi"},{"type":"future","n":1.0,"s":"\u00e9"}]"#;
    let run = convert(RESPONSES, RESPONSES, &[], file);
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (0, &*format!("{file}\n"), "")
    );
}

#[test]
fn a_request_body_gives_a_request_body_with_every_key() {
    let file =
        r#"{"model":"m","input":"hi","instructions":"Be brief.","temperature":0.20,"x":null}"#;
    let run = convert(RESPONSES, RESPONSES, &[], file);
    assert_eq!((run.code, run.out.trim_end()), (0, file));
    let neutral = convert(RESPONSES, "neutral", &[], file);
    let back = convert("neutral", RESPONSES, &[], &neutral.out);
    assert_eq!((back.code, back.out.trim_end()), (0, file));
}

#[test]
fn a_response_body_a_stream_and_a_single_item_give_an_array() {
    let item = r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}],"status":"completed"}"#;
    let body =
        format!(r#"{{"id":"resp_1","object":"response","status":"completed","output":[{item}]}}"#);
    let stream = format!(
        "event: response.created\ndata: {{\"type\":\"response.created\",\"response\":{{\"id\":\"resp_1\"}}}}\n\n\
         event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{body}}}\n\ndata: [DONE]\n\n"
    );
    for file in [item, &body, &stream] {
        let run = convert(RESPONSES, RESPONSES, &[], file);
        assert_eq!(
            (run.code, run.out.trim_end()),
            (0, &*format!("[{item}]")),
            "{file}"
        );
    }
}

#[test]
fn neutral_files_are_read_in_all_their_shapes() {
    let message = r#"{"v":1,"role":"user","contents":[{"kind":"text","text":"hi"}]}"#;
    let expected =
        r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]"#;
    for file in [
        format!("[{message}]"),
        message.to_owned(),
        format!(r#"{{"format":"throughline.neutral/1","messages":[{message}]}}"#),
        r#"{"format":"throughline.trajectory/1","messages":[{"seq":0,"role":"user","text":"hi"}]}"#
            .to_owned(),
    ] {
        let run = convert("neutral", RESPONSES, &[], &file);
        assert_eq!(
            (run.code, run.out.trim_end()),
            (0, expected),
            "{file} {}",
            run.err
        );
    }
    let with_system = format!(
        r#"{{"format":"throughline.neutral/1","system":"Be brief.","messages":[{message}]}}"#
    );
    let run = convert("neutral", RESPONSES, &[], &with_system);
    assert!(
        run.out.starts_with(r#"[{"type":"message","role":"system""#),
        "{}",
        run.out
    );
}

#[test]
fn losses_are_listed_and_check_exits_with_one() {
    let file = r#"[{"v":1,"role":"assistant","contents":[{"kind":"reasoning","text":["hm"]},{"kind":"text","text":"hi"}]}]"#;
    let run = convert("neutral", RESPONSES, &[], file);
    assert_eq!(run.code, 0);
    assert!(run.err.contains("messages[0].contents[0]"), "{}", run.err);
    let run = convert("neutral", RESPONSES, &["--json"], file);
    assert!(run.out.starts_with(r#"{"output":[{"#), "{}", run.out);
    assert!(
        run.out
            .contains(r#""losses":[{"path":"messages[0].contents[0]","kind":"reasoning""#)
    );
    assert!(run.out.ends_with("\"repairs\":[]}\n"));
    let run = convert("neutral", RESPONSES, &["--check"], file);
    assert_eq!(run.code, 1);
    assert!(run.out.starts_with(r#"{"losses":[{"#), "{}", run.out);
    let clean = r#"[{"role":"user","content":"hi"}]"#;
    let run = convert(RESPONSES, "neutral", &["--check"], clean);
    assert_eq!(
        (run.code, run.out.trim_end()),
        (0, r#"{"losses":[],"repairs":[]}"#)
    );
}

#[test]
fn errors_name_the_place_and_exit_with_one() {
    let run = convert(RESPONSES, RESPONSES, &[], "[\n {\"role\": }]");
    assert_eq!(run.code, 1);
    assert_eq!(run.out, "");
    assert!(run.err.contains("line 2 column 11"), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1);
    let run = convert(RESPONSES, RESPONSES, &["--json"], "[\n {\"role\": }]");
    assert!(run.out.contains(r#""line":2,"column":11"#), "{}", run.out);
    let bad = r#"[{"role":"user","content":"a"},{"type":"function_call","call_id":"c","name":7,"arguments":"{}"}]"#;
    let run = convert(RESPONSES, RESPONSES, &["--json"], bad);
    assert_eq!(run.code, 1);
    assert!(run.out.contains(r#""path":"[1].name""#), "{}", run.out);
    let run = throughline(
        &[
            "convert",
            "--from",
            RESPONSES,
            "--to",
            RESPONSES,
            "absent.json",
        ],
        b"",
    );
    assert_eq!(run.code, 1);
    assert!(run.err.contains("absent.json"), "{}", run.err);
}

#[test]
fn wrong_usage_exits_with_two() {
    for args in [
        &["convert", "--from", "nonsense", "--to", RESPONSES][..],
        &["convert", "--to", RESPONSES],
        &["nonsense"],
        &["chat"],
    ] {
        let run = throughline(args, b"");
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
        assert!(!run.err.is_empty(), "{args:?}");
    }
    let run = throughline(&["chat"], b"");
    assert!(
        run.err.contains("chat is not built in this version"),
        "{}",
        run.err
    );
    let run = throughline(
        &["convert", "--from", "nonsense", "--to", RESPONSES, "--json"],
        b"",
    );
    assert!(
        run.out
            .starts_with(r#"{"error":{"message":"invalid value 'nonsense'"#),
        "{}",
        run.out
    );
}

#[test]
fn bad_input_is_refused_without_a_panic() {
    let deep = "[".repeat(1_000) + &"]".repeat(1_000);
    let cases: [(&str, &[u8], &str); 6] = [
        ("depth", deep.as_bytes(), "line 1 column 129"),
        ("truncated", b"[{\"role\":\"user\"", "line 1 column 16"),
        ("not UTF-8", b"[\"\xff\"]", "not UTF-8 at line 1 column 3"),
        ("wrong type", b"7", "expected an item, found a number"),
        ("empty", b"", "line 1 column 1"),
        (
            "error body",
            br#"{"error":{"message":"quota","type":"x"}}"#,
            "quota",
        ),
    ];
    for (name, input, expected) in cases {
        let run = throughline(&["convert", "--from", RESPONSES, "--to", "neutral"], input);
        assert_eq!(run.code, 1, "{name}: {}", run.err);
        assert!(run.err.contains(expected), "{name}: {}", run.err);
        assert!(!run.err.contains("panicked"), "{name}: {}", run.err);
    }
}

#[test]
fn bounds_hold_and_can_be_raised() {
    let line = format!("data: {}\n\n", "x".repeat(50 << 20));
    let run = throughline(
        &["convert", "--from", RESPONSES, "--to", "neutral"],
        line.as_bytes(),
    );
    assert_eq!(run.code, 1);
    assert!(run.err.contains("33554432"), "{}", run.err);
    let long = format!(
        r#"[{{"role":"user","content":"{}"}}]"#,
        "y".repeat(50 << 20)
    );
    let run = throughline(
        &["convert", "--from", RESPONSES, "--to", RESPONSES],
        long.as_bytes(),
    );
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.trim_end() == long,
        "a string of 50 MB comes back as it was"
    );
    let run = throughline(
        &[
            "convert",
            "--from",
            RESPONSES,
            "--to",
            RESPONSES,
            "--max-bytes",
            "1000",
        ],
        long.as_bytes(),
    );
    assert_eq!(run.code, 1);
    assert!(run.err.contains("larger than 1000 bytes"), "{}", run.err);
    let deep = format!(
        r#"[{{"type":"x","a":{}}}]"#,
        "[".repeat(200) + &"]".repeat(200)
    );
    let args = ["convert", "--from", RESPONSES, "--to", RESPONSES];
    assert_eq!(throughline(&args, deep.as_bytes()).code, 1);
    let more = [&args[..], &["--max-depth", "300"]].concat();
    assert_eq!(throughline(&more, deep.as_bytes()).out.trim_end(), deep);
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = throughline(&["completions", shell], b"");
        assert_eq!(run.code, 0);
        assert!(run.out.contains("convert"), "{shell}");
    }
}

#[test]
fn pretty_output_is_the_same_document() {
    let file = r#"[{"role":"user","content":"hi"}]"#;
    let run = convert(RESPONSES, RESPONSES, &["--pretty"], file);
    assert!(run.out.lines().count() > 3);
    let back = convert(RESPONSES, RESPONSES, &[], &run.out);
    assert_eq!(back.out.trim_end(), file);
}
