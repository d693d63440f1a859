//! Exports and imports through an engine: what goes out comes in again.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test says that it failed"
)]

mod grow;

use throughline_model::Message;
use throughline_model::json::{self, Value};
use throughline_store::transfer::{
    Export, Extent, ImportOptions, Imported, Importer, export, import, import_messages,
};
use throughline_store::{
    At, Entry, Error, ErrorKind, NewThread, NodeRef, Result, Span, Store, TenantScope,
    ThreadFilter, ThreadId,
};
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, chunks, property};

use grow::Grown;

fn scope() -> TenantScope {
    TenantScope::local()
}

fn id(text: &str) -> ThreadId {
    ThreadId::new(text).unwrap()
}

fn memory() -> Store {
    block_on(Store::open("memory:")).unwrap()
}

fn exported(store: &Store, at: &At, extent: Extent) -> String {
    let mut out = Vec::new();
    let mut last = None;
    let mut progress = |progress| last = Some(progress);
    let done = block_on(export(store, &scope(), at, extent, &mut out, &mut progress)).unwrap();
    assert_eq!(done.bytes, out.len() as u64);
    let last = last.unwrap();
    assert_eq!(
        (last.done, last.total),
        (done.items, done.items),
        "{extent:?}"
    );
    String::from_utf8(out).unwrap()
}

fn imported(store: &Store, bytes: &[u8], rename: Option<ThreadId>) -> Result<Imported> {
    let options = ImportOptions {
        rename,
        ..ImportOptions::default()
    };
    let mut input = bytes;
    let total = bytes.len() as u64;
    block_on(import(
        store,
        &scope(),
        &mut input,
        total,
        options,
        &mut |_| {},
    ))
}

fn threads(store: &Store) -> Vec<String> {
    let filter = ThreadFilter::default();
    let listing = block_on(store.threads(&scope(), &filter, None, 1000)).unwrap();
    listing.found.iter().map(|one| one.id.to_string()).collect()
}

fn sound(store: &Store) {
    let checked = block_on(store.check(&mut |_| {})).unwrap();
    assert_eq!(checked.damage, []);
}

/// An export without the marks that an import does not keep, and without the digest over them.
fn without_marks(export: &str) -> String {
    let mut out = String::new();
    for line in export.lines() {
        let value = json::parse(line).unwrap();
        let raw = json::RawJson::of(&value);
        let drop: &[&str] = match value.get("type").and_then(Value::as_str).as_deref() {
            Some("item") => &["again"],
            Some("end") => &["digest"],
            _ => &[],
        };
        out.push_str(raw.without(|key| drop.contains(&key)).get());
        out.push('\n');
    }
    out
}

/// An export with its ids in the order of their first appearance.
fn renumbered(export: &str) -> String {
    let mut out = String::new();
    let mut known: Vec<&str> = Vec::new();
    let mut rest = export;
    while let Some(at) = rest.find("node_") {
        let (before, from) = rest.split_at(at + 5);
        out.push_str(before);
        let run = &from[..32];
        let place = known.iter().position(|one| *one == run).unwrap_or_else(|| {
            known.push(run);
            known.len() - 1
        });
        out.push_str(&place.to_string());
        rest = &from[32..];
    }
    out.push_str(rest);
    out
}

