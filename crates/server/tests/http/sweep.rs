//! A running server removes threads whose time is over. Time is the test's: the store's clock says
//! what is due, and the runtime's clock is moved on to when the sweeper looks again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_server::Server;
use throughline_store::{
    Append, At, ErrorKind, Heartbeat, ManualClock, NewItem, NewThread, Options, Store, TenantScope,
    ThreadId, ThreadPatch,
};
use throughline_testkit::Scratch;
use throughline_testkit::engines::{Fault, Faulty};
use tokio::sync::Semaphore;

use crate::http::support::{Client, config, end, get};

const MINUTE: u64 = 60_000;

/// No longer than this after a thread is due, the sweeper has looked.
const INTERVAL: Duration = Duration::from_secs(10);

struct World {
    server: Server,
    store: Store,
    clock: Arc<ManualClock>,
    faulty: Arc<Faulty>,
    /// Has a permit for every write of the sweeper that has begun.
    begun: Arc<Semaphore>,
    _folder: Scratch,
}

impl World {
    async fn new(engine: &str, file: &str) -> Self {
        let folder = Scratch::new("sweep");
        let url = match engine {
            "sqlite" => folder.sqlite("sweep.db"),
            _ => "memory:".to_owned(),
        };
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        let options = Options {
            clock: Arc::<ManualClock>::clone(&clock),
            heartbeat: Heartbeat::Manual,
            ..Options::default()
        };
        let opened = Store::open_with(&url, options).await.unwrap();
        let (store, faulty) = Faulty::over(&opened);
        let begun = Arc::new(Semaphore::new(0));
        let told = Arc::clone(&begun);
        faulty.on("purge", move || {
            told.add_permits(1);
            std::future::ready(())
        });
        let server = Server::builder(config(file, &[])).store(store.clone());
        let server = server.serve().await.unwrap();
        let world = Self {
            server,
            store,
            clock,
            faulty,
            begun,
            _folder: folder,
        };
        let looks = tokio::time::timeout(Duration::from_secs(30), world.begun.acquire());
        let looks = looks.await.expect("it looks when it starts");
        looks.unwrap().forget();
        world
    }

    /// Let the sweeper look once more: when this returns, it has begun to, and what it did before
    /// is done.
    async fn look(&self) {
        for _ in 0..600 {
            tokio::time::pause();
            tokio::time::advance(INTERVAL).await;
            tokio::time::resume();
            // It may not have been asleep yet.
            let begun = tokio::time::timeout(Duration::from_millis(50), self.begun.acquire());
            if let Ok(permit) = begun.await {
                permit.unwrap().forget();
                return;
            }
        }
        panic!("the sweeper does not look");
    }

    /// Let the sweeper do everything that is due.
    async fn sweep(&self) {
        self.look().await;
        self.look().await;
    }

    /// A turn with a model, and how long its thread is kept.
    async fn turn(&self, text: &str, keep: Option<u64>) -> (String, ThreadId) {
        let response = self.create(&json!({"model": "demo", "input": text})).await;
        assert_eq!(response.0, 200, "{}", response.1);
        let id = response.1["id"].as_str().unwrap().to_owned();
        let thread = response.1["throughline"]["thread"].as_str().unwrap();
        let thread = ThreadId::new(thread).unwrap();
        let patch = ThreadPatch {
            keep: Some(keep),
            ..ThreadPatch::default()
        };
        let scope = TenantScope::local();
        self.store.patch(&scope, &thread, &patch).await.unwrap();
        (id, thread)
    }

    async fn create(&self, body: &Value) -> (u16, Value) {
        let mut client = Client::to(self.server.address).await;
        let body = body.to_string();
        let answer = client
            .send("POST /v1/responses", &[], body.as_bytes())
            .await;
        (answer.status, serde_json::from_str(&answer.body).unwrap())
    }

    async fn status(&self, response: &str) -> u16 {
        let path = format!("/v1/responses/{response}");
        get(self.server.address, &path).await.status
    }

    async fn is_gone(&self, thread: &ThreadId) -> bool {
        let at = At::Thread(thread.clone());
        match self.store.open(&TenantScope::local(), &at, 10).await {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => panic!("{error}"),
        }
    }

    fn advance(&self, minutes: u64) {
        self.clock.advance(Duration::from_millis(minutes * MINUTE));
    }
}

