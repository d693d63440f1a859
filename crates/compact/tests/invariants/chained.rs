//! Epochs one after the other, on generated conversations.

use std::sync::Arc;

use throughline_compact::{Call, Epoch, Planned, Policy, ToolHistory};
use throughline_model::Message;
use throughline_testkit::{Rng, messages, property};

use crate::check;

fn policy(rng: &mut Rng) -> Policy {
    let base = Policy {
        recent_calls: rng.range(1..=8) as u32,
        min_gain: rng.range(0..=40) as u64,
        ..Policy::default()
    };
    match rng.below(4) {
        0 => Policy {
            threshold: rng.range(20..=600) as u64,
            ..base
        },
        1 => Policy {
            count: Some(rng.range(4..=40) as u32),
            ..base
        },
        2 => Policy {
            window: Some(rng.range(200..=4_000) as u64),
            ..base
        },
        _ => Policy {
            budget: Some(rng.range(100..=3_000) as u64),
            ..base
        },
    }
}

/// Plays a conversation with a plan before each model call; checks every view.
pub(crate) fn play(
    told: &[Arc<Message>],
    mut history: ToolHistory,
    mut pin: impl FnMut(usize) -> bool,
) -> Result<(ToolHistory, u64), String> {
    let mut epochs = 0;
    let mut before: Vec<String> = Vec::new();
    for (at, message) in told.iter().enumerate() {
        let seq = at as u64 + 1;
        if !history.push(seq, Arc::clone(message)) {
            return Err("a message was refused".to_owned());
        }
        if pin(at) {
            history.pin(seq);
        }
        // Between epochs a view only grows.
        let view = check::bytes(history.view());
        if !view.starts_with(&before) {
            return Err(format!("message {seq} changed what was shown"));
        }
        let known = &told[..=at];
        let held = history.epoch().cloned();
        let planned = history
            .plan(&Call::default())
            .map_err(|error| error.to_string())?;
        match planned {
            Planned::Unchanged(report) => {
                if report.groups_digested > 0 || report.stayed.is_none() {
                    return Err(format!("unchanged, but {report:?}"));
                }
            }
            Planned::Epoch(epoch, report) => {
                epochs += 1;
                // Nothing changes before it is installed, and planning again gives the same.
                if check::bytes(history.view()) != view {
                    return Err("a plan changed the view".to_owned());
                }
                let twice = history.plan(&Call::default());
                if twice.as_ref().map(Planned::report) != Ok(&report) {
                    return Err(format!("{report:?} and then {twice:?}"));
                }
                monotone(held.as_deref(), &epoch, report.major)?;
                let text = epoch.to_json();
                let stored = Epoch::from_json(&text).map_err(|error| error.to_string())?;
                if stored != epoch || stored.to_json() != text {
                    return Err("an epoch came back from its stored form as another".to_owned());
                }
                let mut again = ToolHistory::new(history.policy().clone());
                for (seq, message) in history.record() {
                    again.push(seq, Arc::clone(message));
                }
                if !history.install(epoch.clone()) || history.install(epoch) {
                    return Err("an epoch is installed once".to_owned());
                }
                if !again.install(stored)
                    || check::bytes(again.view()) != check::bytes(history.view())
                {
                    return Err("the record and the epoch gave another view".to_owned());
                }
                if again.units() != history.units() || again.tool_units() != history.tool_units() {
                    return Err("the record and the epoch gave other sizes".to_owned());
                }
                // A compacted view is not compacted again.
                let next = history.plan(&Call::default());
                if let Ok(Planned::Epoch(_, next)) = next {
                    return Err(format!("{report} and at once {next}"));
                }
                check::pinned(history.view(), known)?;
            }
        }
        check::pairs(history.view(), known)?;
        before = check::bytes(history.view());
    }
    let record = history.record().map(|(_, message)| message);
    if check::bytes(record) != check::bytes(told) {
        return Err("the record changed".to_owned());
    }
    Ok((history, epochs))
}

fn monotone(held: Option<&Epoch>, next: &Epoch, major: bool) -> Result<(), String> {
    let Some(held) = held else { return Ok(()) };
    if next.cut_seq < held.cut_seq || next.no <= held.no {
        return Err(format!("{} after {}", next.cut_seq, held.cut_seq));
    }
    if !major && !next.blocks.starts_with(&held.blocks) {
        return Err("a minor epoch changed a block".to_owned());
    }
    if next.tokens_after >= next.tokens_before {
        return Err("nothing was gained".to_owned());
    }
    Ok(())
}

#[test]
fn chained_epochs_keep_every_invariant() {
    let mut epochs = 0;
    property("chained epochs", 120, |rng, size| {
        let told: Vec<Arc<Message>> = messages::history(rng, 2 * size)
            .into_iter()
            .map(Arc::new)
            .collect();
        let history = ToolHistory::new(policy(rng));
        let mut pins = rng.fork();
        let (mut history, made) = play(&told, history, |_| pins.chance(0.02))?;
        epochs += made;
        // Going back shows the record again.
        while let Some(epoch) = history.epoch().cloned() {
            if !history.uncompact(epoch.no) {
                return Err("an epoch that holds cannot be taken back".to_owned());
            }
        }
        let plain = ToolHistory::new(history.policy().clone());
        let (plain, _) = told
            .iter()
            .enumerate()
            .fold((plain, 0), |(mut plain, n), (at, one)| {
                plain.push(at as u64 + 1, Arc::clone(one));
                (plain, n)
            });
        if check::bytes(history.view()) != check::bytes(plain.view()) {
            return Err("taking back every epoch did not show the record".to_owned());
        }
        Ok(())
    });
    println!("chained epochs: {epochs} made and checked");
}

#[test]
fn threads_and_runs_give_the_same_bytes() {
    let mut rng = Rng::new(7);
    let told: Vec<Arc<Message>> = messages::history(&mut rng, 300)
        .into_iter()
        .map(Arc::new)
        .collect();
    let view = || {
        let history = ToolHistory::new(Policy::with_budget(1_500));
        let (history, epochs) = play(&told, history, |_| false).unwrap();
        assert!(epochs > 0);
        (
            check::bytes(history.view()),
            history.epoch().unwrap().to_json(),
        )
    };
    let first = view();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(view)).collect();
        for worker in workers {
            assert_eq!(worker.join().unwrap(), first);
        }
    });
}