#[test]
fn what_is_exported_comes_in_again() {
    let (mut nodes, mut marks, mut gaps, mut redacted, mut hidden) = (0, 0, 0, 0, 0);
    property("export, import, export", 300, |rng, size| {
        let grown = Grown::new(rng, size);
        for thread in &grown.threads {
            let at = At::Thread(thread.clone());
            let first = exported(&grown.store, &at, Extent::Tree);
            let there = memory();
            imported(&there, first.as_bytes(), None).map_err(|error| error.to_string())?;
            sound(&there);
            let second = exported(&there, &at, Extent::Tree);
            if without_marks(&first) != without_marks(&second) {
                return Err(format!("first:\n{first}\nsecond:\n{second}"));
            }
            if !first.contains(r#","again":"#) && first != second {
                return Err(format!("first:\n{first}\nsecond:\n{second}"));
            }
            same_messages(&grown.store, &there, thread)?;
            nodes += first.matches(r#"{"type":"node""#).count();
            marks += first.matches(r#","again":"#).count();
            gaps += first.matches(r#""kind":"gap""#).count();
            redacted += first.matches(r#","redacted":"#).count();
            hidden += first.matches(r#","hidden":true"#).count();
        }
        Ok(())
    });
    println!("nodes={nodes} again={marks} gaps={gaps} redacted={redacted} hidden={hidden}");
    assert!(nodes > 0 && marks > 0 && gaps > 0 && redacted > 0 && hidden > 0);
}

#[cfg(feature = "sqlite")]
#[test]
fn engines_take_over_each_others_exports() {
    let scratch = throughline_testkit::Scratch::new("transfer");
    let mut count = 0;
    property("export, import, export between engines", 20, |rng, size| {
        count += 1;
        let url = |word: &str| scratch.sqlite(&format!("{word}-{count}.db"));
        let open = |url: &str| block_on(Store::open(url)).unwrap();
        let grown = Grown::on(&url("here"), rng, size.min(40));
        for (place, thread) in grown.threads.iter().enumerate() {
            let at = At::Thread(thread.clone());
            let first = exported(&grown.store, &at, Extent::Tree);
            let memory = memory();
            imported(&memory, first.as_bytes(), None).map_err(|error| error.to_string())?;
            let second = exported(&memory, &at, Extent::Tree);
            let there = open(&url(&format!("there-{place}")));
            imported(&there, second.as_bytes(), None).map_err(|error| error.to_string())?;
            sound(&there);
            let third = exported(&there, &at, Extent::Tree);
            if without_marks(&first) != without_marks(&second) || second != third {
                return Err(format!(
                    "first:\n{first}\nsecond:\n{second}\nthird:\n{third}"
                ));
            }
            same_messages(&grown.store, &there, thread)?;
        }
        let first = exported(
            &grown.store,
            &At::Thread(grown.threads[0].clone()),
            Extent::Tree,
        );
        let copy = Some(id("copy"));
        imported(&grown.store, first.as_bytes(), copy).map_err(|error| error.to_string())?;
        sound(&grown.store);
        Ok(())
    });
}

/// All messages of a branch. A redacted message that was said again has the id of its first place
/// only as long as that place is there.
fn entries(store: &Store, at: &At) -> Vec<Entry> {
    let page = block_on(store.read(&scope(), at, Span::After(0), 100_000)).unwrap();
    let mut entries = page.entries;
    for entry in entries.iter_mut().filter(|entry| entry.redacted.is_some()) {
        entry.message.id = None;
    }
    entries
}

/// Readers of the head see the same in both stores.
fn same_messages(a: &Store, b: &Store, thread: &ThreadId) -> std::result::Result<(), String> {
    let at = At::Thread(thread.clone());
    let read = |store: &Store| {
        let opened = block_on(store.open(&scope(), &at, 0)).map_err(|error| error.to_string())?;
        let tip = opened
            .tip
            .map(|tip| (tip.node, tip.last, tip.tokens, tip.open));
        Ok::<_, String>((opened.state, tip, entries(store, &at)))
    };
    let (a, b) = (read(a)?, read(b)?);
    if a == b {
        return Ok(());
    }
    let other = a.2.iter().zip(&b.2).find(|(a, b)| a != b);
    Err(format!(
        "{:?} {:?}\n{:?} {:?}\n{other:?}",
        a.0, a.1, b.0, b.1
    ))
}

#[test]
fn under_another_id_everything_but_the_ids_is_the_same() {
    property("import under another id", 100, |rng, size| {
        let grown = Grown::new(rng, size);
        let thread = grown.threads[0].clone();
        let first = exported(&grown.store, &At::Thread(thread.clone()), Extent::Tree);
        // Into the same store: nothing may get in the way of what is there.
        let done = imported(&grown.store, first.as_bytes(), Some(id("copy")));
        done.map_err(|error| error.to_string())?;
        sound(&grown.store);
        let copy = At::Thread(id("copy"));
        let second = exported(&grown.store, &copy, Extent::Tree);
        let comparable = |text: &str| {
            let text = renumbered(&without_marks(text));
            let (_, after_thread) = text.split_once(r#"{"type":"node""#).unwrap_or_default();
            after_thread.to_owned()
        };
        if comparable(&first) != comparable(&second) {
            return Err(format!("first:\n{first}\nsecond:\n{second}"));
        }
        let again = exported(&grown.store, &At::Thread(thread), Extent::Tree);
        if again == first {
            Ok(())
        } else {
            Err("the original changed".to_owned())
        }
    });
}

#[test]
fn a_branch_is_the_way_to_a_node() {
    property("export of a branch", 100, |rng, size| {
        let grown = Grown::new(rng, size);
        for node in &grown.nodes {
            let at = At::Node(NodeRef::Node(*node));
            // A hidden run's nodes have no name.
            let Ok(opened) = block_on(grown.store.open(&scope(), &at, 0)) else {
                continue;
            };
            let first = exported(&grown.store, &at, Extent::Branch);
            let there = memory();
            let done = imported(&there, first.as_bytes(), None);
            let done = done.map_err(|error| format!("{error}\n{first}"))?;
            let last = opened.tip.map_or(0, |tip| tip.last);
            if done.items != last {
                return Err(format!("{} items, {last} positions\n{first}", done.items));
            }
            if entries(&grown.store, &at) != entries(&there, &At::Thread(done.thread)) {
                return Err(first);
            }
        }
        Ok(())
    });
}

#[test]
fn an_export_that_was_cut_or_changed_imports_nothing() {
    let mut refused = 0;
    property("damaged exports", 100, |rng, size| {
        let grown = Grown::new(rng, size.min(20));
        let at = At::Thread(grown.threads[0].clone());
        let text = exported(&grown.store, &at, Extent::Tree);
        let bytes = text.as_bytes();
        let there = memory();
        for _ in 0..30 {
            let mut damaged = bytes.to_vec();
            match rng.below(4) {
                0 => damaged.truncate(rng.below(bytes.len() - 1)),
                1 => {
                    let at = rng.below(bytes.len());
                    damaged[at] ^= 1 << rng.below(8);
                }
                2 => {
                    let lines: Vec<&str> = text.split_inclusive('\n').collect();
                    let gone = rng.below(lines.len());
                    damaged = lines
                        .iter()
                        .enumerate()
                        .filter(|(place, _)| *place != gone)
                        .flat_map(|(_, line)| line.bytes())
                        .collect();
                }
                _ => {
                    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                    let (a, b) = (rng.below(lines.len()), rng.below(lines.len()));
                    lines.swap(a, b);
                    damaged = lines.concat().into_bytes();
                }
            }
            // The last newline may be missing, and equal lines may have changed places.
            if damaged == bytes || [damaged.as_slice(), b"\n"].concat() == bytes {
                continue;
            }
            match imported(&there, &damaged, None) {
                Ok(_) => return Err(String::from_utf8_lossy(&damaged).into_owned()),
                Err(Error::Malformed { line, column, .. }) if line > 0 && column > 0 => {}
                Err(other) => return Err(other.to_string()),
            }
            refused += 1;
            if !threads(&there).is_empty() {
                return Err("something is seen of it".to_owned());
            }
        }
        // Nothing is left that would be in the way.
        imported(&there, bytes, None).map_err(|error| error.to_string())?;
        sound(&there);
        Ok(())
    });
    println!("refused={refused}");
}

#[test]
fn pieces_may_be_cut_anywhere() {
    property("pieces of an export", 50, |rng, size| {
        let grown = Grown::new(rng, size.min(20));
        let at = At::Thread(grown.threads[0].clone());
        let text = exported(&grown.store, &at, Extent::Tree);
        let there = memory();
        let options = ImportOptions::default();
        block_on(async {
            let mut importer = Importer::new(&there, &scope(), options);
            for piece in chunks::random_split(text.as_bytes(), rng) {
                importer.push(piece).await?;
            }
            importer.finish().await
        })
        .map_err(|error| error.to_string())?;
        let again = exported(&there, &at, Extent::Tree);
        if without_marks(&again) == without_marks(&text) {
            Ok(())
        } else {
            Err(text)
        }
    });
}

#[test]
fn a_thread_that_grows_meanwhile_is_exported_as_it_was() {
    property("export while writing", 100, |rng, size| {
        let mut grown = Grown::new(rng, size.max(10));
        let at = At::Thread(grown.threads[0].clone());
        let before = exported(&grown.store, &at, Extent::Tree);
        let mut export =
            block_on(Export::start(&grown.store, &scope(), &at, Extent::Tree)).unwrap();
        let mut out = String::new();
        while let Some(lines) = block_on(export.next()).map_err(|error| error.to_string())? {
            out.push_str(&lines);
            if rng.chance(0.5) {
                grown.publish_something(rng);
            }
        }
        if out == before {
            Ok(())
        } else {
            Err(format!("before:\n{before}\nafter:\n{out}"))
        }
    });
}

#[test]
fn an_export_of_a_running_run_is_over_where_it_is_read() {
    let rng = &mut Rng::new(1);
    let mut grown = Grown::empty();
    let thread = grown.threads[0].clone();
    grown.begin_per_call(rng, &thread);
    let at = At::Thread(thread);
    let text = exported(&grown.store, &at, Extent::Tree);
    assert!(text.contains(r#""ended":"cancelled""#), "{text}");
    let there = memory();
    imported(&there, text.as_bytes(), None).unwrap();
    let opened = block_on(there.open(&scope(), &at, 0)).unwrap();
    assert_eq!(opened.unsettled, None);
    assert!(opened.tip.unwrap().open);
    assert_eq!(exported(&there, &at, Extent::Tree), text);
}

#[test]
fn an_empty_thread_can_be_moved_too() {
    let grown = Grown::empty();
    let at = At::Thread(grown.threads[0].clone());
    let text = exported(&grown.store, &at, Extent::Branch);
    assert_eq!(text.lines().count(), 3, "{text}");
    let there = memory();
    imported(&there, text.as_bytes(), None).unwrap();
    assert_eq!(exported(&there, &at, Extent::Branch), text);
}

#[test]
fn what_is_there_already_is_not_imported_again() {
    let rng = &mut Rng::new(2);
    let grown = Grown::new(rng, 20);
    let at = At::Thread(grown.threads[0].clone());
    let text = exported(&grown.store, &at, Extent::Tree);
    let error = imported(&grown.store, text.as_bytes(), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(exported(&grown.store, &at, Extent::Tree), text);
    // The runs are there already, too.
    let gone = grown.threads[0].clone();
    let fork = throughline_store::Fork {
        from: at.clone(),
        thread: NewThread::new(id("keeps-the-runs")),
    };
    block_on(grown.store.fork(&scope(), &fork)).unwrap();
    block_on(grown.store.delete(&scope(), &gone)).unwrap();
    let error = imported(&grown.store, text.as_bytes(), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let done = imported(&grown.store, text.as_bytes(), Some(gone)).unwrap();
    assert!(done.nodes > 0);
    sound(&grown.store);
}

#[test]
fn names_stay_with_the_thread_they_name() {
    let grown = Grown::empty();
    let named = throughline_store::ThreadPatch {
        add_aliases: vec![throughline_store::Alias::new("conversation", "conv_1")],
        ..throughline_store::ThreadPatch::default()
    };
    let thread = grown.threads[0].clone();
    block_on(grown.store.patch(&scope(), &thread, &named)).unwrap();
    let text = exported(&grown.store, &At::Thread(thread), Extent::Tree);
    let done = imported(&grown.store, text.as_bytes(), Some(id("copy"))).unwrap();
    assert_eq!((done.thread, done.aliases_left_out), (id("copy"), 3));
}

#[test]
fn long_lines_are_refused_before_they_are_held() {
    let store = memory();
    let options = ImportOptions {
        line_bytes: 100,
        ..ImportOptions::default()
    };
    let mut importer = Importer::new(&store, &scope(), options);
    let error = block_on(importer.push(&[b' '; 200])).unwrap_err();
    assert_eq!(error.to_string(), "line 1 column 1: longer than 100 bytes");
}

#[test]
fn a_list_of_messages_becomes_one_run() {
    let rng = &mut Rng::new(3);
    let store = memory();
    let messages = throughline_testkit::messages::history(rng, 30);
    let thread = NewThread::new(id("t"));
    let done = block_on(import_messages(
        &store,
        &scope(),
        thread.clone(),
        &messages,
        7,
    ))
    .unwrap();
    assert_eq!((done.thread, done.nodes), (id("t"), 1));
    let opened = block_on(store.open(&scope(), &At::Thread(id("t")), 1000)).unwrap();
    let read: Vec<String> = opened
        .entries
        .iter()
        .map(|entry| entry.message.text())
        .collect();
    let said: Vec<String> = messages.iter().map(Message::text).collect();
    assert_eq!(read, said);
    let again = block_on(import_messages(&store, &scope(), thread, &messages, 7)).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    let none = block_on(import_messages(
        &store,
        &scope(),
        NewThread::new(id("u")),
        &[],
        7,
    ));
    assert_eq!(none.unwrap_err().to_string(), "messages: there are none");
    assert_eq!(threads(&store), ["t"]);
}

#[test]
fn the_example_of_the_documentation_is_imported() {
    let page = include_str!("../../../docs/export.md");
    let (_, rest) = page.split_once("```ndjson\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let store = memory();
    let done = imported(&store, example.as_bytes(), None).unwrap();
    assert_eq!((done.nodes, done.items), (4, 8));
    let at = At::Thread(done.thread);
    assert_eq!(exported(&store, &at, Extent::Tree), example);
    let opened = block_on(store.open(&scope(), &at, 50)).unwrap();
    let texts: Vec<String> = opened
        .entries
        .iter()
        .map(|entry| entry.message.text())
        .collect();
    assert_eq!(texts.len(), 6);
    assert_eq!(texts[5], "Low water is at 04:12.");
    assert_eq!(opened.state.service("openai", ""), Some("resp_9"));
}

/// What a writer sees of memory does not grow with the thread.
#[test]
fn a_long_thread_is_made_in_small_pieces() {
    let rng = &mut Rng::new(4);
    let mut grown = Grown::empty();
    let thread = grown.threads[0].clone();
    for _ in 0..20 {
        grown.append(rng, &thread, 1000);
    }
    let at = At::Thread(thread);
    let mut largest = 0;
    let mut export = block_on(Export::start(&grown.store, &scope(), &at, Extent::Tree)).unwrap();
    let mut lines = 0;
    while let Some(piece) = block_on(export.next()).unwrap() {
        let count = piece.lines().count();
        lines += count;
        largest = count.max(largest);
    }
    assert_eq!(lines, 2 + 20 * 1001 + 1);
    assert!(largest <= 65);
}
