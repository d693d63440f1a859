//! Rows as values, and how they are looked up.

use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, Row};
use throughline_model::json::RawJson;

use super::cache::{Base, Caches, Line, StateAt, lock};
use super::fault::{Done, corrupt, missing};
use super::sql::{one, prepare};
use crate::digest::Digest;
use crate::{
    Alias, At, Error, Millis, Mode, MovedBy, NodeId, NodeRef, Position, Run, RunId, RunKind,
    RunState, Tenant, Thread, ThreadId, Tip, Version,
};

/// Bits of `run.flags`.
pub(super) mod flag {
    pub(in super::super) const LEASED: u32 = 1;
    pub(in super::super) const PER_CALL: u32 = 2;
    pub(in super::super) const APPEND: u32 = 4;
    pub(in super::super) const UNSENT: u32 = 8;
    pub(in super::super) const CANCELLING: u32 = 16;
    pub(in super::super) const HIDDEN: u32 = 32;
    /// Its last publication moved the head.
    pub(in super::super) const MOVED: u32 = 64;
}

/// The bit of `node.flags` that says that calls wait.
pub(super) const OPEN: u8 = 1;

/// The stage of a thread that is shown.
pub(super) const SHOWN: i64 = 0;

/// A number as SQLite keeps it. What does not fit is far above every number that occurs.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number as it was kept.
pub(super) fn num(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The row of a tenant, if it has one. Tenants are never removed, so it may be remembered.
pub(super) fn tenant(conn: &Connection, caches: &Caches, tenant: &Tenant) -> Done<Option<i64>> {
    if let Some(row) = lock(&caches.tenants).get(tenant) {
        return Ok(Some(*row));
    }
    let sql = "SELECT tenant FROM tenant WHERE name=?";
    one(conn, sql, [tenant.as_str()], |row| row.get(0))
}

/// JSON that this store wrote.
pub(super) fn json(text: Option<String>, what: &'static str) -> Done<Option<RawJson>> {
    let Some(text) = text else { return Ok(None) };
    match RawJson::new(&text) {
        Ok(raw) => Ok(Some(raw)),
        Err(error) => Err(corrupt(what, error.to_string())),
    }
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct NodeRow {
    pub(super) row: i64,
    pub(super) tl: i64,
    pub(super) first: Position,
    pub(super) last: Position,
    pub(super) run: i64,
    pub(super) id: NodeId,
    pub(super) item_lo: u32,
    pub(super) flags: u8,
    pub(super) state: Option<StateAt>,
    pub(super) tokens: u64,
    pub(super) created: Millis,
    pub(super) digest: Digest,
    pub(super) run_flags: u32,
    /// Whether it is the last node of its run.
    pub(super) is_last: bool,
}

/// The columns of a node `n`, its run `r` and its state `s`.
pub(super) const NODE: &str = "n.node, n.tl, n.first, n.last, n.run, r.id, n.step, n.item_lo, n.flags,
 n.state_run, n.state_step, s.digest, n.tokens, n.created, n.digest, r.flags, r.pub_tl=n.tl AND r.pub_first=n.first";
const NODE_COLUMNS: usize = 17;

/// The tables of a node, after `FROM`.
pub(super) const NODE_TABLES: &str = "node n CROSS JOIN run r ON r.run=n.run
 LEFT JOIN state s ON s.run=n.state_run AND s.step=n.state_step";

impl NodeRow {
    pub(super) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        let state_run: Option<i64> = row.get(at + 9)?;
        let state = match state_run {
            Some(run) => Some(StateAt {
                run,
                step: row.get(at + 10)?,
                // A state that is missing shows in the digest of the node.
                digest: row.get::<_, Option<Digest>>(at + 11)?.unwrap_or_default(),
            }),
            None => None,
        };
        Ok(Self {
            row: row.get(at)?,
            tl: row.get(at + 1)?,
            first: num(row.get(at + 2)?),
            last: num(row.get(at + 3)?),
            run: row.get(at + 4)?,
            id: NodeId {
                run: RunId::from_bytes(row.get(at + 5)?),
                step: row.get(at + 6)?,
            },
            item_lo: row.get(at + 7)?,
            flags: row.get(at + 8)?,
            state,
            tokens: num(row.get(at + 12)?),
            created: num(row.get(at + 13)?),
            digest: row.get(at + 14)?,
            run_flags: row.get(at + 15)?,
            is_last: row.get::<_, Option<bool>>(at + 16)?.unwrap_or(false),
        })
    }

    pub(super) fn tip(&self) -> Tip {
        Tip {
            node: self.id,
            last: self.last,
            tokens: self.tokens,
            open: self.flags & OPEN != 0,
            unsent: self.is_last && self.run_flags & flag::UNSENT != 0,
        }
    }

    pub(super) fn base(&self, own: bool) -> Base {
        Base {
            id: self.id,
            tl: self.tl,
            first: self.first,
            last: self.last,
            own,
            tokens: self.tokens,
            state: self.state,
            digest: self.digest,
        }
    }

    /// The number of its last item.
    pub(super) fn item_hi(&self) -> u32 {
        let length = u32::try_from(self.last.saturating_sub(self.first)).unwrap_or(u32::MAX);
        self.item_lo.saturating_add(length)
    }
}

/// The node that starts at a position of a timeline.
pub(super) fn node_at(conn: &Connection, tl: i64, first: Position) -> Done<Option<NodeRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {NODE} FROM {NODE_TABLES} WHERE n.tl=? AND n.first=?"));
    one(conn, &SQL, (tl, int(first)), |row| NodeRow::read(row, 0))
}

