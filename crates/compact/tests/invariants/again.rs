//! A compacted view, taken for a conversation of its own, is not compacted again.

use std::sync::Arc;

use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::Message;
use throughline_testkit::{Rng, property};

use crate::invariants::check;
use crate::invariants::conversation::conversation;

fn policy(rng: &mut Rng) -> Policy {
    let base = Policy {
        recent_calls: rng.range(1..=8) as u32,
        ..Policy::default()
    };
    match rng.bool() {
        true => Policy {
            threshold: rng.range(20..=600) as u64,
            ..base
        },
        false => Policy {
            budget: Some(rng.range(100..=6_000) as u64),
            ..base
        },
    }
}

/// The view of messages by a policy, and whether anything was made smaller.
fn compacted(told: &[Arc<Message>], policy: &Policy) -> Result<(Vec<Arc<Message>>, bool), String> {
    let mut history = ToolHistory::new(policy.clone());
    for (seq, message) in (1..).zip(told) {
        history.push(seq, Arc::clone(message));
    }
    let planned = history.plan(&Call::default());
    let made = match planned.map_err(|error| error.to_string())? {
        Planned::Epoch(epoch, _) => history.install(epoch),
        Planned::Unchanged(_) => false,
    };
    Ok((history.view().to_vec(), made))
}

/// What a vendor's format keeps of a message: not that it is a summary.
fn as_read_back(message: &Arc<Message>) -> Arc<Message> {
    let mut message = (**message).clone();
    message.source = None;
    message.meta = None;
    Arc::new(message)
}

#[test]
fn r20_compacting_a_compacted_view_again_changes_nothing() {
    let (mut views, mut smaller) = (0u64, 0u64);
    property("r20 again", 300, |rng, size| {
        let told = conversation(rng, 2 * size);
        let policy = policy(rng);
        let (once, made) = compacted(&told, &policy)?;
        smaller += u64::from(made);
        for read_back in [false, true] {
            let known: Vec<Arc<Message>> = match read_back {
                false => once.clone(),
                true => once.iter().map(as_read_back).collect(),
            };
            let (twice, again) = compacted(&known, &policy)?;
            views += 1;
            if again || check::bytes(&twice) != check::bytes(&known) {
                return Err(format!(
                    "compacted again, as read back: {read_back}, {policy:?}"
                ));
            }
        }
        Ok(())
    });
    assert!(smaller > 0, "nothing was compacted");
    println!("campaign r20 again: views={views} smaller={smaller} changed=0");
}
