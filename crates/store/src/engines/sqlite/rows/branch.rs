//! Reading the items of a branch, and checking them the first time.

use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, Row};

use crate::digest::{self, Digest, NodeFields};
use crate::engines::sqlite::cache::{Caches, TimelineChain, Verified, lock};
use crate::engines::sqlite::op_error::{OpError, OpResult, corrupt};
use crate::engines::sqlite::rows::find::{node_at, node_before, node_on_chain, timeline_chain};
use crate::engines::sqlite::rows::items::PACKED;
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::rows::{NodeRow, int, num, redactions};
use crate::item::{Item, located};
use crate::rules;
use crate::rules::cursors::Stretch;
use crate::rules::damage::DigestInput;
use crate::trials;
use crate::{
    DamageSite, ItemContent, ItemKind, ItemRef, Position, Redaction, Result, RunId, Tenant,
};

/// The largest body that is unpacked.
const LARGEST: usize = 1 << 30;

/// A branch: everything on the way to a node.
pub(crate) struct Branch<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) caches: &'a Caches,
    pub(crate) tenant: &'a Tenant,
    pub(crate) chain: Arc<TimelineChain>,
    pub(crate) last: Position,
}

impl<'a> Branch<'a> {
    /// The branch that ends in a node.
    pub(crate) fn to(
        conn: &'a Connection,
        caches: &'a Caches,
        tenant: &'a Tenant,
        node: &NodeRow,
    ) -> OpResult<Self> {
        Ok(Self {
            conn,
            caches,
            tenant,
            chain: timeline_chain(conn, caches, node.tl)?,
            last: node.last,
        })
    }

    /// The parts of timelines that it consists of.
    pub(crate) fn stretches(&self) -> Vec<Stretch> {
        stretches(&self.chain, self.last)
    }

    /// The items at the positions from `lo` to `hi`, for the shared reader of messages.
    pub(crate) fn fetch(&self, lo: Position, hi: Position) -> Result<Vec<Item>> {
        self.items(lo, hi).map_err(OpError::into_error)
    }

    fn items(&self, lo: Position, hi: Position) -> OpResult<Vec<Item>> {
        // From the end backwards, one range of each timeline on the way.
        let mut ranges = Vec::new();
        let mut chain = &self.chain;
        let mut end = hi.min(self.last);
        while end >= lo {
            if end > chain.fork {
                ranges.push((chain.tl, lo.max(chain.fork + 1), end));
            }
            end = end.min(chain.fork);
            match &chain.parent {
                Some(parent) => chain = parent,
                None => break,
            }
        }
        let mut items = Vec::new();
        for (tl, lo, hi) in ranges.into_iter().rev() {
            range(self, tl, lo, hi, &mut items)?;
        }
        let hi = hi.min(self.last);
        let wanted = (hi + 1).saturating_sub(lo);
        if items.len() as u64 != wanted {
            return Err(self.missing(lo, hi)?);
        }
        Ok(items)
    }

    /// What is missing of a range of positions.
    fn missing(&self, lo: Position, hi: Position) -> OpResult<OpError> {
        for position in lo..=hi {
            let found = node_on_chain(self.conn, &self.chain, position)?;
            let Some(node) = found.filter(|node| node.last >= position) else {
                let site = DamageSite::default().at_position(position);
                return Ok(corrupt(site, "no node holds it"));
            };
            let at = node.item_at(position);
            let sql = "SELECT 1 FROM item WHERE run=? AND no=?";
            if one(self.conn, sql, (node.run, at.no), |_| Ok(()))?.is_none() {
                return Ok(corrupt(at, "it is missing").at_position(position));
            }
        }
        let site = DamageSite::default().at_position(lo);
        let detail = format!("up to {hi} there are items that no node should have");
        Ok(corrupt(site, detail))
    }
}

/// The parts of the branch that ends at a position of a timeline.
pub(crate) fn stretches(chain: &Arc<TimelineChain>, last: Position) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut end = last;
    let mut next = Some(chain);
    while let Some(chain) = next {
        found.push((chain.tl, end));
        end = end.min(chain.fork);
        next = chain.parent.as_ref();
    }
    found
}

