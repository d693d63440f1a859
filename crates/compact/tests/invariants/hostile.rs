//! Output that no tool should give, and some do.

use std::sync::Arc;

use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::json::RawJson;
use throughline_model::{Arguments, CallId, Content, Message, Outcome, Output, Role, ToolCall};
use throughline_testkit::{Rng, property};

use crate::invariants::check;

/// A conversation whose first round has this output, and enough after it to digest that.
fn with_output(name: &str, arguments: Arguments, output: Output) -> Vec<Arc<Message>> {
    let mut told = vec![Message::user("look")];
    let mut round = |at: usize, name: &str, arguments: Arguments, output: Output| {
        let id = CallId::natural(&format!("c{at}")).unwrap();
        let call = ToolCall {
            arguments,
            ..ToolCall::function(id, name, "")
        };
        let result = call.answer(Outcome::Error, output);
        told.push(Message::new(Role::Assistant, vec![Content::from(call)]));
        told.push(Message::new(Role::Tool, vec![Content::from(result)]));
    };
    round(0, name, arguments, output);
    for at in 1..9 {
        let text = format!("fine {}", "word ".repeat(800));
        round(at, "think", Arguments::None, Output::Text(text));
    }
    told.into_iter().map(Arc::new).collect()
}

fn digest(told: &[Arc<Message>]) -> ToolHistory {
    let mut history = ToolHistory::new(Policy::with_budget(4_000));
    for (at, message) in told.iter().enumerate() {
        history.push(at as u64 + 1, Arc::clone(message));
    }
    let Ok(Planned::Epoch(epoch, report)) = history.plan(&Call::default()) else {
        unreachable!("there is too much for the budget");
    };
    assert!(history.install(epoch));
    assert!(report.tokens_after <= 4_000, "{report}");
    check::pairs(history.view(), told).unwrap();
    history
}

const TOOLS: [&str; 6] = ["Read", "Edit", "Bash", "Grep", "TodoWrite", "frobnicate"];

#[test]
fn r20_hostile_output_is_digested_whatever_the_tool() {
    let long = 50 << 20;
    let outputs = [
        ("a line of 50 MB", "x".repeat(long)),
        ("50 MB of names", "some_name/of_it ".repeat(long / 16)),
        ("50 MB of line breaks", "\n".repeat(long)),
        ("NUL", "a\0b\0".repeat(100_000)),
        (
            "terminal colours",
            "\u{1b}[31mred\u{1b}[0m \u{1b}[".repeat(100_000),
        ),
        ("lone surrogates", "\u{fffd}\\ud800".repeat(100_000)),
        ("brackets", "[Earlier: [[{((".repeat(100_000)),
        ("wide characters", "界\u{202e}\u{200b}é".repeat(100_000)),
        ("slashes and dots", "/./../".repeat(200_000)),
        ("errors only", "error: error\n".repeat(200_000)),
        ("exit codes", "exit code exit code ".repeat(200_000)),
    ];
    let mut count = 0;
    for (what, output) in outputs {
        // The largest with one tool each: what is looked at is the same for all.
        let tools = if output.len() >= long {
            &TOOLS[2..3]
        } else {
            &TOOLS[..]
        };
        for tool in tools {
            let told = with_output(tool, Arguments::None, Output::Text(output.clone()));
            let history = digest(&told);
            let digests: Vec<String> = check::digests(history.view())
                .map(|one| one.text())
                .collect();
            assert!(!digests.is_empty(), "{what}");
            for line in digests.iter().flat_map(|text| text.lines().skip(1)) {
                assert!(
                    line.starts_with("[Earlier: ") && line.ends_with(']'),
                    "{what}: {line}"
                );
                assert!(!line.contains(['\0', '\u{1b}']), "{what}");
            }
            count += 1;
        }
    }
    println!("campaign r20 hostile output: outputs={count} digested={count}");
}

#[test]
fn r20_hostile_arguments_are_digested_too() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let wide = format!("{{{}\"k\":1}}", "\"path\":\"/a\",".repeat(100_000));
    let lone = RawJson::new(r#"{"path":"\ud800/x\udfff","command":"\ud83d"}"#).unwrap();
    let arguments = [
        Arguments::None,
        Arguments::Text(String::new()),
        Arguments::Text(deep),
        Arguments::Text(wide),
        Arguments::Text("{\"path\":".into()),
        Arguments::Free("*** Update File: ".repeat(50_000)),
        Arguments::Json(lone.clone()),
    ];
    for arguments in arguments {
        for tool in TOOLS {
            let json = Output::Json(lone.clone());
            digest(&with_output(tool, arguments.clone(), json));
        }
    }
}

#[test]
fn r20_random_bytes_are_digested() {
    property("r20 random output", 300, |rng: &mut Rng, size| {
        let bytes = rng.bytes(size * 200);
        let output = String::from_utf8_lossy(&bytes).into_owned();
        let tool = *rng.pick(&TOOLS);
        digest(&with_output(
            tool,
            Arguments::Text(output.clone()),
            Output::Text(output),
        ));
        Ok(())
    });
}
