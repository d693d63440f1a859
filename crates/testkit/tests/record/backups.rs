use std::sync::Arc;
use std::time::Duration;

use throughline_store::{
    Clock, Heartbeat, ManualClock, Options, RunFilter, RunState, Store, SystemClock, TenantScope,
    sqlite,
};
use throughline_testkit::record::block_on;
use throughline_testkit::{Scratch, property};

use crate::record::kills::Writer;
use crate::record::ledger::{Ledger, Met};

/// R22: a backup under load restores to its point in time, and restored runs dispatch nothing
/// unasked.
#[test]
fn r22_a_backup_under_load_restores_to_its_point() {
    let scratch = Scratch::new("backups");
    let url = scratch.sqlite("store.db");
    let mut cycle = 0;
    let (mut compared, mut held) = (0, 0);
    property("r22 backups", 10, |rng, _| {
        cycle += 1;
        let mut before = Ledger::default();
        let mut writer = Writer::start(&url, rng.next_u64());
        for _ in 0..rng.range(20..=120) {
            writer.hear(&mut before)?;
        }
        // Everything that was acknowledged up to here is in the backup.
        let store = block_on(Store::open(&url)).map_err(|error| error.to_string())?;
        let backup = scratch.path().join(format!("backup-{cycle}.db"));
        let backups = store.backups().ok_or("no backups")?;
        block_on(backups.backup(&backup, &mut |_| {})).map_err(|error| error.to_string())?;
        let again = block_on(backups.backup(&backup, &mut |_| {}));
        if again.is_ok() {
            return Err("a backup was written over".to_owned());
        }
        writer.kill(&mut Ledger::default())?;
        let place = scratch.path().join(format!("restored-{cycle}.db"));
        sqlite::restore(&backup, &place).map_err(|error| error.to_string())?;
        // Long after every lease: still no worker may resume the runs by itself.
        let clock = Arc::new(ManualClock::at(SystemClock.now()));
        clock.advance(Duration::from_secs(3600));
        let options = Options {
            clock,
            heartbeat: Heartbeat::Manual,
            ..Options::default()
        };
        let restored = format!("sqlite://{}", place.display());
        let restored =
            block_on(Store::open_with(&restored, options)).map_err(|error| error.to_string())?;
        before.check(&restored, Met::Kill)?;
        compared += before.len();
        let orphans = block_on(restored.orphans(1000)).map_err(|error| error.to_string())?;
        if !orphans.is_empty() {
            return Err(format!(
                "{} restored runs would be taken over",
                orphans.len()
            ));
        }
        let filter = RunFilter {
            thread: None,
            states: vec![RunState::Held],
        };
        let scope = TenantScope::local();
        let runs = block_on(restored.runs(&scope, &filter, None, 1000));
        held += runs.map_err(|error| error.to_string())?.found.len();
        let checked = block_on(restored.check(&mut |_| {})).map_err(|error| error.to_string())?;
        if !checked.damage.is_empty() {
            return Err(format!("{:?}", checked.damage));
        }
        if sqlite::restore(&backup, &place).is_ok() {
            return Err("a store was restored over another".to_owned());
        }
        Ok(())
    });
    println!(
        "table r22: cycles={cycle} acknowledged_compared={compared} held_runs={held} missing=0"
    );
}
