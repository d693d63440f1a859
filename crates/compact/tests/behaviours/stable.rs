//! What does not change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline_compact::{Digest, DigestCall, Epoch, Planned, Policy, ToolHistory};
use throughline_model::{Message, Source};

use crate::behaviours::told::{Told, bytes, eager};

#[test]
fn b174_without_an_epoch_every_view_begins_with_the_one_before() {
    let mut told = Told::new(Policy::default());
    let mut before: Vec<String> = Vec::new();
    for turn in 0..10 {
        told.user(&format!("turn {turn}"));
        told.round("Read", r#"{"file_path":"/a"}"#, "short");
        told.says("done");
        told.unchanged();
        let view = bytes(told.history.view());
        assert!(view.starts_with(&before));
        before = view;
    }
    assert_eq!(before.len(), 40);
}

#[test]
fn b175_a_new_epoch_takes_over_old_digests_and_compacting_twice_changes_nothing() {
    let mut told = Told::new(Policy::with_budget(8_000));
    told.user("begin");
    let more = |told: &mut Told| {
        while matches!(told.plan(), Planned::Unchanged(_)) {
            let at = told.seq;
            told.round(
                "Read",
                &format!(r#"{{"file_path":"/src/part{at}.rs"}}"#),
                &format!("fn name_of_{at}() {{}} {}", "word ".repeat(200)),
            );
        }
    };
    more(&mut told);
    let (first, _) = told.compact();
    assert!(told.plan().report().stayed.is_some());
    more(&mut told);
    let (second, report) = told.compact();
    assert!(!report.major, "{report}");
    let old: Vec<_> = first
        .blocks
        .iter()
        .filter_map(|block| block.message())
        .collect();
    let new: Vec<_> = second
        .blocks
        .iter()
        .filter_map(|block| block.message())
        .collect();
    assert!(new.starts_with(&old) && new.len() > old.len());
    // The head of the view is the same, byte for byte.
    let view = told.history.view();
    assert_eq!(view[1].to_json(), old[0].to_json());
    let before = bytes(view);
    assert!(matches!(told.plan(), Planned::Unchanged(_)));
    assert!(!told.history.install(second.clone()));
    assert!(!told.history.install(first));
    assert_eq!(bytes(told.history.view()), before);

    // Another process makes the same of the record and the stored epoch.
    let stored = Epoch::from_json(&second.to_json()).unwrap();
    assert_eq!(stored, second);
    let mut again = ToolHistory::new(told.history.policy().clone());
    for (seq, message) in told.history.record() {
        again.push(seq, Arc::clone(message));
    }
    assert!(again.install(stored));
    assert_eq!(bytes(again.view()), before);
}

#[test]
fn b176_one_turn_on_ten_thousand_messages_touches_only_what_is_new() {
    struct Counts(AtomicUsize);
    impl Digest for Counts {
        fn line(&self, _: &DigestCall<'_>) -> Option<String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
    let counts = Arc::new(Counts(AtomicUsize::new(0)));
    let mut told = Told::new(Policy {
        threshold: 1_000_000,
        ..Policy::default()
    });
    told.history = told
        .history
        .clone()
        .with_digest(Arc::clone(&counts) as Arc<dyn Digest>);
    told.user("begin");
    while told.seq < 10_000 {
        told.rounds_of(1, 100);
    }
    let looked = || counts.0.load(Ordering::Relaxed);
    let before: Vec<Arc<Message>> = told.history.view().to_vec();
    let groups = told.history.groups().len();
    told.user("one more");
    told.rounds_of(1, 100);
    told.unchanged();
    // Nothing was digested, and every message of the view is the very same one.
    assert_eq!(looked(), 0);
    let view = told.history.view();
    let same = before
        .iter()
        .zip(view)
        .all(|(one, two)| Arc::ptr_eq(one, two));
    assert!(same && view.len() == before.len() + 3);
    assert_eq!(told.history.groups().len(), groups + 2);
    // An epoch looks at each call once; the next one at new ones only.
    told.history
        .plan_now(&throughline_compact::Call::default())
        .unwrap();
    let first = looked();
    assert_eq!(first, told.history.groups().len() - 2);
    told.user("and more");
    told.rounds_of(1, 100);
    told.history
        .plan_now(&throughline_compact::Call::default())
        .unwrap();
    assert_eq!(looked(), first + 1);
}

#[test]
fn a_fork_shares_the_epoch_and_goes_its_own_way() {
    let mut told = Told::new(eager());
    told.user("begin");
    for _ in 0..4 {
        told.round("think", "{}", &"padding ".repeat(100));
    }
    told.compact();
    let mut fork = told.history.clone();
    let shared = bytes(told.history.view());
    assert!(Arc::ptr_eq(
        fork.epoch().unwrap(),
        told.history.epoch().unwrap()
    ));
    fork.push(told.seq + 1, Message::user("in the fork"));
    assert_eq!(bytes(told.history.view()), shared);
    assert!(bytes(fork.view()).starts_with(&shared));
    let summaries = fork
        .view()
        .iter()
        .filter(|one| one.source == Some(Source::Summary));
    assert_eq!(summaries.count(), 1);
}

#[test]
fn an_epoch_of_a_later_version_is_refused_and_damage_is_an_error() {
    let mut told = Told::new(eager());
    told.user("begin");
    for _ in 0..4 {
        told.round("think", "{}", &"padding ".repeat(100));
    }
    let (epoch, _) = told.compact();
    let text = epoch.to_json();
    assert!(Epoch::from_json(&text.replacen("\"v\":1", "\"v\":2", 1)).is_err());
    assert!(Epoch::from_json(&text.replacen("\"cut_seq\":", "\"cut\":", 1)).is_err());
    assert!(Epoch::from_json(&text[..text.len() / 2]).is_err());
}
