//! How items are stored, and what is said again.

use crate::digest;
use crate::{ItemNo, ItemRef, NewItem, Result, RunId};

use super::Desk;
use super::schema::{ItemRow, Row, What};
use crate::rules::{invalid, not_found};

impl Desk<'_> {
    /// Items of a thread's run as they will be stored, the first with the given number.
    pub(super) fn items(
        &self,
        run: RunId,
        thread: Row,
        first: ItemNo,
        new: &[NewItem],
    ) -> Result<Vec<ItemRow>> {
        let place = |(no, item)| self.item(ItemRef { run, no }, thread, item);
        (first..).zip(new).map(place).collect()
    }

    /// An item as it will be stored at a place.
    pub(super) fn item(&self, at: ItemRef, thread: Row, new: &NewItem) -> Result<ItemRow> {
        let tenant = &self.realm.tenant;
        let (what, digest) = match new {
            NewItem::Said(said) => (What::Said(said.clone()), digest::item(tenant, at, said)),
            NewItem::Again(of) => {
                let of = self.original(thread, *of)?;
                (What::Again(of), digest::again(tenant, at, of))
            }
        };
        Ok(ItemRow {
            what,
            digest,
            refs: 0,
        })
    }

    /// Where what is to be said again in a thread was said first.
    fn original(&self, thread: Row, of: ItemRef) -> Result<ItemRef> {
        let missing = || not_found("item", format_args!("{} of {}", of.no, of.run));
        let run = self.realm.runs.get(&of.run).ok_or_else(missing)?;
        // What is visible, also what a fork shares with a deleted thread; and what is
        // imported with it.
        if run.thread != thread && !self.realm.item_is_seen(run, of.no) {
            return Err(missing());
        }
        match &run.item(of.no).ok_or_else(missing)?.what {
            What::Said(_) | What::Redacted(..) => Ok(of),
            What::Again(first) => Ok(*first),
            What::Gap => Err(missing()),
        }
    }

    /// Store items at the end of a run.
    pub(super) fn put(&mut self, run: RunId, items: Vec<ItemRow>) {
        for item in &items {
            self.count_ref(item);
        }
        if let Some(run) = self.realm.runs.get_mut(&run) {
            run.items.extend(items.into_iter().map(Some));
        }
    }

    /// An item that says another one again keeps that one.
    pub(super) fn count_ref(&mut self, item: &ItemRow) {
        if let What::Again(of) = &item.what
            && let Some(first) = self.realm.item_mut(*of)
        {
            first.refs += 1;
        }
    }
}

/// The number of the last item after adding some.
pub(super) fn room(last: ItemNo, more: usize) -> Result<ItemNo> {
    let more = u32::try_from(more).ok();
    more.and_then(|more| last.checked_add(more))
        .filter(|last| *last < u32::MAX)
        .ok_or_else(|| invalid("a run", "it has too many items"))
}
