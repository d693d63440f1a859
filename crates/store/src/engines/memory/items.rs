//! How items are stored, and what is said again.

use crate::digest;
use crate::{ItemKind, ItemNo, ItemRef, NewItem, Result, RunId, rules};

use super::Transaction;
use super::schema::{ItemRow, RunRow, StoredContent};

impl Transaction<'_> {
    /// Items of a run as they will be stored, the first with the given number.
    pub(super) fn items(&self, run: RunId, first: ItemNo, new: &[NewItem]) -> Result<Vec<ItemRow>> {
        let place = |(no, item)| self.item(ItemRef { run, no }, item);
        (first..).zip(new).map(place).collect()
    }

    /// An item as it will be stored at a place.
    pub(super) fn item(&self, at: ItemRef, new: &NewItem) -> Result<ItemRow> {
        let tenant = &self.tables.tenant;
        let (what, digest) = match new {
            NewItem::Content(said) => (
                StoredContent::Present(said.clone()),
                digest::item(tenant, at, said),
            ),
            NewItem::Repeat(of) => {
                let of = self.original(*of)?;
                (StoredContent::Repeat(of), digest::repeat(tenant, at, of))
            }
        };
        Ok(ItemRow {
            what,
            digest,
            refs: 0,
        })
    }

    /// The item that holds what a visible item says.
    pub(super) fn original(&self, at: ItemRef) -> Result<ItemRef> {
        let run = self.tables.runs.get(&at.run);
        let run = run.filter(|run| self.tables.item_is_seen(run, at.no));
        let item = run.and_then(|run| run.item(at.no));
        let found = item.map(|item| match &item.what {
            StoredContent::Present(said) | StoredContent::Redacted(said, _) => (said.kind, None),
            StoredContent::Repeat(of) => (ItemKind::Message, Some(*of)),
            StoredContent::Gap => (ItemKind::Gap, None),
        });
        rules::items::original(at, found)
    }

    /// Whether the items of a run from a number on are these.
    pub(super) fn has_items(&self, run: &RunRow, first: ItemNo, items: &[NewItem]) -> bool {
        (first..).zip(items).all(|(no, item)| {
            let at = ItemRef { run: run.id, no };
            run.item(no).is_some_and(|stored| match item {
                NewItem::Content(said) => {
                    stored.digest == digest::item(&self.tables.tenant, at, said)
                }
                // It may have been asked for by way of another one; what counts is that it is one.
                NewItem::Repeat(_) => matches!(stored.what, StoredContent::Repeat(_)),
            })
        })
    }

    /// Store items at the end of a run.
    pub(super) fn put(&mut self, run: RunId, items: Vec<ItemRow>) {
        for item in &items {
            self.count_ref(item);
        }
        if let Some(run) = self.tables.runs.get_mut(&run) {
            run.items.extend(items.into_iter().map(Some));
        }
    }

    /// An item that says another one again keeps that one.
    pub(super) fn count_ref(&mut self, item: &ItemRow) {
        if let StoredContent::Repeat(of) = &item.what
            && let Some(first) = self.tables.item_mut(*of)
        {
            first.refs += 1;
        }
    }
}
