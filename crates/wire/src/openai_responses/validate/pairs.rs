//! Calls and their outputs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throughline_model::Path;
use throughline_model::json::Value;

use super::items::Part;
use super::{Checker, Flavour, Item};
use crate::validate::object_schema::filled;
use crate::validate::profile::Chain;

/// Clients answer the old shell in either way.
fn is_old_shell(wanted: &str, tag: &str) -> bool {
    wanted == "local_shell_call_output" && tag == "function_call_output"
}

/// The calls so far, by what they share with their outputs. An id may be used again: outputs go
/// to the oldest open call that they fit.
#[derive(Default)]
struct Calls {
    ids: BTreeSet<String>,
    open: BTreeMap<String, BTreeMap<&'static str, VecDeque<usize>>>,
    done: BTreeSet<usize>,
}

impl Calls {
    fn open(&mut self, id: String, wanted: &'static str, place: usize) {
        self.ids.insert(id.clone());
        let kinds = self.open.entry(id).or_default();
        kinds.entry(wanted).or_default().push_back(place);
    }

    /// The call that an output closes, and the tag that it wanted.
    fn answer(&mut self, id: &str, tag: &str) -> Option<(usize, &'static str)> {
        let kinds = self.open.get_mut(id)?;
        let fits = |wanted: &str| wanted == tag || is_old_shell(wanted, tag);
        let open = || kinds.iter().filter(|(_, places)| !places.is_empty());
        let best = open()
            .find(|(wanted, _)| fits(wanted))
            .or_else(|| open().next());
        let wanted = *best?.0;
        let place = kinds.get_mut(wanted)?.pop_front()?;
        self.done.insert(place);
        Some((place, wanted))
    }
}

impl Checker<'_> {
    pub(super) fn pairs(&mut self, items: &[Item<'_, '_>]) {
        let input = Path::Root.key("input");
        // With stored items a reference may stand for either half of a pair.
        let references = self.stored && items.iter().any(|item| item.tag == "item_reference");
        let mut calls = Calls::default();
        let mut behind = BTreeSet::new();
        for (place, item) in items.iter().enumerate() {
            let (Some(kind), Some(id)) = (item.kind, item.call_id()) else {
                continue;
            };
            match kind.part {
                Part::Alone => {}
                Part::Call(wanted, _) => calls.open(id, wanted, place),
                Part::Output => {
                    let path = input.index(item.index);
                    if let Some((call, wanted)) = calls.answer(&id, &item.tag) {
                        self.answer((&items[call], wanted), item, &path);
                        continue;
                    }
                    let place = path.key("call_id");
                    let again = behind.contains(&id) || self.chain.has_answer(&id);
                    if again || calls.ids.contains(&id) {
                        let message = "the call has its output already; send one output per call";
                        self.report.add("O-3", &place, message).about([id]);
                    } else if self.chain.may_hold(&id) {
                        behind.insert(id);
                    } else if !references {
                        let message = "no call with this `call_id` comes before the output; send \
                                       the call too, or the result as text";
                        self.report.add("O-2", &place, message).about([id]);
                    }
                }
            }
        }
        for (place, item) in items.iter().enumerate() {
            let (Some(kind), Some(id)) = (item.kind, item.call_id()) else {
                continue;
            };
            let Part::Call(_, runner) = kind.part else {
                continue;
            };
            let path = input.index(item.index);
            let done = calls.done.contains(&place);
            if done && self.flavour == Flavour::Foundry && self.is_behind(&id) {
                let message = "the service has this call; while chaining send only what is new";
                self.report.add("F-4", &path, message).about([&id]);
            }
            if !done && item.waits_for_client(runner) && !references {
                let message = "the call has no output; answer it, if need be with \"aborted\"";
                self.report.add("O-1", &path, message).about([&id]);
            }
        }
        for id in self.chain.open() {
            if !behind.contains(id) && !calls.ids.contains(id) {
                let message = "a call of the response before has no output; answer it here";
                self.report.add("O-1", &input, message).about([id]);
            }
        }
    }

    /// Whether the chain is known to hold the call.
    fn is_behind(&self, id: &str) -> bool {
        match self.chain {
            Chain::None | Chain::Unknown => false,
            Chain::Known(_) => self.chain.may_hold(id),
        }
    }

    fn answer(
        &mut self,
        (call, wanted): (&Item<'_, '_>, &str),
        output: &Item<'_, '_>,
        path: &Path<'_>,
    ) {
        let tag = output.tag.as_str();
        if wanted != tag && !is_old_shell(wanted, tag) {
            let message = format!("`{}` is answered by `{wanted}`, not `{tag}`", call.tag);
            self.report
                .add("O-3", &path.key("type"), message)
                .about(output.call_id());
        } else if tag == "computer_call_output" {
            let checks = |item: &Item<'_, '_>, key: &str| -> BTreeSet<String> {
                let list = item.value.get(key).and_then(Value::as_array);
                let ids = list.unwrap_or_default().iter();
                ids.filter_map(|check| filled(check, "id")).collect()
            };
            let asked = checks(call, "pending_safety_checks");
            let echoed = checks(output, "acknowledged_safety_checks");
            let missing: Vec<String> = asked.difference(&echoed).cloned().collect();
            if !missing.is_empty() {
                let message = "safety checks of the call are not echoed; acknowledge them here";
                self.report
                    .add("O-14", &path.key("acknowledged_safety_checks"), message)
                    .about(missing);
            }
        }
    }
}
