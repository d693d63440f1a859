use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use throughline_store::{
    Anchor, Begin, Error, ErrorKind, Flush, Leasing, NewThread, RunId, Store, TenantScope,
};
use throughline_testkit::disk::{Disk, DiskFault, FileKind, Injection, Tally};
use throughline_testkit::record::{Turn, begin, block_on, shorts};
use throughline_testkit::{Rng, Scratch, property};

use crate::record::common::{said, sound, url};
use crate::record::kills;
use crate::record::ledger::{Ledger, Met};
use crate::record::storage::history;
use crate::record::work::{Writer, append_of, events, go_on, open, open_later, turn_of};

const WRITERS: usize = 3;

/// The counts.
#[derive(Default)]
struct Counts {
    cuts: u64,
    acknowledged: usize,
    threads: usize,
    tally: Tally,
}

impl Counts {
    /// Writes the image of a cut, opens it as a store, and compares it with the ledger. The store
    /// is closed again; the next cut starts from the image.
    fn check(&mut self, disk: &Disk, image: &Path, ledger: &Ledger) -> Result<(), String> {
        self.cuts += 1;
        self.acknowledged += ledger.len();
        self.tally += disk.write_image(image).map_err(|error| error.to_string())?;
        // The image is on a simulated disk too, which spares it real syncs.
        let _disk = Disk::below(image);
        let store = open_later(&url(image)).map_err(said)?;
        ledger.check(&store, Met::PowerCut)?;
        sound(&store)?;
        block_on(store.close()).map_err(said)
    }

    /// Checks that every remaining thread can be continued.
    fn go_on(&mut self, image: &Path, ledger: &Ledger, rng: &mut Rng) -> Result<(), String> {
        let _disk = Disk::below(image);
        let store = open_later(&url(image)).map_err(said)?;
        self.threads += go_on(&store, rng)?;
        sound(&store)?;
        // What was stored before the turns must still be there.
        ledger.check(&store, Met::PowerCut)?;
        block_on(store.close()).map_err(said)
    }

    #[expect(clippy::print_stdout, reason = "the test command shows this line")]
    fn print(&self, name: &str) {
        let Self {
            cuts,
            acknowledged,
            threads,
            tally,
        } = self;
        let Tally {
            kept,
            dropped,
            torn,
        } = tally;
        println!(
            "table {name}: cuts={cuts} acknowledged={acknowledged} kept={kept} dropped={dropped} torn={torn} gone_on={threads} lost=0"
        );
    }
}

/// What writers do until the power is cut.
type Job<'a> = &'a (dyn Fn(&mut Writer<'_>) -> Result<(), Error> + Sync);

/// Lets writers work until the power is cut, each for at most this many jobs.
fn work_until_cut(
    disk: &Disk,
    store: &Store,
    ledger: &Mutex<Ledger>,
    rng: &mut Rng,
    (job, jobs): (Job<'_>, usize),
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let write = |rng: Rng| {
            let mut writer = Writer { store, rng, ledger };
            for _ in 0..jobs {
                match job(&mut writer) {
                    Ok(()) if disk.is_cut() => break,
                    Ok(()) => {}
                    Err(error) if disk.is_cut() && error.kind() == ErrorKind::Unavailable => break,
                    Err(error) => return Err(said(error)),
                }
            }
            Ok(())
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| rng.fork())
            .map(|rng| scope.spawn(move || write(rng)))
            .collect();
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().expect("a writer panicked"))
    })
}

/// R1: the power is cut at any write or sync, several times in a row. What was acknowledged is
/// stored unchanged, nothing partial is visible, nothing is damaged, and every thread can be
/// continued.
#[test]
fn r1_a_power_cut_loses_nothing_that_was_acknowledged() {
    let mut counts = Counts::default();
    property("r1 power cuts", 5, |rng, size| {
        let ledger = Mutex::new(Ledger::default());
        let mut directory = Scratch::new("power");
        for _ in 0..rng.range(1..=3) {
            let disk = Disk::below(directory.path());
            let store = open(&url(directory.path())).map_err(said)?;
            disk.cut_at(rng.range(1..=60 * size.max(10)) as u64, rng.next_u64());
            let job = |writer: &mut Writer<'_>| writer.work();
            work_until_cut(&disk, &store, &ledger, rng, (&job, 400))?;
            // Closing the store writes too.
            drop(store);
            disk.cut_now(rng.next_u64());
            let image = Scratch::new("image");
            counts.check(&disk, image.path(), &ledger.lock().unwrap())?;
            directory = image;
        }
        counts.go_on(directory.path(), &ledger.lock().unwrap(), rng)
    });
    assert!(counts.acknowledged > 0, "nothing was acknowledged");
    counts.print("r1 power cuts");
}

/// The begin of a run on a new thread.
fn fresh(store: &Store, turn: &Turn, run: RunId) -> Begin {
    let new = Anchor::New {
        thread: NewThread::new(store.ids().thread()),
        leasing: Leasing::Free,
    };
    turn.begin(run, new)
}

