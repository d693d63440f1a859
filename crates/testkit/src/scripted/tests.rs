use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use throughline::ChatClient;
use throughline::client::{ChatRequest, ClientError, ErrorKind, HistoryOwner, StoresHistory, View};
use throughline::model::{
    CallId, Content, Event, Family, Fold, Message, Output, Response, Role, Settings, Stop,
    ToolChoice, ToolResult,
};

use super::{Chunk, Ids, KeptBy, Reading, ScriptedClient, Step, StoringService};

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

fn request(view: &View) -> ChatRequest<'_> {
    static SETTINGS: std::sync::LazyLock<Settings> = std::sync::LazyLock::new(Settings::default);
    ChatRequest {
        model: None,
        instructions: Some("Be brief."),
        view,
        tools: &[],
        choice: &ToolChoice::Auto,
        settings: &SETTINGS,
        history_owner: HistoryOwner::Caller,
        persist: None,
        losses: None,
    }
}

async fn streamed(client: &dyn ChatClient, view: &View) -> (Result<Response, ClientError>, usize) {
    let mut fold = Fold::new();
    let mut count = 0;
    let mut events = match client.stream(&request(view)).await {
        Ok(events) => events,
        Err(error) => return (Err(error), 0),
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => fold.push(event),
            Err(error) => return (Err(error), count),
        }
        count += 1;
    }
    (Ok(fold.finish()), count)
}

