//! Digests by which items are found.

use crate::{
    Fingerprint, FingerprintDigest, FingerprintMatch, ItemNo, MATCHES_PER_DIGEST, Result, RunId,
};

use super::Transaction;
use super::schema::{FingerprintRow, Row, Stage, TenantTables};

impl TenantTables {
    /// Store the digests of items of a run.
    pub(super) fn add_fingerprints(&mut self, id: RunId, fingerprints: &[Fingerprint]) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        for fingerprint in fingerprints {
            run.fingerprints.push(*fingerprint);
            self.fingerprints.insert(FingerprintRow {
                digest: fingerprint.digest,
                run_row: run.row,
                item: fingerprint.item,
                run: id,
            });
        }
    }

    /// Remove those whose items are gone.
    pub(super) fn drop_fingerprints(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let items = &run.items;
        let is_there = |one: &Fingerprint| {
            let place = usize::try_from(one.item)
                .ok()
                .and_then(|no| no.checked_sub(1));
            place.is_some_and(|place| items.get(place).is_some_and(Option::is_some))
        };
        let gone = run.fingerprints.extract_if(.., |one| !is_there(one));
        for gone in gone {
            self.fingerprints.remove(&FingerprintRow {
                digest: gone.digest,
                run_row: run.row,
                item: gone.item,
                run: id,
            });
        }
    }

    /// Whether what finds items of a run leads to something that can be named.
    fn is_named(&self, id: RunId) -> bool {
        let run = self.runs.get(&id);
        run.is_some_and(|run| !run.hidden && self.stage(run.thread) == Some(Stage::Visible))
    }
}

impl Transaction<'_> {
    pub(super) fn find_fingerprints(
        &self,
        digests: &[FingerprintDigest],
    ) -> Result<Vec<FingerprintMatch>> {
        let mut found = Vec::new();
        for digest in digests {
            let bound = |run_row: Row, item: ItemNo, byte: u8| FingerprintRow {
                digest: *digest,
                run_row,
                item,
                run: RunId::from_bytes([byte; 16]),
            };
            let range = bound(Row::MIN, 0, 0)..=bound(Row::MAX, ItemNo::MAX, u8::MAX);
            let rows = self.tables.fingerprints.range(range).rev();
            let rows = rows.filter(|row| self.tables.is_named(row.run));
            for row in rows.take(MATCHES_PER_DIGEST) {
                let run = self.tables.run(row.run)?;
                let head = self.thread_of(run)?.head;
                let head = head.map(|head| self.tables.node(head)).transpose()?;
                found.push(FingerprintMatch {
                    digest: *digest,
                    item: row.item,
                    run: self.run_view(run)?,
                    head: head.map(|node| node.id),
                });
            }
        }
        Ok(found)
    }
}