/// R1: a run whose begin was acknowledged is there after a power cut directly after it, also if
/// operations that write nothing are committed at the same time.
#[test]
fn r1_a_power_cut_after_a_begin_takes_nothing() {
    property("r1 power cuts after begins", 100, |rng, _| {
        let (directory, image) = (Scratch::new("begun"), Scratch::new("image"));
        let disk = Disk::below(directory.path());
        let store = open(&url(directory.path())).map_err(said)?;
        let (scope, run) = (TenantScope::local(), store.ids().run());
        let turn = turn_of(run, rng);
        let fresh = fresh(&store, &turn, run);
        let over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            if rng.bool() {
                threads.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        drop(block_on(store.profile()));
                    }
                });
            }
            let begun = block_on(begin(&store, &scope, &fresh));
            disk.cut_now(rng.next_u64());
            over.store(true, Ordering::Relaxed);
            begun
        })
        .map_err(said)?;
        drop(store);
        disk.write_image(image.path())
            .map_err(|error| error.to_string())?;
        let _disk = Disk::below(image.path());
        let store = open_later(&url(image.path())).map_err(said)?;
        let journal = block_on(store.journal(&scope, run)).map_err(said)?;
        let found = shorts(&journal.entries);
        if found != turn.input {
            return Err(format!("{found:?} of {:?}", turn.input));
        }
        sound(&store)
    });
}

/// R1: an fsync fails and loses its data, including data that was committed before without an
/// fsync. What is acknowledged later is behind that in the WAL, and must survive a power cut
/// nevertheless.
#[test]
fn r1_what_follows_a_sync_that_lost_something_survives_a_power_cut() {
    let (mut acknowledged, mut failed) = (0, 0);
    property("r1 power cuts after lost syncs", 100, |rng, _| {
        let (directory, image) = (Scratch::new("lost"), Scratch::new("image"));
        let disk = Disk::below(directory.path());
        let store = open(&url(directory.path())).map_err(said)?;
        let (scope, run) = (TenantScope::local(), store.ids().run());
        let thread = store.ids().thread();
        let new = NewThread::new(thread.clone());
        block_on(store.open_or_create(&scope, &new, 0)).map_err(said)?;
        let turn = turn_of(run, rng);
        // The fsync of the begin itself, or that of a write behind unsynced events.
        let lost = Injection::once(DiskFault::SyncLost).within(FileKind::Log);
        let at_once = rng.bool();
        if at_once {
            disk.inject(lost);
        }
        let fresh = fresh(&store, &turn, run);
        let lease = loop {
            match block_on(begin(&store, &scope, &fresh)) {
                Ok(started) => break started.lease,
                Err(Error::Io { .. }) if failed <= 1000 => failed += 1,
                Err(error) => return Err(said(error)),
            }
        };
        let flush = Flush::new(0, &events(run, 0, 2));
        block_on(store.flush(&scope, lease, &flush)).map_err(said)?;
        if !at_once {
            disk.inject(lost);
        }
        let mut texts = Vec::new();
        for _ in 0..rng.range(1..=3) {
            let (append, text) = append_of(store.ids().run(), thread.clone(), 100);
            while let Err(error) = block_on(store.append(&scope, &append)) {
                failed += 1;
                if !matches!(error, Error::Io { .. }) || failed > 1000 {
                    return Err(said(error));
                }
            }
            texts.push(text);
            acknowledged += 1;
        }
        disk.cut_now(rng.next_u64());
        drop(store);
        disk.write_image(image.path())
            .map_err(|error| error.to_string())?;
        let _disk = Disk::below(image.path());
        let store = open_later(&url(image.path())).map_err(said)?;
        let found = history(&store, &thread)?;
        if found != texts {
            return Err(format!("{found:?} of {texts:?}"));
        }
        let journal = block_on(store.journal(&scope, run)).map_err(said)?;
        if shorts(&journal.entries) != turn.input {
            return Err("the run is not what was begun".to_owned());
        }
        sound(&store)
    });
    println!(
        "table r1 power cuts after lost syncs: acknowledged={acknowledged} failed={failed} lost=0"
    );
}

/// R1: the same while the WAL is copied to the database file, and while it is reset and truncated.
#[test]
fn r1_a_power_cut_during_a_checkpoint_loses_nothing() {
    let mut counts = Counts::default();
    property("r1 power cuts during checkpoints", 5, |rng, _| {
        let ledger = Mutex::new(Ledger::default());
        let (directory, image) = (Scratch::new("checkpoint"), Scratch::new("image"));
        let disk = Disk::below(directory.path());
        let store = open(&url(directory.path())).map_err(said)?;
        // Only a checkpoint writes to the database file itself.
        disk.cut_within(FileKind::Main, rng.range(1..=200) as u64, rng.next_u64());
        let mode = *rng.pick(&["PASSIVE", "FULL", "RESTART", "TRUNCATE"]);
        let path = directory.path().join("store.db");
        let job = |writer: &mut Writer<'_>| {
            writer.work()?;
            if writer.rng.chance(0.2) {
                let connection = Connection::open(&path).ok();
                // The checkpoint is cut sooner or later, and may conflict with another one.
                connection.map(|it| it.execute_batch(&format!("PRAGMA wal_checkpoint({mode})")));
            }
            Ok(())
        };
        work_until_cut(&disk, &store, &ledger, rng, (&job, 400))?;
        drop(store);
        disk.cut_now(rng.next_u64());
        let ledger = ledger.into_inner().unwrap();
        counts.check(&disk, image.path(), &ledger)?;
        counts.go_on(image.path(), &ledger, rng)
    });
    counts.print("r1 power cuts during checkpoints");
}