/// The node that holds a position of a timeline, or the last one before it.
pub(super) fn node_holding(
    conn: &Connection,
    tl: i64,
    position: Position,
) -> Done<Option<NodeRow>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {NODE} FROM {NODE_TABLES} WHERE n.tl=? AND n.first<=? ORDER BY n.first DESC LIMIT 1"
        )
    });
    one(conn, &SQL, (tl, int(position)), |row| NodeRow::read(row, 0))
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadRow {
    pub(super) row: i64,
    pub(super) id: ThreadId,
    pub(super) version: u64,
    pub(super) borrowed: bool,
    pub(super) moved_by: MovedBy,
    pub(super) created: Millis,
    pub(super) touched: Millis,
    pub(super) keep: Option<Millis>,
    pub(super) title: Option<String>,
    pub(super) meta: Option<String>,
    pub(super) settings: Option<String>,
    pub(super) head: Option<NodeRow>,
}

/// The columns of a thread `t`; those of its head follow.
pub(super) const THREAD: &str = "t.thread, t.id, t.version, t.borrowed, t.moved_by, t.created, t.touched, t.keep, t.title, t.meta, t.settings, t.head_tl, ";
const THREAD_COLUMNS: usize = 12;

/// The tables of a thread and its head, after `FROM`.
pub(super) const THREAD_TABLES: &str =
    "thread t LEFT JOIN node n ON n.tl=t.head_tl AND n.first=t.head_first
 LEFT JOIN run r ON r.run=n.run LEFT JOIN state s ON s.run=n.state_run AND s.step=n.state_step";

impl ThreadRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let id: Option<String> = row.get(1)?;
        let has_head: Option<i64> = row.get(11)?;
        let moved_by: i64 = row.get(4)?;
        Ok(Self {
            row: row.get(0)?,
            id: ThreadId::new(&id.unwrap_or_default()).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(
                    1,
                    rusqlite::types::Type::Text,
                    error.into(),
                )
            })?,
            version: num(row.get(2)?),
            borrowed: row.get(3)?,
            moved_by: moved_by_of(moved_by),
            created: num(row.get(5)?),
            touched: num(row.get(6)?),
            keep: row.get::<_, Option<i64>>(7)?.map(num),
            title: row.get(8)?,
            meta: row.get(9)?,
            settings: row.get(10)?,
            head: match has_head {
                Some(_) => Some(NodeRow::read(row, THREAD_COLUMNS)?),
                None => None,
            },
        })
    }

    pub(super) fn thread(&self, aliases: Vec<Alias>) -> Done<Thread> {
        Ok(Thread {
            id: self.id.clone(),
            aliases,
            title: self.title.clone(),
            meta: json(self.meta.clone(), "the metadata of a thread")?,
            settings: json(self.settings.clone(), "the settings of a thread")?,
            moved_by: self.moved_by,
            keep: self.keep,
            head: self.head.as_ref().map(NodeRow::tip),
            version: Version(self.version),
            created: self.created,
            touched: self.touched,
        })
    }

    pub(super) fn base(&self) -> Option<Base> {
        self.head.as_ref().map(|head| head.base(!self.borrowed))
    }
}

pub(super) fn moved_by_code(moved_by: MovedBy) -> i64 {
    match moved_by {
        MovedBy::AnyRun => 0,
        MovedBy::LeasedRuns => 1,
    }
}

