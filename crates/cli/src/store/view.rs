//! `throughline view`.

mod annotated;
mod vendor;

use std::process::ExitCode;
use std::sync::Arc;

use throughline_compact::tokens::{Calibrations, recent_mix};
use throughline_compact::{
    Call, Policy, Report, Scale, StoredEpoch, ToolHistory, ViewSettings, number_count,
};
use throughline_model::Message;
use throughline_store::{At, Entry, NodeRef, Opened, Span, Store, masks_of, visible};

use super::{Context, IfMissing, json_form, text};
use crate::args::View;
use crate::compact::{MessageDisplay, install_epoch, line, unreachable};
use crate::failure::Failure;
use crate::losses;
use crate::output;
use vendor::ModelChoice;

/// Messages that are read at once.
const PAGE: usize = 256;

pub(super) async fn show(context: &Context<'_>, args: &View) -> Result<ExitCode, Failure> {
    let asked = ModelChoice::named(args.model.as_deref())?;
    let store = context.open(IfMissing::Fail).await?;
    let (at, opened) = context.find(&store, &args.name, 0).await?;
    let branch = Branch::read(context, &store, at, &opened).await?;
    let entries = &branch.entries;
    let record = entries.iter().map(|entry| Arc::new(entry.message.clone()));
    let record: Vec<Arc<Message>> = record.collect();
    let viewed = Viewed::of(args, &asked, &opened, (&record, branch.deleted))?;
    if context.json {
        output::document(&form(&asked, &opened, &viewed), false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&text::thread(&opened.thread))?;
    for line in annotated::lines(&viewed.messages, entries, &record) {
        output::line(&line)?;
    }
    if let Some(rendered) = asked.rendered(&viewed.messages) {
        let items = text::counted(rendered.items, "item");
        output::line(&format!("as {}: {items}", rendered.format))?;
        losses::print(&rendered.losses, &rendered.repairs);
    }
    output::line(&viewed.line)?;
    Ok(ExitCode::SUCCESS)
}

/// The messages of a branch that models may be shown, and what goes out before the next input.
pub(super) struct Branch {
    pub(super) entries: Vec<Entry>,
    /// How many contents were deleted, and are in the record alone.
    deleted: u64,
}

impl Branch {
    pub(super) async fn read(
        context: &Context<'_>,
        store: &Store,
        at: At,
        opened: &Opened,
    ) -> Result<Self, Failure> {
        // By node, so that the head may move while it is read.
        let at = match opened.tip {
            Some(tip) => At::Node(NodeRef::Node(tip.node)),
            None => at,
        };
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let span = Span::After(entries.last().map_or(0, |entry| entry.last));
            let page = store.read(&context.scope, &at, span, PAGE).await;
            let page = page.map_err(|error| context.failure(&error))?;
            let done = !page.more || page.entries.is_empty();
            entries.extend(page.entries);
            if done {
                break;
            }
        }
        let deleted = masks_of(&entries).len() as u64;
        let mut entries = visible(entries);
        if deleted > 0 {
            number_anew(&mut entries);
        }
        entries.extend(opened.unsent.iter().cloned());
        Ok(Self { entries, deleted })
    }
}

/// Number messages as digests and pins do, which know nothing of those that were deleted.
fn number_anew(entries: &mut [Entry]) {
    let mut next = 1;
    for entry in entries {
        entry.first = next;
        next += number_count(&entry.message);
        entry.last = next - 1;
    }
}

/// What a model would be given.
struct Viewed {
    messages: Vec<Arc<Message>>,
    /// None if the whole record was asked for.
    report: Option<Report>,
    /// The same for people.
    line: String,
}

impl Viewed {
    fn of(
        args: &View,
        asked: &ModelChoice<'_>,
        opened: &Opened,
        (record, deleted): (&[Arc<Message>], u64),
    ) -> Result<Self, Failure> {
        if args.full {
            let line = match deleted {
                0 => "The whole record: nothing is left out.".to_owned(),
                deleted => {
                    let contents = text::counted(deleted, "deleted content");
                    format!("All but {contents}, which 'throughline threads export' still has.")
                }
            };
            return Ok(Self {
                messages: record.to_vec(),
                report: None,
                line,
            });
        }
        let mut history = ToolHistory::new(Policy {
            budget: args.budget,
            ..Policy::default()
        });
        let mut next = 1;
        for message in record {
            history.push(next, Arc::clone(message));
            next += number_count(message);
        }
        let kept = opened.state.compaction();
        let kept = kept.and_then(|kept| StoredEpoch::from_json(kept.get()));
        let mut bills = Calibrations::default();
        if let Some(kept) = kept {
            history.restore(&kept);
            bills = kept.bills;
        }
        history.apply_settings(&ViewSettings::of(opened.thread.settings.as_ref()));
        let mix = recent_mix(record.iter().map(Arc::as_ref));
        bills.guess(asked.upstream, asked.model, &mix);
        let bills = bills.of(asked.upstream, asked.model);
        let call = Call {
            overhead: bills.overhead(),
            scale: Scale::per_mille(bills.per_mille()),
            open: Vec::new(),
        };
        let planned = history.plan(&call).map_err(|error| unreachable(&error))?;
        let report = install_epoch(&mut history, planned);
        Ok(Self {
            messages: history.view().to_vec(),
            line: line(&report, MessageDisplay::of(&history)),
            report: Some(report),
        })
    }
}

/// `{"thread","model","format","messages"|"request","report","losses","repairs"}`
fn form(asked: &ModelChoice<'_>, opened: &Opened, viewed: &Viewed) -> String {
    let rendered = asked.rendered(&viewed.messages);
    json_form::object(|object| {
        json_form::thread(object.key("thread"), &opened.thread);
        let model = Some(asked.model).filter(|model| !model.is_empty());
        json_form::opt_str(object, "model", model);
        match &rendered {
            Some(rendered) => {
                object.str("format", &rendered.format);
                object.raw("request", &rendered.body);
            }
            None => {
                object.str("format", "neutral");
                json_form::array(object.key("messages"), &viewed.messages, |out, message| {
                    message.write_json(out);
                });
            }
        }
        let report = viewed.report.as_ref().map(Report::to_json);
        object.raw("report", report.as_deref().unwrap_or("null"));
        let (losses, repairs) = rendered
            .as_ref()
            .map(|rendered| (&*rendered.losses, &*rendered.repairs))
            .unwrap_or_default();
        losses::write(object, losses, repairs);
    })
}
