//! `throughline approvals list|answer`.

use std::process::ExitCode;

use throughline_store::{
    Answer, Approval, ApprovalFilter, ApprovalId, ApprovalState, Decision, Error, Store,
    Unanswerable,
};

use super::approval_call::{ApprovalCall, Length, hex};
use super::{Context, IfMissing, approval_call, json_form};
use crate::args::{ApprovalsAnswer, ApprovalsList};
use crate::failure::Failure;
use crate::output;
use crate::time;

/// Approvals that are read at once while one is looked for.
const PAGE: usize = 256;

pub(super) async fn list(context: &Context<'_>, args: &ApprovalsList) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let filter = ApprovalFilter {
        thread: args.thread.clone(),
        waiting: !args.all,
    };
    let listing = store
        .approvals(&context.scope, &filter, args.after, args.limit)
        .await
        .map_err(|error| context.failure(&error))?;
    if context.json {
        let form = json_form::listing("approvals", &listing, approval_call::form);
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    for approval in &listing.found {
        output::line(&approval_call::words(approval, Length::Short))?;
    }
    if let Some(next) = listing.next {
        output::line(&format!("… more: --after {next}"))?;
    } else if listing.found.is_empty() {
        output::line(match args.all {
            true => "no approvals",
            false => "nothing waits for an answer",
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn answer(
    context: &Context<'_>,
    args: &ApprovalsAnswer,
) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let before = find(context, &store, args.approval).await?;
    let decision = args.decision.decision();
    check_reviewed_call(&before, args, decision)?;
    let answer = Answer {
        approval: before.id,
        // The call of this record, so that an answer never counts for other arguments.
        shown: before.shown,
        decision,
        by: args.by.clone().unwrap_or_else(user),
        reason: args
            .reason
            .clone()
            .filter(|reason| !reason.trim().is_empty()),
    };
    let after = match store.answer(&context.scope, &answer).await {
        Ok(after) => after,
        Err(error) => return Err(refused(context, &store, &before, &error).await),
    };
    let repeated = before.answered.is_some();
    if context.json {
        let form = json_form::object(|object| {
            approval_call::form(object.key("approval"), &after);
            object.bool("repeated", repeated);
        });
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&approval_call::words(&after, Length::Whole))?;
    output::line(&consequence(&after, decision, repeated))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuse an answer if the call is not the one that was reviewed.
fn check_reviewed_call(
    record: &Approval,
    args: &ApprovalsAnswer,
    decision: Decision,
) -> Result<(), Failure> {
    let id = record.id;
    match args.digest {
        Some(digest) if digest != record.shown => Err(Failure::other(format!(
            "{id} was asked for other arguments: their digest is {}, not {}; look at it again \
             with 'throughline approvals list'",
            hex(&record.shown),
            hex(&digest)
        ))),
        // A caller that gives the digest has reviewed the call in another place.
        Some(_) => Ok(()),
        None if decision == Decision::Approved && ApprovalCall::of(record).contradicts(record) => {
            Err(Failure::other(format!(
                "{id} shows other arguments than it was asked for; deny it, or give --digest {} \
                 if you know what that stands for",
                hex(&record.shown)
            )))
        }
        None => Ok(()),
    }
}

/// The record of an approval; a store lists them and has no other way to one.
async fn find(context: &Context<'_>, store: &Store, id: ApprovalId) -> Result<Approval, Failure> {
    let filter = ApprovalFilter::default();
    let mut after = None;
    loop {
        let listing = store
            .approvals(&context.scope, &filter, after, PAGE)
            .await
            .map_err(|error| context.failure(&error))?;
        let found = listing.found.into_iter().find(|approval| approval.id == id);
        if let Some(found) = found {
            return Ok(found);
        }
        after = listing.next;
        if after.is_none() {
            let missing = Error::NotFound {
                what: "approval",
                id: id.to_string(),
            };
            return Err(context.failure(&missing));
        }
    }
}

/// The message for an answer that the store refused.
async fn refused(
    context: &Context<'_>,
    store: &Store,
    before: &Approval,
    error: &Error,
) -> Failure {
    let Error::NotAnswerable { approval: id, why } = error else {
        return context.failure(error);
    };
    // Another process may have decided since it was read.
    let now = match find(context, store, *id).await {
        Ok(now) => now,
        Err(failure) => return failure,
    };
    let run = now.call.run;
    Failure::other(match why {
        Unanswerable::Answered => format!(
            "{id} was answered, {}; the first answer stands, 'throughline runs show {run}' \
             shows what came of it",
            approval_call::answered(&now, Length::Short)
                .unwrap_or_else(|| format!("it is {}", now.state.as_str()))
        ),
        Unanswerable::Expired => format!(
            "{id} expired {}; the call is closed without running when {run} goes on \
             ('throughline runs resume {run}', or agent.resume in the application)",
            now.expires
                .or(before.expires)
                .map_or_else(|| "in the meantime".to_owned(), time::format_utc)
        ),
        Unanswerable::Withdrawn => format!(
            "{id} was withdrawn: {run} ended without it and the call never runs; \
             'throughline runs show {run}' shows how, a new run asks anew"
        ),
        Unanswerable::OtherArguments => format!(
            "{id} was asked for other arguments; look at it again with 'throughline approvals \
             list'"
        ),
    })
}

/// The consequence of an answer that is recorded.
fn consequence(approval: &Approval, decision: Decision, repeated: bool) -> String {
    let run = approval.call.run;
    let goes_on = format!("'throughline runs resume {run}', or agent.resume in the application");
    let vendor = ApprovalCall::of(approval).vendor;
    let recorded = match repeated {
        true => "this answer was recorded before",
        false => "recorded",
    };
    match (approval.state, decision) {
        (ApprovalState::Used, _) => format!("{recorded}; the call was dispatched"),
        (_, Decision::Approved) if vendor => format!(
            "{recorded}; nothing is sent yet: the vendor gets the answer when its run goes on \
             ({goes_on})"
        ),
        (_, Decision::Approved) => {
            format!("{recorded}; nothing ran yet: the tool runs when its run goes on ({goes_on})")
        }
        (_, Decision::Denied) => format!(
            "{recorded}; the tool does not run, and the model is told when its run goes on \
             ({goes_on})"
        ),
    }
}

/// The name of the user of this machine.
pub(super) fn user() -> String {
    ["USER", "USERNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.trim().is_empty())
        .unwrap_or_else(|| "cli".to_owned())
}
