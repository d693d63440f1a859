//! Rows as values, and how rows are found and written.

pub(super) mod branch;
pub(super) mod checksum;
pub(super) mod find;
pub(super) mod items;
pub(super) mod nodes;
pub(super) mod redactions;
pub(super) mod row_map;
pub(super) mod sql;

use rusqlite::Row;
use throughline_model::json::RawJson;

use crate::digest::Digest;
use crate::engines::sqlite::cache::{BaseNode, StateAt};
use crate::engines::sqlite::events::OwnedRun;
use crate::engines::sqlite::op_error::{OpError, OpResult, corrupt, corrupt_row, not_found};
use crate::engines::sqlite::rows::checksum::{LastNode, is_intact};
use crate::rules::begin::CurrentHead;
use crate::rules::lease::{WorkedTime, state_now};
use crate::{
    Alias, DamageSite, ItemRef, Millis, Mode, MovedBy, NodeId, Position, Run, RunId, RunKind,
    RunState, Thread, ThreadId, Tip, Version,
};

/// Bits of `run.flags`.
pub(crate) mod flag {
    pub(crate) const LEASED: u32 = 1;
    pub(crate) const PER_CALL: u32 = 2;
    pub(crate) const APPEND: u32 = 4;
    pub(crate) const UNSENT: u32 = 8;
    pub(crate) const CANCELLING: u32 = 16;
    pub(crate) const HIDDEN: u32 = 32;
    /// Its last publication moved the head.
    pub(crate) const MOVED: u32 = 64;
    /// Its answer was delivered. Not sealed: a changed bit costs a repeated answer or a repeated run.
    pub(crate) const DELIVERED: u32 = 128;
}

/// The bit of `node.flags` that says that calls wait.
pub(crate) const OPEN: u8 = 1;

/// The stage of a thread that is shown.
pub(crate) const SHOWN: i64 = 0;

