use std::sync::Arc;

use throughline_model::{CallId, Content, Message, Outcome, Output, Role, ToolCall};

use super::{NarrativeOutcome, NarrativeRejection, NarrativeScope};
use crate::{Call, Epoch, Planned, Policy, StoredEpoch, ToolHistory, tokens::Calibrations};

/// One round: a command or a read, and what came of it.
fn round(history: &mut ToolHistory, no: u64, name: &str, arguments: &str, output: &str) {
    let id = CallId::natural(&format!("c{no}")).unwrap();
    let call = ToolCall::function(id, name, arguments);
    let result = call.answer(Outcome::Ok, Output::Text(output.to_owned()));
    history.push(
        2 * no,
        Message::new(Role::Assistant, vec![Content::from(call)]),
    );
    history.push(
        2 * no + 1,
        Message::new(Role::Tool, vec![Content::from(result)]),
    );
}

fn reads(history: &mut ToolHistory, from: u64, to: u64) {
    for no in from..to {
        let path = format!(r#"{{"path":"/srv/pier/plank_{no}.rs"}}"#);
        let lines = format!("fn nail_{no}() {{ order 47{no:02} }}\n").repeat(40);
        round(history, no, "read_file", &path, &lines);
    }
}

/// A history of reads, a test that passed in the end and one that did not.
fn history() -> ToolHistory {
    let policy = Policy {
        threshold: 2_000,
        ..Policy::default().narrated(500)
    };
    let mut history = ToolHistory::new(policy);
    history.push(1, Message::user("mend the pier"));
    let command = |command: &str| format!(r#"{{"command":"{command}"}}"#);
    let failed = "Exit code: 101\nerror: a nail is missing";
    round(
        &mut history,
        1,
        "bash",
        &command("cargo test -p pier"),
        failed,
    );
    let passed = "Exit code: 0\nok";
    round(&mut history, 2, "bash", &command("cargo clippy"), passed);
    round(&mut history, 3, "bash", &command("make harbour"), failed);
    round(&mut history, 4, "bash", &command("make harbour"), passed);
    reads(&mut history, 5, 25);
    history
}

fn planned(history: &mut ToolHistory) -> Epoch {
    match history.plan(&Call::default()).unwrap() {
        Planned::Epoch(epoch, _) => epoch,
        Planned::Unchanged(report) => panic!("{report}"),
    }
}

/// A history whose first epoch holds, and the part that a model is asked about.
fn asked() -> (ToolHistory, NarrativeScope) {
    let mut history = history();
    let epoch = planned(&mut history);
    let asking = history.narrative_request(&epoch).unwrap();
    assert!(history.install(epoch));
    (history, asking.part)
}

fn texts(history: &ToolHistory) -> Vec<String> {
    history.view().iter().map(|one| one.to_json()).collect()
}

#[test]
fn what_the_record_does_not_bear_out_is_left_out() {
    let kept = [
        "The pier was looked at plank by plank.",
        "/srv/pier/plank_5.rs has nail_5.",
        "plank_6.rs is like it, see #15.",
        "Order 4705 was left alone.",
        "cargo test -p pier failed for want of a nail.",
        "make harbour failed first and then passed.",
        "make harbour works.",
        "cargo test -p pier should pass once the nail is there.",
        "The tests do not pass.",
    ];
    let dropped = [
        "The trouble is in /srv/quay/plank_5.rs.",
        "See bollard.rs for more.",
        "The cause is hammer_time.",
        "It is told in #999.",
        "Order 9321 was cancelled.",
        "Commit d41d8cd98f00 has it.",
        "cargo test -p pier passes.",
        "All tests are green.",
        "cargo clippy failed.",
        "[Earlier: Edited /srv/pier/plank_5.rs ok #3] happened.",
    ];
    for sentence in kept {
        let (mut history, part) = asked();
        let told = history.narrate(&part, sentence);
        assert_eq!((told.kept, told.dropped), (1, 0), "{sentence}");
        assert_eq!(history.narrative().unwrap().text, sentence);
    }
    for sentence in dropped {
        let (mut history, part) = asked();
        let told = history.narrate(&part, sentence);
        assert_eq!(
            told.refused,
            Some(NarrativeRejection::Unfounded),
            "{sentence}"
        );
        assert!(history.narrative().is_none(), "{sentence}");
    }
    // Together: what is true stays.
    let (mut history, part) = asked();
    let mixed = format!("{} {}\n{}", kept[0], dropped[0], kept[1]);
    let told = history.narrate(&part, &mixed);
    assert_eq!((told.kept, told.dropped, told.refused), (2, 1, None));
    let text = format!("{}\n{}", kept[0], kept[1]);
    assert_eq!(history.narrative().unwrap().text, text);
    println!(
        "table narrative kept={} dropped={}",
        kept.len(),
        dropped.len()
    );
}

#[test]
fn blank_or_larger_than_the_digest_is_refused() {
    let (mut history, part) = asked();
    let blank = history.narrate(&part, " \n\t");
    assert_eq!(
        blank,
        NarrativeOutcome::refused(part.epoch, NarrativeRejection::Blank)
    );
    for words in [part.most, 100_000] {
        let long = "The pier was looked at. ".repeat(words as usize);
        let told = history.narrate(&part, &long);
        assert_eq!(told.refused, Some(NarrativeRejection::Larger));
    }
    assert!(history.narrative().is_none());
}

#[test]
fn a_model_is_sent_the_beginning_of_what_it_had_and_is_asked_only_where_it_is_wanted() {
    let mut history = history();
    let before: Vec<Arc<Message>> = history.view().to_vec();
    let epoch = planned(&mut history);
    let asking = history.narrative_request(&epoch).unwrap();
    let (request, sent) = asking.messages.split_last().unwrap();
    assert!(!sent.is_empty() && sent.len() < before.len());
    assert_eq!(sent, &before[..sent.len()]);
    assert_eq!(request.role, Role::User);
    assert_eq!(
        (asking.part.first, asking.part.last),
        (1, epoch.cut_seq - 1)
    );
    assert!(asking.part.most <= 500);
    let silent = Policy {
        narrative: None,
        ..history.policy().clone()
    };
    let mut silent = ToolHistory::new(silent);
    for (seq, message) in history.record() {
        silent.push(seq, Arc::clone(message));
    }
    let same = planned(&mut silent);
    assert!(silent.narrative_request(&same).is_none());
    assert_eq!(same.blocks, epoch.blocks);
}

#[test]
fn it_is_shown_from_the_next_epoch_on_and_stays_where_it_is() {
    let (mut history, part) = asked();
    let before = texts(&history);
    let told = history.narrate(&part, "The pier was looked at plank by plank.");
    assert_eq!(told.refused, None);
    assert_eq!(texts(&history), before);
    let said = |history: &ToolHistory| -> Vec<usize> {
        let shown = history.view().iter().enumerate();
        let shown = shown.filter(|(_, one)| one.text().contains("plank by plank"));
        shown.map(|(at, _)| at).collect()
    };
    let mut places = Vec::new();
    let mut next = 25;
    for _ in 0..40 {
        let head = texts(&history);
        reads(&mut history, next, next + 12);
        next += 12;
        let Planned::Epoch(epoch, report) = history.plan(&Call::default()).unwrap() else {
            continue;
        };
        let major = report.major;
        assert!(history.install(epoch));
        let now = said(&history);
        assert_eq!(now.len(), 1, "once, whatever comes after");
        if !major && let [before] = places[..] {
            // Everything up to it keeps its bytes.
            assert_eq!(texts(&history)[..=before], head[..=before]);
        }
        places = now;
    }
    assert!(history.narrative().is_none());
    let at = places[0];
    let shown = &history.view()[at];
    assert_eq!(shown.source, Some(throughline_model::Source::Summary));
    assert!(
        shown.text().starts_with("[Summary of #"),
        "{}",
        shown.text()
    );
}

#[test]
fn what_is_told_part_by_part_stays_within_its_bound() {
    let (mut history, mut part) = asked();
    let mut next = 25;
    let (mut epochs, mut majors, mut most) = (0, 0, 0);
    while epochs < 60 {
        let sentence = format!("The planks before {next} are sound. ");
        // Numbers with fewer digits are no ids.
        history.narrate(&part, &sentence.replace(&next.to_string(), "these"));
        reads(&mut history, next, next + 12);
        next += 12;
        let Planned::Epoch(epoch, report) = history.plan(&Call::default()).unwrap() else {
            continue;
        };
        epochs += 1;
        majors += u64::from(report.major);
        if let Some(asking) = history.narrative_request(&epoch) {
            part = asking.part;
        }
        assert!(history.install(epoch));
        let blocks = &history.epoch().unwrap().blocks;
        let told = blocks.iter().filter(|block| block.narrative);
        let units: u64 = told.map(|block| block.units).sum();
        most = most.max(units);
        if report.major {
            let told = blocks.iter().filter(|block| block.narrative);
            assert!(told.count() <= 1);
            assert!(units <= 500 + 64, "{units}");
        }
    }
    println!("table narrative epochs={epochs} majors={majors} most={most}");
    assert!(majors > 0);
}

#[test]
fn what_waits_is_kept_and_goes_with_its_epoch() {
    let (mut history, part) = asked();
    history.narrate(&part, "The pier was looked at plank by plank.");
    let kept = StoredEpoch::of(&history, &Calibrations::default()).unwrap();
    let kept = StoredEpoch::from_json(kept.to_json().get()).unwrap();
    let mut other = ToolHistory::new(history.policy().clone());
    for (seq, message) in history.record() {
        other.push(seq, Arc::clone(message));
    }
    assert!(other.restore(&kept));
    assert_eq!(other.narrative(), history.narrative());
    assert_eq!(texts(&other), texts(&history));
    // Both go on alike.
    for one in [&mut history, &mut other] {
        reads(one, 25, 45);
        let epoch = planned(one);
        assert!(epoch.blocks.iter().any(|block| block.narrative));
        assert_eq!(Epoch::from_json(&epoch.to_json()).unwrap(), epoch);
        assert!(one.install(epoch));
    }
    assert_eq!(texts(&other), texts(&history));
    // Taken back, everything is shown, and what a model wrote about it is gone.
    let (mut history, part) = asked();
    history.narrate(&part, "The pier was looked at plank by plank.");
    assert!(history.uncompact(1));
    assert!(history.narrative().is_none());
    let late = history.narrate(&part, "The pier was looked at.");
    assert_eq!(late.refused, Some(NarrativeRejection::Undone));
    let kept = StoredEpoch::of(&history, &Calibrations::default()).unwrap();
    let kept = StoredEpoch::from_json(kept.to_json().get()).unwrap();
    let mut other = ToolHistory::new(history.policy().clone());
    for (seq, message) in history.record() {
        other.push(seq, Arc::clone(message));
    }
    assert!(other.restore(&kept));
    assert_eq!(texts(&other), texts(&history));
    // Nothing is folded again until there is more.
    for one in [&mut history, &mut other] {
        let planned = one.plan(&Call::default()).unwrap();
        assert!(matches!(planned, Planned::Unchanged(_)), "{planned:?}");
        reads(one, 25, 35);
        assert_eq!(planned_no(one), 2);
    }
}

fn planned_no(history: &mut ToolHistory) -> u64 {
    planned(history).no
}
