//! Digests over what is stored: 16 bytes of BLAKE3, over the plain bytes.

use crate::{ImportItem, ItemContent, ItemRef, NodeId, RunId, Tenant};

/// A digest.
pub(crate) type Digest = [u8; 16];

fn short(hasher: &blake3::Hasher) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

fn start(tag: &[u8], tenant: &Tenant) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tag);
    hasher.update(&(tenant.as_str().len() as u64).to_le_bytes());
    hasher.update(tenant.as_str().as_bytes());
    hasher
}

/// The digest of an item. It binds the bytes to tenant and place, so that swapped rows show.
pub(crate) fn item(tenant: &Tenant, at: ItemRef, said: &ItemContent) -> Digest {
    let mut hasher = start(b"item", tenant);
    hasher.update(at.run.as_bytes());
    hasher.update(&at.no.to_le_bytes());
    hasher.update(&[said.kind.code(), said.source]);
    hasher.update(&said.tokens.to_le_bytes());
    hasher.update(&said.body);
    short(&hasher)
}

/// The digest of an item that says another one again.
pub(crate) fn repeat(tenant: &Tenant, at: ItemRef, of: ItemRef) -> Digest {
    let mut hasher = start(b"again", tenant);
    hasher.update(at.run.as_bytes());
    hasher.update(&at.no.to_le_bytes());
    hasher.update(of.run.as_bytes());
    hasher.update(&of.no.to_le_bytes());
    short(&hasher)
}

/// The digest of an item that is imported.
pub(crate) fn imported(tenant: &Tenant, at: ItemRef, item: &ImportItem) -> Digest {
    match item {
        ImportItem::Content(said) | ImportItem::Redacted(said, _) => self::item(tenant, at, said),
        ImportItem::Gap => gap(tenant, at),
    }
}

/// The digest of a redaction: who, when and what is left, bound to the place.
#[cfg(feature = "sqlite")]
pub(crate) fn redaction(tenant: &Tenant, at: ItemRef, redaction: &crate::Redaction) -> Digest {
    let mut hasher = start(b"redaction", tenant);
    hasher.update(at.run.as_bytes());
    hasher.update(&at.no.to_le_bytes());
    hasher.update(&redaction.at.to_le_bytes());
    hasher.update(&(redaction.by.len() as u64).to_le_bytes());
    hasher.update(redaction.by.as_bytes());
    hasher.update(
        redaction
            .left
            .as_ref()
            .map_or("", |left| left.get())
            .as_bytes(),
    );
    short(&hasher)
}

/// The digest of a place kept for a result that never came.
pub(crate) fn gap(tenant: &Tenant, at: ItemRef) -> Digest {
    let mut hasher = start(b"gap", tenant);
    hasher.update(at.run.as_bytes());
    hasher.update(&at.no.to_le_bytes());
    short(&hasher)
}

/// The digest of the state that a node points at.
pub(crate) fn state(tenant: &Tenant, run: RunId, step: u32, json: &str) -> Digest {
    let mut hasher = start(b"state", tenant);
    hasher.update(run.as_bytes());
    hasher.update(&step.to_le_bytes());
    hasher.update(json.as_bytes());
    short(&hasher)
}

/// The digest of a journaled remote call.
pub(crate) fn remote_call(tenant: &Tenant, run: RunId, step: u32, handle: &str) -> Digest {
    let mut hasher = start(b"remote", tenant);
    hasher.update(run.as_bytes());
    hasher.update(&step.to_le_bytes());
    hasher.update(handle.as_bytes());
    short(&hasher)
}

/// What a node's digest covers besides its items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeFields {
    pub(crate) id: NodeId,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) first_item: u32,
    pub(crate) flags: u8,
    pub(crate) tokens: u64,
}

/// The digest of a node: it covers the node before and all item digests, so that missing, added
/// and swapped rows show.
pub(crate) fn node(
    tenant: &Tenant,
    before: Option<&Digest>,
    fields: &NodeFields,
    state: Option<&Digest>,
    items: impl IntoIterator<Item = Digest>,
) -> Digest {
    let mut hasher = start(b"node", tenant);
    hasher.update(before.unwrap_or(&[0; 16]));
    hasher.update(fields.id.run.as_bytes());
    hasher.update(&fields.id.step.to_le_bytes());
    hasher.update(&fields.first.to_le_bytes());
    hasher.update(&fields.last.to_le_bytes());
    hasher.update(&fields.first_item.to_le_bytes());
    hasher.update(&[fields.flags]);
    hasher.update(&fields.tokens.to_le_bytes());
    hasher.update(state.unwrap_or(&[0; 16]));
    for digest in items {
        hasher.update(&digest);
    }
    short(&hasher)
}

/// The key that a tool gets: the same however often and by whichever process the call is
/// dispatched.
pub fn call_key(tenant: &Tenant, run: RunId, step: u32, position: u32, call: &str) -> String {
    let mut hasher = start(b"call", tenant);
    hasher.update(run.as_bytes());
    hasher.update(&step.to_le_bytes());
    hasher.update(&position.to_le_bytes());
    hasher.update(call.as_bytes());
    if crate::trials::planted("key-by-process") {
        hasher.update(&std::process::id().to_le_bytes());
    }
    let mut key = String::from("idem_");
    for byte in short(&hasher) {
        for digit in [byte >> 4, byte & 15] {
            key.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    key
}

/// The digest under which a request is stored once.
pub(crate) fn request(json: &str) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(json.as_bytes());
    short(&hasher)
}