#[tokio::test]
async fn a_thread_whose_time_is_over_is_removed_while_the_server_runs() {
    for engine in ["memory", "sqlite"] {
        let world = World::new(engine, "").await;
        let (short, brief) = world.turn("half an hour", Some(30 * MINUTE)).await;
        let (long, kept) = world.turn("an hour", Some(60 * MINUTE)).await;
        let (ever, always) = world.turn("for ever", None).await;

        world.advance(59);
        world.sweep().await;
        assert!(world.is_gone(&brief).await, "{engine}");
        assert_eq!(world.status(&short).await, 404, "{engine}");
        assert!(!world.is_gone(&kept).await, "{engine}: it is early");
        assert_eq!(world.status(&long).await, 200, "{engine}");

        world.advance(1);
        world.sweep().await;
        assert!(world.is_gone(&kept).await, "{engine}");
        assert_eq!(world.status(&long).await, 404, "{engine}");
        // Nothing of it is remembered either: what goes on from there is refused.
        let next = json!({"model": "demo", "input": "and?", "previous_response_id": long});
        let (status, error) = world.create(&next).await;
        assert_eq!(
            (status, &error["error"]["code"]),
            (400, &json!("previous_response_not_found")),
            "{engine}"
        );
        // What has no time stays, and goes on.
        assert!(!world.is_gone(&always).await, "{engine}");
        let next = json!({"model": "demo", "input": "and?", "previous_response_id": ever});
        assert_eq!(world.create(&next).await.0, 200, "{engine}");

        let swept = &world.server.app().swept;
        assert_eq!((swept.threads(), swept.items(), swept.errors()), (2, 4, 0));
        let metrics = get(world.server.address, "/metrics").await.body;
        for line in [
            "throughline_swept_threads_total 2",
            "throughline_swept_items_total 4",
            "throughline_sweep_errors_total 0",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}");
        }
        let damage = world.store.check(&mut |_| {}).await.unwrap().damage;
        assert_eq!(damage, [], "{engine}");
        end(world.server).await;
    }
}

#[tokio::test]
async fn what_was_deleted_is_erased_by_a_running_server() {
    for engine in ["memory", "sqlite"] {
        let world = World::new(engine, "").await;
        let (_, thread) = world.turn("delete me", None).await;
        let scope = TenantScope::local();
        world.store.delete(&scope, &thread).await.unwrap();
        world.sweep().await;
        let swept = &world.server.app().swept;
        assert_eq!((swept.threads(), swept.items()), (1, 2), "{engine}");
        end(world.server).await;
    }
}

#[tokio::test]
async fn a_long_thread_is_removed_in_bounded_batches() {
    let world = World::new("sqlite", "").await;
    let scope = TenantScope::local();
    let new = NewThread {
        keep: Some(MINUTE),
        ..NewThread::new(ThreadId::new("long").unwrap())
    };
    world.store.open_or_create(&scope, &new, 0).await.unwrap();
    let said = |no: u32| throughline_model::Message::user(format!("message {no}"));
    let items = (0..4_000).map(said).collect::<Vec<_>>();
    for part in items.chunks(100) {
        let append = Append {
            run: world.store.ids().run(),
            thread: new.id.clone(),
            expected: None,
            items: NewItem::of(part),
            state: None,
            key: None,
        };
        world.store.append(&scope, &append).await.unwrap();
    }
    world.advance(1);
    world.look().await;
    // No time passes between the batches of one sweep.
    for _ in 0..3 {
        world.begun.acquire().await.unwrap().forget();
    }
    while world.server.app().swept.threads() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(world.is_gone(&new.id).await);
    assert_eq!(world.server.app().swept.items(), 4_000);
    end(world.server).await;
}

#[tokio::test]
async fn a_store_that_fails_is_asked_again() {
    let world = World::new("memory", "").await;
    let (_, thread) = world.turn("a minute", Some(MINUTE)).await;
    world.advance(1);
    world.faulty.times("purge", 2, Fault::Before);
    world.look().await;
    world.look().await;
    assert!(!world.is_gone(&thread).await);
    world.sweep().await;
    assert!(world.is_gone(&thread).await);
    let swept = &world.server.app().swept;
    assert_eq!((swept.threads(), swept.errors()), (1, 2));
    end(world.server).await;
}

#[tokio::test]
async fn a_server_that_drains_waits_for_the_sweeper_and_sweeps_no_more() {
    let world = World::new("memory", "[limits]\ndrain_seconds = 20\n").await;
    let gate = Arc::new(Semaphore::new(0));
    let kept = Arc::clone(&gate);
    world.faulty.on("purge", move || {
        let kept = Arc::clone(&kept);
        async move { kept.acquire().await.unwrap().forget() }
    });
    world.look().await;
    world.server.stop();
    let stopping = world.server.stopping().clone();
    let joined = tokio::spawn(world.server.join());
    stopping.draining().await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!joined.is_finished(), "it waits for what is under way");
    gate.add_permits(1);
    joined.await.unwrap();
    assert_eq!(world.begun.available_permits(), 0, "no other sweep began");
}