fn moved_by_of(code: i64) -> MovedBy {
    match code {
        0 => MovedBy::AnyRun,
        // A word of a later version is read as the careful one.
        _ => MovedBy::LeasedRuns,
    }
}

/// A thread by its id, at a stage.
pub(super) fn thread_by_id(
    conn: &Connection,
    tenant: i64,
    id: &ThreadId,
    stage: i64,
) -> Done<Option<ThreadRow>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {THREAD} {NODE} FROM {THREAD_TABLES} WHERE t.tenant=? AND t.id=? AND t.stage=?"
        )
    });
    one(conn, &SQL, (tenant, id.as_str(), stage), ThreadRow::read)
}

/// A shown thread by its row.
pub(super) fn thread_by_row(conn: &Connection, thread: i64) -> Done<Option<ThreadRow>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {THREAD} {NODE} FROM {THREAD_TABLES} WHERE t.thread=? AND t.stage=0")
    });
    one(conn, &SQL, [thread], ThreadRow::read)
}

/// A shown thread by its id, or say that there is none.
pub(super) fn shown_thread(
    conn: &Connection,
    tenant: Option<i64>,
    id: &ThreadId,
) -> Done<ThreadRow> {
    let found = match tenant {
        Some(tenant) => thread_by_id(conn, tenant, id, SHOWN)?,
        None => None,
    };
    found.ok_or_else(|| missing("thread", id))
}

/// The names of a thread, sorted.
pub(super) fn aliases(conn: &Connection, thread: i64) -> Done<Vec<Alias>> {
    let mut statement = prepare(
        conn,
        "SELECT kind, name FROM alias WHERE thread=? ORDER BY kind, name",
    )?;
    let rows = statement.query_map([thread], |row| {
        Ok(Alias::new(
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
        ))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct RunRow {
    pub(super) row: i64,
    pub(super) id: RunId,
    pub(super) thread: i64,
    pub(super) thread_id: Option<ThreadId>,
    pub(super) stage: i64,
    pub(super) state: RunState,
    pub(super) flags: u32,
    pub(super) epoch: u32,
    pub(super) owner: Option<i64>,
    pub(super) until: Option<i64>,
    pub(super) attempt: u32,
    pub(super) base: Option<(i64, Position)>,
    pub(super) base_id: Option<NodeId>,
    pub(super) version: u64,
    pub(super) inputs: u32,
    pub(super) next_step: u32,
    pub(super) next_item: u32,
    pub(super) next_event: u64,
    pub(super) published: Option<(i64, Position, u32)>,
    pub(super) created: Millis,
    pub(super) progress: Millis,
    pub(super) key: Option<String>,
    pub(super) key_digest: Option<Digest>,
    pub(super) request: Option<i64>,
    pub(super) note: Option<String>,
}

/// The columns of a run `r`, its thread `t` and its base `b` of run `br`.
pub(super) const RUN: &str = "r.run, r.id, r.thread, t.id, t.stage, r.state, r.flags, r.epoch, r.owner,
 (SELECT o.until FROM owner o WHERE o.owner=r.owner), r.attempt, r.base_tl, r.base_first, br.id, b.step,
 r.version, r.inputs, r.next_step, r.next_item, r.next_event, r.pub_tl, r.pub_first, r.pub_step,
 r.created, r.progress, r.idem, r.idem_digest, r.request, r.note";

pub(super) const RUN_TABLES: &str = "run r CROSS JOIN thread t ON t.thread=r.thread
 LEFT JOIN node b ON b.tl=r.base_tl AND b.first=r.base_first LEFT JOIN run br ON br.run=b.run";

impl RunRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let state: u8 = row.get(5)?;
        let thread: Option<String> = row.get(3)?;
        let base_tl: Option<i64> = row.get(11)?;
        let base_run: Option<[u8; 16]> = row.get(13)?;
        let pub_tl: Option<i64> = row.get(20)?;
        Ok(Self {
            row: row.get(0)?,
            id: RunId::from_bytes(row.get(1)?),
            thread: row.get(2)?,
            thread_id: thread.and_then(|id| ThreadId::new(&id).ok()),
            stage: row.get(4)?,
            // A husk is nobody's any more.
            state: RunState::of(state).unwrap_or(RunState::Discarded),
            flags: row.get(6)?,
            epoch: row.get(7)?,
            owner: row.get(8)?,
            until: row.get(9)?,
            attempt: row.get(10)?,
            base: match base_tl {
                Some(tl) => Some((tl, num(row.get(12)?))),
                None => None,
            },
            base_id: match base_run {
                Some(run) => Some(NodeId {
                    run: RunId::from_bytes(run),
                    step: row.get(14)?,
                }),
                None => None,
            },
            version: num(row.get(15)?),
            inputs: row.get(16)?,
            next_step: row.get(17)?,
            next_item: row.get(18)?,
            next_event: num(row.get(19)?),
            published: match pub_tl {
                Some(tl) => Some((tl, num(row.get(21)?), row.get(22)?)),
                None => None,
            },
            created: num(row.get(23)?),
            progress: num(row.get(24)?),
            key: row.get(25)?,
            key_digest: row.get(26)?,
            request: row.get(27)?,
            note: row.get(28)?,
        })
    }

    pub(super) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether whoever works on it is alive.
    pub(super) fn is_owned(&self, now: Millis) -> bool {
        self.until.is_some_and(|until| num(until) > now)
    }

    /// Where it stands, as readers see it.
    pub(super) fn seen(&self, now: Millis) -> RunState {
        match self.state {
            RunState::Running if !self.is_owned(now) => RunState::Interrupted,
            state => state,
        }
    }

    pub(super) fn mode(&self) -> Mode {
        if self.has(flag::PER_CALL) {
            Mode::PerCall
        } else {
            Mode::PerRun
        }
    }

    pub(super) fn kind(&self) -> RunKind {
        if self.has(flag::APPEND) {
            RunKind::Append
        } else {
            RunKind::Turn
        }
    }

    pub(super) fn published_id(&self) -> Option<NodeId> {
        self.published
            .map(|(_, _, step)| NodeId { run: self.id, step })
    }

    /// The run as it is shown.
    pub(super) fn run(&self, now: Millis) -> Done<Run> {
        let thread = self.thread_id.clone();
        Ok(Run {
            id: self.id,
            thread: thread.ok_or_else(|| missing("run", &self.id))?,
            kind: self.kind(),
            mode: self.mode(),
            state: self.seen(now),
            leased: self.has(flag::LEASED),
            epoch: self.epoch,
            attempt: self.attempt,
            base: self.base_id,
            version: Version(self.version),
            next_step: self.next_step,
            next_item: self.next_item,
            next_event: self.next_event,
            published: self.published_id(),
            cancelling: self.has(flag::CANCELLING),
            created: self.created,
            progress: self.progress,
            key: self.key.clone(),
            note: json(self.note.clone(), "the note of a run")?,
        })
    }
}

/// A run by its id, whatever became of its thread.
pub(super) fn any_run(conn: &Connection, tenant: i64, id: RunId) -> Done<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.tenant=? AND r.id=?"));
    one(conn, &SQL, (tenant, id.as_bytes()), RunRow::read)
}

