//! Calls that a storing vendor has accepted, and whose connection ended before the answer (B244).

use serde_json::json;
use throughline_model::Wire;
use throughline_server::Server;
use throughline_store::Store;
use throughline_testkit::Scratch;
use throughline_testkit::upstream::{KEY, Reply, Upstream};

use crate::http::support::{Client, config, end};
use crate::http::vendors::response;

#[tokio::test]
async fn b244_over_http_a_vendor_that_went_on_is_asked_and_not_called_again() {
    for (kind, wire) in [
        ("openai-responses", Wire::OpenAiResponses),
        ("foundry", Wire::Foundry),
    ] {
        for on_disk in [false, true] {
            for streamed in [false, true] {
                let name = format!("{kind} {on_disk} {streamed}");
                let lost = Reply::text("at four").detached().running_for(1);
                let vendor = Upstream::start(wire.clone(), [lost, Reply::text("yes")]).await;
                let base_url = match wire {
                    Wire::Foundry => vendor.project(),
                    _ => vendor.base_url(),
                };
                let file = format!(
                    "[[upstream]]\nname = \"a\"\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\n\
                     api_key_env = \"VENDOR_KEY\"\nhistory = \"service\"\n"
                );
                let folder = Scratch::new("accepted-calls");
                let store = match on_disk {
                    true => Store::open(&folder.sqlite("store.db")).await,
                    false => Store::open("memory:").await,
                };
                let server = Server::builder(config(&file, &[("VENDOR_KEY", KEY)]));
                let server = server.store(store.unwrap()).serve().await.unwrap();
                let mut client = Client::to(server.address).await;
                let mut previous = None;
                for (input, expected) in [("when?", "at four"), ("sure?", "yes")] {
                    let mut body = json!({"model": "a/m", "stream": streamed, "input": input});
                    if let Some(previous) = previous {
                        body["previous_response_id"] = previous;
                    }
                    let body = body.to_string();
                    let answer = client
                        .send("POST /v1/responses", &[], body.as_bytes())
                        .await;
                    assert_eq!(answer.status, 200, "{name}: {}", answer.body);
                    let made = response(&answer);
                    let text = &made["output"][0]["content"][0]["text"];
                    assert_eq!(
                        (&made["status"], text),
                        (&json!("completed"), &json!(expected))
                    );
                    previous = Some(made["id"].clone());
                }
                let counts = vendor.counts();
                assert_eq!((counts.model_calls, counts.refused), (2, 0), "{name}");
                end(server).await;
            }
        }
    }
}
