//! Whether what is stored is what was stored.

use crate::digest::{self, Digest};
use crate::{DamageSite, Error, ItemContent, ItemRef, Result, RunId, Tenant};

/// What an item holds.
pub(crate) enum DigestInput<'a> {
    Content(&'a ItemContent),
    Repeat(ItemRef),
    Gap,
}

/// An item has the digest of what it holds.
pub(crate) fn item(
    tenant: &Tenant,
    at: ItemRef,
    content: &DigestInput<'_>,
    stored: Digest,
) -> Result<()> {
    let (found, detail) = match content {
        DigestInput::Content(said) => (
            digest::item(tenant, at, said),
            "its digest does not fit its bytes",
        ),
        DigestInput::Repeat(of) => (
            digest::repeat(tenant, at, *of),
            "its digest does not fit what it says again",
        ),
        DigestInput::Gap => (digest::gap(tenant, at), "its digest does not fit a gap"),
    };
    match found == stored {
        true => Ok(()),
        false => Err(Error::corrupt(at, detail)),
    }
}

/// A remote call has the digest of its step and its handle.
pub(crate) fn remote_call(
    tenant: &Tenant,
    run: RunId,
    (step, handle): (u32, &str),
    stored: Digest,
) -> Result<()> {
    match digest::remote_call(tenant, run, step, handle) == stored {
        true => Ok(()),
        false => {
            let place = format!("the remote call of {run}");
            Err(Error::corrupt(place, "its digest does not fit its bytes"))
        }
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
