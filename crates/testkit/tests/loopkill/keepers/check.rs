//! Compares our record with the copies of the other keepers, and model calls with steps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use serde_json::value::RawValue;
use throughline_model::{Message, Role};
use throughline_store::{At, Error, Journal, Opened, RunState, Store, TenantScope, ThreadId};
use throughline_testkit::loopkill::{Code, Keeping, brackets, dateless, is_whole};
use throughline_testkit::record::block_on;

use super::items::{Chain, Item, difference, number, of_message};
use crate::loopkill::line::{End, Line, open};
use crate::loopkill::thread::Standing;

/// What became of the model calls that storing services made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallCounts {
    /// All of them.
    pub(super) made: u64,
    /// Those whose answer is part of a conversation.
    pub(super) kept: u64,
    /// Those of processes that died before the journal had their handle.
    pub(super) unasked: u64,
    /// Those of turns that were cancelled or closed meanwhile.
    pub(super) cut: u64,
    /// Those that another service was to continue.
    pub(super) elsewhere: u64,
}

/// A thread, as our store has it.
struct Kept {
    opened: Opened,
    journal: Option<Journal>,
    /// The history, and behind it what the journal of an unsettled run has.
    whole: Vec<Message>,
    /// How many of the messages are history.
    published: usize,
}

impl Kept {
    /// Reads a thread; none if it was never stored.
    fn read(store: &Store, thread: &str) -> Result<Option<Self>, String> {
        let said = |error: Error| error.to_string();
        let scope = TenantScope::local();
        let at = At::Thread(ThreadId::new(thread).map_err(|error| error.to_string())?);
        let mut opened = match block_on(store.open(&scope, &at, usize::MAX)) {
            Ok(opened) => opened,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(said(error)),
        };
        let entries = std::mem::take(&mut opened.entries);
        let mut whole: Vec<Message> = entries.into_iter().map(|one| one.message).collect();
        let published = whole.len();
        let journal = match &opened.unsettled {
            Some(run) => Some(block_on(store.journal(&scope, run.id)).map_err(said)?),
            None => None,
        };
        for entry in journal.iter().flat_map(|journal| &journal.entries) {
            if !whole.iter().any(|one| one.id == entry.message.id) {
                whole.push(entry.message.clone());
            }
        }
        Ok(Some(Self {
            opened,
            journal,
            whole,
            published,
        }))
    }

    /// The turn of its unsettled run.
    fn turn(&self) -> Result<Option<Code>, String> {
        let entries = self.journal.iter().flat_map(|journal| &journal.entries);
        let texts: Vec<String> = entries.map(|entry| entry.message.to_json()).collect();
        let texts = texts.join("\n");
        brackets(&texts, "turn").last().map(str::parse).transpose()
    }

    /// The items of its first messages.
    fn items(&self, messages: usize) -> Vec<Item> {
        self.whole[..messages].iter().flat_map(of_message).collect()
    }

    /// How far a service has been sent the conversation, as the state says: a number of messages.
    fn place(&self, service: &str) -> Result<usize, String> {
        let key = format!("throughline.has:{service}:");
        let place = self.opened.state.provider(&key);
        let place = place.ok_or("it is not known how far the service was sent it")?;
        let id: String = serde_json::from_str(place.get()).map_err(|error| error.to_string())?;
        let found = self.whole.iter().position(|one| {
            let own = one.id.as_ref();
            own.is_some_and(|own| own.as_str() == id)
        });
        let found = found.ok_or_else(|| format!("the service has {id}, which is not there"))?;
        Ok(found + 1)
    }
}

/// With parity, a history has no answer of which only a part came.
fn check_whole_answers(history: &[Item]) -> Result<(), String> {
    let mut texts = history.iter().filter_map(|item| match item {
        Item::Model(text) => Some(text),
        Item::User(_) | Item::Call(..) | Item::Result(_) => None,
    });
    match texts.find(|text| !is_whole(text)) {
        Some(text) => Err(format!("the history has a part of an answer: {text:?}")),
        None => Ok(()),
    }
}

impl Line {
    fn chain(&mut self, service: &str, id: &str) -> Result<Chain, String> {
        let text = self
            .servers
            .ask("services", &format!("chain {service} {id}"))?;
        Chain::parse(&text).map_err(|error| format!("{id} of {service}: {error}"))
    }

    /// The messages that the application's store has, without the dates of results.
    fn on_shelf(&mut self, thread: &str) -> Result<Vec<String>, String> {
        let text = self.servers.ask("messages", &format!("kept {thread}"))?;
        let list: Vec<Box<RawValue>> =
            serde_json::from_str(&text).map_err(|error| format!("{error} in {text}"))?;
        Ok(list.iter().map(|one| dateless(one.get())).collect())
    }

