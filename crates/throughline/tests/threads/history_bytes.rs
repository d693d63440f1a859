//! Cached histories are counted as the memory that they really hold.

use std::sync::Arc;

use async_trait::async_trait;
use throughline::agent::Compaction;
use throughline::client::{Abilities, ChatRequest, ClientError};
use throughline::model::Response;
use throughline::store::{NewThread, Store};
use throughline::thread::HistoryCache;
use throughline::{Agent, ChatClient, Threads};
use throughline_testkit::heap::CountingAllocator;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_wire::Wire;
use throughline_wire::render::{Options, Target};

use crate::threads::compaction::{model, reader};

/// A client that renders each request for a vendor, as real clients do.
struct Renders {
    scripted: ScriptedClient,
    target: Target,
}

#[async_trait]
impl ChatClient for Renders {
    fn abilities(&self) -> &Abilities {
        self.scripted.abilities()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let rendering = request.view.render(&self.target, &Options::default());
        assert!(rendering.items().to_string().starts_with('['));
        self.scripted.respond(request).await
    }
}

/// Threads with the same turns, each turn on a handle of its own; returns the resulting cache.
async fn cache_of(
    wire: Wire,
    scripted: ScriptedClient,
    count: usize,
    turns: &[String],
) -> HistoryCache {
    let store = Store::open("memory:").await.unwrap();
    let client = Arc::new(Renders {
        scripted,
        target: Target::newest(wire),
    });
    let agent = Agent::builder(client).store(&store).tool(reader());
    let agent = agent.compaction(Compaction::default()).build().unwrap();
    let cache = HistoryCache::new(64 << 20);
    let threads = Threads::of(&store).with_history_cache(cache.clone());
    for _ in 0..count {
        let thread = threads.make_free(NewThread::new(store.ids().thread()));
        let mut last = agent.run_on(&thread, turns[0].as_str()).await.unwrap().run;
        for turn in &turns[1..] {
            let thread = threads.after(last).await.unwrap();
            last = agent.run_on(&thread, turn.as_str()).await.unwrap().run;
        }
    }
    cache
}

fn texts(count: usize, bytes: usize) -> Vec<String> {
    let text = |no: usize| format!("{no} {}", "low water ".repeat(bytes / 10));
    (0..count).map(text).collect()
}

/// Compares the count of a cache with the memory that is freed when it is cleared.
#[test]
fn what_a_cache_counts_is_what_it_frees() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let talks = || ScriptedClient::answering(|_| Step::text("noted".to_owned()));
    let mut worst = (f64::MAX, f64::MIN);
    for wire in [
        Wire::OpenAiResponses,
        Wire::OpenAiChat,
        Wire::Anthropic,
        Wire::Gemini,
    ] {
        for (name, scripted, count, turns) in [
            ("200 threads of one short turn", talks(), 200, texts(1, 10)),
            ("200 short turns", talks(), 1, texts(200, 40)),
            ("20 long turns", talks(), 1, texts(20, 20_000)),
            ("60 calls, compacted", model(15), 1, texts(4, 100)),
        ] {
            let cache = runtime.block_on(cache_of(wire.clone(), scripted, count, &turns));
            let counted = cache.held_bytes();
            let before = CountingAllocator::held();
            cache.clear();
            let freed = before - CountingAllocator::held();
            let ratio = counted as f64 / freed as f64;
            println!(
                "table history bytes: {wire:?}, {name}: counted {counted}, freed {freed}, {ratio:.2}"
            );
            worst = (worst.0.min(ratio), worst.1.max(ratio));
        }
    }
    let (least, most) = worst;
    assert!(least >= 0.9, "counts {least:.2} of what is held");
    assert!(most <= 1.3, "counts {most:.2} of what is held");
}
