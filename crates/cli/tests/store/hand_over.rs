//! Threads that a vendor keeps: shown, handed over and deleted.

use std::sync::Arc;

use throughline::ChatClient as _;
use throughline::client::Abilities;
use throughline::store::{NewThread, Store, ThreadId};
use throughline::thread::Owner;
use throughline::{Agent, OpenAi, Threads};
use throughline_model::Wire;
use throughline_model::json::{RawJson, Value};
use throughline_testkit::scripted::{Ids, Step, StoringService};
use throughline_testkit::upstream::{Extent, Fault, KEY, Reply, Upstream};

use super::{Place, length, number, text, unfinished_runs};

/// An upstream that keeps conversations, one that keeps none, and none called `old`.
const CONFIG: &str = "\
[[upstream]]
name = \"keeper\"
kind = \"openai-responses\"
base_url = \"http://127.0.0.1:9/v1\"
history = \"service\"

[[upstream]]
name = \"plain\"
kind = \"anthropic\"
base_url = \"http://127.0.0.1:9\"
";

/// A store with a thread that the service of an upstream keeps, and a configuration.
fn kept_by(word: &str, upstream: &str) -> Place {
    let place = Place::new(word);
    std::fs::write(place.file("throughline.toml"), CONFIG).unwrap();
    std::fs::write(place.file("other.toml"), CONFIG).unwrap();
    let service = StoringService::new(Ids::PerCall, [Step::text("At four."), Step::text("Yes.")]);
    let abilities = Abilities {
        upstream: upstream.to_owned(),
        ..service.abilities().clone()
    };
    let service = Arc::new(service.with_abilities(abilities));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(&place.url).await.unwrap();
        let agent = Agent::builder(service).build().unwrap();
        let new = NewThread::new(ThreadId::new("t").unwrap());
        let thread = Threads::of(&store).make(new);
        thread.set_owner(Owner::service(upstream)).await.unwrap();
        agent.run_on(&thread, "When?").await.unwrap();
        agent.run_on(&thread, "Sure?").await.unwrap();
        store.close().await.unwrap();
    });
    place
}

/// The copies in a JSON document: upstream, id and outcome.
fn copies(form: &RawJson) -> Vec<String> {
    let value = form.value();
    let copies = value.get("vendor_copies").unwrap().as_array().unwrap();
    let text = |copy: &Value<'_>, key: &str| copy.get(key).unwrap().as_str().unwrap().into_owned();
    let copies = copies.iter().map(|copy| {
        assert!(copy.get("reason").unwrap().is_null(), "{form}");
        assert_eq!(text(copy, "agent"), "");
        let [upstream, id, outcome] = ["upstream", "id", "outcome"].map(|key| text(copy, key));
        format!("{upstream} {id} {outcome}")
    });
    copies.collect()
}

