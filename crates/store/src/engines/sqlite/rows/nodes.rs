//! Making nodes and moving heads.

use rusqlite::params;

use crate::digest::{self, Digest, NodeFields};
use crate::engines::sqlite::cache::{BaseNode, CachedHead, CachedRun, ItemSummary, StateAt};
use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::rows::items;
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{OPEN, flag, int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::engines::sqlite::write::statements::TurnStatement;
use crate::trials;
use crate::{ItemRef, NodeId, Published, RunId, State, TenantScope, Version};

/// State that a node sets, in its stored form.
pub(crate) struct NewState {
    json: String,
    digest: Digest,
}

impl NewState {
    pub(crate) fn new(scope: &TenantScope, run: RunId, step: u32, state: &State) -> Self {
        let json = state.to_json();
        let digest = digest::state(scope.tenant(), run, step, &json);
        Self { json, digest }
    }
}

/// What is needed to make a node.
pub(crate) struct NewNode<'a> {
    pub(crate) step: u32,
    /// The number of its last item.
    pub(crate) to: u32,
    pub(crate) open: bool,
    pub(crate) state: Option<&'a NewState>,
    pub(crate) created: u64,
    /// What is known of where it comes to be.
    pub(crate) seen: Lookahead,
}

/// What a publication will find, as far as it was looked up in the same transaction.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lookahead {
    /// The number of the timeline that has to be opened.
    pub(crate) timeline: Option<i64>,
    /// The version of the thread, and whether a free run moves its head.
    pub(crate) head: Option<(u64, bool)>,
}

/// Look where the node of a run comes to be, and whether it moves the head if the run is free.
pub(crate) fn look_ahead(tx: &Tx<'_>, live: &CachedRun) -> OpResult<Lookahead> {
    let own = live.base.filter(|base| base.own);
    if live.flags & flag::LEASED != 0 {
        // A leased run goes on at the head, where other runs are only by chance.
        let timeline = match own {
            Some(_) => None,
            None => Some(next_timeline(tx)?),
        };
        return Ok(Lookahead {
            timeline,
            head: None,
        });
    }
    let mut seen = Lookahead::default();
    let key = params![
        live.thread,
        live.base.map(|base| base.tl),
        live.base.map(|base| int(base.first)),
        live.base.map(|base| int(base.last + 1)),
        own.is_some(),
    ];
    tx.statements.query_one(TurnStatement::Place, key, |row| {
        seen.head = Some((num(row.get(0)?), row.get(1)?));
        seen.timeline = row.get::<_, Option<i64>>(2)?.map(|last| last + 1);
        Ok(())
    })?;
    Ok(seen)
}

/// The number that the next timeline gets.
fn next_timeline(tx: &Tx<'_>) -> OpResult<i64> {
    Ok(tx.statements.number(TurnStatement::LastTimeline)? + 1)
}

/// The items of a run from `live.from` on. A gap is stored for each that is missing.
fn summaries(tx: &Tx<'_>, live: &CachedRun, to: u32) -> OpResult<Vec<ItemSummary>> {
    let mut summaries = Vec::with_capacity((to + 1 - live.from) as usize);
    for no in live.from..=to {
        let summary = match live.summary_of(no) {
            Some(summary) => *summary,
            None => {
                let at = ItemRef { run: live.id, no };
                items::insert_gap(tx, &live.tenant, live.row, at)?
            }
        };
        summaries.push(summary);
    }
    Ok(summaries)
}

/// Make a node of the items of a run from `live.from` on. All of them are stored, or become gaps.
pub(crate) fn insert_node(
    tx: &Tx<'_>,
    live: &mut CachedRun,
    of: &NewNode<'_>,
) -> OpResult<BaseNode> {
    let conn = tx.conn;
    let summaries = summaries(tx, live, of.to)?;
    let state = match of.state {
        Some(new) => {
            let sql = "INSERT INTO state(run, step, digest, body) VALUES(?,?,?,?)";
            run_sql(conn, sql, (live.row, of.step, new.digest, &new.json))?;
            Some(StateAt {
                run: live.row,
                step: of.step,
                digest: new.digest,
                left: None,
            })
        }
        None => live.base.and_then(|base| base.state),
    };
    let said: u64 = summaries
        .iter()
        .map(|summary| u64::from(summary.tokens))
        .sum();
    let before = match live.base {
        // What a fork shares is in its total.
        Some(base) if base.own || !trials::planted("fork-uncounted") => base.tokens,
        _ => 0,
    };
    let last_before = live.base.map_or(0, |base| base.last);
    let fields = NodeFields {
        id: NodeId {
            run: live.id,
            step: of.step,
        },
        first: last_before + 1,
        last: last_before + summaries.len() as u64,
        first_item: live.from,
        flags: if of.open { OPEN } else { 0 },
        tokens: before + said,
    };
    let digest = digest::node(
        &live.tenant,
        live.base.as_ref().map(|base| &base.digest),
        &fields,
        state.as_ref().map(|state| &state.digest),
        summaries.iter().map(|summary| summary.digest),
    );
    let insert = |tl: i64| {
        tx.statements.run(
            TurnStatement::Node,
            params![
                tl,
                int(fields.first),
                int(fields.last),
                live.row,
                of.step,
                fields.first_item,
                fields.flags,
                state.map(|state| state.run),
                state.map(|state| state.step),
                int(fields.tokens),
                int(of.created),
                digest,
            ],
        )
    };
    // Who comes second at a place opens a timeline of its own.
    let tl = match live.base {
        Some(base) if base.own && of.seen.timeline.is_none() && insert(base.tl)? == 1 => base.tl,
        base => {
            let tl = match of.seen.timeline {
                Some(tl) => tl,
                None => next_timeline(tx)?,
            };
            open_timeline(tx, tl, live.thread, base)?;
            insert(tl)?;
            tl
        }
    };
    let base = BaseNode {
        id: fields.id,
        tl,
        first: fields.first,
        last: fields.last,
        own: true,
        tokens: fields.tokens,
        state,
        digest,
    };
    live.base = Some(base);
    live.published = Some((tl, fields.first, of.step));
    live.from = of.to + 1;
    live.summaries.retain(|summary| summary.no > of.to);
    Ok(base)
}

