//! `throughline threads hand-over`.

use std::error::Error;
use std::process::ExitCode;

use throughline::agent::{HandOverError, HandedOver, ReadBack, ReadBackOutcome, ServiceClients};
use throughline::thread::{Owner, OwnerError};
use throughline_server::Upstreams;
use throughline_server::api::native::forms;
use throughline_store::{At, RunId, RunState};

use super::{Context, IfMissing, json_form, text};
use crate::args;
use crate::failure::Failure;
use crate::output;

/// What our store is called where an upstream could be named.
const LOCAL: &str = "local";

pub(super) async fn hand_over(
    context: &Context<'_>,
    args: &args::HandOver,
) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let opened = context.find_whole(&store, &args.name, "hand over").await?;
    let upstreams = context.upstreams()?;
    let to = target(&upstreams, &args.to)?;
    // Runs of a server take no lease, so the thread itself does not know them.
    let at_work = [RunState::Running, RunState::Interrupted, RunState::Parked];
    let id = opened.thread.id;
    context.check_no_run(&store, &id, &at_work).await?;
    let thread = context.threads(&store).open(id).await;
    let thread = thread.map_err(|error| context.failure(&error))?;
    let clients = match args.no_read_back {
        true => ServiceClients::new(),
        false => upstreams.service_clients(),
    };
    let handed = clients.hand_over(&thread, to).await;
    let handed = handed.map_err(|error| failure(context, &error))?;
    let at = At::Thread(thread.id().clone());
    let opened = store.open(&context.scope, &at, 0).await;
    let opened = opened.map_err(|error| context.failure(&error))?;
    let head = opened.thread.head.map(|head| head.node.run);
    match context.json {
        true => {
            let form = json_form::object(|object| {
                object.str("thread", thread.id().as_str());
                forms::handed_over(object, &handed, head);
            });
            output::document(&form, false)?;
        }
        false => output::line(&words(thread.id().as_str(), &handed, head))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The owner that a name stands for.
fn target(upstreams: &Upstreams, name: &str) -> Result<Owner, Failure> {
    let named = upstreams.named(name).map(|upstream| upstream.owner());
    match (name, named) {
        (LOCAL, Ok(Owner::Services(_))) => Err(Failure::usage(
            "\"local\" is our store, and the configuration has an upstream of that name which keeps \
             conversations; give the upstream another name",
        )),
        (LOCAL, _) => Ok(Owner::Local),
        (_, Ok(owner)) => Ok(owner),
        (_, Err(error)) => Err(Failure::usage(format!(
            "{} (name an upstream of the configuration, or local)",
            error.message
        ))),
    }
}

fn failure(context: &Context<'_>, error: &HandOverError) -> Failure {
    match error {
        HandOverError::Owner(OwnerError::Store(error)) | HandOverError::Store(error) => {
            context.failure(error)
        }
        HandOverError::Service { upstream, source } => {
            let mut why = source.to_string();
            let mut cause = source.source();
            while let Some(error) = cause {
                why.push_str(&format!(": {error}"));
                cause = error.source();
            }
            Failure::other(format!(
                "{upstream} could not be asked for what it has of this thread: {why}; try again, or \
                 hand over what the record has, with --no-read-back"
            ))
        }
        error => Failure::other(error.to_string()),
    }
}

fn words(thread: &str, handed: &HandedOver, head: Option<RunId>) -> String {
    let mut lines = vec![format!(
        "handed over thread {thread}: kept by {}, before by {}",
        text::owner(&handed.to),
        text::owner(&handed.from)
    )];
    lines.extend(handed.read_back.iter().map(read_back));
    if let (true, Some(run)) = (forms::has_more(handed), head) {
        lines.push(format!(
            "a chain of responses sees them from previous_response_id resp_{} on",
            run.to_hex()
        ));
    }
    lines.join("\n")
}

fn read_back(one: &ReadBack) -> String {
    let outcome = match one.outcome {
        ReadBackOutcome::Same => "what the record has".to_owned(),
        ReadBackOutcome::Added(added) => format!(
            "{} more than the record, which has them now",
            text::counted(added as u64, "message")
        ),
        ReadBackOutcome::Differs => "another conversation; the record is the history".to_owned(),
        ReadBackOutcome::Absent => "nothing any more; the record is the history".to_owned(),
        ReadBackOutcome::NotAsked => "was not asked; the record is the history".to_owned(),
    };
    let (upstream, id) = (text::plain(&one.upstream), text::plain(&one.id));
    match one.outcome {
        ReadBackOutcome::NotAsked => format!("{upstream}, which has {id}, {outcome}"),
        ReadBackOutcome::Same
        | ReadBackOutcome::Added(_)
        | ReadBackOutcome::Differs
        | ReadBackOutcome::Absent => format!("{upstream} has under {id}: {outcome}"),
    }
}
