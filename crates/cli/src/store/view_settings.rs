//! `throughline threads uncompact|pin`: settings that change what models are sent.

use std::process::ExitCode;

use throughline_compact::ViewSettings;
use throughline_model::Message;
use throughline_store::{Opened, Store, ThreadPatch};

use super::{Context, IfMissing, json_form, view};
use crate::args::{Pin, Uncompact};
use crate::failure::Failure;
use crate::output;

pub(super) async fn uncompact(
    context: &Context<'_>,
    args: &Uncompact,
) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let (_, opened) = context.find(&store, &args.name, 0).await?;
    let mut view_settings = ViewSettings::of(opened.thread.settings.as_ref());
    let undone = view_settings.undo(opened.state.compaction());
    if undone {
        keep(context, &store, &opened, &view_settings).await?;
    }
    let id = &opened.thread.id;
    say(context, &opened, "uncompacted", undone, || match undone {
        true => format!("{id} is shown whole from the next turn on"),
        false => format!("{id} is shown whole already"),
    })
}

pub(super) async fn pin(context: &Context<'_>, args: &Pin) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let (at, opened) = context.find(&store, &args.name, 0).await?;
    let branch = view::branch(context, &store, at, &opened).await?;
    let record: Vec<&Message> = branch.entries.iter().map(|entry| &entry.message).collect();
    let mut view_settings = ViewSettings::of(opened.thread.settings.as_ref());
    let (id, number) = (&opened.thread.id, args.number);
    let changed = match args.remove {
        true => view_settings.unpin(record.iter().copied(), number),
        false => view_settings.pin(record.iter().copied(), number),
    };
    if changed {
        keep(context, &store, &opened, &view_settings).await?;
    }
    let is_pinned = view_settings
        .pinned(record.iter().copied())
        .contains(&number);
    if !changed && !args.remove && !is_pinned {
        return Err(Failure::other(format!(
            "{id} has no message #{number}; 'throughline view {id} --full' shows all of them"
        )));
    }
    say(context, &opened, "changed", changed, || {
        match (changed, args.remove) {
            (true, true) => format!("#{number} of {id} may be digested again"),
            (true, false) => format!("#{number} of {id} is always shown in full"),
            (false, true) => format!("#{number} of {id} was not pinned"),
            (false, false) => format!("#{number} of {id} is pinned already"),
        }
    })
}

async fn keep(
    context: &Context<'_>,
    store: &Store,
    opened: &Opened,
    view_settings: &ViewSettings,
) -> Result<(), Failure> {
    let patch = ThreadPatch {
        settings: Some(Some(view_settings.put(opened.thread.settings.as_ref()))),
        ..ThreadPatch::default()
    };
    let kept = store.patch(&context.scope, &opened.thread.id, &patch).await;
    kept.map_err(|error| context.failure(&error))?;
    Ok(())
}

fn say(
    context: &Context<'_>,
    opened: &Opened,
    word: &str,
    changed: bool,
    line: impl FnOnce() -> String,
) -> Result<ExitCode, Failure> {
    if context.json {
        let form = json_form::object(|object| {
            object.str("thread", opened.thread.id.as_str());
            object.bool(word, changed);
        });
        output::document(&form, false)?;
    } else {
        output::line(&line())?;
    }
    Ok(ExitCode::SUCCESS)
}
