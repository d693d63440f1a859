//! Epochs one after the other, on generated conversations.

use std::collections::HashSet;
use std::sync::Arc;

use throughline_compact::{Call, Epoch, Planned, Policy, ToolHistory};
use throughline_model::{Message, Role};
use throughline_testkit::{Rng, property};

use crate::invariants::check;
use crate::invariants::conversation::conversation;

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

/// What was looked at.
#[derive(Default)]
pub(crate) struct Looked {
    pub(crate) views: u64,
    pub(crate) epochs: u64,
    /// Views that were held against the rules of a vendor.
    pub(crate) asked: u64,
}

/// Plays a conversation with a plan before each model call; checks every view.
pub(crate) fn play(
    told: &[Arc<Message>],
    mut history: ToolHistory,
    looked: &mut Looked,
    mut pin: impl FnMut(usize) -> bool,
) -> Result<ToolHistory, String> {
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
                looked.epochs += 1;
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
                check::covered(&history)?;
                looked.asked += check::vendors(history.view())?;
            }
        }
        looked.views += 1;
        check::pairs(history.view(), known)?;
        requests(&history, known)?;
        before = check::bytes(history.view());
    }
    let record = history.record().map(|(_, message)| message);
    if check::bytes(record) != check::bytes(told) {
        return Err("the record changed".to_owned());
    }
    Ok(history)
}

/// Without a budget every word of users is shown, whatever was digested.
fn requests(history: &ToolHistory, known: &[Arc<Message>]) -> Result<(), String> {
    if history.policy().effective_budget().is_some() {
        return Ok(());
    }
    let shown: HashSet<*const Message> = history.view().iter().map(Arc::as_ptr).collect();
    let users = known.iter().filter(|one| one.role == Role::User);
    match users
        .into_iter()
        .find(|one| !shown.contains(&Arc::as_ptr(one)))
    {
        Some(lost) => Err(format!("not shown: {}", lost.to_json())),
        None => Ok(()),
    }
}

fn monotone(held: Option<&Epoch>, next: &Epoch, major: bool) -> Result<(), String> {
    let Some(held) = held else { return Ok(()) };
    if next.cut_seq < held.cut_seq || next.no <= held.no {
        return Err(format!("{} after {}", next.cut_seq, held.cut_seq));
    }
    let mut kept = held.blocks.iter().zip(&next.blocks);
    if !major && !kept.all(|(then, now)| then == now) {
        return Err("a minor epoch changed a block".to_owned());
    }
    let (now, then) = (next.kept(), held.kept());
    let fewer = now.requests < then.requests
        || now.files_written < then.files_written
        || now.failures < then.failures;
    if !major && fewer {
        return Err(format!("a minor epoch went from {then:?} to {now:?}"));
    }
    if next.tokens_after >= next.tokens_before {
        return Err("nothing was gained".to_owned());
    }
    Ok(())
}

/// Lossless, paired, pinned, of one prefix between epochs, idempotent, monotone.
#[test]
fn r20_chained_epochs_keep_every_invariant() {
    let mut looked = Looked::default();
    property("r20 chained epochs", 120, |rng, size| {
        let told = conversation(rng, 2 * size);
        let history = ToolHistory::new(policy(rng));
        let mut pins = rng.fork();
        let mut history = play(&told, history, &mut looked, |_| pins.chance(0.02))?;
        // Going back shows the record again.
        while let Some(epoch) = history.epoch().cloned() {
            if !history.uncompact(epoch.no) {
                return Err("an epoch that holds cannot be taken back".to_owned());
            }
        }
        let mut plain = ToolHistory::new(history.policy().clone());
        for (seq, message) in (1..).zip(&told) {
            plain.push(seq, Arc::clone(message));
        }
        if check::bytes(history.view()) != check::bytes(plain.view()) {
            return Err("taking back every epoch did not show the record".to_owned());
        }
        Ok(())
    });
    let Looked {
        views,
        epochs,
        asked,
    } = looked;
    println!(
        "campaign r20 chained epochs: views={views} epochs={epochs} asked={asked} refused=0 broken=0"
    );
}

/// Deterministic: alone and beside others, now and again.
#[test]
fn r20_threads_and_runs_give_the_same_bytes() {
    let (mut runs, mut epochs) = (0u64, 0u64);
    property("r20 same bytes", 12, |rng, size| {
        let told = conversation(rng, 40 + 2 * size);
        let policy = policy(rng);
        let view = || {
            let mut looked = Looked::default();
            let history = ToolHistory::new(policy.clone());
            let history = play(&told, history, &mut looked, |_| false)?;
            let stored = history.epoch().map(|epoch| epoch.to_json());
            Ok::<_, String>((check::bytes(history.view()), stored, looked.epochs))
        };
        let first = view()?;
        epochs += first.2;
        for threads in [1, 4] {
            let alike = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(view)).collect();
                let same = |worker: std::thread::ScopedJoinHandle<'_, _>| matches!(worker.join(), Ok(Ok(found)) if found == first);
                workers.into_iter().map(same).filter(|same| *same).count()
            });
            if alike != threads {
                return Err(format!("{alike} of {threads} threads gave the same bytes"));
            }
            runs += threads as u64;
        }
        Ok(())
    });
    println!("campaign r20 same bytes: runs={runs} epochs={epochs} different=0");
}

/// Isolated: a fork has the epoch that held, and what comes then is its own.
#[test]
fn r20_forks_share_an_epoch_and_nothing_after_it() {
    let (mut forks, mut epochs) = (0u64, 0u64);
    property("r20 forks", 60, |rng, size| {
        let told = conversation(rng, 10 + 2 * size);
        let policy = Policy {
            threshold: 60,
            ..policy(rng)
        };
        let mut looked = Looked::default();
        let at = rng.range(1..=told.len());
        let here = play(&told[..at], ToolHistory::new(policy), &mut looked, |_| {
            false
        })?;
        let mut there = here.clone();
        let before = check::bytes(here.view());
        if there.epoch().map(Arc::as_ptr) != here.epoch().map(Arc::as_ptr) {
            return Err("a fork has a copy of the epoch".to_owned());
        }
        for (seq, message) in (at as u64 + 1..).zip(conversation(rng, size)) {
            there.push(seq, message);
            if let Ok(Planned::Epoch(epoch, _)) = there.plan(&Call::default()) {
                there.install(epoch);
                epochs += 1;
            }
        }
        if check::bytes(here.view()) != before {
            return Err("what happened in a fork is shown elsewhere".to_owned());
        }
        forks += 1;
        Ok(())
    });
    println!("campaign r20 forks: forks={forks} epochs={epochs} shown_elsewhere=0");
}