/// An item as it is stored.
pub(crate) struct ItemRow {
    pub(crate) at: ItemRef,
    run: i64,
    kind: u8,
    source: u8,
    tokens: u32,
    again: Option<i64>,
    pub(crate) digest: Digest,
    body: Option<Arc<[u8]>>,
}

/// The columns of an item `i`; the run's id is read elsewhere.
pub(crate) const ITEM: &str = "i.run, i.no, i.kind, i.source, i.units, i.again, i.digest, i.body";

impl ItemRow {
    fn read(row: &Row<'_>, at: usize, run: RunId) -> rusqlite::Result<Self> {
        Ok(Self {
            at: ItemRef {
                run,
                no: row.get(at + 1)?,
            },
            run: row.get(at)?,
            kind: row.get(at + 2)?,
            source: row.get(at + 3)?,
            tokens: row.get(at + 4)?,
            again: row.get(at + 5)?,
            digest: row.get(at + 6)?,
            body: row.get_ref(at + 7)?.as_blob_or_null()?.map(Arc::from),
        })
    }

    /// Whether its own bytes are here.
    pub(crate) fn is_original(&self) -> bool {
        self.again.is_none()
    }
}

/// Read one range of a timeline.
fn range(
    branch: &Branch<'_>,
    tl: i64,
    lo: Position,
    hi: Position,
    items: &mut Vec<Item>,
) -> OpResult<()> {
    // Only what is needed for every item; the rest of a node is read when it is checked.
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT n.first, n.last, n.digest, r.id, n.item_lo, {ITEM} FROM node n CROSS JOIN run r ON r.run=n.run
         CROSS JOIN item i ON i.run=n.run AND i.no BETWEEN n.item_lo+max(?2-n.first, 0) AND n.item_lo+min(n.last, ?3)-n.first
         WHERE n.tl=?1 AND n.first>=coalesce((SELECT max(first) FROM node WHERE tl=?1 AND first<=?2), ?2) AND n.first<=?3
         ORDER BY n.first, i.no"
        )
    });
    let conn = branch.conn;
    let mut statement = prepare(conn, &SQL)?;
    let mut rows = statement.query((tl, int(lo), int(hi)))?;
    let mut node: Option<Served> = None;
    while let Some(row) = rows.next()? {
        let first = num(row.get(0)?);
        if node.as_ref().is_none_or(|node| node.first != first) {
            finish(branch, node.take());
            let digest = row.get(2)?;
            let known = lock(&branch.caches.checked).get(&digest);
            if known.is_none() {
                check_node(branch, tl, first)?;
            }
            node = Some(Served {
                first,
                last: num(row.get(1)?),
                digest,
                run: RunId::from_bytes(row.get(3)?),
                first_item: row.get(4)?,
                known,
                items: 0,
            });
        }
        let Some(node) = &mut node else { continue };
        let check = node.known != Some(Verified::WithItems);
        let no: u32 = row.get(6)?;
        let read =
            readable(row, 5, node.run).and_then(|stored| item(conn, branch.tenant, stored, check));
        items.push(read.map_err(|damage| {
            damage.at_position(node.first + u64::from(no.saturating_sub(node.first_item)))
        })?);
        node.items += 1;
    }
    finish(branch, node);
    Ok(())
}

/// A node of which items are being read.
struct Served {
    first: Position,
    last: Position,
    digest: Digest,
    run: RunId,
    first_item: u32,
    known: Option<Verified>,
    items: u64,
}

/// Remember what was checked of a node.
fn finish(branch: &Branch<'_>, node: Option<Served>) {
    if let Some(node) = node
        && node.known != Some(Verified::WithItems)
    {
        let whole = node.items == node.last + 1 - node.first;
        let checked = if whole {
            Verified::WithItems
        } else {
            Verified::NodeAlone
        };
        lock(&branch.caches.checked).insert(node.digest, checked);
    }
}

/// Check that a node has the items, the state and the node before that it was made of.
fn check_node(branch: &Branch<'_>, tl: i64, first: Position) -> OpResult<()> {
    let found = node_at(branch.conn, tl, first)?;
    let site = || DamageSite::default().at_position(first);
    let node = &found.ok_or_else(|| corrupt(site(), "its node is missing"))?;
    let before = node_before(branch.conn, branch.caches, node)?;
    let last_before = before.as_ref().map_or(0, |before| before.last);
    if last_before + 1 != node.first {
        return Err(misplaced(node, last_before));
    }
    check_digest(branch.conn, branch.tenant, node, before.as_ref())
}

