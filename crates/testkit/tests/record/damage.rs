use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;
use throughline_store::{
    At, Authority, Damage, DamageSite, Error, ErrorKind, ItemRef, NodeRef, RunId, Store, Tenant,
    TenantScope, ThreadFilter, ThreadId,
};
use throughline_testkit::record::{Tree, block_on};
use throughline_testkit::{Rng, Scratch, property};

use crate::record::common::open;

fn scopes() -> [TenantScope; 2] {
    let stranger = Tenant::new("stranger").unwrap();
    [TenantScope::local(), Authority::assume().scope(stranger)]
}

/// The histories that readers can see, as text; or that they were refused. Digests cover contents
/// and positions; titles, dates and counters of threads and runs are not covered.
fn dump(url: &str) -> Result<String, String> {
    let said = |error: Error| format!("{error:?}");
    let store = block_on(Store::open(url)).map_err(said)?;
    let checked = block_on(store.check(&mut |_| {})).map_err(said)?;
    if let Some(damage) = checked.damage.first() {
        return Err(format!("{damage:?}"));
    }
    let mut words = String::new();
    for scope in scopes() {
        let filter = ThreadFilter::default();
        let threads = block_on(store.threads(&scope, &filter, None, 1000)).map_err(said)?;
        let mut ids: Vec<_> = threads.found.into_iter().map(|thread| thread.id).collect();
        ids.sort();
        for id in ids {
            let opened = block_on(store.open(&scope, &At::Thread(id.clone()), 10_000));
            let opened = opened.map_err(said)?;
            words += &format!("{id} {:?} {:?}\n", opened.tip, opened.entries);
            let tree = block_on(store.tree(&scope, &id, None, 10_000)).map_err(said)?;
            for node in tree {
                let at = At::Node(NodeRef::Run(node.node.run));
                let named = match block_on(store.open(&scope, &at, 3)) {
                    Ok(opened) => opened.tip,
                    // Shared with a deleted thread, whose name is gone.
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(error) => return Err(said(error)),
                };
                words += &format!("{:?} {:?} {named:?}\n", node.node, node.parent);
            }
        }
    }
    Ok(words)
}

/// A closed store of two tenants with some trees, all of it in one file.
fn grown(scratch: &Scratch) -> std::path::PathBuf {
    let store = open(&scratch.sqlite("store.db"));
    for (n, scope) in scopes().iter().enumerate() {
        for seed in 0..3 {
            let mut rng = Rng::new(seed + 100 * n as u64);
            block_on(Tree::grow(&store, scope, &mut rng, 25)).unwrap();
        }
    }
    while block_on(store.purge(1000)).unwrap().more {}
    block_on(store.close()).unwrap();
    drop(store);
    let path = scratch.path().join("store.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap();
    path
}

/// Columns that digests cover: a flipped bit in any of them is found.
const COVERED: [(&str, &[&str]); 5] = [
    (
        "item",
        &["body", "digest", "kind", "source", "units", "no", "run"],
    ),
    (
        "node",
        &[
            "first", "last", "run", "step", "item_lo", "flags", "units", "digest",
        ],
    ),
    ("state", &["body", "digest"]),
    ("thread", &["head_tl", "head_first", "head_digest"]),
    ("run", &["pub_tl", "pub_first", "pub_step"]),
];

/// A flipped bit.
struct Flipped {
    table: &'static str,
    column: &'static str,
    row: i64,
}

impl std::fmt::Display for Flipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} of row {}", self.table, self.column, self.row)
    }
}