    /// Compares all keepers after the end of a process.
    pub(super) fn check_keepers(&mut self, end: End) -> Result<(), String> {
        let store = open(&self.url)?;
        for name in self.names() {
            let Some(kept) = Kept::read(&store, &name)? else {
                continue;
            };
            let of = |error: String| format!("{name}: {error}");
            if Keeping::of(&name).is_external() {
                self.check_shelf(&name, &kept).map_err(of)?;
            }
            if !Keeping::of(&name).services().is_empty() {
                self.check_services(&name, &kept).map_err(of)?;
                self.check_handle(&name, &kept, end).map_err(of)?;
            }
        }
        block_on(store.close()).map_err(|error| error.to_string())
    }

    /// The application's store has nothing that we do not have, and everything that was acknowledged.
    fn check_shelf(&mut self, name: &str, kept: &Kept) -> Result<(), String> {
        let shelf = self.on_shelf(name)?;
        let ours: Vec<String> = kept
            .whole
            .iter()
            .map(|one| dateless(&one.to_json()))
            .collect();
        if !ours.starts_with(&shelf) {
            let same = shelf.iter().zip(&ours).take_while(|(a, b)| a == b).count();
            return Err(format!(
                "the application's store has {} messages and we have {}; the first {same} are equal, then there is\n{:?}\nand\n{:?}",
                shelf.len(),
                ours.len(),
                shelf.get(same),
                ours.get(same)
            ));
        }
        self.ledger.check_acknowledged(name, &shelf)
    }

    /// Each service has what the state says, once and in order.
    fn check_services(&mut self, name: &str, kept: &Kept) -> Result<(), String> {
        let keeping = Keeping::of(name);
        for service in keeping.services() {
            let Some(id) = kept.opened.state.service(service, "") else {
                continue;
            };
            let chain = self.chain(service, id)?;
            let place = kept
                .place(service)
                .map_err(|error| format!("{service}: {error}"))?;
            let ours = kept.items(place);
            if chain.items != ours {
                let difference = difference(&chain.items, &ours);
                return Err(format!("what {service} has is not ours: {difference}"));
            }
            if keeping.parity && keeping.services().len() == 1 && kept.journal.is_none() {
                self.check_parity(&kept.whole[place..])?;
            }
        }
        if keeping.parity {
            check_whole_answers(&kept.items(kept.published))?;
        }
        self.check_last_step(kept)
    }

    /// With parity, nothing follows what the service has. A known exception: what a run began with
    /// stays if the run is closed or cancelled after its process died in the first model call. The
    /// model's answer does not.
    fn check_parity(&self, more: &[Message]) -> Result<(), String> {
        let texts: Vec<String> = more.iter().map(Message::to_json).collect();
        let texts = texts.join("\n");
        let codes: Vec<Code> = brackets(&texts, "turn")
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let excused = more.iter().all(|one| one.role != Role::Assistant)
            && codes.iter().all(|code| self.keepers.stopped.contains(code));
        match excused {
            true => Ok(()),
            false => Err(format!(
                "the history has what the service does not have: {texts}"
            )),
        }
    }

    /// The id in the newest step is that of a conversation with everything up to the step.
    fn check_last_step(&mut self, kept: &Kept) -> Result<(), String> {
        let Some(journal) = &kept.journal else {
            return Ok(());
        };
        let Some(step) = journal.steps.last() else {
            return Ok(());
        };
        let note = step.note.as_ref().map_or("{}", |note| note.get());
        let note: Value = serde_json::from_str(note).map_err(|error| error.to_string())?;
        let (Some(service), Some(id)) = (note["upstream"].as_str(), note["service"].as_str())
        else {
            return Ok(());
        };
        let chain = self.chain(service, id)?;
        let after = step.first + step.items;
        let later = journal.entries.iter().filter(|one| one.at.no >= after);
        let later: BTreeSet<_> = later.map(|one| one.message.id.clone()).collect();
        let until = kept.whole.iter().position(|one| later.contains(&one.id));
        let ours = kept.items(until.unwrap_or(kept.whole.len()));
        if chain.items != ours {
            let difference = difference(&chain.items, &ours);
            return Err(format!(
                "what {service} has after a step is not ours: {difference}"
            ));
        }
        Ok(())
    }

