//! Reading approvals of calls from the store, and answering them.

use throughline_store::{Answer, Approval, ApprovalFilter, ApprovalId, Decision, Result, ThreadId};

use super::RunContext;

/// The wanted ones of the approvals of a thread. The calls of a node are those of the thread that it
/// was made on, of which the thread of the run may be a fork.
pub(crate) async fn find_approvals(
    context: &RunContext,
    thread: &ThreadId,
    wanted: &[ApprovalId],
) -> Result<Vec<Approval>> {
    let home = &context.thread.home;
    let filter = ApprovalFilter {
        thread: Some(thread.clone()),
        waiting: false,
    };
    let mut found = Vec::new();
    let mut after = None;
    while found.len() < wanted.len() {
        let page = home
            .store
            .approvals(&home.scope, &filter, after, 100)
            .await?;
        let page_found = page.found.into_iter();
        found.extend(page_found.filter(|one| wanted.contains(&one.id)));
        after = match page.next {
            Some(next) => Some(next),
            None => break,
        };
    }
    Ok(found)
}

/// Store a decision in the name of the agent. The first decision on an approval stands.
pub(crate) async fn store_decision(
    context: &RunContext,
    approval: &Approval,
    decision: Decision,
    reason: Option<String>,
) -> Result<Approval> {
    let home = &context.thread.home;
    let answer = Answer {
        approval: approval.id,
        shown: approval.shown,
        decision,
        by: context.agent.name.clone(),
        reason: reason.filter(|reason| !reason.trim().is_empty()),
    };
    home.retry_until_known(|| home.store.answer(&home.scope, &answer))
        .await
}