#[test]
fn b242_show_and_delete_name_what_vendors_have() {
    let place = kept_by("vendor-copies", "keeper");
    let shown = place.ok(&["threads", "show", "t"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[1..],
        [
            "kept by keeper",
            "keeper has resp_held_1",
            "keeper has resp_held_2",
            "#1 user: When?",
            "#2 assistant: At four.",
            "#3 user: Sure?",
            "#4 assistant: Yes.",
        ]
    );
    let form = place.json(&["threads", "show", "t"]);
    assert_eq!(text(&form, &["owner", "kind"]), "service");
    assert!(
        form.get().contains(
            r#""owner":{"kind":"service","upstreams":["keeper"]},"services":[{"upstream":"keeper","agent":"","id":"resp_held_2"}]"#
        ),
        "{form}"
    );
    let remain = ["keeper resp_held_1 remains", "keeper resp_held_2 remains"];
    assert_eq!(copies(&form), remain);

    // A fork shows that what it continues belongs to the other thread.
    place.ok(&["threads", "fork", "t", "--id", "fork"]);
    let shown = place.ok(&["threads", "show", "fork"]);
    assert!(
        shown.contains("\nkeeper has resp_held_2 of another thread\n"),
        "{shown}"
    );
    let form = place.json(&["threads", "delete", "fork", "--yes"]);
    assert_eq!(copies(&form), ["keeper resp_held_2 inherited"]);

    let deleted = place.ok(&["threads", "delete", "t", "--yes"]);
    assert_eq!(
        deleted,
        "deleted thread t with 4 items; 4 erased, what other threads share stays\n\
         keeper has resp_held_1\nkeeper has resp_held_2\n"
    );
    let place = kept_by("vendor-copies-json", "keeper");
    let form = place.json(&["threads", "delete", "t", "--yes"]);
    assert_eq!(text(&form, &["deleted", "id"]), "t");
    assert_eq!(copies(&form), remain);
}

#[test]
fn b242_vendors_are_asked_to_delete_on_request() {
    // Its client is not known any more.
    let place = kept_by("at-vendors", "old");
    let deleted = place.ok(&["threads", "delete", "t", "--yes", "--at-vendors"]);
    assert_eq!(
        deleted,
        "deleted thread t with 4 items; 4 erased, what other threads share stays\n\
         old has resp_held_1 and cannot delete it\nold has resp_held_2 and cannot delete it\n"
    );
    let place = kept_by("at-vendors-json", "old");
    let config = ["--config", "other.toml"];
    let delete = ["threads", "delete", "t", "--yes", "--at-vendors"];
    let form = place.json(&[&delete[..], &config].concat());
    assert_eq!(
        copies(&form),
        ["old resp_held_1 unsupported", "old resp_held_2 unsupported"]
    );
    assert_eq!(number(&form, &["items_erased"]), 4);

    let message = place.fails(&[&delete[..], &["--config", "absent.toml"]].concat(), 2);
    assert!(
        message.starts_with("absent.toml: cannot be read"),
        "{message}"
    );
    let run = place.run(&["threads", "delete", "t", "--config", "other.toml"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--at-vendors"), "{}", run.err);
    let (_store, run) = unfinished_runs::running(&place.url, "busy");
    let message = place.fails(&["threads", "delete", "busy", "--yes", "--at-vendors"], 1);
    assert_eq!(
        message,
        format!(
            "{run} on thread busy is running; wait for it, or settle it with 'throughline runs \
             publish {run}' or 'discard'"
        )
    );
}

#[test]
fn b241_a_thread_is_handed_over_by_a_command() {
    let place = kept_by("hand-over", "old");
    let hand_over = |to: &str| place.ok(&["threads", "hand-over", "t", "--to", to]);
    // One that keeps nothing goes on from our store.
    assert_eq!(
        hand_over("plain"),
        "handed over thread t: kept by our store, before by old\n\
         old, which has resp_held_2, was not asked; the record is the history\n"
    );
    let form = place.json(&["threads", "show", "t"]);
    assert_eq!(text(&form, &["owner", "kind"]), "local");
    assert_eq!(
        copies(&form),
        ["old resp_held_1 remains", "old resp_held_2 remains"]
    );
    assert_eq!(
        hand_over("keeper"),
        "handed over thread t: kept by keeper, before by our store\n"
    );
    // The new keeper has issued no id yet.
    let form = place.json(&[
        "threads",
        "hand-over",
        "t",
        "--to",
        "local",
        "--config",
        "other.toml",
    ]);
    assert_eq!(
        form.get(),
        r#"{"thread":"t","from":{"kind":"service","upstreams":["keeper"]},"to":{"kind":"local"},"read_back":[],"previous_response_id":null}"#
    );

    let place = kept_by("hand-over-json", "keeper");
    let form = place.json(&[
        "threads",
        "hand-over",
        "t",
        "--to",
        "plain",
        "--no-read-back",
    ]);
    assert_eq!(
        form.get(),
        r#"{"thread":"t","from":{"kind":"service","upstreams":["keeper"]},"to":{"kind":"local"},"read_back":[{"upstream":"keeper","id":"resp_held_2","outcome":"not_asked","messages":0}],"previous_response_id":null}"#
    );
    assert_eq!(length(&form, &["read_back"]), 1);
}

#[test]
fn a_hand_over_that_cannot_be_made_says_why() {
    let place = kept_by("no-hand-over", "keeper");
    let fails =
        |args: &[&str], code| place.fails(&[&["threads", "hand-over"], args].concat(), code);
    assert_eq!(
        fails(&["t", "--to", "plan"], 2),
        "The upstream \"plan\" does not exist; did you mean \"plain\"? (name an upstream of the \
         configuration, or local)"
    );
    assert!(
        fails(&["nowhere", "--to", "plain"], 1).starts_with("there is no thread nowhere "),
        "it is named"
    );
    let shown = place.json(&["threads", "show", "t"]);
    let node = text(&shown, &["tip", "node"]);
    assert_eq!(
        fails(&[&node, "--to", "plain"], 2),
        format!("{node} is a run or a node of thread t; name the thread to hand over it")
    );
    let run = place.run(&["threads", "hand-over", "t"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--to <UPSTREAM>"), "{}", run.err);
    let parked = unfinished_runs::interrupted(&place.url, "busy");
    assert_eq!(
        fails(&["busy", "--to", "plain"], 1),
        format!(
            "{parked} on thread busy is interrupted; wait for it, or settle it with 'throughline \
             runs publish {parked}' or 'discard'"
        )
    );
    let local = CONFIG.replace("\"keeper\"", "\"local\"");
    std::fs::write(place.file("throughline.toml"), local).unwrap();
    let message = fails(&["t", "--to", "local"], 2);
    assert!(
        message.starts_with("\"local\" is our store, and "),
        "{message}"
    );
}

/// A vendor that keeps a thread, as the upstream `keeper` of the configuration.
fn kept_by_vendor(word: &str) -> (Place, Upstream, tokio::runtime::Runtime) {
    let place = Place::new(word);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let replies = ["At four.", "Yes."].map(Reply::text);
    let vendor = runtime.block_on(Upstream::start(Wire::OpenAiResponses, replies));
    let config = CONFIG.replace("http://127.0.0.1:9/v1", &vendor.base_url());
    let key = "history = \"service\"\ntoken_command = [\"echo\", \"KEY\"]".replace("KEY", KEY);
    let config = config.replace("history = \"service\"", &key);
    std::fs::write(place.file("throughline.toml"), config).unwrap();
    let client = OpenAi::responses("m")
        .upstream("keeper")
        .base_url(vendor.base_url())
        .api_key(KEY);
    let agent = Agent::builder(client.build().unwrap()).build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&place.url).await.unwrap();
        let new = NewThread::new(ThreadId::new("t").unwrap());
        let thread = Threads::of(&store).make(new);
        thread.set_owner(Owner::service("keeper")).await.unwrap();
        agent.run_on(&thread, "When?").await.unwrap();
        agent.run_on(&thread, "Sure?").await.unwrap();
        store.close().await.unwrap();
    });
    (place, vendor, runtime)
}

#[test]
fn b242_a_vendor_is_read_back_and_deletes_its_copies() {
    let (place, vendor, runtime) = kept_by_vendor("vendor");
    let ids = vendor.stored();
    let [first, last] = ids.as_slice() else {
        panic!("{ids:?}");
    };
    let hand_over = ["threads", "hand-over", "t", "--to", "plain"];
    let delete = ["threads", "delete", "t", "--yes", "--at-vendors"];
    // While it takes no key, nothing changes.
    runtime.block_on(vendor.inflict(Fault::Unauthorised, Extent::Always));
    let failed = place.run(&hand_over);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    assert!(
        failed
            .err
            .starts_with("throughline: keeper could not be asked for what it has of this thread: ")
            && failed
                .err
                .ends_with("or hand over what the record has, with --no-read-back\n"),
        "{}",
        failed.err
    );
    let failed = place.run(&delete);
    assert_eq!((failed.code, failed.err.as_str()), (1, ""));
    let lines: Vec<&str> = failed.out.lines().collect();
    assert_eq!(
        lines[0],
        "thread t is not deleted, because a vendor did not delete its copy; try again, or leave \
         --at-vendors out"
    );
    assert!(
        lines[1].starts_with(&format!("keeper did not delete {first}: ")),
        "{lines:?}"
    );
    let failed = place.run(&[&["--json"], &delete[..]].concat());
    assert_eq!(failed.code, 1);
    assert!(
        failed
            .out
            .starts_with("{\"deleted\":null,\"items_erased\":0,\"vendor_copies\":[{"),
        "{}",
        failed.out
    );
    runtime.block_on(vendor.heal());

    assert_eq!(
        place.ok(&hand_over),
        format!(
            "handed over thread t: kept by our store, before by keeper\n\
             keeper has under {last}: what the record has\n"
        )
    );
    assert_eq!(
        place.ok(&delete),
        format!(
            "deleted thread t with 4 items; 4 erased, what other threads share stays\n\
             keeper deleted {first}\nkeeper deleted {last}\n"
        )
    );
    assert!(vendor.stored().is_empty());
}
