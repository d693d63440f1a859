//! The engine on SQLite: one file, readers that never wait, one thread that writes in groups.
//!
//! Several processes may share the file. Nothing that a process remembers is trusted: every write
//! carries its preconditions in its statements, and a refused one has written nothing.

mod backup;
mod cache;
mod connect;
mod count_tokens;
mod engine;
mod events;
mod op_error;
mod ops;
mod readers;
mod rows;
mod schema;
mod watch;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use backup::{Restored, restore};

use cache::lock;
use connect::{Role, connect};
use op_error::{OpError, OpResult};
use readers::Readers;
use write::connection::WriteConnection;
use write::queue::Shared;
use write::writer;

use crate::cursor::Seal;
use crate::{Engine, Error, Ids, OnProgress, Options, Result};

/// The engine.
struct Sqlite {
    path: PathBuf,
    shared: Arc<Shared>,
    readers: Readers,
    seal: Seal,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Tells that the writer is done.
    done: Mutex<Option<oneshot::Receiver<()>>>,
}

/// Open the store that `sqlite:` and `rest` name: `//relative.db`, `///absolute/path.db`.
pub async fn open(rest: &str, options: Options, ids: &Arc<Ids>) -> Result<Arc<dyn Engine>> {
    let path = path_of(rest)?;
    let engine = start(&path, options, ids).map_err(|error| match error.into_error() {
        Error::Io { detail } => Error::Io {
            detail: format!("{}: {detail}", path.display()),
        },
        error => error,
    })?;
    Ok(Arc::new(engine))
}

fn path_of(rest: &str) -> Result<PathBuf> {
    let url = || format!("sqlite:{rest}");
    let Some(path) = rest.strip_prefix("//") else {
        let why = "write sqlite://PATH, or sqlite:///PATH for an absolute one".into();
        return Err(Error::url(&url(), why));
    };
    if path.is_empty() {
        return Err(Error::url(&url(), "the path is missing".into()));
    }
    if path.starts_with(':') {
        return Err(Error::url(
            &url(),
            "for a store in memory write memory:".into(),
        ));
    }
    if path.contains('\0') {
        return Err(Error::url(&url(), "a path has no NUL in it".into()));
    }
    Ok(PathBuf::from(path))
}

fn start(path: &Path, options: Options, ids: &Arc<Ids>) -> OpResult<Sqlite> {
    let conn = connect(path, Role::Writer)?;
    schema::recognise(&conn)?;
    schema::migrate(&conn, schema::MIGRATIONS, &mut |_| {})?;
    let connection = WriteConnection::new(conn)?;
    let conn = &connection.conn;
    if let Some(wrong) = connect::settings(conn)?
        .into_iter()
        .find(|setting| !setting.is_right())
    {
        let why = format!(
            "{} is {} and cannot be {:?}",
            wrong.name, wrong.value, wrong.wanted
        );
        return Err(op_error::invalid("the settings of SQLite", why));
    }
    let seal: [u8; 32] = conn.query_row("SELECT value FROM meta WHERE key='seal'", [], |row| {
        row.get(0)
    })?;
    let shared = Arc::new(Shared::new(options, ids.owner()));
    let (tell, done) = oneshot::channel();
    let writers = Arc::clone(&shared);
    let writer = std::thread::Builder::new()
        .name("store writer".into())
        .spawn(move || {
            writer::run(connection, &writers);
            let _ = tell.send(());
        })
        .map_err(|error| {
            OpError::Broken(Error::Io {
                detail: format!("no thread can be started: {error}"),
            })
        })?;
    Ok(Sqlite {
        path: path.to_owned(),
        shared,
        readers: Readers::new(path),
        seal: Seal(seal),
        writer: Mutex::new(Some(writer)),
        done: Mutex::new(Some(done)),
    })
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // As in `close`: the writer lets the file go last.
        self.readers.forget();
        self.shared.close();
        if let Some(writer) = lock(&self.writer).take() {
            // What was handed over is still written before the file is let go.
            let _ = writer.join();
        }
    }
}

/// Bring the tables of a file to the newest version. What was done before is not done again, so it
/// can be called after it was cut short. Gives the version.
pub fn migrate(path: &Path, progress: OnProgress<'_>) -> Result<u32> {
    let mut run = || -> OpResult<u32> {
        if !path.is_file() {
            return Err(op_error::not_found("file", &path.display()));
        }
        let conn = connect(path, Role::Writer)?;
        schema::recognise(&conn)?;
        schema::migrate(&conn, schema::MIGRATIONS, progress)?;
        Ok(schema::version(&conn)?)
    };
    run().map_err(OpError::into_error)
}