fn step() -> Step {
    Step::text_and_calls(
        "Let me look that up: à bientôt.",
        [("call_1", "tide", r#"{"port":"Brest"}"#)],
    )
    .thinking("They want the tide.")
    .with_usage(120, 30)
}

#[test]
fn whole_and_streamed_are_one_answer_but_for_its_id() {
    run(async {
        let client = ScriptedClient::new([step(), step()]);
        let view = View::new(vec![Message::user("When is high water?")]);
        let mut whole = client.respond(&request(&view)).await.unwrap();
        assert_eq!(whole.id.as_deref(), Some("resp_scripted_1"));
        assert_eq!(whole.stop, Stop::ToolCalls);
        whole.id = Some("resp_scripted_2".into());
        let (answer, events) = streamed(&client, &view).await;
        assert_eq!(answer.unwrap(), whole);
        assert!(events > 12, "texts and arguments come in fragments");
        let asked = client.asked();
        assert_eq!(
            asked.iter().map(|call| call.reading).collect::<Vec<_>>(),
            [Reading::Whole, Reading::Streamed]
        );
        assert_eq!(asked[0].messages, [Message::user("When is high water?")]);
        assert_eq!(asked[0].instructions.as_deref(), Some("Be brief."));
        assert_eq!(
            (client.left(), client.running(), client.dropped()),
            (0, 0, 0)
        );
    });
}

#[test]
fn a_script_that_is_used_up_says_so() {
    run(async {
        let client = ScriptedClient::new([]);
        let view = View::new(vec![Message::user("hello")]);
        let error = client.respond(&request(&view)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Setup);
        assert_eq!(
            error.to_string(),
            "scripted: the script has no step for call 1, which ends in user \"hello\""
        );
    });
}

#[test]
fn an_answer_without_an_end_is_an_error_in_both_readings() {
    run(async {
        let client = ScriptedClient::new([Step::cut_after("Hal"), Step::cut_after("Hal")]);
        let view = View::new(vec![Message::user("hello")]);
        let error = client.respond(&request(&view)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cut);
        let (answer, events) = streamed(&client, &view).await;
        assert_eq!((answer.unwrap_err().kind(), events), (ErrorKind::Cut, 3));
    });
}

#[test]
fn a_caller_that_goes_away_is_counted() {
    run(async {
        let client = Arc::new(ScriptedClient::new([
            Step::hang(),
            Step::hang_after("Hal"),
            Step::text("Hello.").after(Duration::from_secs(60)),
        ]));
        let view = View::new(vec![Message::user("hello")]);
        let second = Duration::from_secs(1);
        let request = request(&view);
        assert!(
            tokio::time::timeout(second, client.respond(&request))
                .await
                .is_err()
        );
        client.begun(1).await;
        let mut events = client.stream(&request).await.unwrap();
        for _ in 0..3 {
            events.next().await.unwrap().unwrap();
        }
        assert!(tokio::time::timeout(second, events.next()).await.is_err());
        assert_eq!((client.running(), client.dropped()), (1, 1));
        drop(events);
        assert_eq!((client.running(), client.dropped()), (0, 2));
        assert_eq!(
            client.respond(&request).await.unwrap().messages[0].text(),
            "Hello."
        );
    });
}

#[test]
fn chunks_wait_and_steps_are_decided_by_what_was_asked() {
    run(async {
        let finished = Event::Finished {
            stop: Stop::Done,
            usage: None,
            error: None,
            vendor: None,
            service: None,
        };
        let client = ScriptedClient::new([
            Step::chunks([
                Chunk::Wait(Duration::from_secs(5)),
                Chunk::Event(finished.clone()),
                // Nothing follows the end.
                Chunk::Event(finished),
            ]),
            Step::fails(ErrorKind::RateLimited),
        ])
        .with_rest(|asked| Step::text(format!("I heard {} messages", asked.messages.len())));
        let view = View::new(vec![Message::user("one"), Message::user("two")]);
        let before = tokio::time::Instant::now();
        let (_, events) = streamed(&client, &view).await;
        assert_eq!((events, before.elapsed().as_secs()), (1, 5));
        let error = client.respond(&request(&view)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RateLimited);
        let answer = client.respond(&request(&view)).await.unwrap();
        assert_eq!(answer.messages[0].text(), "I heard 2 messages");
    });
}

fn answer_to(call: &str) -> Message {
    let call = CallId::natural(call).unwrap();
    let output = Output::Text("04:12".into());
    let result = ToolResult::answering(call, Family::FUNCTION, output);
    Message::new(Role::Tool, vec![Content::from(result)])
}

/// A call whose answer the service is to store, whole or streamed.
async fn told(
    service: &StoringService,
    reading: Reading,
    id: Option<&str>,
    messages: Vec<Message>,
) -> Result<Response, ErrorKind> {
    let view = View::new(messages);
    let request = ChatRequest {
        history_owner: HistoryOwner::Service { id },
        ..request(&view)
    };
    let answer = match reading {
        Reading::Whole => service.respond(&request).await,
        Reading::Streamed => match service.stream(&request).await {
            Err(error) => Err(error),
            Ok(mut events) => {
                let mut fold = Fold::new();
                while let Some(event) = events.next().await {
                    fold.push(event.unwrap());
                }
                Ok(fold.finish())
            }
        },
    };
    answer.map_err(|error| error.kind())
}

#[test]
fn a_storing_service_keeps_what_it_is_sent_and_what_it_answers() {
    run(async {
        let steps = || {
            [
                Step::calls([("call_1", "tide", "{}")]),
                Step::text("At 04:12."),
                Step::text("At 05:03."),
            ]
        };
        for reading in [Reading::Whole, Reading::Streamed] {
            for ids in [Ids::PerCall, Ids::Stable] {
                let service = StoringService::new(ids, steps());
                let user = Message::user("When is high water?");
                let one = told(&service, reading, None, vec![user.clone()])
                    .await
                    .unwrap();
                let id = one.service.clone().unwrap();
                let sent = vec![answer_to("call_1")];
                let two = told(&service, reading, Some(&id), sent.clone())
                    .await
                    .unwrap();
                let next = two.service.clone().unwrap();
                assert_eq!(id == next, ids == Ids::Stable);
                let mut expected = vec![user];
                expected.extend(one.messages);
                expected.extend(sent);
                expected.extend(two.messages);
                assert_eq!(service.held(&next), expected);
                let asked = service.script().asked();
                assert_eq!(asked[0].kept, KeptBy::Service(None));
                assert_eq!(asked[1].kept, KeptBy::Service(Some(id)));
            }
        }
        let silent = StoringService::new(Ids::Unsaid, steps());
        let user = vec![Message::user("When is high water?")];
        let answer = told(&silent, Reading::Whole, None, user).await.unwrap();
        assert_eq!((answer.service, silent.ids().len()), (None, 1));
    });
}

#[test]
fn a_storing_service_refuses_what_does_not_fit() {
    run(async {
        let steps = [Step::calls([("call_1", "tide", "{}")]).kept_as("conv_7")];
        let service = StoringService::new(Ids::Stable, steps);
        let user = || Message::user("When is high water?");
        let whole = Reading::Whole;
        let orphan = told(&service, whole, None, vec![answer_to("call_1")]).await;
        assert_eq!(orphan.unwrap_err(), ErrorKind::Invalid);
        let unknown = told(&service, whole, Some("conv_7"), vec![user()]).await;
        assert_eq!(unknown.unwrap_err(), ErrorKind::NotFound);
        let answer = told(&service, whole, None, vec![user()]).await.unwrap();
        assert_eq!(answer.service.as_deref(), Some("conv_7"));
        let unanswered = told(&service, whole, Some("conv_7"), vec![user()]).await;
        assert_eq!(unanswered.unwrap_err(), ErrorKind::Invalid);
        let again = [answer.messages, vec![answer_to("call_1")]].concat();
        let again = told(&service, whole, Some("conv_7"), again).await;
        assert_eq!(again.unwrap_err(), ErrorKind::Invalid);
        assert_eq!(service.script().calls(), 1);
    });
}

#[test]
fn only_a_service_that_always_stores_keeps_what_is_kept_elsewhere() {
    run(async {
        let view = View::new(vec![Message::user("hello")]);
        for (stores, expected) in [
            (StoresHistory::Optional, None),
            (StoresHistory::Always, Some("resp_held_1")),
        ] {
            let steps = [Step::text("Hello.")];
            let service = StoringService::new(Ids::PerCall, steps).storing(stores);
            let (answer, _) = streamed(&service, &view).await;
            assert_eq!(answer.unwrap().service.as_deref(), expected);
            assert_eq!(service.ids().len(), usize::from(expected.is_some()));
        }
    });
}
