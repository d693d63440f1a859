//! What a model would be given of a thread, with the report: for the native API and the command line.

use std::sync::Arc;

use throughline::compact::{BudgetUnreachable, Planned, Policy, Report, ToolHistory, number_count};
use throughline::thread::RecordView;
use throughline_model::Message;
use throughline_model::json::ArrayWriter;
use throughline_store::{
    At, Entry, Error, NodeRef, Opened, Span, Store, TenantScope, masks_of, visible,
};
use throughline_wire::render::{self, Options, Repair, Target};
use throughline_wire::{Loss, Wire};

use super::forms::record;

/// Messages that are read at once.
const PAGE: usize = 256;

/// The messages of a branch that models may be shown, and what goes out before the next input.
pub struct Branch {
    /// In order, numbered as digests and pins number them.
    pub entries: Vec<Entry>,
    /// How many contents were deleted, and are in the record alone.
    pub deleted: u64,
}

impl Branch {
    /// Read the branch that was opened.
    pub async fn read(
        store: &Store,
        scope: &TenantScope,
        at: At,
        opened: &Opened,
    ) -> Result<Self, Error> {
        // By node, so that the head may move while it is read.
        let at = match opened.tip {
            Some(tip) => At::Node(NodeRef::Node(tip.node)),
            None => at,
        };
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let span = Span::After(entries.last().map_or(0, |entry| entry.last));
            let page = store.read(scope, &at, span, PAGE).await?;
            let done = !page.more || page.entries.is_empty();
            entries.extend(page.entries);
            if done {
                break;
            }
        }
        let stored = entries.len();
        let deleted = masks_of(&entries).len() as u64;
        let mut entries = visible(entries);
        if deleted > 0 || entries.len() < stored {
            number_anew(&mut entries);
        }
        entries.extend(opened.unsent.iter().cloned());
        Ok(Self { entries, deleted })
    }

    /// The messages alone.
    pub fn record(&self) -> Vec<Arc<Message>> {
        let entries = self.entries.iter();
        entries
            .map(|entry| Arc::new(entry.message.clone()))
            .collect()
    }
}

/// Number messages as digests and pins do, which know nothing of masks and of what they took out.
fn number_anew(entries: &mut [Entry]) {
    let mut next = 1;
    for entry in entries {
        entry.first = next;
        next += number_count(&entry.message);
        entry.last = next - 1;
    }
}

/// The model that would be asked; all is empty if none was named.
#[derive(Clone, Debug, Default)]
pub struct ModelChoice {
    /// Its upstream.
    pub upstream: String,
    /// The vendor's name of it.
    pub model: String,
    /// The format in which it is sent a history; `None` for our own.
    pub wire: Option<Wire>,
}

/// A history as its vendor would be sent it.
pub struct RenderedView {
    /// The format.
    pub format: String,
    /// The members of a request that follow from the history.
    pub body: String,
    /// How many items there are.
    pub items: u64,
    /// What the vendor cannot be told.
    pub losses: Vec<Loss>,
    /// What was changed so that the vendor accepts it.
    pub repairs: Vec<Repair>,
}

impl ModelChoice {
    /// A history in the vendor's form; none in our own.
    pub fn rendered(&self, messages: &[Arc<Message>]) -> Option<RenderedView> {
        let wire = self.wire.clone()?;
        let format = wire.to_string();
        let (target, options) = (Target::newest(wire), Options::default());
        let messages: Vec<Message> = messages.iter().map(|one| (**one).clone()).collect();
        let rendered = render::render(&messages, &target, &options);
        Some(RenderedView {
            format,
            body: rendered.body(&target, &options),
            items: rendered.items.len() as u64,
            losses: rendered.losses,
            repairs: rendered.repairs,
        })
    }
}

/// What a model would be given.
pub struct ThreadView {
    /// The messages, digests among them.
    pub messages: Vec<Arc<Message>>,
    /// What compaction did, with the history that it did it to; `None` if the whole record was asked
    /// for.
    pub compacted: Option<(Report, ToolHistory)>,
}

impl ThreadView {
    /// All of a record.
    pub fn whole(record: &[Arc<Message>]) -> Self {
        Self {
            messages: record.to_vec(),
            compacted: None,
        }
    }

    /// A record as a policy shows it to a model.
    pub fn planned(
        policy: Policy,
        model: &ModelChoice,
        opened: &Opened,
        record: &[Arc<Message>],
    ) -> Result<Self, BudgetUnreachable> {
        let settings = opened.thread.settings.as_ref();
        let mut view = RecordView::of(policy, record, &opened.state, settings);
        let call = view.call(&model.upstream, &model.model);
        let mut history = view.history;
        let report = match history.plan(&call)? {
            Planned::Unchanged(report) => report,
            Planned::Epoch(epoch, report) => {
                history.install(epoch);
                report
            }
        };
        Ok(Self {
            messages: history.view().to_vec(),
            compacted: Some((report, history)),
        })
    }

    /// `{"thread","model","format","messages"|"request","report","losses","repairs"}`
    pub fn to_json(&self, model: &ModelChoice, opened: &Opened) -> String {
        let rendered = model.rendered(&self.messages);
        record::object(|object| {
            record::thread(object.key("thread"), &opened.thread);
            let name = Some(model.model.as_str()).filter(|name| !name.is_empty());
            record::opt_str(object, "model", name);
            match &rendered {
                Some(rendered) => {
                    object.str("format", &rendered.format);
                    object.raw("request", &rendered.body);
                }
                None => {
                    object.str("format", "neutral");
                    record::array(object.key("messages"), &self.messages, |out, message| {
                        message.write_json(out);
                    });
                }
            }
            let report = self.compacted.as_ref().map(|(report, _)| report.to_json());
            object.raw("report", report.as_deref().unwrap_or("null"));
            let (losses, repairs) = rendered
                .as_ref()
                .map(|rendered| (&*rendered.losses, &*rendered.repairs))
                .unwrap_or_default();
            let mut array = ArrayWriter::new(object.key("losses"));
            losses.iter().for_each(|loss| loss.write_json(array.slot()));
            array.end();
            let mut array = ArrayWriter::new(object.key("repairs"));
            repairs
                .iter()
                .for_each(|repair| repair.write_json(array.slot()));
            array.end();
        })
    }
}
