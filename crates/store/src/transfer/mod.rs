//! Threads as files: `throughline.export/2`, one JSON object per line. `docs/export.md` describes it.
//!
//! - [`Export`] makes the lines page by page and [`Importer`] takes them in pieces of any size, so
//!   that both can stand behind a file, a pipe or a network. [`export`] and [`import`] do it for
//!   [`Write`] and [`Read`].
//! - Nothing of an import is seen before all of it is there and its digest is right.
//! - [`import_messages`] takes over a plain list of messages.
//!
//! What is not here on purpose: journals, events, approvals and queues. An export holds what was
//! published, as a reader sees it.

mod export;
mod format;
mod import;
mod messages;
mod parse;
mod plan;
mod write;

#[cfg(test)]
mod tests;

use std::io::{Read, Write};

use crate::{At, Error, OnProgress, Progress, Result, Store, TenantScope, ThreadId};

pub use export::Export;
pub use format::FORMAT;
pub use import::Importer;
pub use messages::import_messages;

/// How much of a thread is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Extent {
    /// All its branches.
    #[default]
    Tree,
    /// The way to its head, or to the node that was named.
    Branch,
}

impl Extent {
    /// The word in exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Branch => "branch",
        }
    }
}

/// What an export holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Exported {
    /// How many nodes.
    pub nodes: u64,
    /// How many items.
    pub items: u64,
    /// Tokens of all items up to the head, or up to the node that was named.
    pub tokens: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// How to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// Import under this id, with new run ids. Without it, thread and runs keep their ids.
    pub rename: Option<ThreadId>,
    /// Lines longer than this are refused.
    pub line_bytes: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            rename: None,
            line_bytes: 64 << 20,
        }
    }
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The thread.
    pub thread: ThreadId,
    /// How many nodes.
    pub nodes: u64,
    /// How many items.
    pub items: u64,
    /// Tokens of all items up to the head.
    pub tokens: u64,
    /// Other names that were left out, because the thread has a new id.
    pub aliases_left_out: u64,
}

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// Write a thread. `at` names it, or for [`Extent::Branch`] the node where the branch ends.
///
/// Memory does not grow with the thread: nodes are read page by page.
pub async fn export(
    store: &Store,
    scope: &TenantScope,
    at: &At,
    extent: Extent,
    out: &mut (dyn Write + Send),
    progress: OnProgress<'_>,
) -> Result<Exported> {
    let failed = |error: std::io::Error| stream("output", &error);
    let mut export = Export::start(store, scope, at, extent).await?;
    while let Some(lines) = export.next().await? {
        out.write_all(lines.as_bytes()).map_err(failed)?;
        progress(export.progress());
    }
    out.flush().map_err(failed)?;
    Ok(export.exported())
}

/// Read a thread that was exported. `total` is the size of the input, 0 if unknown.
pub async fn import(
    store: &Store,
    scope: &TenantScope,
    input: &mut (dyn Read + Send),
    total: u64,
    options: ImportOptions,
    progress: OnProgress<'_>,
) -> Result<Imported> {
    let mut importer = Importer::new(store, scope, options);
    let mut piece = vec![0; PIECE];
    let mut done = 0;
    loop {
        match input.read(&mut piece) {
            Ok(0) => return importer.finish().await,
            Ok(count) => {
                importer.push(&piece[..count]).await?;
                done += count as u64;
                progress(Progress {
                    done,
                    total,
                    unit: "bytes",
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                importer.abort().await;
                return Err(stream("input", &error));
            }
        }
    }
}

fn stream(what: &'static str, error: &std::io::Error) -> Error {
    Error::Stream {
        what,
        kind: error.kind(),
        detail: error.to_string(),
    }
}