/// R1: the same while threads are deleted and purged, which removes their bytes from the WAL too.
#[test]
fn r1_a_power_cut_while_threads_are_deleted_brings_none_back() {
    let mut counts = Counts::default();
    property("r1 power cuts during deletion", 5, |rng, size| {
        let ledger = Mutex::new(Ledger::default());
        let (directory, image) = (Scratch::new("deletion"), Scratch::new("image"));
        let disk = Disk::below(directory.path());
        let store = open(&url(directory.path())).map_err(said)?;
        disk.cut_at(rng.range(1..=30 * size.max(10)) as u64, rng.next_u64());
        let job = |writer: &mut Writer<'_>| {
            block_on(writer.doom())?;
            block_on(writer.store.purge(20)).map(drop)
        };
        work_until_cut(&disk, &store, &ledger, rng, (&job, 60))?;
        drop(store);
        disk.cut_now(rng.next_u64());
        let ledger = ledger.into_inner().unwrap();
        counts.check(&disk, image.path(), &ledger)?;
        counts.go_on(image.path(), &ledger, rng)
    });
    counts.print("r1 power cuts during deletion");
}

/// R1: a store whose creation is interrupted is a store afterwards, or can be created, wherever the
/// power was cut.
#[test]
fn r1_a_power_cut_at_any_call_of_making_a_store_leaves_a_store() {
    let directory = Scratch::new("making");
    let disk = Disk::below(directory.path());
    let store = open(&url(directory.path())).unwrap();
    drop(store);
    let calls = disk.counts().cuttable();
    let mut counts = Counts::default();
    property("r1 power cuts while a store is made", 20, |rng, _| {
        let at = rng.range(1..=usize::try_from(calls).unwrap()) as u64;
        let (directory, image) = (Scratch::new("making"), Scratch::new("image"));
        let disk = Disk::below(directory.path());
        disk.cut_at(at, rng.next_u64());
        match open(&url(directory.path())) {
            Ok(store) => drop(store),
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => return Err(format!("call {at}: {}", said(error))),
        }
        disk.cut_now(rng.next_u64());
        let ledger = Ledger::default();
        let checked = counts.check(&disk, image.path(), &ledger);
        checked.map_err(|why| format!("call {at}: {why}"))?;
        let _disk = Disk::below(image.path());
        let store = open_later(&url(image.path())).map_err(said)?;
        let ledger = Mutex::new(ledger);
        let rng = rng.fork();
        let mut writer = Writer {
            store: &store,
            rng,
            ledger: &ledger,
        };
        writer.work().map_err(said)?;
        ledger.lock().unwrap().check(&store, Met::PowerCut)
    });
    println!("table r1 calls of making a store: {calls}");
    counts.print("r1 power cuts while a store is made");
}

/// R1: a process whose power is cut as the environment says.
#[test]
fn r1_a_process_that_loses_its_power_loses_nothing_it_acknowledged() {
    let (mut cuts, mut acknowledged) = (0, 0);
    let mut kept = (Scratch::new("process"), Ledger::default());
    property("r1 power cuts of a process", 5, |rng, _| {
        if cuts % 10 == 9 {
            kept = (Scratch::new("process"), Ledger::default());
        }
        let (scratch, ledger) = &mut kept;
        let before = ledger.len();
        let variables = [
            ("THROUGHLINE_DISK", format!("cut@{}", rng.range(1..=3000))),
            ("THROUGHLINE_DISK_SEED", rng.next_u64().to_string()),
        ];
        let url = url(scratch.path());
        kills::Writer::start_with(&url, rng.next_u64(), &variables).wait(ledger)?;
        cuts += 1;
        acknowledged += ledger.len() - before;
        // The process has ended; here its files need no real syncs.
        let _disk = Disk::below(scratch.path());
        let store = open_later(&url).map_err(said)?;
        // What earlier processes acknowledged must be there as well.
        ledger.check(&store, Met::PowerCut)?;
        sound(&store)?;
        block_on(store.close()).map_err(said)
    });
    assert!(acknowledged > 0, "nothing was acknowledged");
    println!("table r1 power cuts of a process: cuts={cuts} acknowledged={acknowledged} lost=0");
}