/// A run by its row.
pub(super) fn run_by_row(conn: &Connection, run: i64) -> Done<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.run=?"));
    one(conn, &SQL, [run], RunRow::read)
}

/// The run with a key.
pub(super) fn run_by_key(conn: &Connection, tenant: i64, key: &str) -> Done<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.tenant=? AND r.idem=?"));
    one(conn, &SQL, (tenant, key), RunRow::read)
}

/// The leased run of a thread that is not settled.
pub(super) fn unsettled(conn: &Connection, thread: i64) -> Done<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.thread=? AND r.live=0"));
    one(conn, &SQL, [thread], RunRow::read)
}

/// A run of a shown thread by its id, hidden or not.
pub(super) fn run_to_write(conn: &Connection, tenant: Option<i64>, id: RunId) -> Done<RunRow> {
    let found = match tenant {
        Some(tenant) => any_run(conn, tenant, id)?,
        None => None,
    };
    found
        .filter(|run| run.stage == SHOWN)
        .ok_or_else(|| missing("run", &id))
}

/// A run as readers find it.
pub(super) fn shown_run(conn: &Connection, tenant: Option<i64>, id: RunId) -> Done<RunRow> {
    let run = run_to_write(conn, tenant, id)?;
    if run.has(flag::HIDDEN) {
        return Err(missing("run", &id));
    }
    Ok(run)
}

/// The node that a step of a run published.
pub(super) fn node_of(conn: &Connection, run: &RunRow, step: u32) -> Done<Option<NodeRow>> {
    let place = match run.published {
        Some((tl, first, last)) if last == step => Some((tl, first)),
        _ => {
            let sql = "SELECT tl, pos FROM step WHERE run=? AND no=? AND tl IS NOT NULL";
            one(conn, sql, (run.row, step), |row| {
                Ok((row.get(0)?, num(row.get(1)?)))
            })?
        }
    };
    match place {
        Some((tl, first)) => node_at(conn, tl, first),
        None => Ok(None),
    }
}

