//! The commands that use a store, as processes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test says that it failed"
)]

mod approvals;
mod damage;
mod hand_over;
mod tokens;
mod unfinished_runs;
mod view;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use throughline_model::json::{RawJson, Value};
use throughline_testkit::Scratch;

/// The output of a command.
struct Run {
    code: i32,
    out: String,
    err: String,
}

/// A folder with a store.
struct Place {
    scratch: Scratch,
    url: String,
}

impl Place {
    fn new(word: &str) -> Self {
        let scratch = Scratch::new(word);
        let url = scratch.sqlite("store.db");
        Self { scratch, url }
    }

    /// A store with the example of the documentation.
    fn with_example(word: &str) -> Self {
        let place = Self::new(word);
        let run = place.input(&["threads", "import"], example().as_bytes());
        assert_eq!(
            (run.code, run.out.as_str(), run.err.as_str()),
            (0, "imported ticket-4711: 4 nodes, 8 items\n", "")
        );
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Run {
        self.input(args, b"")
    }

    fn input(&self, args: &[&str], input: &[u8]) -> Run {
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["--store", &self.url])
            .args(args)
            .current_dir(self.scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
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

    /// The lines of a command that must succeed.
    fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(
            (run.code, run.err.as_str()),
            (0, ""),
            "{args:?} {}",
            run.out
        );
        run.out
    }

    /// The JSON of a command that must succeed.
    fn json(&self, args: &[&str]) -> RawJson {
        let out = self.ok(&[&["--json"], args].concat());
        assert_eq!(out.matches('\n').count(), 1, "{out}");
        RawJson::new(&out).unwrap()
    }

    /// The line of a command that must fail, after comparing it with its JSON form.
    fn fails(&self, args: &[&str], code: i32) -> String {
        self.fails_on(args, b"", code).0
    }

    fn fails_on(&self, args: &[&str], input: &[u8], code: i32) -> (String, RawJson) {
        let run = self.input(args, input);
        assert_eq!(
            (run.code, run.out.as_str()),
            (code, ""),
            "{args:?} {}",
            run.err
        );
        let message = run.err.strip_prefix("throughline: ").unwrap().trim_end();
        assert_eq!(message.lines().count(), 1, "{message}");
        let with_json = self.input(&[&["--json"], args].concat(), input);
        assert_eq!(
            (with_json.code, with_json.err.as_str()),
            (code, ""),
            "{args:?}"
        );
        let form = RawJson::new(&with_json.out).unwrap();
        let said = text(&form, &["error", "message"]);
        assert_eq!(said, message);
        (message.to_owned(), form)
    }
}

/// The string at a path.
fn text(form: &RawJson, path: &[&str]) -> String {
    let value = form.value();
    let found = value.at(path).and_then(Value::as_str);
    found
        .unwrap_or_else(|| panic!("no {path:?} in {form}"))
        .into_owned()
}

/// The number at a path.
fn number(form: &RawJson, path: &[&str]) -> u64 {
    let value = form.value();
    let found = value.at(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no {path:?} in {form}"))
}

/// The length of the list at a path.
fn length(form: &RawJson, path: &[&str]) -> usize {
    let value = form.value();
    let found = value
        .at(path)
        .and_then(|value| Some(value.as_array()?.len()));
    found.unwrap_or_else(|| panic!("no {path:?} in {form}"))
}

/// The example of `docs/export.md`.
fn example() -> &'static str {
    let page = include_str!("../../../docs/export.md");
    let (_, rest) = page.split_once("```ndjson\n").unwrap();
    rest.split_once("```").unwrap().0
}

const RUN: &str = "01997a5e20007000800000000000a002";
const APPROVAL: &str = "appr_07070707070707070707070707070707";

#[test]
fn reading_commands_do_not_make_a_store() {
    let place = Place::new("missing");
    let run = format!("run_{RUN}");
    for args in [
        &["threads", "list"][..],
        &["threads", "show", "t"],
        &["threads", "export", "t"],
        &["threads", "fork", "t"],
        &["threads", "uncompact", "t"],
        &["threads", "pin", "t", "1"],
        &["threads", "delete", "t", "--yes"],
        &["runs", "list"],
        &["runs", "show", &run],
        &["runs", "publish", &run],
        &["runs", "discard", &run],
        &["approvals", "list"],
        &["approvals", "answer", APPROVAL, "--deny"],
        &["fsck"],
        &["doctor"],
        &["migrate"],
        &["backup", "copy.db"],
    ] {
        let message = place.fails(args, 1);
        let file = place.file("store.db").display().to_string();
        assert!(
            message.starts_with(&format!("there is no store {file}; name one with --store")),
            "{message}"
        );
        assert!(!place.file("store.db").exists(), "{args:?}");
    }
    // The default is a file in the current folder.
    let run = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["threads", "list"])
        .current_dir(place.scratch.path())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).contains("there is no store throughline.db;"));
}

