//! The tables, and the way from one version of them to the next.
//!
//! Integer keys are internal; every public key leads with the tenant. What a turn appends lands at
//! the right edge of few trees: rows with bodies are rowid tables with a small unique index beside
//! them, because clustered rows would move bodies of a kilobyte to pages of their own.

use rusqlite::Connection;

use super::op_error::{OpError, OpResult};
use crate::trials::{self, Point};
use crate::{Error, OnProgress, Progress, Result};

/// `THLN`, in the header of every file that is ours.
pub(super) const APPLICATION: i32 = 0x5448_4C4E;

/// The version of the tables that this program writes.
pub(super) const VERSION: u32 = 9;

/// One step forward. Never edited after a release.
pub(super) struct Migration {
    /// The version that it leads to.
    pub(super) to: u32,
    /// What it does.
    pub(super) sql: &'static str,
}

/// All steps, in order.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { to: 1, sql: FIRST },
    Migration {
        to: 2,
        sql: EVENT_LOG,
    },
    Migration {
        to: 3,
        sql: TIMELINES,
    },
    Migration {
        to: 4,
        sql: WORKED_TIME,
    },
    Migration { to: 5, sql: COUNTS },
    Migration { to: 6, sql: LINES },
    Migration {
        to: 7,
        sql: REMOTE_CALLS,
    },
    Migration {
        to: 8,
        sql: REDACTIONS,
    },
    Migration {
        to: 9,
        sql: FINGERPRINTS,
    },
];

/// `run.worked`: for how long the run was worked on before its present owner had it, in
/// milliseconds. `run.since`: when that owner claimed it; NULL for the one that began it.
const WORKED_TIME: &str = "
ALTER TABLE run ADD COLUMN worked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN since INTEGER;
";

/// Items are counted when they enter: `units` is about how many tokens one has, in a node the sum
/// along its branch. What is there already is counted by [`super::count_tokens`].
///
/// The columns had the name `tokens`, and everything in them was 0. A program of an earlier version
/// that has the file open must not find them: it would go on from digests that hold no longer.
const COUNTS: &str = "
ALTER TABLE item RENAME COLUMN tokens TO units;
ALTER TABLE node RENAME COLUMN tokens TO units;
";

/// Runs that wait until their thread is free: `run` is the id under which one waits and begins, `owner`
/// the process that took the place. Numbers are never given twice, so that they are the order in which
/// places were taken.
const LINES: &str = "
CREATE TABLE waiter(no INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL, run BLOB NOT NULL, owner INTEGER NOT NULL) STRICT;
CREATE INDEX waiter_thread ON waiter(thread);
";

/// The remote call that a run journaled last: `step` is the one that its answer becomes. A row whose
/// step is stored is out of date; it is overwritten by the next remote call, or goes with its run.
const REMOTE_CALLS: &str = "
CREATE TABLE remote_call(run INTEGER PRIMARY KEY, step INTEGER NOT NULL, handle TEXT NOT NULL, digest BLOB NOT NULL) STRICT;
";

/// `redaction.rest`: the digest of the row, and after it what is left of the message as JSON; NULL for what
/// an earlier version redacted. `state.rest`: the digest of the body once something that was derived from a
/// redacted message was taken out of it; `state.digest` stays that of the state as it was published, because
/// digests of nodes cover it. `tenant.redactions` counts them, so that a process knows when what it
/// remembers of messages is out of date.
const REDACTIONS: &str = "
ALTER TABLE redaction ADD COLUMN rest BLOB;
ALTER TABLE state ADD COLUMN rest BLOB;
ALTER TABLE tenant ADD COLUMN redactions INTEGER NOT NULL DEFAULT 0;
";

/// Digests by which items are found. A row goes with its item. The index answers a lookup without reading
/// the table: the newest run of a digest stands last.
const FINGERPRINTS: &str = "
CREATE TABLE fingerprint(run INTEGER NOT NULL, no INTEGER NOT NULL, digest BLOB NOT NULL, tenant INTEGER NOT NULL,
  PRIMARY KEY(run, no, digest)) STRICT, WITHOUT ROWID;