/// Flips one bit of a row.
fn flip(connection: &Connection, rng: &mut Rng) -> Option<Flipped> {
    let (table, columns) = rng.pick(&COVERED);
    let column = rng.pick(columns);
    // The head of a deleted thread belongs to no thread.
    let table_and_rows = match *table {
        "thread" => "thread WHERE stage=0",
        "run" => "run WHERE pub_tl IS NOT NULL",
        other => other,
    };
    let count = format!("SELECT count(*) FROM {table_and_rows}");
    let rows: i64 = connection.query_row(&count, [], |row| row.get(0)).unwrap();
    let skip = rng.below(usize::try_from(rows).unwrap().max(1));
    let sql = format!("SELECT rowid, {column} FROM {table_and_rows} LIMIT 1 OFFSET {skip}");
    let (row, value): (i64, Value) = connection
        .query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .ok()?;
    let changed = match &value {
        Value::Integer(number) => Value::Integer(number ^ (1 << rng.below(12))),
        Value::Blob(bytes) if !bytes.is_empty() => {
            let mut bytes = bytes.clone();
            let place = rng.below(bytes.len());
            bytes[place] ^= 1 << rng.below(8);
            Value::Blob(bytes)
        }
        Value::Text(text) if !text.is_empty() => {
            let mut bytes = text.clone().into_bytes();
            let place = rng.below(bytes.len());
            bytes[place] ^= 1;
            Value::Text(String::from_utf8(bytes).ok()?)
        }
        _ => return None,
    };
    let sql = format!("UPDATE {table} SET {column}=?1 WHERE rowid=?2");
    connection.execute(&sql, (&changed, row)).ok()?;
    let (table, column) = (*table, *column);
    Some(Flipped { table, column, row })
}

/// The place of a row in the store before it is damaged.
#[derive(Debug, Default)]
struct Stands {
    /// `None` if its thread was deleted and others share it.
    thread: Option<String>,
    item: Option<ItemRef>,
    /// The positions of its item, or of the first item of its node, on branches.
    positions: Vec<u64>,
}

fn stands(sound: &Connection, flipped: &Flipped) -> Stands {
    let thread = |sql: &str| -> Option<String> {
        sound
            .query_row(sql, [flipped.row], |row| row.get(0))
            .unwrap()
    };
    let positions = |sql: &str| -> Vec<u64> {
        let mut statement = sound.prepare(sql).unwrap();
        let rows = statement.query_map([flipped.row], |row| row.get::<_, i64>(0));
        let rows = rows
            .unwrap()
            .map(|position| position.unwrap().cast_unsigned());
        rows.collect()
    };
    let of_run = |table: &str| {
        thread(&format!(
            "SELECT t.id FROM {table} x JOIN run r ON r.run=x.run LEFT JOIN thread t ON t.thread=r.thread WHERE x.rowid=?"
        ))
    };
    match flipped.table {
        "item" => {
            let sql = "SELECT r.id, i.no FROM item i JOIN run r ON r.run=i.run WHERE i.item=?";
            let item = sound.query_row(sql, [flipped.row], |row| {
                let run = RunId::from_bytes(row.get(0)?);
                Ok(ItemRef {
                    run,
                    no: row.get(1)?,
                })
            });
            Stands {
                thread: of_run("item"),
                item: Some(item.unwrap()),
                positions: positions(
                    "SELECT n.first+i.no-n.item_lo FROM item i JOIN node n ON n.run=i.run
                     AND i.no BETWEEN n.item_lo AND n.item_lo+n.last-n.first WHERE ?1 IN (i.item, i.again)",
                ),
            }
        }
        "node" => Stands {
            thread: thread(
                "SELECT t.id FROM node n JOIN timeline l ON l.tl=n.tl JOIN thread t ON t.thread=l.thread WHERE n.node=?",
            ),
            positions: positions("SELECT first FROM node WHERE node=?"),
            ..Stands::default()
        },
        "thread" => Stands {
            thread: thread("SELECT id FROM thread WHERE thread=?"),
            ..Stands::default()
        },
        table => Stands {
            thread: of_run(table),
            ..Stands::default()
        },
    }
}

impl Stands {
    /// Whether the check names the place of the damage.
    fn is_named(&self, flipped: &Flipped, damage: &Damage) -> bool {
        // With another run the node is another one, or none, and so is its thread. No node has the
        // item, so the check finds its row only at the place that the row names.
        let is_other = match (flipped.table, flipped.column) {
            ("node", "first" | "run") => true,
            ("item", "run" | "no") => self.positions.is_empty(),
            _ => false,
        };
        if is_other || damage.thread != self.thread {
            return is_other;
        }
        let at = |position: Option<u64>| {
            position.is_some_and(|position| self.positions.contains(&position))
        };
        match (flipped.table, flipped.column) {
            ("item", _) => {
                damage.item == self.item && (self.positions.is_empty() || at(damage.position))
            }
            ("node", column) => self.is_in_node(column, damage.position, damage.item),
            _ => true,
        }
    }

