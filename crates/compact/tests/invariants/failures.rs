//! What failed is told as it was, however old it is.

use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::{CallId, Content, Message, Outcome, Output, Role, ToolCall};
use throughline_testkit::{Rng, property};

use crate::invariants::check;

/// A command that failed, and what must remain of it.
struct Failed {
    code: u32,
    error: String,
    output: String,
}

impl Failed {
    fn of(rng: &mut Rng, number: usize) -> Self {
        const NOISE: [&str; 5] = [
            "   compiling the harbour",
            "ok 12 of 12",
            "note: run again with more words",
            "crates/errors/src/lib.rs read",
            "",
        ];
        let code = rng.range(1..=255) as u32;
        let file = rng.below(90);
        let error = match rng.below(5) {
            0 => format!("error[E0{number}]: mismatched types in src/tide_{file}.rs"),
            1 => format!("src/tide_{file}.c:{number}: error: no such field"),
            2 => format!("thread 'main' panicked at src/tide_{file}.rs:{number}:5"),
            3 => format!("fatal: pathspec 'tide_{file}' did not match, number {number}"),
            _ => format!("FAILED tests/test_tide_{file}.py::test_{number}"),
        };
        let mut lines: Vec<String> = Vec::new();
        let noise = |rng: &mut Rng, lines: &mut Vec<String>| {
            for _ in 0..rng.below(30) {
                lines.push((*rng.pick(&NOISE)).to_owned());
            }
        };
        let first = rng.bool();
        if first {
            lines.push(format!("Exit code {code}"));
        }
        noise(rng, &mut lines);
        lines.push(error.clone());
        noise(rng, &mut lines);
        if !first {
            lines.push(format!("Process exited with code {code}"));
        }
        Self {
            code,
            error,
            output: lines.join("\n"),
        }
    }
}

fn round(history: &mut ToolHistory, seq: u64, command: &str, outcome: Outcome, output: &str) {
    let id = CallId::natural(&format!("call_{seq}")).unwrap();
    let call = ToolCall::function(id, "Bash", format!(r#"{{"command":"{command}"}}"#));
    let result = call.answer(outcome, Output::from(output));
    let said = Message::new(Role::Assistant, vec![Content::from(call)]);
    assert!(history.push(seq, said));
    let answered = Message::new(Role::Tool, vec![Content::from(result)]);
    assert!(history.push(seq + 1, answered));
}

/// A protected fact is told by the digest of its group, at every epoch until a ledger is made.
#[test]
fn r20_what_failed_keeps_its_code_and_its_first_error() {
    let (mut failures, mut epochs) = (0u64, 0u64);
    property("r20 failures", 60, |rng, size| {
        let mut history = ToolHistory::new(Policy {
            threshold: 400,
            recent_calls: 2,
            // Ledgers tell the last state of a command; this is about what comes before them.
            block_share: 100,
            ..Policy::default()
        });
        history.push(1, Message::user("mend the harbour"));
        let mut seq = 2;
        let mut all: Vec<(u64, Failed)> = Vec::new();
        for number in 0..4 + size / 8 {
            let failed = Failed::of(rng, number);
            round(
                &mut history,
                seq,
                &format!("make part_{number}"),
                Outcome::Error,
                &failed.output,
            );
            all.push((seq + 1, failed));
            seq += 2;
            if let Ok(Planned::Epoch(epoch, report)) = history.plan(&Call::default()) {
                if report.major {
                    break;
                }
                history.install(epoch);
                epochs += 1;
            }
            let cut = history.epoch().map_or(0, |epoch| epoch.cut_seq);
            let texts: Vec<String> = check::digests(history.view())
                .map(|digest| digest.text())
                .collect();
            let text = texts.join("\n");
            for (seq, failed) in all.iter().filter(|(seq, _)| *seq < cut) {
                let mark = format!(" #{seq}]");
                let line = text.lines().find(|line| line.ends_with(&mark));
                let line = line.unwrap_or_default();
                let code = format!("→ error, exit {}:", failed.code);
                if !line.contains(&code) || !line.contains(&failed.error) {
                    return Err(format!("{code} {} became {line}", failed.error));
                }
                failures += 1;
            }
        }
        Ok(())
    });
    assert!(epochs > 0, "nothing was digested");
    println!("campaign r20 failures: looked={failures} epochs={epochs} lost=0");
}
