use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use throughline::model::{Event, Fold, Message, Response, Settings, Stop, ToolChoice};
use throughline::{ChatClient, ChatRequest, ClientError, ErrorKind, Kept, View};

use super::{Chunk, Reading, ScriptedClient, Step};

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
        kept: Kept::Here,
        persist: None,
    }
}

async fn streamed(client: &ScriptedClient, view: &View) -> (Result<Response, ClientError>, usize) {
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
                // Nothing comes after the end.
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
