//! Continuing a response at the instant of its terminal event.

use throughline_testkit::web::{Client, Request};
use tokio::task::JoinSet;

use crate::clients::world::{World, create, said, turn};

/// How many turns are raced for; `THROUGHLINE_SCALE` is a factor on it, 20 in the campaign.
const TRIES: f64 = 500.0;

/// How many chains are at it at once.
const CHAINS: usize = 4;

fn tries() -> usize {
    let scale = std::env::var("THROUGHLINE_SCALE").ok();
    let scale = scale.and_then(|text| text.trim().parse::<f64>().ok());
    (TRIES * scale.unwrap_or(1.0)) as usize
}

/// A chain in which each turn is begun by the event that ends the one before, on another
/// connection; every second turn is not streamed. Gives how many turns it had.
async fn chain(address: std::net::SocketAddr, turns: usize) -> usize {
    let (mut one, mut other) = (Client::new(address), Client::new(address));
    let mut previous: Option<String> = None;
    // A new chain from time to time: long ones cost time to say, not to begin.
    for number in 0..turns {
        if number % 20 == 0 {
            previous = None;
        }
        let mut body = turn("demo", &format!("turn {number}"), previous.as_deref());
        if number % 2 == 1 {
            previous = Some(said(&create(&mut other, &body).await).0);
            continue;
        }
        body["stream"] = true.into();
        let (answer, mut events) = one
            .stream(Request::post("/v1/responses", &body))
            .await
            .unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        previous = loop {
            let event = events.next().await.unwrap().expect("a stream has an end");
            if event.event == "response.completed" {
                // What follows is not waited for: this is the instant.
                break event.json()["response"]["id"].as_str().map(str::to_owned);
            }
        };
        assert_eq!(events.split(), 0, "every event is in one chunk");
    }
    let body = turn("demo", "How many messages?", previous.as_deref());
    let (_, answer) = said(&create(&mut other, &body).await);
    let said = (turns - 1) % 20 + 2;
    let wanted = format!(
        "There are {} messages so far, {said} of them yours.",
        2 * said - 1
    );
    assert_eq!(answer, wanted);
    turns
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_response_can_be_continued_at_the_instant_of_its_terminal_event() {
    let world = World::start().await;
    let address = world.address();
    let mut chains = JoinSet::new();
    for _ in 0..CHAINS {
        chains.spawn(chain(address, tries().div_ceil(CHAINS)));
    }
    let mut continued = 0;
    while let Some(turns) = chains.join_next().await {
        continued += turns.expect("every continuation is found");
    }
    println!("campaign R11 instants: continued={continued} not_found=0 shortened=0");
}
