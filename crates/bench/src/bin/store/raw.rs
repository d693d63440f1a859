//! The baseline: the same rows, written in groups by one thread, without guards.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;

use rusqlite::{Connection, params};

/// A thread, as a raw client knows it.
pub(crate) struct Thread {
    row: i64,
    position: i64,
}

impl Thread {
    pub(crate) fn new(place: usize) -> Self {
        Self {
            row: i64::try_from(place).unwrap_or(0) + 1,
            position: 0,
        }
    }
}

/// One of the two commits of a turn.
pub(crate) enum Job {
    Begin {
        run: i64,
        thread: i64,
        text: Vec<u8>,
    },
    Publish {
        run: i64,
        thread: i64,
        first: i64,
        text: Vec<u8>,
    },
}

/// A database with a writer thread that commits queued writes in groups.
pub(crate) struct Raw {
    jobs: mpsc::Sender<(Job, mpsc::SyncSender<()>)>,
    runs: AtomicI64,
}

/// The tables of the store with their indexes; unused columns are empty.
const SCHEMA: &str = "
CREATE TABLE thread(thread INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, id BLOB NOT NULL, head_tl INTEGER,
  head_first INTEGER, version INTEGER NOT NULL, touched INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX thread_id ON thread(tenant, id);
CREATE INDEX thread_recent ON thread(tenant, touched);
CREATE TABLE node(node INTEGER PRIMARY KEY, tl INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  run INTEGER NOT NULL, item_lo INTEGER NOT NULL, flags INTEGER NOT NULL, tokens INTEGER NOT NULL,
  created INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX node_at ON node(tl, first);
CREATE TABLE item(item INTEGER PRIMARY KEY, run INTEGER NOT NULL, no INTEGER NOT NULL, kind INTEGER NOT NULL,
  source INTEGER NOT NULL, tokens INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB) STRICT;
CREATE UNIQUE INDEX item_at ON item(run, no);
CREATE TABLE run(run INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, id BLOB NOT NULL, thread INTEGER NOT NULL,
  live INTEGER, state INTEGER NOT NULL, mode INTEGER NOT NULL, epoch INTEGER NOT NULL, owner BLOB NOT NULL,
  next_step INTEGER NOT NULL, next_item INTEGER NOT NULL, created INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX run_id ON run(tenant, id);
CREATE UNIQUE INDEX run_live ON run(thread, live) WHERE live IS NOT NULL;
";

impl Raw {
    pub(crate) fn open(path: &Path, threads: usize) -> Self {
        let connection = connect(path, threads);
        let (jobs, waiting) = mpsc::channel();
        std::thread::spawn(move || {
            writer(&connection, &waiting, |answer: mpsc::SyncSender<()>| {
                let _ = answer.send(());
            });
        });
        Self {
            jobs,
            runs: AtomicI64::new(1),
        }
    }

    fn wait(&self, job: Job) {
        let (answer, answered) = mpsc::sync_channel(1);
        self.jobs.send((job, answer)).expect("the writer lives");
        answered.recv().expect("the writer answers");
    }

    /// Two commits: the run and its input; the answer, the node, the run's end and the head.
    pub(crate) fn turn(&self, thread: &mut Thread, text: &str) {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let text = || text.as_bytes().to_vec();
        self.wait(Job::Begin {
            run,
            thread: thread.row,
            text: text(),
        });
        self.wait(Job::Publish {
            run,
            thread: thread.row,
            first: thread.position + 1,
            text: text(),
        });
        thread.position += 2;
    }
}

/// A new database with its tables and threads.
pub(crate) fn connect(path: &Path, threads: usize) -> Connection {
    let connection = Connection::open(path).expect("a database opens in a new directory");
    connection
        .execute_batch(
            "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
             PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=2000;",
        )
        .and_then(|()| connection.execute_batch(SCHEMA))
        .expect("tables are made");
    for thread in 1..=i64::try_from(threads).unwrap_or(0) {
        let sql = "INSERT INTO thread VALUES(?1,1,?2,NULL,NULL,0,0)";
        let id = thread.to_be_bytes().repeat(2);
        connection
            .execute(sql, params![thread, id])
            .expect("a row is written");
    }
    connection
}

/// Commit queued writes in groups, and notify the callers that wait for them.
pub(crate) fn writer<A>(
    connection: &Connection,
    waiting: &mpsc::Receiver<(Job, A)>,
    tell: impl Fn(A),
) {
    connection.set_prepared_statement_cache_capacity(32);
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        group.extend(std::iter::from_fn(|| waiting.try_recv().ok()).take(255));
        execute(connection, "BEGIN IMMEDIATE");
        for (job, _) in &group {
            apply(connection, job);
        }
        execute(connection, "COMMIT");
        group.into_iter().for_each(|(_, answer)| tell(answer));
    }
}

fn execute(connection: &Connection, sql: &str) {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]))
        .expect("a transaction");
}

const DIGEST: [u8; 16] = [7; 16];

fn insert(connection: &Connection, run: i64, no: i64, text: &[u8]) {
    connection
        .prepare_cached(
            "INSERT INTO item(run,no,kind,source,tokens,digest,body) VALUES(?1,?2,1,1,0,?3,?4)",
        )
        .and_then(|mut statement| statement.execute(params![run, no, DIGEST, text]))
        .expect("a row is written");
}

fn apply(connection: &Connection, job: &Job) {
    match job {
        Job::Begin { run, thread, text } => {
            // Time-ordered, like the store's ids.
            let mut id = [0; 16];
            id[..8].copy_from_slice(&run.to_be_bytes());
            connection
                .prepare_cached("INSERT INTO run VALUES(?1,1,?2,?3,0,1,0,1,?4,0,2,1790000000000)")
                .and_then(|mut statement| statement.execute(params![run, id, thread, DIGEST]))
                .expect("a row is written");
            insert(connection, *run, 1, text);
        }
        Job::Publish {
            run,
            thread,
            first,
            text,
        } => {
            connection
                .prepare_cached(
                    "UPDATE run SET state=5,live=NULL,next_item=3,next_step=1 WHERE run=?1",
                )
                .and_then(|mut statement| statement.execute([run]))
                .expect("a row is written");
            insert(connection, *run, 2, text);
            connection
                .prepare_cached(
                    "INSERT INTO node(tl,first,last,run,item_lo,flags,tokens,created,digest)
                     VALUES(?1,?2,?3,?4,1,0,0,1790000000000,?5)",
                )
                .and_then(|mut statement| {
                    statement.execute(params![thread, first, first + 1, run, DIGEST])
                })
                .expect("a row is written");
            connection
                .prepare_cached(
                    "UPDATE thread SET head_tl=?1,head_first=?2,version=version+1,touched=?3 WHERE thread=?1",
                )
                .and_then(|mut statement| {
                    statement.execute(params![thread, first, 1_790_000_000_000_i64 + run])
                })
                .expect("a row is written");
        }
    }
}
