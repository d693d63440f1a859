//! Whether a step can be stored, whatever its run is like, and whether it is there already.

use crate::digest::Digest;
use crate::{CallState, NewItem, Result, Step};

use super::invalid;

/// Calls start in a state in which calls can start, and each approval is for one call of the step
/// that waits for it.
pub(crate) fn check(step: &Step) -> Result<()> {
    for call in &step.calls {
        match call.state {
            CallState::Planned | CallState::Intent | CallState::Approval | CallState::Client => {}
            CallState::Done | CallState::Taken => {
                let why = format!("it cannot start as {}", call.state.as_str());
                return Err(invalid("a planned call", why));
            }
        }
    }
    for (place, approval) in step.approvals.iter().enumerate() {
        let call = step.calls.get(approval.position as usize);
        let Some(call) = call.filter(|_| approval.step == step.no) else {
            let why = format!("{} names a call that the step does not make", approval.id);
            return Err(invalid("an approval", why));
        };
        if call.state != CallState::Approval {
            let why = format!("{} names a call that does not wait for it", approval.id);
            return Err(invalid("an approval", why));
        }
        let mut earlier = step.approvals[..place].iter();
        if earlier.any(|one| one.position == approval.position || one.id == approval.id) {
            return Err(invalid("an approval", "its call has another one"));
        }
    }
    Ok(())
}

/// A digest of everything in a step, to recognise it when it is sent again.
pub(crate) fn content(step: &Step) -> Digest {
    let mut hasher = blake3::Hasher::new();
    let mut text = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for item in &step.items {
        match item {
            NewItem::Content(said) => {
                text(&[1, said.kind.code(), said.source]);
                // Where the count was hashed, which the body decides: steps that were stored before
                // items were counted stay what they are.
                text(&0u32.to_le_bytes());
                text(&said.body);
            }
            NewItem::Repeat(of) => {
                text(&[2]);
                text(of.run.as_bytes());
                text(&of.no.to_le_bytes());
            }
        }
    }
    for call in &step.calls {
        text(&[3, call.effect.code(), call.state.code()]);
        text(call.call.as_bytes());
        text(call.tool.as_bytes());
    }
    for approval in &step.approvals {
        text(&[4]);
        text(approval.id.as_bytes());
        text(&approval.position.to_le_bytes());
        text(&approval.shown);
    }
    if let Some(note) = &step.note {
        text(note.get().as_bytes());
    }
    if let Some(node) = &step.node {
        text(&[5]);
        if let Some(state) = &node.state {
            text(state.to_json().as_bytes());
        }
    }
    // Nothing if there are none: steps of earlier versions stay what they are.
    for no in &step.dequeue {
        text(&[6]);
        text(&no.to_le_bytes());
    }
    let mut digest = Digest::default();
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}
