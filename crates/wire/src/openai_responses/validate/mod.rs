//! OpenAI Responses. Foundry speaks the same protocol and has more rules, marked with the service.

mod items;
mod message;
mod pairs;
mod sealed;

use throughline_model::Path;
use throughline_model::json::Value;

use items::{ItemType, MEMORY_SEARCH, Runner, Side, is_foundry_only, item_type};

use crate::validate::object_schema::{KnownObject, filled, member, text};
use crate::validate::profile::{Chain, Profile};
use crate::validate::report::Report;

/// Whose endpoint it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    OpenAi,
    Foundry,
}

const OUTPUT_ONLY: [&str; 3] = ["agent_reference", "response_id", "created_by"];

/// One element of `input`.
struct Item<'v, 'a> {
    index: usize,
    value: &'v Value<'a>,
    tag: String,
    /// Nothing for a tag that is not published.
    kind: Option<&'static ItemType>,
}

impl Item<'_, '_> {
    fn id(&self) -> Option<String> {
        filled(self.value, "id")
    }

    /// What an output and its call share.
    fn call_id(&self) -> Option<String> {
        let call = text(self.value, "call_id");
        if self.tag == "local_shell_call_output" {
            // The schema forgot the field; older writers put the call's id into `id`.
            return call.or_else(|| self.id());
        }
        call
    }

    fn side(&self) -> Side {
        match self.kind.map_or(Side::Model, |kind| kind.side) {
            Side::Tells => {
                let tells = if self.tag == "message" {
                    "role"
                } else {
                    "execution"
                };
                let ours = |word: &Value<'_>| word.is_str("assistant") || word.is_str("server");
                if self.value.get(tells).is_some_and(ours) {
                    Side::Model
                } else {
                    Side::Client
                }
            }
            side => side,
        }
    }

    /// Whether the application owes an output.
    fn waits_for_client(&self, runner: Runner) -> bool {
        let is =
            |path: &[&str], word: &str| self.value.at(path).is_some_and(|found| found.is_str(word));
        let asked = match runner {
            Runner::Client => true,
            Runner::Service => false,
            Runner::ByEnvironment => !is(&["environment", "type"], "container_reference"),
            Runner::ByExecution => !is(&["execution"], "server"),
        };
        asked && self.value.get("async").and_then(Value::as_bool) != Some(true)
    }
}

struct Checker<'c> {
    flavour: Flavour,
    profile: &'c Profile,
    stored: bool,
    chain: Chain<'c>,
    report: &'c mut Report,
}

pub(super) fn check(request: &Value<'_>, profile: &Profile, report: &mut Report) {
    check_as(Flavour::OpenAi, request, profile, report);
}

pub(crate) fn check_as(
    flavour: Flavour,
    request: &Value<'_>,
    profile: &Profile,
    report: &mut Report,
) {
    let input = Path::Root.key("input");
    let is_body = request.as_object().is_some();
    let continues = ["previous_response_id", "conversation"].map(|key| member(request, key));
    if let [Some(_), Some(_)] = continues {
        let message = "`previous_response_id` and `conversation` exclude each other; send one";
        report
            .add("S-O4", &Path::Root.key("conversation"), message)
            .about(["previous_response_id", "conversation"]);
    }
    let stored = request.get("store").and_then(Value::as_bool);
    let continues = continues.iter().any(Option::is_some);
    let given = if is_body {
        request.get("input")
    } else {
        Some(request)
    };
    let items = match given {
        Some(value) => match value.as_array() {
            Some(items) => items,
            None if is_body && value.as_str().is_some() => &[],
            None => {
                let message = "`input` must be a string or an array of items";
                report.add("S-O1", &input, message);
                return;
            }
        },
        // A stored prompt or what came before can stand for the input.
        None if continues || member(request, "prompt").is_some() => &[],
        None => {
            report.add("S-O1", &input, "`input` is missing");
            return;
        }
    };
    let mut checker = Checker {
        flavour,
        profile,
        stored: stored.unwrap_or(profile.stored),
        chain: Chain::new(is_body.then_some(continues), profile),
        report,
    };
    let items = checker.read(items);
    checker.ids(&items);
    checker.seals(&items);
    checker.pairs(&items);
    checker.order(&items);
}

impl Checker<'_> {
    /// Each item by itself; what is not an item at all is left out.
    fn read<'v, 'a>(&mut self, values: &'v [Value<'a>]) -> Vec<Item<'v, 'a>> {
        let input = Path::Root.key("input");
        let mut items = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let path = input.index(index);
            if value.as_object().is_none() {
                let message = format!("an item must be an object, not {}", value.kind());
                self.report.add("S-O1", &path, message);
                continue;
            }
            let tag = self.tag(value, &path);
            let kind = self.kind(&tag);
            if let Some(kind) = kind {
                let known = KnownObject {
                    rule: "S-O2",
                    tag: &tag,
                    object: value,
                    path: &path,
                };
                known.check(kind.fields, self.report);
            }
            if tag == "message" {
                self.message(value, &path);
            }
            if tag.ends_with("_output") {
                self.result_parts(&tag, value, &path);
            }
            if tag == "compaction_trigger" && index + 1 < values.len() {
                let message = "`compaction_trigger` must be the last item; move it to the end";
                self.report.add("O-16", &path, message).about([&tag]);
            }
            if self.flavour == Flavour::Foundry {
                for key in OUTPUT_ONLY.iter().filter(|key| value.get(key).is_some()) {
                    let message = format!("`{key}` is output only; leave it out");
                    self.report
                        .add("F-6", &path.key(key), message)
                        .about([*key]);
                }
            }
            items.push(Item {
                index,
                value,
                tag,
                kind,
            });
        }
        items
    }

    /// The item's type, given or implied; reports an unknown one.
    fn tag(&mut self, value: &Value<'_>, path: &Path<'_>) -> String {
        let given = member(value, "type");
        if let Some(tag) = given.and_then(Value::as_str) {
            let tag = tag.into_owned();
            if self.kind(&tag).is_none() {
                self.unpublished(&tag, path);
            }
            return tag;
        }
        if self.flavour == Flavour::Foundry {
            let message = "the item has no `type`; write it, on messages too";
            self.report.add("F-1", path, message);
        }
        let implied = if given.is_some() {
            None
        } else if member(value, "role").is_some() {
            Some("message")
        } else if member(value, "id").is_some() && value.members().len() <= 2 {
            Some("item_reference")
        } else {
            None
        };
        if implied.is_none() && self.flavour == Flavour::OpenAi {
            let message = "the item has no `type`; only messages and references may go without";
            self.report.add("O-12", path, message).about([""]);
        }
        implied.unwrap_or_default().to_owned()
    }

    fn kind(&self, tag: &str) -> Option<&'static ItemType> {
        match self.flavour {
            Flavour::Foundry if tag == MEMORY_SEARCH.tag => Some(&MEMORY_SEARCH),
            Flavour::Foundry | Flavour::OpenAi => item_type(tag),
        }
    }

    fn unpublished(&mut self, tag: &str, path: &Path<'_>) {
        let violation = if self.flavour == Flavour::Foundry && is_foundry_only(tag) {
            let message = format!(
                "`{tag}` comes in answers only; continue with `previous_response_id`, or send it \
                 as a function call and its output, or as text"
            );
            self.report.add("F-2", path, message)
        } else {
            let message = format!("`{tag}` is not an item type of this vendor; leave it out");
            self.report.add("O-12", path, message)
        };
        violation.about([tag]);
    }
}
