//! Every item is counted when it enters, and totals are sums.

use std::cell::Cell;

use throughline_store::transfer::{self, Extent, ImportOptions, Imported};
use throughline_store::{At, Result, Store, ThreadFilter, ThreadId};
use throughline_testkit::property;
use throughline_testkit::record::{Tree, block_on, totals};

use crate::behaviours::ground::{at, grounds, local, named};

async fn exported(store: &Store, at: &At) -> String {
    let mut bytes = Vec::new();
    transfer::export(store, &local(), at, Extent::Tree, &mut bytes, &mut |_| {})
        .await
        .unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn imported(store: &Store, text: &str, rename: Option<ThreadId>) -> Result<Imported> {
    let options = ImportOptions {
        rename,
        ..ImportOptions::default()
    };
    let mut bytes = text.as_bytes();
    transfer::import(store, &local(), &mut bytes, 0, options, &mut |_| {}).await
}

async fn sweep(store: &Store) {
    while store.purge(100).await.unwrap().more {}
}

#[test]
fn b245_the_total_of_a_thread_is_the_sum_of_its_items_after_forks_imports_and_deletes() {
    let compared = Cell::new(0u64);
    property("b245 totals are sums", 60, |rng, size| {
        for ground in grounds() {
            block_on(async {
                let (store, there) = (ground.open().await, ground.open().await);
                let grown = Tree::grow(&store, &local(), rng, 1 + size / 4).await?;
                grown.compare(&store, &local(), rng).await?;
                let filter = ThreadFilter::default();
                let listed = store.threads(&local(), &filter, None, 1000).await.unwrap();
                for (n, thread) in listed.found.iter().enumerate() {
                    let total = totals(&store, &local(), &at(&thread.id)).await?;
                    if total != thread.tokens() {
                        return Err(format!("{} is listed with {}", thread.id, thread.tokens()));
                    }
                    let text = exported(&store, &at(&thread.id)).await;
                    let copy = named(&format!("copy-{n}"));
                    let done = imported(&there, &text, Some(copy.clone())).await;
                    let done = done.map_err(|error| format!("{error}: {text}"))?;
                    let taken_over = totals(&there, &local(), &at(&copy)).await?;
                    if (taken_over, done.tokens) != (total, total) {
                        return Err(format!("{taken_over} tokens of {total}: {text}"));
                    }
                    // What others share with it keeps its totals.
                    if rng.chance(0.5) {
                        store.delete(&local(), &thread.id).await.unwrap();
                        sweep(&store).await;
                    }
                    compared.set(compared.get() + 1);
                }
                let left = store.threads(&local(), &filter, None, 1000).await.unwrap();
                for thread in left.found {
                    let total = totals(&store, &local(), &at(&thread.id)).await?;
                    if total != thread.tokens() {
                        return Err(format!("{} is listed with {}", thread.id, thread.tokens()));
                    }
                }
                let damage = store.check(&mut |_| {}).await.unwrap().damage;
                match damage.as_slice() {
                    [] => Ok(()),
                    damage => Err(format!("{damage:?}")),
                }
            })?;
        }
        Ok(())
    });
    println!("table b245: threads_compared={}", compared.get());
}

/// The lines of an export with other ones, and the digest that fits them.
fn resealed(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut lines: Vec<String> = text.lines().map(change).collect();
    let end = lines.pop().unwrap();
    let mut hasher = blake3::Hasher::new();
    for line in &lines {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    let digest: String = hasher.finalize().to_hex()[..32].to_owned();
    let (before, _) = end.split_once("\"digest\":").unwrap();
    lines.push(format!("{before}\"digest\":\"{digest}\"}}"));
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

/// The line without its member `tokens`.
fn uncounted(line: &str) -> String {
    match line.split_once(",\"tokens\":") {
        Some((before, after)) => {
            let end = after.find([',', '}']).unwrap();
            format!("{before}{}", &after[end..])
        }
        None => line.to_owned(),
    }
}

#[test]
fn b245_an_import_counts_what_was_not_counted_and_refuses_a_total_that_is_no_sum() {
    for ground in grounds() {
        block_on(async {
            let store = ground.open().await;
            let mut rng = throughline_testkit::Rng::new(7);
            Tree::grow(&store, &local(), &mut rng, 30).await.unwrap();
            let filter = ThreadFilter::default();
            let listed = store.threads(&local(), &filter, None, 1000).await.unwrap();
            let thread = listed.found.iter().max_by_key(|thread| thread.tokens());
            let thread = thread.unwrap();
            assert!(thread.tokens() > 50, "{}", thread.tokens());
            let text = exported(&store, &at(&thread.id)).await;
            assert!(text.contains("\"format\":\"throughline.export/2\""));
            assert!(text.contains(&format!("\"tokens\":{}}}\n", thread.tokens())));

            // An export from before counting.
            let old = resealed(&text, |line| {
                uncounted(line).replacen("export/2", "export/1", 1)
            });
            assert!(!old.contains("tokens"), "{old}");
            let copy = named("copy");
            let done = imported(&store, &old, Some(copy.clone())).await.unwrap();
            assert_eq!(done.tokens, thread.tokens());
            let total = totals(&store, &local(), &at(&copy)).await.unwrap();
            assert_eq!(total, thread.tokens());

            // A total that its items do not make, and lines that say nothing.
            let refused = async |text: String| {
                let error = imported(&store, &text, Some(named("refused"))).await;
                error.unwrap_err().to_string()
            };
            let of_thread = |line: &str| line.starts_with("{\"type\":\"thread\"");
            let more = |line: &str| match of_thread(line) {
                true => line.replace(
                    &format!("\"tokens\":{}}}", thread.tokens()),
                    &format!("\"tokens\":{}}}", thread.tokens() + 1),
                ),
                false => line.to_owned(),
            };
            let error = refused(resealed(&text, more)).await;
            let (is, says) = (thread.tokens(), thread.tokens() + 1);
            let expected = format!("tokens: the items up to the head count as {is}, not as {says}");
            assert!(error.ends_with(&expected), "{error}");
            assert!(error.starts_with("line 2 "), "{error}");
            let missing = "tokens: expected a whole number, found nothing";
            let error = refused(resealed(&text, |line| match of_thread(line) {
                true => uncounted(line),
                false => line.to_owned(),
            }))
            .await;
            assert!(error.ends_with(missing), "{error}");
            let error = refused(resealed(&text, |line| match of_thread(line) {
                true => line.to_owned(),
                false => uncounted(line),
            }))
            .await;
            assert!(error.ends_with(missing), "{error}");
            let error = refused(resealed(&text, |line| {
                line.replacen("export/2", "export/1", 1)
            }))
            .await;
            assert!(error.contains("tokens: unknown member"), "{error}");
            let gone = store.open(&local(), &at(&named("refused")), 0).await;
            assert!(gone.is_err());
            assert_eq!(store.check(&mut |_| {}).await.unwrap().damage, []);
        });
    }
}