#[test]
fn threads_are_listed_and_shown() {
    let place = Place::with_example("show");
    assert_eq!(
        place.ok(&["threads", "list"]),
        "ticket-4711  \"Tides\"  7 items, 80 tokens, touched 2026-09-21 14:14:20\n"
    );
    let list = place.json(&["threads", "list"]);
    assert_eq!(length(&list, &["threads"]), 1);
    assert!(list.get().ends_with(r#""next":null}"#), "{list}");
    assert_eq!(
        place.ok(&["threads", "list", "--meta", "team=sea"]),
        "no threads\n"
    );
    assert_eq!(
        place.ok(&["threads", "list", "--tenant", "other"]),
        "no threads\n"
    );

    let shown = "\
ticket-4711  \"Tides\"  conversation:conv_17  7 items, 80 tokens, touched 2026-09-21 14:14:20
openai has resp_9 of another thread
#1 user: When is the tide in Hamburg?
#2 assistant: Today or tomorrow?
#3 user: Today, and the wind.
#4 assistant:
    -> get_tide {} (call_1)
    -> get_wind {} (call_2)
#5 tool:
    <- get_tide ok: 04:12 (call_1)
#7 assistant: Low water is at 04:12.
";
    for name in ["ticket-4711", "conversation:conv_17"] {
        assert_eq!(place.ok(&["threads", "show", name]), shown, "{name}");
    }
    let at_node = place.ok(&["threads", "show", &format!("node_{RUN}_0")]);
    assert!(
        at_node.contains(&format!("\nat node_{RUN}_0, 4 items, 53 tokens\n"))
            && at_node.ends_with("(call_2)\n"),
        "{at_node}"
    );
    for prefix in ["resp_", "run_"] {
        let at_run = place.ok(&["threads", "show", &format!("{prefix}{RUN}"), "--limit", "1"]);
        assert!(
            at_run.ends_with("--after 0\n#7 assistant: Low water is at 04:12.\n"),
            "{at_run}"
        );
    }
    let page = place.ok(&[
        "threads",
        "show",
        "ticket-4711",
        "--after",
        "1",
        "--limit",
        "2",
    ]);
    assert!(
        page.contains("\n#2 assistant") && page.ends_with("… more: --after 3\n"),
        "{page}"
    );

    let form = place.json(&["threads", "show", "ticket-4711", "--limit", "2"]);
    assert_eq!(text(&form, &["thread", "id"]), "ticket-4711");
    assert_eq!(number(&form, &["tip", "last"]), 7);
    assert_eq!(length(&form, &["messages"]), 2);
    let value = form.value();
    let last = &value.get("messages").unwrap().as_array().unwrap()[1];
    let stored = last.get("message").unwrap().raw();
    assert!(
        stored.starts_with(r#"{"v":1,"id":"msg_"#) && stored.contains(r#""source":"model""#),
        "{stored}"
    );
    assert_eq!(text(&form, &["tip", "node"]), format!("node_{RUN}_1"));
}

#[test]
fn the_tree_shows_branches() {
    let place = Place::with_example("tree");
    let (one, three) = (RUN.replace('2', "1"), RUN.replace('2', "3"));
    let expected = format!(
        "\
ticket-4711  \"Tides\"  conversation:conv_17  7 items, 80 tokens, touched 2026-09-21 14:14:20
node_{one}_0  #1-2
node_{RUN}_0  #3-4  open
node_{RUN}_1  #5-7  head
  from node_{one}_0:
  node_{three}_0  #3
"
    );
    assert_eq!(
        place.ok(&["threads", "show", "ticket-4711", "--tree"]),
        expected
    );
    let form = place.json(&["threads", "show", "ticket-4711", "--tree"]);
    assert_eq!(length(&form, &["nodes"]), 4);
}

#[test]
fn what_was_imported_is_exported_as_it_was() {
    let place = Place::with_example("export");
    assert_eq!(place.ok(&["threads", "export", "ticket-4711"]), example());
    let out = place.ok(&["threads", "export", "ticket-4711", "--out", "a.ndjson"]);
    let size = example().len();
    assert_eq!(
        out,
        format!("exported ticket-4711 to a.ndjson: 4 nodes, 8 items, 80 tokens, {size} bytes\n")
    );
    assert_eq!(
        std::fs::read_to_string(place.file("a.ndjson")).unwrap(),
        example()
    );
    assert_eq!(
        place.fails(
            &["threads", "export", "ticket-4711", "--out", "a.ndjson"],
            1
        ),
        "a.ndjson exists already; name another file"
    );
    let form = place.json(&[
        "threads",
        "export",
        "conversation:conv_17",
        "--branch",
        "-o",
        "b",
    ]);
    assert_eq!(
        (number(&form, &["nodes"]), number(&form, &["items"])),
        (3, 7)
    );
    let branch = place.ok(&["threads", "export", &format!("node_{RUN}_0"), "--branch"]);
    assert!(
        branch
            .lines()
            .last()
            .unwrap()
            .contains(r#""nodes":2,"items":4"#),
        "{branch}"
    );

    let there = Place::new("export-there");
    let file = place.file("a.ndjson").display().to_string();
    let form = there.json(&["threads", "import", &file]);
    assert_eq!(
        form.get(),
        r#"{"thread":"ticket-4711","nodes":4,"items":8,"tokens":80,"aliases_left_out":0}"#
    );
    assert_eq!(there.ok(&["threads", "export", "ticket-4711"]), example());
    let again = there.fails(&["threads", "import", &file], 1);
    assert_eq!(
        again,
        format!(
            "the thread ticket-4711 exists already in {}; import under a new id with --as ID",
            there.url
        )
    );
    assert_eq!(
        there.ok(&["threads", "import", "--as", "copy", &file]),
        "imported copy: 4 nodes, 8 items; 1 other name left out, the thread has a new id\n"
    );
    let shown = there.ok(&["threads", "show", "copy"]);
    assert!(
        shown.ends_with("#7 assistant: Low water is at 04:12.\n"),
        "{shown}"
    );
}

#[test]
fn a_damaged_export_is_refused_with_its_place() {
    let place = Place::new("damaged");
    let lines: Vec<&str> = example().split_inclusive('\n').collect();
    let without = |gone: usize| {
        let kept = lines.iter().enumerate().filter(|(place, _)| *place != gone);
        kept.map(|(_, line)| *line).collect::<String>()
    };
    let import = ["threads", "import"];
    for (file, expected, at) in [
        (example()[..example().len() / 2].to_owned(), None, None),
        (
            without(lines.len() - 1),
            Some(
                "standard input: the export ends too early, its last line (\"type\":\"end\") is \
                 missing at line 15 column 1; nothing was imported",
            ),
            Some((15, 1)),
        ),
        (
            example().replace("Hamburg", "Homburg"),
            Some(
                "standard input: digest: the lines before are not those that were exported at \
                 line 15 column 44; nothing was imported",
            ),
            None,
        ),
        (
            example().replacen("export/2", "export/3", 1),
            Some(
                "standard input: format: written as throughline.export/3; this program reads \
                 throughline.export/2, use a newer one at line 1 column 27; transcripts are \
                 imported with --from FORMAT",
            ),
            Some((1, 27)),
        ),
        (
            example().replace("\"no\":5", "\"no\":6"),
            Some(
                "standard input: no: expected 5, found 6 at line 12 column 21; nothing was imported",
            ),
            Some((12, 21)),
        ),
        (
            r#"[{"role":"user","content":"hi"}]"#.to_owned(),
            Some(
                "standard input: expected an object, found an array; this is no \
                 throughline.export/2 at line 1 column 1; transcripts are imported with --from FORMAT",
            ),
            Some((1, 1)),
        ),
    ] {
        let (message, form) = place.fails_on(&import, file.as_bytes(), 1);
        if let Some(expected) = expected {
            assert_eq!(message, expected);
        }
        if let Some((line, column)) = at {
            let found = (
                number(&form, &["error", "line"]),
                number(&form, &["error", "column"]),
            );
            assert_eq!(found, (line, column), "{form}");
        }
        assert_eq!(place.ok(&["threads", "list"]), "no threads\n", "{message}");
    }
    let (message, _) = place.fails_on(&["threads", "import", "nowhere"], b"", 1);
    assert!(
        message.starts_with("nowhere: cannot be read: "),
        "{message}"
    );
    let long = ["threads", "import", "--max-line-bytes", "70"];
    let (message, _) = place.fails_on(&long, example().as_bytes(), 1);
    assert!(
        message.contains("longer than 70 bytes at line 2 column 1"),
        "{message}"
    );
}

#[test]
fn transcripts_become_threads() {
    let place = Place::new("transcripts");
    let file = format!(
        "{}/../../examples/transcripts/tides.responses.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let out = place.ok(&[
        "threads",
        "import",
        "--from",
        "openai-responses",
        "--as",
        "tides",
        &file,
    ]);
    assert!(out.starts_with("imported tides: 1 node, "), "{out}");
    let form = place.json(&["threads", "show", "tides"]);
    assert!(form.get().contains(r#""source":"import""#), "{form}");
    let neutral = r#"[{"v":1,"role":"user","contents":[{"kind":"text","text":"hi \u001b[2J"}]}]"#;
    let run = place.input(
        &["--json", "threads", "import", "--from", "neutral"],
        neutral.as_bytes(),
    );
    let id = text(&RawJson::new(&run.out).unwrap(), &["thread"]);
    assert!(id.starts_with("thr_"), "{id}");
    let shown = place.ok(&["threads", "show", &id]);
    assert!(shown.ends_with("#1 user: hi \\u{1b}[2J\n"), "{shown}");
    let (message, _) = place.fails_on(&["threads", "import", "--from", "neutral"], b"[]", 1);
    assert_eq!(message, "standard input: there are no messages in it");
    let (message, _) = place.fails_on(
        &["threads", "import", "--from", "neutral", "--as", "tides"],
        neutral.as_bytes(),
        1,
    );
    assert!(message.contains("exists already"), "{message}");
}

#[test]
fn a_fork_shares_what_it_comes_from() {
    let place = Place::with_example("fork");
    assert_eq!(
        place.ok(&["threads", "fork", "ticket-4711", "--id", "other"]),
        "forked ticket-4711 to other: 7 items in common\n"
    );
    let form = place.json(&["threads", "fork", &format!("resp_{RUN}")]);
    assert_eq!(text(&form, &["from"]), "ticket-4711");
    assert!(text(&form, &["thread", "id"]).starts_with("thr_"), "{form}");
    // Repeating it changes nothing; a different fork under the same id is refused.
    place.ok(&["threads", "fork", "ticket-4711", "--id", "other"]);
    let elsewhere = format!("node_{RUN}_0");
    let message = place.fails(&["threads", "fork", &elsewhere, "--id", "other"], 1);
    assert!(message.contains("exists already"), "{message}");
    let message = place.fails(&["threads", "fork", "nobody"], 1);
    assert_eq!(
        message,
        format!(
            "there is no thread nobody for tenant local in {}; 'throughline threads list' shows \
             what is there",
            place.url
        )
    );
}

#[test]
fn deleting_needs_a_confirmation() {
    let place = Place::with_example("delete");
    place.ok(&["threads", "fork", "ticket-4711", "--id", "other"]);
    assert_eq!(
        place.fails(&["threads", "delete", "ticket-4711"], 2),
        "deleting thread ticket-4711 cannot be undone; say --yes to do it"
    );
    let node = format!("node_{RUN}_0");
    let message = place.fails(&["threads", "delete", &node, "--yes"], 2);
    assert!(
        message.contains("name the thread to delete it"),
        "{message}"
    );
    // The branch that no other thread shares is erased.
    assert_eq!(
        place.ok(&["threads", "delete", "ticket-4711", "--yes"]),
        "deleted thread ticket-4711 with 7 items; 1 erased, what other threads share stays\n\
         openai has resp_9 of another thread\n"
    );
    assert!(
        place
            .fails(&["threads", "show", "ticket-4711"], 1)
            .contains("there is no thread")
    );
    assert!(
        place
            .ok(&["threads", "show", "other"])
            .contains("#7 assistant")
    );
    let form = place.json(&["threads", "delete", "other", "--yes"]);
    assert_eq!(text(&form, &["deleted", "id"]), "other");
    assert_eq!(number(&form, &["items_erased"]), 7);
    assert_eq!(
        place.ok(&["fsck"]),
        "checked 0 threads, 0 nodes, 0 items: sound\n"
    );
}

#[test]
fn runs_are_listed_and_shown() {
    let place = Place::with_example("runs");
    let list = place.ok(&["runs", "list", "--thread", "ticket-4711"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    assert!(list.contains(&format!(
        "run_{RUN}  committed  turn per_call  thread ticket-4711"
    )));
    let form = place.json(&["runs", "list", "--state", "committed", "--limit", "2"]);
    assert_eq!(length(&form, &["runs"]), 2);
    let next = text(&form, &["next"]);
    let form = place.json(&["runs", "list", "--state", "committed", "--after", &next]);
    assert_eq!(length(&form, &["runs"]), 1);
    assert_eq!(
        place.ok(&["runs", "list", "--state", "failed"]),
        "no runs\n"
    );
    let run = place.run(&["runs", "list", "--state", "odd"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("a state is one of running, interrupted"),
        "{}",
        run.err
    );

    let shown = place.ok(&["runs", "show", &format!("resp_{RUN}")]);
    assert!(
        shown.contains(&format!("\npublished node_{RUN}_1\n")),
        "{shown}"
    );
    let message = place.fails(&["runs", "publish", &format!("run_{RUN}")], 1);
    assert!(
        message.contains("is committed and cannot be settled again"),
        "{message}"
    );
    let message = place.fails(
        &["runs", "discard", "run_00000000000000000000000000000000"],
        1,
    );
    assert!(
        message.contains("'throughline runs list' shows what is there"),
        "{message}"
    );
    let nobody = format!("run_{}", "0".repeat(32));
    let message = place.fails(&["runs", "resume", &nobody], 1);
    assert!(message.contains("cannot be gone on with"), "{message}");
    let message = Place::new("resume-nobody").fails(&["runs", "resume", &nobody], 1);
    assert!(message.starts_with("there is no store "), "{message}");
    assert_eq!(
        place.fails(&["runs", "dance"], 2),
        "unknown command \"runs dance\"; 'throughline --help' lists them"
    );
}

#[test]
fn a_run_that_was_left_behind_is_published_closed() {
    let place = Place::new("publish");
    let run = unfinished_runs::interrupted(&place.url, "t");
    let shown = place.ok(&["runs", "show", &run]);
    assert!(
        shown.contains("  interrupted  turn per_run  thread t  "),
        "{shown}"
    );
    assert!(
        shown.contains("\nnot published\ninput item 1 user: What is the tide?\nstep 0\n"),
        "{shown}"
    );
    for (position, state) in [(0, "done"), (1, "intent"), (2, "planned"), (3, "client")] {
        let line =
            format!("\n  call {position} get_tide (call_{position}): {state}, once, key idem_");
        assert!(shown.contains(&line), "{line} in {shown}");
    }
    let form = place.json(&["runs", "show", &run]);
    assert_eq!(length(&form, &["calls"]), 4);
    assert_eq!(text(&form, &["run", "state"]), "interrupted");

    let list = place.ok(&["runs", "list", "--state", "interrupted"]);
    assert!(list.starts_with(&run), "{list}");
    let out = place.ok(&["runs", "publish", &run]);
    assert!(
        out.starts_with(&format!("published {run} on thread t: node_"))
            && out.ends_with("_1 up to #6, now the head; 3 open calls closed\n"),
        "{out}"
    );
    assert_eq!(
        place
            .ok(&["threads", "show", "t"])
            .split_once('\n')
            .unwrap()
            .1,
        "\
#1 user: What is the tide?
#2 assistant:
    -> get_tide {} (call_0)
    -> get_tide {} (call_1)
    -> get_tide {} (call_2)
    -> get_tide {} (call_3)
#3-6 tool:
    <- get_tide ok: 04:12 (call_0)
    <- get_tide unknown: [The result of this call was lost; whether it ran is unknown.] (call_1)
    <- get_tide terminated: [The run was ended; the call did not run.] (call_2)
    <- get_tide unknown: [No result was recorded for this call; whether it ran is unknown.] (call_3)
"
    );
    assert!(
        place
            .ok(&["runs", "show", &run])
            .contains("  cancelled  turn per_run  ")
    );
    assert!(
        place
            .fails(&["runs", "discard", &run], 1)
            .contains("cannot be settled again")
    );
}

#[test]
fn a_run_that_was_never_published_is_published_or_discarded() {
    let place = Place::new("unpublished");
    let run = unfinished_runs::unpublished(&place.url, "t");
    let form = place.json(&["runs", "publish", &run]);
    assert_eq!(text(&form, &["run"]), run);
    assert_eq!(
        (number(&form, &["last"]), number(&form, &["calls_closed"])),
        (2, 0)
    );
    assert!(form.get().contains(r#""moved":true"#), "{form}");
    assert!(
        place
            .ok(&["runs", "show", &run])
            .contains("  committed  turn per_run  ")
    );

    let late = unfinished_runs::unpublished(&place.url, "t");
    unfinished_runs::turn(&place.url, "t");
    let message = place.fails(&["runs", "publish", &late], 1);
    assert!(message.contains("thread t has moved on since"), "{message}");
    let form = place.json(&["runs", "discard", &late]);
    assert_eq!(text(&form, &["discarded"]), late);

    let other = unfinished_runs::unpublished(&place.url, "u");
    assert_eq!(
        place.ok(&["runs", "discard", &other]),
        format!("discarded {other} on thread u: nothing of it is in the history\n")
    );
    assert_eq!(
        place.ok(&["runs", "list", "--state", "unpublished"]),
        "no runs\n"
    );
}

#[test]
fn a_running_run_is_neither_published_nor_discarded() {
    let place = Place::new("busy");
    let (_store, run) = unfinished_runs::running(&place.url, "t");
    for what in ["publish", "discard"] {
        let message = place.fails(&["runs", what, &run], 1);
        assert_eq!(
            message,
            format!("{run} is being worked on; wait for it or stop whoever does")
        );
    }
    let shown = place.ok(&["threads", "show", "t"]);
    assert!(
        shown.contains(&format!("to be settled: {run}  running  ")),
        "{shown}"
    );
}

#[test]
fn a_backup_is_restored_to_a_new_store() {
    let place = Place::with_example("backup");
    let copy = place.file("copy.db").display().to_string();
    assert_eq!(
        place.ok(&["backup", &copy]),
        format!("backed up {} to {copy}\n", place.url)
    );
    assert_eq!(
        place.fails(&["backup", &copy], 1),
        format!("{copy} exists already; name another file")
    );
    let form = place.json(&["backup", "second.db"]);
    assert_eq!(text(&form, &["to"]), "second.db");

    let there = Place::new("restored");
    assert_eq!(
        there.ok(&["restore", &copy]),
        format!("restored {copy} to {}\n", there.url)
    );
    assert_eq!(there.ok(&["threads", "export", "ticket-4711"]), example());
    let message = there.fails(&["restore", &copy], 1);
    assert!(
        message.contains("exists already; restore to a new file"),
        "{message}"
    );
    let third = Place::new("restored-json");
    let form = third.json(&["restore", &copy]);
    assert_eq!(text(&form, &["from"]), copy);
    let fourth = Place::new("restored-nothing");
    assert!(
        fourth
            .fails(&["restore", "nowhere"], 1)
            .contains("there is no file nowhere")
    );
    std::fs::write(fourth.file("odd"), "this is no database").unwrap();
    let message = fourth.fails(&["restore", "odd"], 1);
    assert!(message.starts_with("odd: "), "{message}");
    assert!(!fourth.file("store.db").exists());
}

#[test]
fn a_sound_store_passes_its_check() {
    let place = Place::with_example("fsck");
    assert_eq!(
        place.ok(&["fsck"]),
        "checked 1 thread, 4 nodes, 8 items (1 redacted): sound\n"
    );
    let form = place.json(&["fsck"]);
    assert_eq!(
        form.get(),
        r#"{"ok":true,"threads":1,"nodes":4,"items":8,"redacted":1,"damage":[]}"#
    );
}

#[test]
fn the_doctor_reads_settings_back() {
    let place = Place::with_example("doctor");
    let out = place.ok(&["doctor"]);
    assert!(
        out.starts_with(&format!("{}: sqlite, durable, schema ", place.url)),
        "{out}"
    );
    assert!(
        out.contains("  synchronous = ") && out.contains("  ok\n"),
        "{out}"
    );
    let form = place.json(&["doctor"]);
    assert_eq!(text(&form, &["durability"]), "durable");
    assert!(form.get().starts_with(r#"{"ok":true,"#), "{form}");
    assert!(length(&form, &["settings"]) > 2, "{form}");
}

#[test]
fn a_store_of_this_version_needs_no_migration() {
    let place = Place::with_example("migrate");
    let out = place.ok(&["migrate"]);
    let file = place.file("store.db").display().to_string();
    assert!(out.starts_with(&format!("{file} has schema ")), "{out}");
    let form = place.json(&["migrate"]);
    assert!(number(&form, &["schema"]) > 0, "{form}");
}

#[test]
fn unknown_names_are_reported() {
    let place = Place::with_example("names");
    let message = place.fails(&["threads", "show", "no thread"], 2);
    assert!(
        message.starts_with("\"no thread\" names no thread; give a thread id"),
        "{message}"
    );
    let message = place.fails(&["threads", "show", "conversation:nobody"], 1);
    assert!(
        message.starts_with("there is no thread conversation:nobody"),
        "{message}"
    );
    let message = place.fails(
        &["threads", "show", "node_00000000000000000000000000000000_0"],
        1,
    );
    assert!(
        message.contains("'throughline runs list' shows what is there"),
        "{message}"
    );
    let run = place.run(&["threads", "list", "--tenant", "no tenant"]);
    assert_eq!(run.code, 2);
    let odd = Place {
        scratch: Scratch::new("names-odd"),
        url: "mysql://here".to_owned(),
    };
    let message = odd.fails(&["threads", "list"], 2);
    assert!(message.contains("\"mysql\" is no engine"), "{message}");
}