/// The node that somebody names, with its run.
pub(super) fn named_node(
    conn: &Connection,
    tenant: Option<i64>,
    node: NodeRef,
    now: Millis,
) -> Done<(NodeRow, RunRow)> {
    let run = shown_run(conn, tenant, node.run())?;
    let not_final = Error::NotFinal {
        run: run.id,
        state: run.seen(now),
    };
    let (found, id) = match node {
        NodeRef::Run(id) => match run.published {
            Some((tl, first, _)) => (node_at(conn, tl, first)?, id.to_string()),
            None => return Err(not_final.into()),
        },
        NodeRef::Node(id) => {
            let found = node_of(conn, &run, id.step)?;
            if found.is_none() && run.published.is_none() {
                return Err(not_final.into());
            }
            (found, id.to_string())
        }
    };
    match found {
        Some(node) => Ok((node, run)),
        None => Err(missing("node", &id)),
    }
}

/// What a name leads to: a thread and a node of it, if it has one.
pub(super) fn place(
    conn: &Connection,
    tenant: Option<i64>,
    at: &At,
    now: Millis,
) -> Done<(ThreadRow, Option<NodeRow>)> {
    match at {
        At::Thread(id) => {
            let thread = shown_thread(conn, tenant, id)?;
            let head = thread.head.clone();
            Ok((thread, head))
        }
        At::Alias(alias) => {
            let sql = "SELECT thread FROM alias WHERE tenant=? AND kind=? AND name=?";
            let key = (tenant.unwrap_or(0), &alias.kind, &alias.name);
            let row: Option<i64> = one(conn, sql, key, |row| row.get(0))?;
            let thread = match row {
                Some(row) => thread_by_row(conn, row)?,
                None => None,
            };
            let thread = thread.ok_or_else(|| missing("thread", &alias.name))?;
            let head = thread.head.clone();
            Ok((thread, head))
        }
        At::Node(node) => {
            let (node, run) = named_node(conn, tenant, *node, now)?;
            let thread = thread_by_row(conn, run.thread)?;
            let thread = thread.ok_or_else(|| missing("run", &run.id))?;
            Ok((thread, Some(node)))
        }
    }
}

/// How a timeline hangs on others.
pub(super) fn line(conn: &Connection, caches: &Caches, tl: i64) -> Done<Arc<Line>> {
    // From the timeline down to one that is known, then back up.
    let mut unknown = Vec::new();
    let mut next = Some(tl);
    let mut parent = None;
    while let Some(tl) = next {
        if let Some(known) = lock(&caches.lines).get(&tl) {
            parent = Some(known);
            break;
        }
        let sql = "SELECT thread, parent_tl, fork FROM timeline WHERE tl=?";
        let found = one(conn, sql, [tl], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, num(row.get(2)?)))
        })?;
        let Some((thread, parent_tl, fork)) = found else {
            return Err(corrupt(format!("timeline {tl}"), "it is missing"));
        };
        unknown.push((tl, thread, fork));
        next = parent_tl;
    }
    let mut cache = lock(&caches.lines);
    for (tl, thread, fork) in unknown.into_iter().rev() {
        let line = Arc::new(Line {
            tl,
            thread,
            fork,
            parent: parent.take(),
        });
        cache.insert(tl, Arc::clone(&line));
        parent = Some(line);
    }
    parent.ok_or_else(|| corrupt(format!("timeline {tl}"), "it is missing"))
}

/// The node before a node.
pub(super) fn node_before(
    conn: &Connection,
    caches: &Caches,
    node: &NodeRow,
) -> Done<Option<NodeRow>> {
    if let Some(before) = node_holding(conn, node.tl, node.first.saturating_sub(1))? {
        return Ok(Some(before));
    }
    let line = line(conn, caches, node.tl)?;
    match &line.parent {
        Some(parent) => holding(conn, parent, line.fork),
        None => Ok(None),
    }
}

/// The node that holds a position at or below a timeline.
pub(super) fn holding(
    conn: &Connection,
    line: &Arc<Line>,
    position: Position,
) -> Done<Option<NodeRow>> {
    let mut line = line;
    while position <= line.fork {
        match &line.parent {
            Some(parent) => line = parent,
            None => return Ok(None),
        }
    }
    node_holding(conn, line.tl, position)
}

/// How many columns a node has, for statements that add their own after them.
pub(super) const AFTER_NODE: usize = NODE_COLUMNS;
