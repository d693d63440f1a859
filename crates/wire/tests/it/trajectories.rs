//! Recorded agent sessions, cut anywhere, rendered for every vendor.

use std::path::PathBuf;

use throughline_model::{Body, CallId, Content, Message, json};
use throughline_wire::render::{Options, Target, render};
use throughline_wire::transcript::{self, Limits};
use throughline_wire::validate::{Profile, validate};
use throughline_wire::{Format, Wire};

/// The project's own sessions, and the recorded ones beside the project where they are.
fn sessions() -> Vec<(String, Vec<Message>)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = [
        root.join("tests/fixtures/trajectories"),
        root.join("../../../shared/trajectories"),
    ];
    let mut found = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.extension().is_none_or(|ending| ending != "json") || name == "MANIFEST" {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let session = transcript::read(&bytes, &Format::Neutral, Limits::default()).unwrap();
            let mut messages = session.request.messages;
            messages.iter_mut().for_each(with_repeated_ids);
            found.push((name, messages));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Ids that were made unique with a suffix repeat again, as they did when they were recorded.
fn with_repeated_ids(message: &mut Message) {
    let plain = |id: &CallId| id.value().strip_suffix("-2").and_then(CallId::natural);
    for content in &mut message.contents {
        let renamed = match &mut content.body {
            Body::ToolCall(call) => {
                if let Some(id) = plain(&call.call) {
                    call.call = id;
                }
                None
            }
            Body::ToolResult(result) => plain(result.call()).map(|id| result.renamed(id)),
            _ => None,
        };
        if let Some(result) = renamed {
            *content = Content::from(result);
        }
    }
}

/// How many cuts each session gets; all of its positions in a long run.
fn cuts() -> usize {
    let scale = std::env::var("THROUGHLINE_SCALE").ok();
    let scale: f64 = scale.and_then(|scale| scale.parse().ok()).unwrap_or(1.0);
    ((50.0 * scale) as usize).clamp(4, 1_000)
}

#[test]
fn recorded_sessions_render_cleanly_wherever_they_are_cut() {
    let mut all = 0;
    let sessions = sessions();
    assert!(!sessions.is_empty());
    for (name, messages) in &sessions {
        let most = cuts().min(messages.len() + 1);
        let positions: Vec<usize> = (0..most).map(|n| n * (messages.len() + 1) / most).collect();
        for wire in Wire::KNOWN {
            let target = Target::newest(wire.clone());
            for cut in &positions {
                let rendered = render(&messages[..*cut], &target, &Options::default());
                let array = rendered.array();
                let value = json::parse(&array).unwrap();
                let violations = validate(&value, &Profile::newest(wire.clone()));
                assert!(
                    violations.is_empty(),
                    "{name} cut at {cut} for {wire}: {:?}",
                    violations.first()
                );
                all += 1;
            }
        }
        println!(
            "table session {name}: messages={} cuts={} targets={}",
            messages.len(),
            positions.len(),
            Wire::KNOWN.len()
        );
    }
    println!(
        "table {} sessions, {all} renderings, 0 violations",
        sessions.len()
    );
}