    /// The journal has the handle of a call before a part of its answer is shown; and after a death,
    /// the service can be asked for the answer if the journal has it.
    fn check_handle(&mut self, name: &str, kept: &Kept, end: End) -> Result<(), String> {
        let Some(journal) = &kept.journal else {
            return Ok(());
        };
        let steps = journal.steps.len() as u32;
        let remote = journal.remote.as_ref().filter(|one| one.step == steps);
        let shown = self.keepers.shown.get(name);
        let is_shown =
            shown.is_some_and(|(run, step)| *run == journal.run.id.to_string() && *step == steps);
        if is_shown && remote.is_none() {
            return Err(format!(
                "a part of the answer of step {steps} of {} was shown, and the journal has no handle of it",
                journal.run.id
            ));
        }
        let works = matches!(journal.run.state, RunState::Running | RunState::Interrupted);
        let Some(code) = kept.turn()?.filter(|_| end == End::Killed && works) else {
            return Ok(());
        };
        let handle = remote.map(|one| one.handle.get()).unwrap_or_default();
        let value: Value = serde_json::from_str(handle).unwrap_or_default();
        let service = value["upstream"].as_str();
        self.keepers.died(&code, service.zip(number(handle)))
    }

    /// Lets each thread take one more turn with each of its services, after which every keeper must
    /// have all of it. Returns the number of turns.
    pub(super) fn check_at_end(
        &mut self,
        mut turn: impl FnMut(&mut Self, usize, Option<&str>) -> Result<(), String>,
    ) -> Result<u64, String> {
        let mut turns = 0;
        for place in 0..self.threads.len() {
            let name = self.threads[place].name.clone();
            let services = Keeping::of(&name).services();
            let of = |error: String| format!("{name}, at the end: {error}");
            if services.is_empty() {
                turn(self, place, None).map_err(of)?;
                turns += 1;
            }
            for service in services {
                turn(self, place, Some(service)).map_err(of)?;
                turns += 1;
                self.check_whole(&name, Some(service)).map_err(of)?;
            }
            if Keeping::of(&name).is_external() {
                self.check_whole(&name, None).map_err(of)?;
            }
            if self.threads[place].standing != Standing::Free {
                return Err(of("a turn was not taken".to_owned()));
            }
        }
        Ok(turns)
    }

    /// A service, or the application's store, has the whole history.
    fn check_whole(&mut self, name: &str, service: Option<&str>) -> Result<(), String> {
        let store = open(&self.url)?;
        let kept = Kept::read(&store, name)?.ok_or("there is no thread")?;
        let equal = match service {
            Some(service) => kept.place(service)? == kept.published,
            None => self.on_shelf(name)?.len() == kept.published,
        };
        match service {
            Some(_) => self.check_services(name, &kept)?,
            None => self.check_shelf(name, &kept)?,
        }
        block_on(store.close()).map_err(|error| error.to_string())?;
        match equal {
            true => Ok(()),
            false => Err(format!(
                "{service:?} does not have all {} messages",
                kept.published
            )),
        }
    }

    /// Counts model calls against the answers that conversations have: each other one must be a call
    /// that its service could not be asked about, or whose turn was ended.
    pub(super) fn count_calls(&mut self) -> Result<CallCounts, String> {
        let store = open(&self.url)?;
        let mut kept: BTreeMap<Code, u64> = BTreeMap::new();
        for name in self.names() {
            let Some(thread) = Kept::read(&store, &name)? else {
                continue;
            };
            for service in Keeping::of(&name).services() {
                let Some(id) = thread.opened.state.service(service, "") else {
                    continue;
                };
                for answer in self.chain(service, id)?.answers {
                    let code = self.keepers.turn_of(service, answer);
                    let code = code.ok_or_else(|| format!("{answer} of {service} is no call"))?;
                    *kept.entry(code.clone()).or_default() += 1;
                }
            }
        }
        block_on(store.close()).map_err(|error| error.to_string())?;
        let mut made: BTreeMap<&Code, u64> = BTreeMap::new();
        for call in &self.keepers.calls {
            *made.entry(&call.code).or_default() += 1;
        }
        let mut counts = CallCounts::default();
        for (code, made) in made {
            let kept = kept.get(code).copied().unwrap_or(0);
            let mut left = made - kept;
            let mut take = |most: u64| {
                let taken = left.min(most);
                left -= taken;
                taken
            };
            let of = |counts: &BTreeMap<Code, u64>| counts.get(code).copied().unwrap_or(0);
            counts.made += made;
            counts.kept += kept;
            counts.unasked += take(of(&self.keepers.unasked));
            counts.elsewhere += take(of(&self.keepers.elsewhere));
            counts.cut += take(u64::from(self.keepers.stopped.contains(code)));
            if left > 0 {
                return Err(format!(
                    "{code} was answered {made} times, and {kept} answers are kept: {left} were paid for nothing"
                ));
            }
        }
        Ok(counts)
    }

    /// How often services were asked about a stored answer.
    pub(super) fn looked_up(&mut self) -> Result<u64, String> {
        let mut sum = 0;
        for service in throughline_testkit::loopkill::SERVICES {
            let count = self
                .servers
                .ask("services", &format!("looked-up {service}"))?;
            sum += count.parse::<u64>().map_err(|error| error.to_string())?;
        }
        Ok(sum)
    }
}
