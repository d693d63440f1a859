//! Threads: their names, what a patch leaves of one, and what a repeated write finds.

use throughline_model::json::Value;

use crate::{Alias, Fork, NewThread, NodeId, Result, Thread, ThreadFilter, ThreadPatch, Version};

use super::exists;

/// An alias is free, or belongs to the thread that is to have it. Threads are named by their rows.
pub(crate) fn alias(alias: &Alias, owner: Option<i64>, own: Option<i64>) -> Result<()> {
    match owner {
        Some(owner) if Some(owner) != own => Err(exists("alias", &alias.name)),
        _ => Ok(()),
    }
}

/// Whether a thread was made like this and not changed since.
pub(crate) fn is_as(thread: &Thread, new: &NewThread) -> bool {
    let mut aliases = new.aliases.clone();
    aliases.sort();
    aliases.dedup();
    thread.aliases == aliases
        && thread.title == new.title
        && thread.meta == new.meta
        && thread.settings == new.settings
        && thread.moved_by == new.moved_by
        && thread.keep == new.keep
}

/// Whether a thread is what a fork that is sent again has made. `base` is the node where it forks;
/// `is_shared` says that the head of the thread is on a branch of another one.
pub(crate) fn is_fork(thread: &Thread, is_shared: bool, base: Option<NodeId>, fork: &Fork) -> bool {
    thread.version == Version(0)
        && is_shared == base.is_some()
        && thread.head.map(|head| head.node) == base
        && is_as(thread, &fork.thread)
}

/// A thread after a patch. A name that is added and removed at once is added.
pub(crate) fn patched(thread: Thread, patch: &ThreadPatch) -> Thread {
    let mut aliases = thread.aliases;
    aliases.retain(|alias| !patch.remove_aliases.contains(alias));
    aliases.extend(patch.add_aliases.iter().cloned());
    aliases.sort();
    aliases.dedup();
    Thread {
        aliases,
        title: patch.title.clone().unwrap_or(thread.title),
        meta: patch.meta.clone().unwrap_or(thread.meta),
        settings: patch.settings.clone().unwrap_or(thread.settings),
        moved_by: patch.moved_by.unwrap_or(thread.moved_by),
        keep: patch.keep.unwrap_or(thread.keep),
        ..thread
    }
}

/// Whether the metadata of a thread has the members that a filter asks for.
pub(crate) fn has_meta(meta: Option<&Value<'_>>, filter: &ThreadFilter) -> bool {
    filter.meta.iter().all(|(key, text)| {
        let member = meta.and_then(|meta| meta.get(key));
        member.is_some_and(|member| member.is_str(text))
    })
}
