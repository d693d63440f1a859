//! Whether a step can be stored, whatever its run is like.

use crate::{CallState, Result, Step};

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
