//! Threads: their names, what a patch leaves of one, and what a repeated write finds.

use throughline_model::json::Value;

use crate::{
    Alias, Fork, NewThread, NodeId, Result, RunState, Thread, ThreadFilter, ThreadPatch, Version,
};

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

/// Whether the title of a thread contains the text that a filter asks for.
pub(crate) fn has_title(title: Option<&str>, filter: &ThreadFilter) -> bool {
    filter.title.as_ref().is_none_or(|text| {
        title.is_some_and(|title| title.to_lowercase().contains(&text.to_lowercase()))
    })
}

/// Whether the newest run of a thread is in a state that a filter asks for.
pub(crate) fn has_state(newest: Option<RunState>, filter: &ThreadFilter) -> bool {
    filter.states.is_empty() || newest.is_some_and(|state| filter.states.contains(&state))
}

/// How many nodes a listing looks at from the head backwards for one of a turn: items that were added
/// by hand come after turns, and a thread may have nothing else.
pub(crate) const APPENDS: u32 = 64;

/// What the request of a turn is listed under, see [`Begin::request`](crate::Begin::request).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Listed {
    agent: Option<String>,
    model: Option<String>,
}

impl Listed {
    pub(crate) fn of(request: &Value<'_>) -> Self {
        let listed = request.get("listed");
        let text = |key| Some(listed?.get(key)?.as_str()?.into_owned());
        Self {
            agent: text("agent"),
            model: text("model"),
        }
    }

    /// Whether it is of the agent and the model that a filter asks for.
    pub(crate) fn fits(&self, filter: &ThreadFilter) -> bool {
        let is_model = |wanted: &String| {
            let known = self.model.as_deref();
            let bare = known
                .and_then(|model| model.split_once('/'))
                .map(|(_, it)| it);
            known == Some(wanted) || bare == Some(wanted)
        };
        let agent = filter.agent.as_ref();
        agent.is_none_or(|wanted| self.agent.as_ref() == Some(wanted))
            && filter.model.as_ref().is_none_or(is_model)
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::json;

    use super::{Listed, ThreadFilter, has_title};

    #[test]
    fn titles_are_compared_without_the_case_of_their_letters() {
        let filter = |text: &str| ThreadFilter {
            title: Some(text.to_owned()),
            ..ThreadFilter::default()
        };
        for (title, text, found) in [
            (Some("The Harbour Master"), "harbour", true),
            (Some("ÜBER DEICHE"), "über", true),
            (Some("100%_sure"), "%_", true),
            (Some("The Harbour Master"), "harbours", false),
            (None, "harbour", false),
            (None, "", false),
        ] {
            assert_eq!(has_title(title, &filter(text)), found, "{title:?} {text}");
        }
        assert!(has_title(None, &ThreadFilter::default()));
    }

    #[test]
    fn a_model_is_found_with_its_upstream_and_without() {
        let listed = |text: &str| Listed::of(&json::parse(text).unwrap());
        let known = listed(r#"{"listed":{"agent":"desk","model":"router/maker/large"}}"#);
        for (agent, model, found) in [
            (None, None, true),
            (Some("desk"), None, true),
            (None, Some("router/maker/large"), true),
            (None, Some("maker/large"), true),
            (None, Some("large"), false),
            (Some("desk"), Some("other"), false),
            (Some("other"), Some("maker/large"), false),
        ] {
            let filter = ThreadFilter {
                agent: agent.map(str::to_owned),
                model: model.map(str::to_owned),
                ..ThreadFilter::default()
            };
            assert_eq!(known.fits(&filter), found, "{agent:?} {model:?}");
        }
        for odd in [
            r#"{}"#,
            r#"{"listed":7}"#,
            r#"{"listed":{"model":["m"]}}"#,
            "[]",
        ] {
            assert_eq!(listed(odd), Listed::default(), "{odd}");
        }
    }
}