/// Damage of a node that does not start where the one before ends.
pub(crate) fn misplaced(node: &NodeRow, last_before: Position) -> OpError {
    let next = last_before + 1;
    if next < node.first {
        let site = DamageSite::default().at_position(next);
        return corrupt(
            site,
            format!("no node holds it, the next starts at {}", node.first),
        );
    }
    let detail = format!(
        "the node before ends at {last_before}, it covers {} to {}",
        node.first, node.last
    );
    corrupt(node.site(), detail)
}

/// Check the digest of a node against its items.
pub(crate) fn check_digest(
    conn: &Connection,
    tenant: &Tenant,
    node: &NodeRow,
    before: Option<&NodeRow>,
) -> OpResult<()> {
    let mut statement = prepare(
        conn,
        "SELECT digest FROM item WHERE run=? AND no BETWEEN ? AND ? ORDER BY no",
    )?;
    let digests =
        statement.query_map((node.run, node.item_lo, node.item_hi()), |row| row.get(0))?;
    let digests: Vec<Digest> = digests.collect::<Result<_, _>>()?;
    let wanted = node.last + 1 - node.first;
    if digests.len() as u64 != wanted {
        let detail = format!("{} of its {wanted} items are there", digests.len());
        return Err(
            blamed(conn, tenant, node, before)?.unwrap_or_else(|| corrupt(node.site(), detail))
        );
    }
    let fields = NodeFields {
        id: node.id,
        first: node.first,
        last: node.last,
        first_item: node.item_lo,
        flags: node.flags,
        tokens: node.tokens,
    };
    let state = node.state.as_ref().map(|state| &state.digest);
    let parent = before.map(|before| &before.digest);
    let other =
        !node.possible || digest::node(tenant, parent, &fields, state, digests) != node.digest;
    if trials::unless("nodes-unread", other) {
        let detail = "its digest does not fit what is stored";
        return Err(
            blamed(conn, tenant, node, before)?.unwrap_or_else(|| corrupt(node.site(), detail))
        );
    }
    Ok(())
}

/// The item to which the damage of a node is due, if it is one: it is missing, or is not what was
/// stored. `None` if it is the node's own row that is damaged.
fn blamed(
    conn: &Connection,
    tenant: &Tenant,
    node: &NodeRow,
    before: Option<&NodeRow>,
) -> OpResult<Option<OpError>> {
    if !node.possible || trials::planted("damage-node-blamed") {
        return Ok(None);
    }
    let own = before.filter(|before| before.run == node.run);
    let first_item = own.map_or(1, |before| before.item_hi().saturating_add(1));
    let sql = "SELECT next_item, (SELECT min(first) FROM node WHERE tl=?2 AND first>?3) FROM run WHERE run=?1";
    let key = (node.run, node.tl, int(node.first));
    let bounds = one(conn, sql, key, |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, Option<i64>>(1)?))
    })?;
    // A range that its run cannot have, or that reaches into the next node.
    let (next_item, next) = bounds.unwrap_or_default();
    if node.item_lo != first_item
        || node.item_hi() >= next_item
        || next.is_some_and(|next| num(next) <= node.last)
    {
        return Ok(None);
    }
    let sql = format!("SELECT {ITEM} FROM item i WHERE i.run=? AND i.no=?");
    for position in node.first..=node.last {
        let at = node.item_at(position);
        let mut statement = prepare(conn, &sql)?;
        let mut rows = statement.query((node.run, at.no))?;
        let found = match rows.next()? {
            Some(row) => readable(row, 0, at.run).and_then(|row| item(conn, tenant, row, true)),
            None => Err(corrupt(at, "it is missing")),
        };
        if let Err(damage) = found {
            return Ok(Some(damage.at_position(position)));
        }
    }
    Ok(None)
}

/// An item as it is stored; if one of its columns cannot be, it is damaged.
pub(crate) fn readable(row: &Row<'_>, at: usize, run: RunId) -> OpResult<ItemRow> {
    let no = row.get(at + 1)?;
    ItemRow::read(row, at, run).map_err(|error| OpError::from(error).of(ItemRef { run, no }))
}

