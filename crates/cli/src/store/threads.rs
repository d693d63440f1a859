//! `throughline threads list|fork|delete`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use throughline::thread::Deleted;
use throughline_server::api::native::forms;
use throughline_store::{
    Clock, Fork, Millis, NewThread, Purged, RunState, Store, SystemClock, Thread, ThreadFilter,
};

use super::{Context, IfMissing, json_form, text};
use crate::args;
use crate::failure::Failure;
use crate::output;
use crate::time::Moment;

/// Rows that are swept at once.
const SWEEP: usize = 1_000;

pub(super) async fn list(
    context: &Context<'_>,
    args: &args::ThreadsList,
) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let filter = filter(args, SystemClock.now());
    let listing = store
        .threads(&context.scope, &filter, args.after, args.limit)
        .await
        .map_err(|error| context.failure(&error))?;
    if context.json {
        let form = json_form::listing("threads", &listing, json_form::thread);
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    for thread in &listing.found {
        output::line(&text::thread(thread))?;
    }
    if let Some(next) = listing.next {
        output::line(&format!("… more: --after {next}"))?;
    } else if listing.found.is_empty() {
        output::line("no threads")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Which threads the flags ask for.
fn filter(args: &args::ThreadsList, now: Millis) -> ThreadFilter {
    let at = |moment: Option<Moment>| moment.map(|moment| moment.at(now));
    ThreadFilter {
        alias_kind: args.alias_kind.clone(),
        meta: args.meta.clone(),
        touched_from: at(args.since),
        touched_before: at(args.before),
        created_from: at(args.created_since),
        created_before: at(args.created_before),
        title: args.title.clone(),
        agent: args.agent.clone(),
        model: args.model.clone(),
        states: args.state.clone(),
    }
}

pub(super) async fn fork(context: &Context<'_>, args: &args::Fork) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let (from, opened) = context.find(&store, &args.name, 0).await?;
    let id = args.id.clone().unwrap_or_else(|| store.ids().thread());
    let fork = Fork {
        from,
        thread: NewThread {
            title: opened.thread.title.clone(),
            settings: opened.thread.settings.clone(),
            ..NewThread::new(id)
        },
    };
    let thread = store
        .fork(&context.scope, &fork)
        .await
        .map_err(|error| context.failure(&error))?;
    if context.json {
        let form = json_form::object(|object| {
            object.str("from", opened.thread.id.as_str());
            json_form::thread(object.key("thread"), &thread);
        });
        output::document(&form, false)?;
    } else {
        let shared = thread.head.map_or(0, |head| head.last);
        output::line(&format!(
            "forked {} to {}: {} in common",
            opened.thread.id,
            thread.id,
            text::counted(shared, "item")
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn delete(
    context: &Context<'_>,
    args: &args::RemoveThread,
) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let thread = context
        .find_whole(&store, &args.name, "delete")
        .await?
        .thread;
    let items = thread.head.map_or(0, |head| head.last);
    if !args.yes && !confirmed(&thread, items)? {
        output::note("nothing was deleted");
        return Ok(ExitCode::from(1));
    }
    let threads = context.threads(&store);
    let deleted = match args.at_vendors {
        false => threads.delete(&thread.id).await,
        true => {
            let clients = context.upstreams()?.service_clients();
            // A vendor would get a copy that is not listed.
            let at_work = [RunState::Running];
            context.check_no_run(&store, &thread.id, &at_work).await?;
            clients.delete(&threads, &thread.id).await
        }
    };
    let deleted = deleted.map_err(|error| context.failure(&error))?;
    let purged = match deleted.is_deleted {
        true => sweep(context, &store).await?,
        false => Purged::default(),
    };
    match context.json {
        true => output::document(&receipt(&thread, &deleted, &purged), false)?,
        false => {
            output::line(&match deleted.is_deleted {
                true => format!(
                    "deleted thread {} with {}; {} erased, what other threads share stays",
                    thread.id,
                    text::counted(items, "item"),
                    purged.items
                ),
                false => format!(
                    "thread {} is not deleted, because a vendor did not delete its copy; try again, \
                     or leave --at-vendors out",
                    thread.id
                ),
            })?;
            let mut copies = deleted.vendor_copies.iter();
            copies.try_for_each(|copy| output::line(&text::vendor_copy(copy)))?;
        }
    }
    Ok(match deleted.is_deleted {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// `{"deleted","items_erased","vendor_copies"}`; `deleted` is null if a vendor failed.
fn receipt(thread: &Thread, deleted: &Deleted, purged: &Purged) -> String {
    json_form::object(|object| {
        match deleted.is_deleted {
            true => json_form::thread(object.key("deleted"), thread),
            false => object.key("deleted").push_str("null"),
        }
        object.number("items_erased", purged.items);
        forms::vendor_copies(object.key("vendor_copies"), &deleted.vendor_copies);
    })
}

/// Where only the command line is used, no server sweeps expired threads.
async fn sweep(context: &Context<'_>, store: &Store) -> Result<Purged, Failure> {
    let mut swept = Purged::default();
    loop {
        let purged = store
            .purge(SWEEP)
            .await
            .map_err(|error| context.failure(&error))?;
        swept.threads += purged.threads;
        swept.items += purged.items;
        if !purged.more {
            return Ok(swept);
        }
    }
}

fn confirmed(thread: &Thread, items: u64) -> Result<bool, Failure> {
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(Failure::usage(format!(
            "deleting thread {} cannot be undone; say --yes to do it",
            thread.id
        )));
    }
    let items = text::counted(items, "item");
    let _ = write!(stderr, "delete thread {} with {items}? [y/N] ", thread.id);
    let _ = stderr.flush();
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::unreadable(None, &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
