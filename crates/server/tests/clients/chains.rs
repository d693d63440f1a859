//! Chains that are long, and chains with a hole.

use throughline_testkit::upstream::ModelInput;
use throughline_testkit::web::{Client, Request};

use crate::clients::world::{World, create, said, turn};

const TURNS: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_sixty_turns_reaches_each_vendor_whole_and_in_order() {
    let world = World::start().await;
    for vendor in &world.vendors {
        let mut client = Client::new(world.address());
        let mut previous: Option<String> = None;
        let mut wanted = Vec::new();
        let mut sent = Vec::new();
        for number in 0..TURNS {
            let text = format!("turn {number:02}");
            let before = client.sent();
            let body = turn(&vendor.model, &text, previous.as_deref());
            let (id, answer) = said(&create(&mut client, &body).await);
            sent.push(client.sent() - before);
            previous = Some(id);
            wanted.push(format!("user: {text}"));
            wanted.push(format!("assistant: {answer}"));
        }
        let requests = vendor.upstream.requests();
        assert_eq!(requests.len(), TURNS, "{}", vendor.name);
        for (number, request) in requests.iter().enumerate() {
            let heard = ModelInput::of(vendor.upstream.wire(), &request.body);
            assert_eq!(heard.lines(), wanted[..2 * number + 1], "{}", vendor.name);
        }
        // The first one continues nothing; all others are as long as each other.
        assert!(sent[1..].iter().all(|bytes| *bytes == sent[1]), "{sent:?}");
        vendor.refused_nothing();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_in_the_middle_hides_one_response_and_no_words() {
    let world = World::start().await;
    let mut client = Client::new(world.address());
    let model = &world.vendor("anthropic").model;
    let mut ids: Vec<String> = Vec::new();
    for number in 0..10 {
        let previous = ids.last().map(String::as_str);
        let body = turn(model, &format!("turn {number}"), previous);
        ids.push(said(&create(&mut client, &body).await).0);
    }
    for gone in [3, 0, 7] {
        let path = format!("/v1/responses/{}", ids[gone]);
        let answer = client.send(Request::delete(path.as_str())).await.unwrap();
        let wanted = serde_json::json!({"id": ids[gone], "object": "response", "deleted": true});
        assert_eq!((answer.status, answer.json()), (200, wanted));
        for request in [
            Request::get(path.as_str()),
            Request::get(format!("{path}?stream=true")),
            Request::get(format!("{path}/input_items")),
            Request::delete(path.as_str()),
        ] {
            assert_eq!(client.send(request).await.unwrap().status, 404);
        }
        let continued = create(&mut client, &turn(model, "x", Some(&ids[gone]))).await;
        assert_eq!(continued.status, 400);
        assert_eq!(
            continued.json()["error"]["code"],
            "previous_response_not_found"
        );
    }
    for (number, id) in ids.iter().enumerate() {
        if [3, 0, 7].contains(&number) {
            continue;
        }
        let path = format!("/v1/responses/{id}");
        assert_eq!(client.send(Request::get(path)).await.unwrap().status, 200);
        let body = turn(model, "How many messages?", Some(id));
        let (_, answer) = said(&create(&mut client, &body).await);
        let (all, yours) = (2 * number + 3, number + 2);
        assert_eq!(
            answer,
            format!("There are {all} messages so far, {yours} of them yours.")
        );
    }
    world.vendor("anthropic").refused_nothing();
}