/// An item with its bytes, or with who removed them.
pub(crate) fn item(
    conn: &Connection,
    tenant: &Tenant,
    row: ItemRow,
    check: bool,
) -> OpResult<Item> {
    let Some(kind) = ItemKind::of(row.kind & !PACKED) else {
        return Err(corrupt(row.at, "its kind is not known"));
    };
    let again = match row.again {
        None => None,
        Some(original) => Some(original_of(conn, &row, original)?),
    };
    if let Some(original) = &again {
        if check && original.tokens != row.tokens {
            let detail = format!(
                "it counts as {} tokens, what it says again as {}",
                row.tokens, original.tokens
            );
            return Err(corrupt(row.at, detail));
        }
        if check {
            let content = DigestInput::Repeat(original.at);
            rules::damage::item(tenant, row.at, &content, row.digest)?;
        }
    } else if kind == ItemKind::Gap {
        if check {
            rules::damage::item(tenant, row.at, &DigestInput::Gap, row.digest)?;
        }
        return Ok(Item {
            at: row.at,
            again: None,
            kind,
            tokens: 0,
            body: Ok(Arc::from([].as_slice())),
            source: 0,
        });
    }
    let at = row.at;
    let of = again.as_ref().map(|original| original.at);
    let source = again.unwrap_or(row);
    let body = body(conn, tenant, &source, kind, check)?;
    Ok(Item {
        at,
        again: of,
        kind,
        tokens: source.tokens,
        body,
        source: source.source,
    })
}

fn original_of(conn: &Connection, row: &ItemRow, original: i64) -> OpResult<ItemRow> {
    let sql =
        format!("SELECT r.id, {ITEM} FROM item i CROSS JOIN run r ON r.run=i.run WHERE i.item=?");
    let found = one(conn, &sql, [original], |row| {
        let run = RunId::from_bytes(row.get(0)?);
        ItemRow::read(row, 1, run)
    })?;
    found.ok_or_else(|| corrupt(row.at, "what it says again is missing"))
}

/// The plain bytes of an item, checked.
fn body(
    conn: &Connection,
    tenant: &Tenant,
    row: &ItemRow,
    kind: ItemKind,
    check: bool,
) -> OpResult<Result<Arc<[u8]>, Redaction>> {
    let Some(bytes) = &row.body else {
        let Some(redaction) = redactions::find(conn, tenant, row.run, row.at)? else {
            return Err(corrupt(row.at, "its body is missing and was not redacted"));
        };
        return Ok(Err(redaction));
    };
    let plain: Arc<[u8]> = if row.kind & PACKED == 0 {
        Arc::clone(bytes)
    } else {
        unpack(bytes, row.at)?.into()
    };
    if trials::unless("items-unread", check) {
        let said = ItemContent {
            kind,
            source: row.source,
            tokens: row.tokens,
            body: Arc::clone(&plain),
        };
        rules::damage::item(tenant, row.at, &DigestInput::Content(&said), row.digest)?;
    }
    Ok(Ok(plain))
}

pub(crate) fn unpack(bytes: &[u8], at: ItemRef) -> OpResult<Vec<u8>> {
    let size = zstd::bulk::Decompressor::upper_bound(bytes).unwrap_or(LARGEST);
    zstd::bulk::decompress(bytes, size.min(LARGEST)).map_err(|error| corrupt(at, error.to_string()))
}

/// Items of a run in the order of their numbers.
pub(crate) fn run_items(
    conn: &Connection,
    tenant: &Tenant,
    run: (i64, RunId),
    from: u32,
    to: u32,
    limit: usize,
) -> OpResult<Vec<Item>> {
    let sql = format!(
        "SELECT {ITEM} FROM item i WHERE i.run=? AND i.no BETWEEN ? AND ? ORDER BY i.no LIMIT ?"
    );
    let mut statement = prepare(conn, &sql)?;
    let limit = int(limit as u64);
    let mut rows = statement.query((run.0, from, to, limit))?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(item(conn, tenant, readable(row, 0, run.1)?, true)?);
    }
    Ok(items)
}

/// Messages out of items that are not on a branch.
pub(crate) fn journal_entries(items: &[Item]) -> OpResult<Vec<crate::Entry>> {
    Ok(located(items, 0)?)
}
