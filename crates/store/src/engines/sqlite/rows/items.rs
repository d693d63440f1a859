//! Items on their way into the store: digested and compressed on the caller's task, inserted here.

use rusqlite::{Connection, params};

use crate::digest::{self, Digest};
use crate::engines::sqlite::cache::ItemSummary;
use crate::engines::sqlite::op_error::{OpResult, corrupt, not_found};
use crate::engines::sqlite::rows::SHOWN;
use crate::engines::sqlite::rows::find::{is_reached, node_with_item};
use crate::engines::sqlite::rows::sql::one;
use crate::engines::sqlite::write::job::Tx;
use crate::engines::sqlite::write::statements::TurnStatement;
use crate::{ItemContent, ItemKind, ItemRef, NewItem, RunId, Tenant, rules};

/// Added to the kind of an item whose body is compressed.
pub(crate) const PACKED: u8 = 16;

/// Bodies above this size are compressed.
const LARGE: usize = 4096;

/// An item that is ready to be stored.
pub(crate) struct PreparedItem {
    content: PreparedContent,
}

enum PreparedContent {
    New {
        said: ItemContent,
        /// The number that it was digested for; 0 if it was not.
        no: u32,
        digest: Digest,
        packed: Option<Vec<u8>>,
    },
    Repeat(ItemRef),
}

impl PreparedItem {
    /// Digest and compress an item that will probably have the number `no`.
    pub(crate) fn new(tenant: &Tenant, run: RunId, no: u32, item: &NewItem) -> Self {
        let content = match item {
            NewItem::Repeat(of) => PreparedContent::Repeat(*of),
            NewItem::Content(said) => PreparedContent::New {
                digest: digest::item(tenant, ItemRef { run, no }, said),
                no,
                packed: pack(&said.body),
                said: said.clone(),
            },
        };
        Self { content }
    }

    /// Compress an item whose number is not known yet.
    pub(crate) fn unnumbered(item: &NewItem) -> Self {
        match item {
            NewItem::Content(said) => Self::said(said),
            NewItem::Repeat(of) => Self {
                content: PreparedContent::Repeat(*of),
            },
        }
    }

    /// Compress something new whose number is not known yet.
    pub(crate) fn said(said: &ItemContent) -> Self {
        let content = PreparedContent::New {
            digest: Digest::default(),
            no: 0,
            packed: pack(&said.body),
            said: said.clone(),
        };
        Self { content }
    }

    /// The same for a list of items.
    pub(crate) fn list(tenant: &Tenant, run: RunId, first: u32, items: &[NewItem]) -> Vec<Self> {
        let numbered = (first..).zip(items);
        numbered
            .map(|(no, item)| Self::new(tenant, run, no, item))
            .collect()
    }

    /// Its digest at a place, before it is stored. `None` if that depends on another item.
    pub(crate) fn digest_at(&self, tenant: &Tenant, at: ItemRef) -> Option<Digest> {
        match &self.content {
            PreparedContent::New {
                no, digest, said, ..
            } => Some(if *no == at.no {
                *digest
            } else {
                digest::item(tenant, at, said)
            }),
            PreparedContent::Repeat(_) => None,
        }
    }
}

fn pack(body: &[u8]) -> Option<Vec<u8>> {
    if body.len() <= LARGE {
        return None;
    }
    let packed = zstd::bulk::compress(body, 1).ok()?;
    // What does not get smaller is stored as it is.
    (packed.len() < body.len() - body.len() / 16).then_some(packed)
}

/// The item that holds what another one says.
#[derive(Clone, Copy)]
pub(crate) struct Original {
    row: i64,
    pub(crate) run: i64,
    pub(crate) at: ItemRef,
    kind: u8,
    source: u8,
    tokens: u32,
}

/// Find what items say again. Before anything is written, because it can be missing.
pub(crate) fn resolve(
    conn: &Connection,
    tenant: i64,
    items: &[PreparedItem],
) -> OpResult<Vec<Option<Original>>> {
    let find = |item: &PreparedItem| match &item.content {
        PreparedContent::New { .. } => Ok(None),
        PreparedContent::Repeat(of) => original(conn, tenant, *of).map(Some),
    };
    items.iter().map(find).collect()
}

/// The item that holds what a visible item says.
pub(crate) fn original(conn: &Connection, tenant: i64, at: ItemRef) -> OpResult<Original> {
    let sql = "SELECT i.kind, i.source, i.units, coalesce(o.item, i.item), coalesce(o.run, i.run), w.id, o.no, r.run, t.stage
      FROM run r CROSS JOIN item i ON i.run=r.run AND i.no=?3 CROSS JOIN thread t ON t.thread=r.thread
      LEFT JOIN item o ON o.item=i.again LEFT JOIN run w ON w.run=o.run
      WHERE r.tenant=?1 AND r.id=?2";
    let found = one(conn, sql, (tenant, at.run.as_bytes(), at.no), |row| {
        let again = match row.get(5)? {
            Some(run) => Some(ItemRef {
                run: RunId::from_bytes(run),
                no: row.get(6)?,
            }),
            None => None,
        };
        let original = Original {
            row: row.get(3)?,
            run: row.get(4)?,
            at: again.unwrap_or(at),
            kind: row.get::<_, u8>(0)? & !PACKED,
            source: row.get(1)?,
            tokens: row.get(2)?,
        };
        Ok((original, again, row.get(7)?, row.get(8)?))
    })?;
    let seen = match found {
        Some((.., SHOWN)) => found,
        Some((.., run, _)) if is_shared(conn, run, at.no)? => found,
        _ => None,
    };
    let kind = |original: &Original| ItemKind::of(original.kind).unwrap_or(ItemKind::Gap);
    let again = seen.map(|(original, again, ..)| (kind(&original), again));
    let first = rules::items::original(at, again)?;
    let original = found.map(|(original, ..)| original);
    original
        .filter(|original| original.at == first)
        .ok_or_else(|| corrupt(at, "it is not there"))
}