fn open_timeline(tx: &Tx<'_>, tl: i64, thread: i64, base: Option<BaseNode>) -> OpResult<()> {
    let (parent, fork) = match base {
        // One position later would show what came after the fork.
        Some(base) => (
            Some(base.tl),
            base.last + u64::from(trials::planted("fork-late")),
        ),
        None => (None, 0),
    };
    let values = params![tl, thread, parent, int(fork)];
    tx.statements.run(TurnStatement::Timeline, values)?;
    Ok(())
}

/// A minute, by which threads are listed.
pub(crate) fn minute(now: u64) -> i64 {
    int(now / 60_000)
}

/// Move the head of a thread from a base to a node of a leased run. The version was checked.
pub(crate) fn move_leased(
    tx: &mut Tx<'_>,
    live: &mut CachedRun,
    before: Option<BaseNode>,
    to: BaseNode,
) -> OpResult<()> {
    let minute = minute(tx.now);
    // In the usual case no index changes.
    let mut moved = 0;
    if before.is_some_and(|before| before.tl == to.tl) {
        let values = params![
            int(to.first),
            int(tx.now),
            live.thread,
            int(live.version),
            to.tl,
            minute,
            to.digest,
        ];
        moved = tx.statements.run(TurnStatement::Head, values)?;
    }
    if moved == 0 {
        let sql = "UPDATE thread SET head_tl=?1, head_first=?2, borrowed=0, version=version+1, touched=?3, recent=?4,
          head_digest=?7 WHERE thread=?5 AND version=?6";
        let values = (
            to.tl,
            int(to.first),
            int(tx.now),
            minute,
            live.thread,
            int(live.version),
            to.digest,
        );
        moved = run_sql(tx.conn, sql, values)?;
    }
    debug_assert_eq!(moved, 1, "the version was checked");
    live.version += 1;
    Ok(())
}

/// Move the head of a thread to a node of a free run, if it still is where the run started.
fn move_free(
    tx: &Tx<'_>,
    live: &mut CachedRun,
    before: Option<BaseNode>,
    to: BaseNode,
    seen: Option<(u64, bool)>,
) -> OpResult<bool> {
    if let Some((version, false)) = seen {
        live.version = version;
        return Ok(false);
    }
    let values = params![
        live.thread,
        before.map(|base| base.tl),
        before.map(|base| int(base.first)),
        to.tl,
        int(to.first),
        int(tx.now),
        minute(tx.now),
        to.digest,
    ];
    // In the usual case no index changes.
    let within = before.is_some_and(|before| before.tl == to.tl);
    let moved = within && tx.statements.run(TurnStatement::FreeHead, values)? == 1
        || tx.statements.run(TurnStatement::FreeMove, values)? == 1;
    live.version = match seen {
        Some((version, _)) => version + u64::from(moved),
        None => thread_version(tx, live.thread)?,
    };
    Ok(moved)
}

pub(crate) fn thread_version(tx: &Tx<'_>, thread: i64) -> OpResult<u64> {
    let sql = "SELECT version FROM thread WHERE thread=?";
    let version: Option<i64> = one(tx.conn, sql, [thread], |row| row.get(0))?;
    Ok(version.map_or(0, num))
}

/// What a run is answered that has nothing to publish: its last node, and whether that is the head.
pub(crate) fn unpublished(tx: &Tx<'_>, live: &CachedRun) -> OpResult<Published> {
    let sql = "SELECT version, head_tl=?2 AND head_first=?3 FROM thread WHERE thread=?1";
    let (tl, first) = live.base.map(|base| (base.tl, int(base.first))).unzip();
    let found = one(tx.conn, sql, (live.thread, tl, first), |row| {
        Ok((num(row.get(0)?), row.get::<_, Option<bool>>(1)?))
    })?;
    let (version, is_head) = found.unwrap_or_default();
    Ok(Published {
        node: live.base.map(|base| base.id),
        last: live.base.map_or(0, |base| base.last),
        moved: is_head == Some(true),
        version: Version(version),
    })
}

/// Make a node and move the head to it, if it is the run's to move.
pub(crate) fn publish_node(
    tx: &mut Tx<'_>,
    live: &mut CachedRun,
    of: &NewNode<'_>,
    tenant: i64,
) -> OpResult<Published> {
    let before = live.base;
    let placed = insert_node(tx, live, of)?;
    let moved = if live.flags & flag::LEASED != 0 {
        move_leased(tx, live, before, placed)?;
        true
    } else {
        move_free(tx, live, before, placed, of.seen.head)?
    };
    if moved {
        tx.after_commit(CacheUpdate::ThreadMoved(live.thread));
        tx.after_commit(CacheUpdate::Head(
            (tenant, live.thread_id.clone()),
            CachedHead {
                thread: live.thread,
                version: live.version,
                base: Some(placed),
            },
        ));
    }
    Ok(Published {
        node: Some(placed.id),
        last: placed.last,
        moved,
        version: Version(live.version),
    })
}