CREATE INDEX fingerprint_digest ON fingerprint(tenant, digest, run, no);
";

/// Numbers of timelines are never given twice: a process that remembers one must not meet another. What was
/// given is remembered when a timeline is removed, in `given`, and not when one is made, as
/// `AUTOINCREMENT` does with a page of its own for each branch.
///
/// From here on bodies of items may be texts with frames, which older programs take for damage: a file
/// that may have some is not theirs to read.
const TIMELINES: &str = "
CREATE TABLE given(name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO given SELECT 'timeline', coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name='timeline'), 0);
CREATE TABLE line(tl INTEGER PRIMARY KEY, thread INTEGER NOT NULL, parent_tl INTEGER, fork INTEGER NOT NULL) STRICT;
INSERT INTO line SELECT tl, thread, parent_tl, fork FROM timeline;
DROP TABLE timeline;
ALTER TABLE line RENAME TO timeline;
CREATE INDEX timeline_thread ON timeline(thread);
CREATE INDEX timeline_parent ON timeline(parent_tl, fork) WHERE parent_tl IS NOT NULL;
";

/// Events of live runs share a log; those of others are packed, `packed` flushes in one row, or one
/// as it is if that is 0. `event_log.owner` is the process that writes a slot, NULL if none does.
/// Numbers of slots are never given twice: a process that remembers one must not meet another.
/// `thread.head_digest` is that of the head's node: a head that points elsewhere is damage.
const EVENT_LOG: &str = "
CREATE TABLE event_log(slot INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER, payload BLOB NOT NULL) STRICT;
ALTER TABLE run_event ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE thread ADD COLUMN head_digest BLOB;
UPDATE thread SET head_digest=(SELECT n.digest FROM node n WHERE n.tl=thread.head_tl AND n.first=thread.head_first);
";

/// Words in the columns:
///
/// - `thread.stage`: 0 shown, 1 being imported, 2 deleted, 3 deleted but shared. `since` is when it
///   came there. A deleted thread has no `id`, so that its name is free. `recent` is the minute of
///   `touched`: its index changes once a minute and not once a turn. `borrowed`: the head is on a
///   timeline of another thread.
/// - `run.live`: 0 for the leased run that is not settled, another number for a free one, NULL
///   when it is settled. `run.flags` and `node.flags`: see `rows`; the upper bits of the former: see `seal`.
/// - `call.effect`: the class, and 16 if the tool asked for the end of the run with its result.
/// - `item.kind`: the kind, and 16 if the body is compressed. `again`: the item that is said again.
/// - `run.next_event` is as of the last step: flushes leave the run's row alone, see `event_log`.
/// - `run.state` 10 is a husk: items of it are said again by others, nothing else is left.
const FIRST: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE tenant(tenant INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE CHECK(name<>'')) STRICT;
CREATE TABLE owner(owner INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, until INTEGER NOT NULL) STRICT;

CREATE TABLE thread(
  thread INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, id TEXT,
  head_tl INTEGER, head_first INTEGER, borrowed INTEGER NOT NULL, version INTEGER NOT NULL,
  created INTEGER NOT NULL, touched INTEGER NOT NULL, recent INTEGER NOT NULL,
  stage INTEGER NOT NULL, since INTEGER NOT NULL, moved_by INTEGER NOT NULL, keep INTEGER,
  title TEXT, meta TEXT, settings TEXT) STRICT;
CREATE UNIQUE INDEX thread_id ON thread(tenant, id);
CREATE INDEX thread_recent ON thread(tenant, recent) WHERE stage=0;
CREATE INDEX thread_borrowed ON thread(head_tl) WHERE borrowed=1;
CREATE INDEX thread_stage ON thread(stage, since) WHERE stage<>0;
CREATE INDEX thread_keep ON thread(touched + keep) WHERE keep IS NOT NULL AND stage=0;