/// Whether an item of a run whose thread is not shown is in a thread that is.
fn is_shared(conn: &Connection, run: i64, no: u32) -> OpResult<bool> {
    match node_with_item(conn, run, no)? {
        Some(node) => is_reached(conn, &node),
        None => Ok(false),
    }
}

/// Store an item at its place.
pub(crate) fn insert(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run: i64,
    at: ItemRef,
    item: &PreparedItem,
    original: Option<&Original>,
) -> OpResult<ItemSummary> {
    let (summary, changed) = match (&item.content, original) {
        (
            PreparedContent::New {
                said,
                no,
                digest,
                packed,
            },
            _,
        ) => {
            let digest = if *no == at.no {
                *digest
            } else {
                digest::item(tenant, at, said)
            };
            let (kind, body): (u8, &[u8]) = match packed {
                Some(packed) => (said.kind.code() | PACKED, packed),
                None => (said.kind.code(), &said.body),
            };
            let none: Option<i64> = None;
            let values = params![
                run,
                at.no,
                kind,
                said.source,
                said.tokens,
                none,
                digest,
                body
            ];
            let summary = ItemSummary {
                no: at.no,
                tokens: said.tokens,
                digest,
            };
            (summary, tx.statements.run(TurnStatement::Item, values)?)
        }
        (PreparedContent::Repeat(_), Some(of)) => {
            let digest = digest::repeat(tenant, at, of.at);
            let none: Option<&[u8]> = None;
            let values = params![
                run, at.no, of.kind, of.source, of.tokens, of.row, digest, none
            ];
            let summary = ItemSummary {
                no: at.no,
                tokens: of.tokens,
                digest,
            };
            (summary, tx.statements.run(TurnStatement::Item, values)?)
        }
        (PreparedContent::Repeat(of), None) => {
            return Err(not_found("item", &format!("{} of {}", of.no, of.run)));
        }
    };
    debug_assert_eq!(changed, 1);
    Ok(summary)
}

/// Store several items, the first of which has the number `first`.
pub(crate) fn insert_all(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run: (i64, RunId),
    first: u32,
    items: &[PreparedItem],
    originals: &[Option<Original>],
) -> OpResult<Vec<ItemSummary>> {
    let mut summaries = Vec::with_capacity(items.len());
    for ((no, item), original) in (first..).zip(items).zip(originals) {
        let at = ItemRef { run: run.1, no };
        summaries.push(insert(tx, tenant, run.0, at, item, original.as_ref())?);
    }
    Ok(summaries)
}

/// Store a place without a result.
pub(crate) fn insert_gap(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run: i64,
    at: ItemRef,
) -> OpResult<ItemSummary> {
    let summary = ItemSummary {
        no: at.no,
        tokens: 0,
        digest: digest::gap(tenant, at),
    };
    insert_bodiless(tx, run, (ItemKind::Gap, 0), summary)
}

/// Store what is left of an item that was removed where it comes from.
pub(crate) fn insert_redacted(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run: i64,
    at: ItemRef,
    said: &ItemContent,
) -> OpResult<ItemSummary> {
    let summary = ItemSummary {
        no: at.no,
        tokens: said.tokens,
        digest: digest::item(tenant, at, said),
    };
    insert_bodiless(tx, run, (said.kind, said.source), summary)
}

fn insert_bodiless(
    tx: &Tx<'_>,
    run: i64,
    (kind, source): (ItemKind, u8),
    summary: ItemSummary,
) -> OpResult<ItemSummary> {
    let again: Option<i64> = None;
    let body: Option<&[u8]> = None;
    let kind = kind.code();
    let values = params![
        run,
        summary.no,
        kind,
        source,
        summary.tokens,
        again,
        summary.digest,
        body
    ];
    tx.statements.run(TurnStatement::Item, values)?;
    Ok(summary)
}

/// Whether items that are stored from a number on are these.
pub(crate) fn same(
    conn: &Connection,
    tenant: &Tenant,
    run: (i64, RunId),
    first: u32,
    items: &[PreparedItem],
) -> OpResult<bool> {
    for (no, item) in (first..).zip(items) {
        let at = ItemRef { run: run.1, no };
        let sql = "SELECT i.digest, w.id, o.no FROM item i LEFT JOIN item o ON o.item=i.again
          LEFT JOIN run w ON w.run=o.run WHERE i.run=? AND i.no=?";
        let stored = one(conn, sql, (run.0, no), |row| {
            Ok((
                row.get::<_, Digest>(0)?,
                row.get::<_, Option<[u8; 16]>>(1)?,
                row.get::<_, Option<u32>>(2)?,
            ))
        })?;
        let Some((digest, again, again_no)) = stored else {
            return Ok(false);
        };
        let fits = match (&item.content, again, again_no) {
            (PreparedContent::New { .. }, None, None) => item.digest_at(tenant, at) == Some(digest),
            // It may have been asked for by way of another one; what counts is that it is one.
            (PreparedContent::Repeat(_), Some(_), Some(_)) => true,
            _ => false,
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}