    /// Whether damage is reported in a node. For a node whose range was changed, the first wrong
    /// position or item is named.
    fn is_in_node(&self, column: &str, position: Option<u64>, item: Option<ItemRef>) -> bool {
        let ranges = ["item_lo", "last"].contains(&column);
        let first = self.positions.iter().min().copied();
        match position {
            Some(position) if ranges => first.is_none_or(|first| position >= first),
            Some(position) => self.positions.contains(&position) && item.is_none(),
            None => false,
        }
    }

    /// Whether a reader of a thread got the place of the damage.
    fn is_told(&self, flipped: &Flipped, thread: &ThreadId, site: &DamageSite) -> bool {
        if site.thread.as_ref() != Some(thread) {
            return false;
        }
        match flipped.table {
            "item" => {
                let is_there = |position| self.positions.contains(&position);
                site.item == self.item && site.position.map_or(self.positions.is_empty(), is_there)
            }
            "node" if !["first", "run"].contains(&flipped.column) => {
                site.position.is_none() || self.is_in_node(flipped.column, site.position, site.item)
            }
            _ => true,
        }
    }
}

/// The threads of a store, by tenant.
fn threads(url: &str) -> Vec<(TenantScope, ThreadId)> {
    let store = open(url);
    let mut threads = Vec::new();
    for scope in scopes() {
        let filter = ThreadFilter::default();
        let listed = block_on(store.threads(&scope, &filter, None, 1000)).unwrap();
        let ids = listed.found.into_iter().map(|thread| thread.id);
        threads.extend(ids.map(|id| (scope.clone(), id)));
    }
    block_on(store.close()).unwrap();
    threads
}

fn url(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}

/// R18: a flipped bit in what digests cover is found and located, and nothing of it is served.
#[test]
fn r18_changed_bits_in_rows_are_found_and_located() {
    let scratch = Scratch::new("bits");
    let path = grown(&scratch);
    let original = std::fs::read(&path).unwrap();
    let damaged = scratch.path().join("damaged.db");
    let known = threads(&url(&path));
    let sound = Connection::open(&path).unwrap();
    let (mut caught, mut told) = (0, 0);
    property("r18 bits in rows", 250, |rng, _| {
        std::fs::write(&damaged, &original).unwrap();
        let connection = Connection::open(&damaged).unwrap();
        let Some(place) = flip(&connection, rng) else {
            return Ok(());
        };
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.get::<_, i64>(0)
            })
            .unwrap();
        drop(connection);
        let store = block_on(Store::open(&url(&damaged))).map_err(|error| error.to_string())?;
        let checked = block_on(store.check(&mut |_| {})).map_err(|error| error.to_string())?;
        if checked.damage.is_empty() {
            return Err(format!("a changed bit in {place} is not found"));
        }
        let stands = stands(&sound, &place);
        if !checked
            .damage
            .iter()
            .any(|damage| stands.is_named(&place, damage))
        {
            let damage = checked.damage;
            return Err(format!(
                "a changed bit in {place}, {stands:?}, is named as {damage:?}"
            ));
        }
        for (scope, thread) in &known {
            let at = At::Thread(thread.clone());
            match block_on(store.open(scope, &at, 10_000)) {
                Err(Error::Corrupt { place: site, .. }) => {
                    if !stands.is_told(&place, thread, &site) {
                        return Err(format!("{thread}: {place}, {stands:?}, is told as {site}"));
                    }
                    told += 1;
                }
                Err(error) => return Err(format!("{thread}: {place}: {error:?}")),
                Ok(_) => {}
            }
        }
        block_on(store.close()).map_err(|error| error.to_string())?;
        caught += 1;
        // Readers are refused, or see the original contents.
        match (dump_reads(&damaged), dump_reads(&path)) {
            (Ok(found), Ok(expected)) if found != expected => {
                Err(format!("a changed bit in {place} was served"))
            }
            _ => Ok(()),
        }
    });
    println!("table r18 rows: flips_caught={caught} refusals_located={told} served=0");
}