/// A number as SQLite keeps it. What does not fit is far above every number that occurs.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number as it was kept.
pub(crate) fn num(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// JSON that this store wrote.
pub(crate) fn json(text: Option<String>, what: &'static str) -> OpResult<Option<RawJson>> {
    let Some(text) = text else { return Ok(None) };
    match RawJson::new(&text) {
        Ok(raw) => Ok(Some(raw)),
        Err(error) => Err(corrupt(what, error.to_string())),
    }
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct NodeRow {
    pub(crate) tl: i64,
    pub(crate) first: Position,
    pub(crate) last: Position,
    pub(crate) run: i64,
    pub(crate) id: NodeId,
    pub(crate) item_lo: u32,
    pub(crate) flags: u8,
    pub(crate) state: Option<StateAt>,
    pub(crate) tokens: u64,
    pub(crate) created: Millis,
    pub(crate) digest: Digest,
    /// Whether everything in its row can be. If not, the row is damaged, whatever its digest.
    pub(crate) possible: bool,
    pub(crate) run_flags: u32,
    /// Whether it is the last node of its run.
    pub(crate) is_last: bool,
}

/// The columns of a node `n`, its run `r` and its state `s`.
pub(crate) const NODE: &str = "n.tl, n.first, n.last, n.run, r.id, n.step, n.item_lo, n.flags,
 n.state_run, n.state_step, s.digest, n.units, n.created, n.digest, r.flags, r.pub_tl, r.pub_first, r.pub_step, s.rest";

/// How many they are.
pub(crate) const NODE_COLUMNS: usize = 19;

/// The tables of a node, after `FROM`.
pub(crate) const NODE_TABLES: &str = "node n CROSS JOIN run r ON r.run=n.run
 LEFT JOIN state s ON s.run=n.state_run AND s.step=n.state_step";

/// The last node of a run, from three columns.
fn last_node(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<LastNode>> {
    let timeline: Option<i64> = row.get(at)?;
    Ok(match timeline {
        Some(timeline) => Some((timeline, num(row.get(at + 1)?), row.get(at + 2)?)),
        None => None,
    })
}

impl NodeRow {
    pub(crate) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        let state_run: Option<i64> = row.get(at + 8)?;
        let state = match state_run {
            Some(run) => Some(StateAt {
                run,
                step: row.get(at + 9)?,
                // A state that is missing shows in the digest of the node.
                digest: row.get::<_, Option<Digest>>(at + 10)?.unwrap_or_default(),
                left: row.get(at + 18)?,
            }),
            None => None,
        };
        // A value that cannot be is damage. It is made one that can, so that nothing is computed from
        // nonsense, and the node is marked.
        let (found_first, found_last) = (num(row.get(at + 1)?), num(row.get(at + 2)?));
        let first = found_first.max(1);
        let last = found_last.clamp(first, first.saturating_add(u64::from(u32::MAX)));
        let run = RunId::from_bytes(row.get(at + 4)?);
        let run_flags = row.get(at + 14)?;
        let ends = last_node(row, at + 15)?;
        let (step, item_lo): (i64, i64) = (row.get(at + 5)?, row.get(at + 6)?);
        let flags: i64 = row.get(at + 7)?;
        let possible = (first, last) == (found_first, found_last)
            && u32::try_from(step).is_ok()
            && u32::try_from(item_lo).is_ok()
            && u8::try_from(flags).is_ok()
            && is_intact(&run, run_flags, ends);
        let tl = row.get(at)?;
        Ok(Self {
            tl,
            first,
            last,
            run: row.get(at + 3)?,
            id: NodeId {
                run,
                step: u32::try_from(step).unwrap_or_default(),
            },
            item_lo: u32::try_from(item_lo).unwrap_or_default(),
            flags: u8::try_from(flags).unwrap_or_default(),
            state,
            tokens: num(row.get(at + 11)?),
            created: num(row.get(at + 12)?),
            digest: row.get(at + 13)?,
            possible,
            run_flags,
            is_last: ends.is_some_and(|(timeline, at, _)| (timeline, at) == (tl, first)),
        })
    }

    /// Where it is, for those who find it damaged.
    pub(crate) fn site(&self) -> DamageSite {
        DamageSite::from(self.id).at_position(self.first)
    }

    /// The same; damage of one of its items has its position.
    pub(crate) fn located(&self, error: OpError) -> OpError {
        error.map(|error| {
            error.located(|site| match site.item {
                Some(item) if item.run == self.id.run && item.no >= self.item_lo => {
                    let position = self.first + u64::from(item.no - self.item_lo);
                    site.at_position(position)
                }
                _ => site,
            })
        })
    }

    pub(crate) fn tip(&self) -> Tip {
        Tip {
            node: self.id,
            last: self.last,
            tokens: self.tokens,
            open: self.flags & OPEN != 0,
            unsent: self.is_last && self.run_flags & flag::UNSENT != 0,
        }
    }

    pub(crate) fn base(&self, own: bool) -> BaseNode {
        BaseNode {
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

    /// The item at one of its positions.
    pub(crate) fn item_at(&self, position: Position) -> ItemRef {
        let offset = u32::try_from(position.saturating_sub(self.first)).unwrap_or(u32::MAX);
        ItemRef {
            run: self.id.run,
            no: self.item_lo.saturating_add(offset),
        }
    }

    /// The number of its last item.
    pub(crate) fn item_hi(&self) -> u32 {
        let length = u32::try_from(self.last.saturating_sub(self.first)).unwrap_or(u32::MAX);
        self.item_lo.saturating_add(length)
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadRow {
    pub(crate) row: i64,
    pub(crate) id: ThreadId,
    pub(crate) version: u64,
    pub(crate) borrowed: bool,
    pub(crate) moved_by: MovedBy,
    pub(crate) created: Millis,
    pub(crate) touched: Millis,
    pub(crate) keep: Option<Millis>,
    pub(crate) title: Option<String>,
    pub(crate) meta: Option<String>,
    pub(crate) settings: Option<String>,
    pub(crate) head: Option<NodeRow>,
}

/// The columns of a thread `t`; those of its head follow.
pub(crate) const THREAD: &str = "t.thread, t.id, t.version, t.borrowed, t.moved_by, t.created, t.touched, t.keep, t.title, t.meta, t.settings, t.head_tl, t.head_digest, ";
pub(crate) const THREAD_COLUMNS: usize = 13;

/// The tables of a thread and its head, after `FROM`.
pub(crate) const THREAD_TABLES: &str =
    "thread t LEFT JOIN node n ON n.tl=t.head_tl AND n.first=t.head_first
 LEFT JOIN run r ON r.run=n.run LEFT JOIN state s ON s.run=n.state_run AND s.step=n.state_step";

impl ThreadRow {
    pub(crate) fn current_head(&self) -> CurrentHead<'_> {
        CurrentHead {
            thread: &self.id,
            version: Version(self.version),
            head: self.head.as_ref().map(|head| head.id),
        }
    }

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let id: Option<String> = row.get(1)?;
        let has_head: Option<i64> = row.get(11)?;
        let moved_by: i64 = row.get(4)?;
        let id = ThreadId::new(&id.unwrap_or_default())
            .map_err(|error| corrupt_row("the row of a thread", error.to_string()))?;
        let node: Option<i64> = row.get(THREAD_COLUMNS)?;
        let head = match (has_head, node) {
            (Some(_), None) => return Err(corrupt_row(&id, "its head is missing")),
            (Some(_), Some(_)) => {
                let head = NodeRow::read(row, THREAD_COLUMNS);
                Some(head.map_err(|error| corrupt_row(&id, format!("its head: {error}")))?)
            }
            (None, _) => None,
        };
        let stored: Option<Digest> = row.get(12)?;
        let possible = head.as_ref().is_none_or(|head| head.possible);
        if !possible || stored != head.as_ref().map(|head| head.digest) {
            let site = match &head {
                Some(head) => head.site().in_thread(&id),
                None => (&id).into(),
            };
            return Err(corrupt_row(site, "it is not the head that was stored"));
        }
        Ok(Self {
            row: row.get(0)?,
            id,
            version: num(row.get(2)?),
            borrowed: row.get(3)?,
            moved_by: moved_by_of(moved_by),
            created: num(row.get(5)?),
            touched: num(row.get(6)?),
            keep: row.get::<_, Option<i64>>(7)?.map(num),
            title: row.get(8)?,
            meta: row.get(9)?,
            settings: row.get(10)?,
            head,
        })
    }

    pub(crate) fn thread(&self, aliases: Vec<Alias>) -> OpResult<Thread> {
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

    pub(crate) fn base(&self) -> Option<BaseNode> {
        self.head.as_ref().map(|head| head.base(!self.borrowed))
    }
}

pub(crate) fn moved_by_code(moved_by: MovedBy) -> i64 {
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

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) row: i64,
    pub(crate) id: RunId,
    pub(crate) thread: i64,
    pub(crate) thread_id: Option<ThreadId>,
    pub(crate) stage: i64,
    pub(crate) state: RunState,
    pub(crate) flags: u32,
    pub(crate) epoch: u32,
    pub(crate) owner: Option<i64>,
    pub(crate) until: Option<i64>,
    pub(crate) attempt: u32,
    pub(crate) base: Option<(i64, Position)>,
    pub(crate) base_id: Option<NodeId>,
    pub(crate) version: u64,
    pub(crate) inputs: u32,
    pub(crate) next_step: u32,
    pub(crate) next_item: u32,
    pub(crate) next_event: u64,
    pub(crate) published: Option<LastNode>,
    pub(crate) created: Millis,
    pub(crate) progress: Millis,
    pub(crate) key: Option<String>,
    pub(crate) key_digest: Option<Digest>,
    pub(crate) request: Option<i64>,
    pub(crate) note: Option<String>,
    pub(crate) worked_time: WorkedTime,
}

/// The columns of a run `r`, its thread `t` and its base `b` of run `br`.
pub(crate) const RUN: &str = "r.run, r.id, r.thread, t.id, t.stage, r.state, r.flags, r.epoch, r.owner,
 (SELECT o.until FROM owner o WHERE o.owner=r.owner), r.attempt, r.base_tl, r.base_first, br.id, b.step,
 r.version, r.inputs, r.next_step, r.next_item,
 max(r.next_event, coalesce((SELECT e.seq+e.n FROM run_event e WHERE e.run=r.run ORDER BY e.seq DESC LIMIT 1), 0)),
 r.pub_tl, r.pub_first, r.pub_step,
 r.created, r.progress, r.idem, r.idem_digest, r.request, r.note, r.worked, r.since";

pub(crate) const RUN_TABLES: &str = "run r CROSS JOIN thread t ON t.thread=r.thread
 LEFT JOIN node b ON b.tl=r.base_tl AND b.first=r.base_first LEFT JOIN run br ON br.run=b.run";

impl RunRow {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let state: u8 = row.get(5)?;
        let thread: Option<String> = row.get(3)?;
        let base_tl: Option<i64> = row.get(11)?;
        let base_run: Option<[u8; 16]> = row.get(13)?;
        let created = num(row.get(23)?);
        Ok(Self {
            row: row.get(0)?,
            id: RunId::from_bytes(row.get(1)?),
            thread: row.get(2)?,
            thread_id: thread.and_then(|id| ThreadId::new(&id).ok()),
            stage: row.get(4)?,
            // A deleted thread has no id any more.
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
            published: last_node(row, 20)?,
            created,
            progress: num(row.get(24)?),
            key: row.get(25)?,
            key_digest: row.get(26)?,
            request: row.get(27)?,
            note: row.get(28)?,
            worked_time: WorkedTime {
                before: num(row.get(29)?),
                since: row.get::<_, Option<i64>>(30)?.map_or(created, num),
            },
        })
    }

    /// The run as its events know it.
    pub(crate) fn owned(&self) -> OwnedRun {
        OwnedRun {
            row: self.row,
            id: self.id,
            epoch: self.epoch,
        }
    }

    /// The same; damage that was found in it names its thread.
    pub(crate) fn named(&self, error: OpError) -> OpError {
        match &self.thread_id {
            Some(thread) => error.in_thread(thread),
            None => error,
        }
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether its owner is alive.
    pub(crate) fn is_owned(&self, now: Millis) -> bool {
        self.until.is_some_and(|until| num(until) > now)
    }

    /// Where it stands, as readers see it.
    pub(crate) fn seen(&self, now: Millis) -> RunState {
        state_now(self.state, self.is_owned(now))
    }

    pub(crate) fn mode(&self) -> Mode {
        if self.has(flag::PER_CALL) {
            Mode::PerCall
        } else {
            Mode::PerRun
        }
    }

    pub(crate) fn kind(&self) -> RunKind {
        if self.has(flag::APPEND) {
            RunKind::Append
        } else {
            RunKind::Turn
        }
    }

    pub(crate) fn published_id(&self) -> Option<NodeId> {
        self.published
            .map(|(_, _, step)| NodeId { run: self.id, step })
    }

    /// The run as it is shown.
    pub(crate) fn run(&self, now: Millis) -> OpResult<Run> {
        let thread = self.thread_id.clone();
        Ok(Run {
            id: self.id,
            thread: thread.ok_or_else(|| not_found("run", &self.id))?,
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
            delivered: self.has(flag::DELIVERED),
            created: self.created,
            progress: self.progress,
            worked: self.worked_time.until(self.progress),
            key: self.key.clone(),
            note: json(self.note.clone(), "the note of a run")?,
        })
    }
}
