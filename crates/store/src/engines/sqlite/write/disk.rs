//! What was answered before the disk has it, how the disk gets it, and who waits for that.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::sync::Mutex;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::engines::sqlite::cache::lock;
use crate::engines::sqlite::fault::{Done, Stop};
use crate::{Error, Result, trials};

/// The log of a store, as a file of the system.
///
/// SQLite syncs its log only within a commit, for which it needs the pen. Whatever is in the log
/// already is brought to the disk as well by anybody else who has the file open. It is the same file
/// for as long as a connection is open, and its name lasts: SQLite sees to that when it begins a log.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
}

impl LogFile {
    /// The log of a connection that has read its file: by then there is one.
    pub(crate) fn of(conn: &Connection) -> Done<Self> {
        let path = PathBuf::from(format!("{}-wal", conn.path().unwrap_or_default()));
        // Nothing is ever written by this handle, but some systems sync no other.
        match OpenOptions::new().write(true).open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(Stop::Broken(Error::Io {
                detail: format!("{} cannot be opened: {error}", path.display()),
            })),
        }
    }

    /// Bring to the disk what is in it.
    pub(crate) fn sync(&self) -> Done<()> {
        let synced = trials::sync(&self.path, || self.file.sync_data());
        synced.map_err(|error| {
            Stop::Broken(Error::Io {
                detail: format!("the log cannot be brought to the disk: {error}"),
            })
        })
    }
}

/// Runs that were begun and are not on the disk yet. The writer brings them there next, and says so.
#[derive(Default)]
pub(crate) struct Owed(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many runs were begun so.
    begun: u64,
    /// How many of them are on the disk.
    paid: u64,
    /// The disk did not take it when it was last tried.
    failing: bool,
    /// Who waits, and for how many to be paid.
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

/// What is owed to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owes {
    Nothing,
    /// The first so many beginnings, at once.
    Now(u64),
    /// The same with the next commit: it was tried, and failed.
    WithNext(u64),
}

impl Owed {
    /// Something was written, and is about to be answered.
    pub(crate) fn owe(&self) {
        lock(&self.0).begun += 1;
    }

    /// How many beginnings there were.
    pub(crate) fn begun(&self) -> u64 {
        lock(&self.0).begun
    }

    pub(crate) fn owes(&self) -> Owes {
        let state = lock(&self.0);
        match state.begun {
            begun if begun == state.paid => Owes::Nothing,
            begun if state.failing => Owes::WithNext(begun),
            begun => Owes::Now(begun),
        }
    }

    /// The disk has the first so many.
    pub(crate) fn paid(&self, upto: u64) {
        let told: Vec<_> = {
            let mut state = lock(&self.0);
            state.paid = state.paid.max(upto);
            state.failing = false;
            let paid = state.paid;
            let is_told = |(upto, _): &mut (u64, _)| *upto <= paid;
            state.waiting.extract_if(.., is_told).collect()
        };
        for (_, one) in told {
            // Whoever waited may have gone.
            let _ = one.send(());
        }
    }

    /// The disk did not take it. Whoever waits is told so, and so is whoever comes before it does.
    pub(crate) fn failed(&self) {
        let mut state = lock(&self.0);
        if state.begun != state.paid {
            state.failing = true;
            state.waiting.clear();
        }
    }

    /// Wait until the disk has what was answered so far.
    pub(crate) async fn wait(&self) -> Result<()> {
        let refused = || Error::Io {
            detail: "the disk has not taken what was written".into(),
        };
        let paid = {
            let mut state = lock(&self.0);
            match (state.begun == state.paid, state.failing) {
                (true, _) => return Ok(()),
                (false, true) => return Err(refused()),
                (false, false) => {}
            }
            let (waits, paid) = oneshot::channel();
            let upto = state.begun;
            state.waiting.push((upto, waits));
            paid
        };
        paid.await.map_err(|_| refused())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<T>(wait: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        wait.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn whoever_waits_is_told_once_the_disk_has_what_was_begun_before() {
        let owed = Owed::default();
        assert_eq!(owed.owes(), Owes::Nothing);
        owed.owe();
        let mut first = pin!(owed.wait());
        assert!(poll(first.as_mut()).is_pending());
        assert_eq!(owed.owes(), Owes::Now(1));
        // A second run is begun while the disk takes the first.
        owed.owe();
        let mut second = pin!(owed.wait());
        assert!(poll(second.as_mut()).is_pending());
        owed.paid(1);
        assert!(matches!(poll(first.as_mut()), Poll::Ready(Ok(()))));
        assert!(poll(second.as_mut()).is_pending());
        assert_eq!(owed.owes(), Owes::Now(2));
        owed.paid(2);
        assert!(matches!(poll(second.as_mut()), Poll::Ready(Ok(()))));
        assert_eq!(owed.owes(), Owes::Nothing);
    }

    #[test]
    fn a_disk_that_takes_nothing_is_told_to_all_until_it_does() {
        let owed = Owed::default();
        owed.failed();
        assert!(matches!(poll(pin!(owed.wait())), Poll::Ready(Ok(()))));
        owed.owe();
        let mut before = pin!(owed.wait());
        assert!(poll(before.as_mut()).is_pending());
        owed.failed();
        assert!(matches!(poll(before), Poll::Ready(Err(_))));
        assert!(matches!(poll(pin!(owed.wait())), Poll::Ready(Err(_))));
        assert_eq!(owed.owes(), Owes::WithNext(1));
        owed.paid(1);
        assert!(matches!(poll(pin!(owed.wait())), Poll::Ready(Ok(()))));
    }
}