/// What readers see of each thread, refusals included.
fn dump_reads(path: &Path) -> Result<Vec<String>, String> {
    let store = block_on(Store::open(&url(path))).map_err(|error| error.to_string())?;
    let mut seen = Vec::new();
    for scope in scopes() {
        let filter = ThreadFilter::default();
        let threads = block_on(store.threads(&scope, &filter, None, 1000));
        for thread in threads.map_err(|error| error.to_string())?.found {
            let at = At::Thread(thread.id.clone());
            match block_on(store.open(&scope, &at, 10_000)) {
                Ok(opened) => seen.push(format!("{opened:?}")),
                Err(error) if error.kind() == ErrorKind::Corrupt => return Err(error.to_string()),
                Err(error) => return Err(format!("refused in other words: {error:?}")),
            }
        }
    }
    Ok(seen)
}

/// R18: a flipped bit anywhere in the file is found, or it is in an unused place.
#[test]
fn r18_changed_bits_in_the_file_are_found_or_change_nothing() {
    let scratch = Scratch::new("flips");
    let path = grown(&scratch);
    let expected = dump(&url(&path)).unwrap();
    let original = std::fs::read(&path).unwrap();
    let damaged = scratch.path().join("damaged.db");
    let (mut caught, mut harmless) = (0, 0);
    property("r18 bits in the file", 250, |rng, _| {
        let mut bytes = original.clone();
        let place = rng.below(bytes.len());
        bytes[place] ^= 1 << rng.below(8);
        std::fs::write(&damaged, &bytes).unwrap();
        let _ = std::fs::remove_file(scratch.path().join("damaged.db-wal"));
        let _ = std::fs::remove_file(scratch.path().join("damaged.db-shm"));
        match dump(&url(&damaged)) {
            Err(_) => caught += 1,
            Ok(words) if words == expected => harmless += 1,
            Ok(words) => {
                let differs = words.lines().zip(expected.lines()).find(|(a, b)| a != b);
                let short = format!("{differs:?}").chars().take(600).collect::<String>();
                return Err(format!("byte {place} was served: {short}"));
            }
        }
        Ok(())
    });
    println!("table r18 file: caught={caught} where_nothing_is={harmless} served=0");
}

/// R18: swapped rows, within a tenant and between two, and truncated files.
#[test]
fn r18_swapped_rows_and_cut_files_are_found() {
    let scratch = Scratch::new("swaps");
    let path = grown(&scratch);
    let original = std::fs::read(&path).unwrap();
    let damaged = scratch.path().join("damaged.db");
    let mut caught = 0;
    property("r18 swaps", 50, |rng, _| {
        std::fs::write(&damaged, &original).unwrap();
        let connection = Connection::open(&damaged).unwrap();
        let rows: Vec<(i64, Vec<u8>, Vec<u8>)> = connection
            .prepare("SELECT item, body, digest FROM item WHERE body IS NOT NULL")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let (a, b) = (rng.pick(&rows), rng.pick(&rows));
        if a.1 == b.1 {
            return Ok(());
        }
        // The digests are swapped with the bodies, as when whole rows are swapped.
        for (to, from) in [(a, b), (b, a)] {
            connection
                .execute(
                    "UPDATE item SET body=?1, digest=?2 WHERE item=?3",
                    (&from.1, &from.2, to.0),
                )
                .unwrap();
        }
        drop(connection);
        if dump(&url(&damaged)).is_ok() {
            return Err(format!("rows {} and {} changed places unnoticed", a.0, b.0));
        }
        caught += 1;
        let cut = rng.below(original.len());
        std::fs::write(&damaged, &original[..cut]).unwrap();
        let _ = std::fs::remove_file(scratch.path().join("damaged.db-wal"));
        let _ = std::fs::remove_file(scratch.path().join("damaged.db-shm"));
        // An empty file is a new store: nothing is served from it.
        if cut > 0 && dump(&url(&damaged)).is_ok() {
            return Err(format!("a file cut at {cut} is taken for whole"));
        }
        Ok(())
    });
    println!("table r18 swaps: caught={caught} served=0");
}
