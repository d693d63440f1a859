//! Whether what is stored is what was stored.

use crate::digest::{self, Digest};
use crate::{DamageSite, Error, ItemRef, Result, Said, Tenant};

/// What an item holds.
pub(crate) enum ItemContent<'a> {
    Said(&'a Said),
    Again(ItemRef),
    Gap,
}

/// An item has the digest of what it holds.
pub(crate) fn item(
    tenant: &Tenant,
    at: ItemRef,
    content: &ItemContent<'_>,
    stored: Digest,
) -> Result<()> {
    let (found, detail) = match content {
        ItemContent::Said(said) => (
            digest::item(tenant, at, said),
            "its digest does not fit its bytes",
        ),
        ItemContent::Again(of) => (
            digest::again(tenant, at, *of),
            "its digest does not fit what it says again",
        ),
        ItemContent::Gap => (digest::gap(tenant, at), "its digest does not fit a gap"),
    };
    match found == stored {
        true => Ok(()),
        false => Err(Error::corrupt(at, detail)),
    }
}

/// The total of a node is that of the node before and what its items count as: `sum`.
pub(crate) fn total(site: DamageSite, total: u64, sum: u64) -> Result<()> {
    match total == sum {
        true => Ok(()),
        false => {
            let detail = format!("its total is {total} tokens, its items make it {sum}");
            Err(Error::corrupt(site, detail))
        }
    }
}