CREATE TABLE alias(
  tenant INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, thread INTEGER NOT NULL,
  PRIMARY KEY(tenant, kind, name)) STRICT, WITHOUT ROWID;
CREATE INDEX alias_thread ON alias(thread);

CREATE TABLE timeline(
  tl INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL, parent_tl INTEGER, fork INTEGER NOT NULL) STRICT;
CREATE INDEX timeline_thread ON timeline(thread);
CREATE INDEX timeline_parent ON timeline(parent_tl, fork) WHERE parent_tl IS NOT NULL;

CREATE TABLE node(
  node INTEGER PRIMARY KEY, tl INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  run INTEGER NOT NULL, step INTEGER NOT NULL, item_lo INTEGER NOT NULL, flags INTEGER NOT NULL,
  state_run INTEGER, state_step INTEGER, tokens INTEGER NOT NULL, created INTEGER NOT NULL,
  digest BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX node_at ON node(tl, first);

CREATE TABLE item(
  item INTEGER PRIMARY KEY, run INTEGER NOT NULL, no INTEGER NOT NULL, kind INTEGER NOT NULL,
  source INTEGER NOT NULL, tokens INTEGER NOT NULL, again INTEGER, digest BLOB NOT NULL, body BLOB) STRICT;
CREATE UNIQUE INDEX item_at ON item(run, no);
CREATE INDEX item_again ON item(again) WHERE again IS NOT NULL;

CREATE TABLE state(
  state INTEGER PRIMARY KEY, run INTEGER NOT NULL, step INTEGER NOT NULL, digest BLOB NOT NULL, body TEXT NOT NULL) STRICT;
CREATE UNIQUE INDEX state_at ON state(run, step);

CREATE TABLE request(
  request INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, digest BLOB NOT NULL, body TEXT NOT NULL) STRICT;
CREATE UNIQUE INDEX request_digest ON request(tenant, digest);

CREATE TABLE run(
  run INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, id BLOB NOT NULL, thread INTEGER NOT NULL,
  live INTEGER, state INTEGER NOT NULL, flags INTEGER NOT NULL, epoch INTEGER NOT NULL, owner INTEGER,
  attempt INTEGER NOT NULL, base_tl INTEGER, base_first INTEGER, version INTEGER NOT NULL,
  inputs INTEGER NOT NULL, next_step INTEGER NOT NULL, next_item INTEGER NOT NULL, next_event INTEGER NOT NULL,
  pub_tl INTEGER, pub_first INTEGER, pub_step INTEGER, created INTEGER NOT NULL, progress INTEGER NOT NULL,
  idem TEXT, idem_digest BLOB, request INTEGER, note TEXT) STRICT;
CREATE UNIQUE INDEX run_id ON run(tenant, id);
CREATE UNIQUE INDEX run_live ON run(thread, live) WHERE live IS NOT NULL;
CREATE INDEX run_stray ON run(thread) WHERE live IS NULL AND pub_tl IS NULL;
CREATE UNIQUE INDEX run_idem ON run(tenant, idem) WHERE idem IS NOT NULL;
CREATE INDEX run_request ON run(request) WHERE request IS NOT NULL;

CREATE TABLE step(
  run INTEGER NOT NULL, no INTEGER NOT NULL, first INTEGER NOT NULL, items INTEGER NOT NULL,
  tl INTEGER, pos INTEGER, flags INTEGER NOT NULL, version INTEGER NOT NULL, content BLOB NOT NULL, note TEXT,
  PRIMARY KEY(run, no)) STRICT, WITHOUT ROWID;
CREATE TABLE call(
  run INTEGER NOT NULL, step INTEGER NOT NULL, pos INTEGER NOT NULL, state INTEGER NOT NULL,
  effect INTEGER NOT NULL, epoch INTEGER NOT NULL, result_no INTEGER NOT NULL, call TEXT NOT NULL,
  tool TEXT NOT NULL, approval BLOB, taken_by BLOB,
  PRIMARY KEY(run, step, pos)) STRICT, WITHOUT ROWID;
CREATE TABLE run_event(
  ev INTEGER PRIMARY KEY, run INTEGER NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX run_event_at ON run_event(run, seq);

CREATE TABLE approval(
  approval INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, id BLOB NOT NULL, thread INTEGER NOT NULL,
  run INTEGER NOT NULL, step INTEGER NOT NULL, pos INTEGER NOT NULL, shown BLOB NOT NULL, state INTEGER NOT NULL,
  created INTEGER NOT NULL, expires INTEGER, detail TEXT, answered_by TEXT, answered_at INTEGER, reason TEXT) STRICT;
CREATE UNIQUE INDEX approval_id ON approval(tenant, id);
CREATE INDEX approval_tenant ON approval(tenant);
CREATE INDEX approval_thread ON approval(thread);
CREATE INDEX approval_run ON approval(run);
CREATE INDEX approval_waiting ON approval(tenant) WHERE state=0;

CREATE TABLE queue(no INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE INDEX queue_thread ON queue(thread);
CREATE TABLE redaction(
  run INTEGER NOT NULL, no INTEGER NOT NULL, by TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(run, no)) STRICT, WITHOUT ROWID;
";

/// The version of the tables in a file; 0 if it has none.
pub(super) fn version(conn: &Connection) -> rusqlite::Result<u32> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Refuse a file that is not ours.
pub(super) fn recognise(conn: &Connection) -> Result<(), OpError> {
    let application: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == APPLICATION || (application == 0 && tables == 0) {
        return Ok(());
    }
    Err(OpError::Refused(Error::Invalid {
        what: "the file",
        why: "it is a SQLite file of another program; name another one".into(),
    }))
}

/// Bring the tables to the newest version, each step in a transaction of its own, so that a run
/// that was killed goes on where it was.
pub(super) fn migrate(
    conn: &Connection,
    steps: &[Migration],
    progress: OnProgress<'_>,
) -> OpResult<()> {
    let known = steps.last().map_or(0, |step| step.to);
    let found = version(conn)?;
    if found > known {
        return Err(OpError::Refused(Error::Newer { found, known }));
    }
    let total = steps.iter().filter(|step| step.to > found).count() as u64;
    for (done, step) in (1..).zip(steps.iter().filter(|step| step.to > found)) {
        trials::reach(Point::MigrateEach)?;
        conn.execute_batch("BEGIN IMMEDIATE")?;
        let applied = apply(conn, step);
        if applied.is_err() {
            // The error that counts is the first one.
            let _ = conn.execute_batch("ROLLBACK");
        }
        applied?;
        progress(Progress {
            done,
            total,
            unit: "migrations",
        });
    }
    Ok(())
}

fn apply(conn: &Connection, step: &Migration) -> OpResult<()> {
    // Another process may have been here first; the lock is ours now.
    if version(conn)? < step.to {
        conn.execute_batch(step.sql)?;
        if step.to == 1 {
            let mut secret = [0u8; 32];
            getrandom::fill(&mut secret).map_err(|error| {
                OpError::Broken(Error::Io {
                    detail: format!("the operating system gives no random bytes: {error}"),
                })
            })?;
            conn.execute(
                "INSERT INTO meta(key, value) VALUES('seal', ?)",
                [secret.as_slice()],
            )?;
            conn.pragma_update(None, "application_id", APPLICATION)?;
        }
        if step.sql == COUNTS {
            super::count_tokens::count_tokens(conn)?;
        }
        conn.pragma_update(None, "user_version", step.to)?;
    }
    conn.execute_batch("COMMIT")?;
    Ok(())
}
