//! Items: how many a run may have, and which of them can be said again or redacted.

use crate::{Fingerprint, ItemKind, ItemNo, ItemRef, Result};

use super::{invalid, not_found};

/// The number of the last item after adding some.
pub(crate) fn after(last: ItemNo, more: usize) -> Result<ItemNo> {
    let more = u32::try_from(more).ok();
    more.and_then(|more| last.checked_add(more))
        .filter(|last| *last < u32::MAX)
        .ok_or_else(|| invalid("a run", "it has too many items"))
}

/// Fingerprints find items of their run: `last` is the last one that it has with this write.
pub(crate) fn fingerprints(fingerprints: &[Fingerprint], last: ItemNo) -> Result<()> {
    match fingerprints
        .iter()
        .all(|one| (1..=last).contains(&one.item))
    {
        true => Ok(()),
        false => Err(invalid("a fingerprint", "its run has no such item")),
    }
}

/// What is found at the place of an item: what it is, and the item that it says again.
pub(crate) type FoundItem = (ItemKind, Option<ItemRef>);

/// The item that holds what an item says: itself, or the one that it says again. A place without a
/// result says nothing. `found` is `None` if the caller can see no item there.
pub(crate) fn original(at: ItemRef, found: Option<FoundItem>) -> Result<ItemRef> {
    match found {
        Some((ItemKind::Message | ItemKind::Part, again)) => Ok(again.unwrap_or(at)),
        Some((ItemKind::Gap, _)) | None => {
            Err(not_found("item", format_args!("{} of {}", at.no, at.run)))
        }
    }
}
