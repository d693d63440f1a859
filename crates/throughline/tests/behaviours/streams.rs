//! Streamed and whole answers are equal.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use throughline::agent::Limits;
use throughline::client::{ErrorKind, Update, Updates};
use throughline::model::json::RawJson;
use throughline::model::{
    Body, CallId, Citation, Content, Event, Fold, Form, Message, Place, Reasoning, Response, Role,
    Stop, Text, ToolCall, Usage, Vendor, Wire,
};
use throughline::store::ThreadId;
use throughline::tool::{Approval, ToolOutput};
use throughline::{Agent, Outcome, RunEvent, StopReason, Thread};
use throughline_store::{Ids, ManualClock};
use throughline_testkit::scripted::{Chunk, ScriptedClient, Step};
use throughline_wire::sse::{Decoder, Limits as SseLimits};
use throughline_wire::{Codec, assemble, codec};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::behaviours::support::{Fake, How, Rig, both, said};

/// A script for each stop reason.
fn script(stop: StopReason) -> Vec<Step> {
    let tide = |id: &'static str| Step::text_and_calls("hm", [(id, "tide", "{}")]);
    match stop {
        StopReason::Done => vec![tide("c1").thinking("let me think"), Step::text("at four")],
        StopReason::Parked => vec![Step::calls([("c1", "tide", "{}"), ("c2", "guarded", "{}")])],
        StopReason::RoundLimit => vec![tide("c1"), tide("c2"), tide("c3")],
        StopReason::ErrorLimit => vec![Step::calls([("c1", "bad", "{}")]), Step::text("no")],
        StopReason::Budget => vec![tide("c1").with_usage(900, 200)],
        StopReason::Terminated => vec![Step::calls([("c1", "enough", "{}")])],
        StopReason::Cancelled => vec![tide("c1"), Step::hang()],
        StopReason::Failed => vec![tide("c1"), Step::fails(ErrorKind::Invalid)],
    }
}

async fn transcript(how: How, stop: StopReason) -> (StopReason, String, String) {
    let client = Arc::new(ScriptedClient::new(script(stop)));
    let clock = Arc::new(ManualClock::at(1_000));
    let enough = Fake::doing("enough", |_, _| async {
        Ok(ToolOutput::text("that is all").and_terminate())
    });
    let agent = Agent::builder(Arc::clone(&client))
        .tool(Fake::named("tide"))
        .tool(Fake::failing("bad"))
        .tool(Fake::named("guarded").with(|spec| spec.approval = Approval::Always))
        .tool(enough)
        .limits(Limits {
            rounds: 2,
            failed_rounds: 1,
            tokens: Some(1_000),
            ..Limits::default()
        })
        .ids(Ids::seeded(clock.clone(), 7))
        .clock(clock)
        .build()
        .unwrap();
    let thread = Thread::with_id(ThreadId::new("harbour").unwrap());
    let token = CancellationToken::new();
    let run = agent.run_on(&thread, "when?").cancelled_by(token.clone());
    let (ended, ()) = tokio::join!(how.finish(run), async {
        if stop == StopReason::Cancelled {
            client.begun(2).await;
            token.cancel();
        }
    });
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(failed) => failed.into_outcome(),
    };
    let stored = |messages: &mut dyn Iterator<Item = &Message>| -> String {
        messages.map(|message| message.to_json() + "\n").collect()
    };
    let history = thread.history();
    (
        outcome.stop,
        stored(&mut outcome.messages.iter()),
        stored(&mut history.iter().map(|message| &**message)),
    )
}

#[test]
fn b78_streamed_and_whole_runs_store_the_same_bytes_for_every_stop_reason() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    for stop in StopReason::ALL {
        let whole = runtime.block_on(transcript(How::Whole, stop));
        let streamed = runtime.block_on(transcript(How::Streamed, stop));
        assert_eq!(whole.0, stop);
        assert!(!whole.1.is_empty());
        assert_eq!(whole, streamed, "{stop}");
    }
}

/// The response that updates fold to.
fn gathered(updates: impl IntoIterator<Item = Update>) -> Response {
    let mut fold = Fold::new();
    for event in events_of(updates) {
        fold.push(event);
    }
    fold.finish()
}

fn events_of(updates: impl IntoIterator<Item = Update>) -> Vec<Event> {
    let mut gather = Updates::new();
    let mut events: Vec<Event> = updates
        .into_iter()
        .flat_map(|one| gather.push(one))
        .collect();
    events.extend(gather.end(Stop::Done));
    events
}

fn update(content: Content) -> Update {
    Update {
        contents: vec![content],
        ..Update::default()
    }
}

/// Runs an agent on updates, whole and streamed.
async fn run_on(how: How, updates: Vec<Update>) -> Outcome {
    let rig = Rig::new(how, [Step::events(events_of(updates))], |agent| agent);
    rig.run("go").await
}

#[test]
fn b79_a_new_message_starts_only_where_a_present_value_differs() {
    both(async |how| {
        let piece =
            |id: Option<&str>, author: Option<&str>, role: Option<Role>, text: &str| Update {
                message: id.map(str::to_owned),
                author: author.map(str::to_owned),
                role,
                ..update(Content::text(text))
            };
        let updates = vec![
            piece(None, None, None, "a"),
            piece(Some("m1"), None, None, "b"),
            piece(None, Some("pilot"), None, "c"),
            piece(Some("m1"), Some("pilot"), Some(Role::Assistant), "d"),
            piece(None, None, None, "e"),
            // A different id, author or role: three more messages.
            piece(Some("m2"), None, None, "f"),
            piece(None, Some("pilot"), None, "g"),
            piece(None, Some("master"), None, "h"),
            piece(None, None, Some(Role::Assistant), "i"),
            piece(None, None, Some(Role::User), "j"),
        ];
        let outcome = run_on(how, updates).await;
        let texts: Vec<String> = outcome.messages[1..].iter().map(Message::text).collect();
        assert_eq!(texts, ["abcde", "fg", "hi", "j"]);
        let authors: Vec<_> = outcome.messages[1..]
            .iter()
            .map(|one| one.author.as_deref())
            .collect();
        assert_eq!(
            authors,
            [Some("pilot"), Some("pilot"), Some("master"), None]
        );
        assert_eq!(outcome.messages[4].role, Role::User);
    });
}

#[test]
fn b80_text_in_a_row_is_one_content_and_calls_and_citations_part_it() {
    both(async |how| {
        let call = crate::behaviours::foreign::vendor_pair("ws_1")[0].clone();
        let cited = Content::new(Body::Text(Text {
            text: "cited".into(),
            citations: vec![Citation {
                url: Some("https://example.com".into()),
                ..Citation::default()
            }],
        }));
        let updates = vec![
            update(Content::text("one ")),
            update(Content::text("two")),
            update(call.clone()),
            update(Content::text("three")),
            update(cited.clone()),
            update(Content::text("four ")),
            update(Content::text("five")),
        ];
        let outcome = run_on(how, updates).await;
        let expected = vec![
            Content::text("one two"),
            call,
            Content::text("three"),
            cited,
            Content::text("four five"),
        ];
        assert_eq!(outcome.messages[1].contents, expected);
    });
}

#[test]
fn b81_reasoning_is_merged_up_to_and_including_its_signature() {
    both(async |how| {
        let thought = |text: &str| {
            Content::new(Body::Reasoning(Reasoning {
                text: vec![text.to_owned()],
                ..Reasoning::default()
            }))
        };
        let signature = r#"{"type":"thinking","thinking":"","signature":"EqQ\u003dBase/64+=="}"#;
        let signed = |text: &str| {
            let form = Form::Part(RawJson::new(signature).unwrap());
            thought(text).with_vendor(Vendor::form(Wire::Anthropic, form))
        };
        let updates = vec![
            update(thought("the tide ")),
            update(thought("turns ")),
            update(signed("at four")),
            update(thought("and ")),
            update(thought("then?")),
        ];
        let outcome = run_on(how, updates).await;
        let [first, second] = &outcome.messages[1].contents[..] else {
            panic!("{:?}", outcome.messages[1].contents);
        };
        assert_eq!(*first, signed("the tide turns at four"));
        assert_eq!(*second, thought("and then?"));
        let Form::Part(part) = &first.vendor.as_ref().unwrap().form else {
            panic!("another form");
        };
        assert_eq!(part.get(), RawJson::new(signature).unwrap().get());
    });
}

fn chat() -> &'static Codec {
    codec(&Wire::OpenAiChat).unwrap()
}

/// The frames of an event stream that arrives in pieces.
fn frames<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<throughline_wire::sse::Frame> {
    let mut decoder = Decoder::new(SseLimits::default());
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame().unwrap() {
            frames.push(frame);
        }
    }
    decoder.finish().unwrap();
    frames
}

/// The events of a stream in a format.
fn events(codec: &Codec, sse: &str) -> Vec<Event> {
    let mut stream = codec.stream();
    let mut events = Vec::new();
    for frame in frames([sse.as_bytes()]) {
        events.extend(stream.push(&frame).unwrap());
    }
    events.extend(stream.end().unwrap());
    events
}

fn chunk(delta: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl_1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n"
    )
}

fn chat_end(reason: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl_1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

#[test]
fn b82_interleaved_arguments_of_two_calls_stay_apart() {
    let piece = |index: usize, arguments: &str| {
        let arguments = arguments.replace('"', "\\\"");
        chunk(&format!(
            "{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":\"{arguments}\"}}}}]}}"
        ))
    };
    let open = |index: usize, id: &str| {
        chunk(&format!(
            "{{\"tool_calls\":[{{\"index\":{index},\"id\":\"{id}\",\"type\":\"function\",\
             \"function\":{{\"name\":\"tide\",\"arguments\":\"\"}}}}]}}"
        ))
    };
    let sse = [
        open(0, "c1"),
        open(1, "c2"),
        piece(0, "{\"port\":"),
        piece(1, "{\"port\""),
        piece(0, "\"Hull\"}"),
        piece(1, ":\"Goole\"}"),
        chat_end("tool_calls"),
    ]
    .concat();
    both(async |how| {
        let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
        let tide = {
            let heard = Arc::clone(&heard);
            Fake::doing("tide", move |arguments, _| {
                heard.lock().unwrap().push(arguments.get().to_owned());
                async { Ok(ToolOutput::default()) }
            })
        };
        let steps = [Step::events(events(chat(), &sse)), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide));
        assert_eq!(said(&rig.run("go").await), "u a(c1,c2) t(c1,c2) a");
        assert_eq!(
            *heard.lock().unwrap(),
            [r#"{"port":"Hull"}"#, r#"{"port":"Goole"}"#]
        );
    });
}

#[test]
fn b83_the_completed_item_counts_where_it_differs_from_its_fragments() {
    let item = |text: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"msg_1\",\"status\":\"completed\",\"role\":\"assistant\",\
             \"content\":[{{\"type\":\"output_text\",\"text\":\"{text}\",\"annotations\":[]}}]}}"
        )
    };
    let response = |status: &str, output: &str| {
        format!(
            "{{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"{status}\",\"model\":\"m\",\
             \"output\":[{output}]}}"
        )
    };
    let frame = |kind: &str, rest: String| {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n")
    };
    let place = "\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0";
    let empty = item("").replace("completed", "in_progress");
    let empty = empty.replace(
        "[{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}]",
        "[]",
    );
    let sse = [
        frame(
            "response.created",
            format!("\"response\":{}", response("in_progress", "")),
        ),
        frame(
            "response.output_item.added",
            format!("\"output_index\":0,\"item\":{empty}"),
        ),
        frame(
            "response.content_part.added",
            format!(
                "{place},\"part\":{{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}}"
            ),
        ),
        frame(
            "response.output_text.delta",
            format!("{place},\"delta\":\"at fuor\""),
        ),
        frame(
            "response.output_item.done",
            format!("\"output_index\":0,\"item\":{}", item("at four")),
        ),
        frame(
            "response.completed",
            format!("\"response\":{}", response("completed", &item("at four"))),
        ),
    ]
    .concat();
    let responses = codec(&Wire::OpenAiResponses).unwrap();
    both(async |how| {
        let steps = [Step::events(events(responses, &sse))];
        let rig = Rig::new(how, steps, |agent| agent);
        assert_eq!(rig.run("go").await.text(), "at four");
        assert_eq!(rig.thread.history()[1].text(), "at four");
    });
}

#[test]
fn b84_a_byte_stream_cut_anywhere_gives_the_same_events() {
    let sse = [
        chunk("{\"content\":\"Flut um 4 – 水 🌊\"}"),
        chat_end("stop"),
    ]
    .concat();
    let bytes = sse.as_bytes();
    let whole = frames([bytes]);
    for size in 1..=bytes.len().min(64) {
        assert_eq!(frames(bytes.chunks(size)), whole, "pieces of {size}");
    }
    for cut in 0..=bytes.len() {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(frames([first, second]), whole, "cut at {cut}");
    }
    let response = assemble(chat(), &whole).unwrap();
    assert_eq!(response.messages[0].text(), "Flut um 4 – 水 🌊");
    both(async |how| {
        let steps = [Step::events(events(chat(), &sse))];
        let rig = Rig::new(how, steps, |agent| agent);
        assert_eq!(rig.run("go").await.text(), "Flut um 4 – 水 🌊");
    });
}

#[test]
fn b85_of_usage_reported_several_times_the_last_figure_of_each_field_counts() {
    let frame =
        |kind: &str, rest: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n");
    let sse = [
        frame(
            "message_start",
            ",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\
             \"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\
             \"usage\":{\"input_tokens\":25,\"output_tokens\":1,\"cache_read_input_tokens\":8}}",
        ),
        frame(
            "content_block_start",
            ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}",
        ),
        frame(
            "content_block_delta",
            ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"at four\"}",
        ),
        frame("content_block_stop", ",\"index\":0"),
        frame(
            "message_delta",
            ",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\
             \"usage\":{\"output_tokens\":15}",
        ),
        frame("message_stop", ""),
    ]
    .concat();
    let anthropic = codec(&Wire::Anthropic).unwrap();
    both(async |how| {
        let steps = [Step::events(events(anthropic, &sse))];
        let rig = Rig::new(how, steps, |agent| agent);
        let usage = rig.run("go").await.usage;
        assert_eq!((usage.output, usage.cache_read), (Some(15), Some(8)));
        assert_eq!(usage.counters["input_tokens"], 25);
        assert_eq!(usage.counters["output_tokens"], 15);
    });
    let snapshot = |input, output| Update {
        usage: Some(Usage {
            input,
            output,
            ..Usage::default()
        }),
        ..Update::default()
    };
    let updates = [snapshot(Some(25), Some(1)), snapshot(None, Some(15))];
    let usage = gathered(updates).usage.unwrap();
    assert_eq!((usage.input, usage.output), (Some(25), Some(15)));
}

#[test]
fn b86_the_first_text_is_out_before_the_stream_ends_and_a_call_appears_once() {
    let at = |item| Place::new(0, item, 0);
    let call = |arguments: &str| -> Content {
        ToolCall::function(CallId::natural("c1").unwrap(), "tide", arguments).into()
    };
    let steps = || {
        let chunks = [
            Chunk::Event(Event::Opened {
                at: at(0),
                content: Content::text(""),
            }),
            Chunk::Event(Event::Delta {
                at: at(0),
                text: "let me".into(),
            }),
            Chunk::Wait(Duration::from_secs(5)),
            Chunk::Event(Event::Delta {
                at: at(0),
                text: " see".into(),
            }),
            Chunk::Event(Event::Opened {
                at: at(1),
                content: call(""),
            }),
            Chunk::Event(Event::Delta {
                at: at(1),
                text: "{\"port\":".into(),
            }),
            Chunk::Event(Event::Delta {
                at: at(1),
                text: "\"Hull\"}".into(),
            }),
            Chunk::Event(Event::Content {
                at: at(0),
                content: Content::text("let me see"),
            }),
            Chunk::Event(Event::Content {
                at: at(1),
                content: call("{\"port\":\"Hull\"}"),
            }),
            Chunk::Event(Event::Finished {
                stop: Stop::ToolCalls,
                usage: None,
                error: None,
                vendor: None,
                service: None,
            }),
        ];
        [Step::chunks(chunks), Step::text("done")]
    };
    both(async |how| {
        let rig = Rig::new(how, steps(), |agent| agent.tool(Fake::named("tide")));
        if how == How::Whole {
            assert_eq!(said(&rig.run("go").await), "u a(c1) t(c1) a");
            return;
        }
        let mut stream = rig.agent.run_on(&rig.thread, "go").stream();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            if events.iter().all(|one: &RunEvent| one.text().is_none()) && event.text().is_some() {
                assert_eq!(event.text(), Some("let me"));
                assert_eq!(rig.client.running(), 1, "the model is still speaking");
            }
            events.push(event);
        }
        let calls: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                RunEvent::Content { content, .. } => content.as_tool_call(),
                _ => None,
            })
            .collect();
        assert_eq!(calls, [call("{\"port\":\"Hull\"}").as_tool_call().unwrap()]);
        let text: String = events.iter().filter_map(RunEvent::text).collect();
        assert_eq!(text, "let me seedone");
    });
}

#[test]
fn b87_results_are_told_as_they_end_and_stored_in_call_order() {
    both(async |how| {
        let slow = Fake::doing("slow", |_, context| async move {
            let wait = [20, 30, 10][context.position as usize];
            sleep(Duration::from_millis(wait)).await;
            Ok(ToolOutput::text(format!("after {wait}")))
        });
        let calls = ["c1", "c2", "c3"].map(|id| (id, "slow", "{}"));
        let steps = [Step::calls(calls), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(slow));
        if how == How::Whole {
            assert_eq!(said(&rig.run("go").await), "u a(c1,c2,c3) t(c1,c2,c3) a");
            return;
        }
        let run = rig.agent.run_on(&rig.thread, "go");
        let (events, outcome) = how.events(run).await;
        let results: Vec<&str> = events
            .iter()
            .filter_map(|event| match event {
                RunEvent::Result { result, .. } => Some(result.call().value()),
                _ => None,
            })
            .collect();
        assert_eq!(results, ["c3", "c1", "c2"]);
        assert_eq!(said(&outcome.unwrap()), "u a(c1,c2,c3) t(c1,c2,c3) a");
    });
}

#[test]
fn b90_collecting_the_same_events_twice_gives_equal_results() {
    let updates = || {
        [
            update(Content::text("one ")),
            update(Content::text("two")),
            update(crate::behaviours::foreign::call("c1", "tide")),
        ]
    };
    let events = events_of(updates());
    let before = events.clone();
    let collect = || {
        let mut fold = Fold::new();
        events.iter().cloned().for_each(|event| fold.push(event));
        fold.finish()
    };
    assert_eq!(collect(), collect());
    assert_eq!(events, before);
    both(async |how| {
        let steps = || [Step::events(before.clone()), Step::text("done")];
        let once = |rig: Rig| async move {
            let outcome = rig.run("go").await;
            let contents: Vec<_> = outcome
                .messages
                .into_iter()
                .map(|one| one.contents)
                .collect();
            contents
        };
        let rig = || Rig::new(how, steps(), |agent| agent.tool(Fake::named("tide")));
        assert_eq!(once(rig()).await, once(rig()).await);
    });
}

#[test]
fn b91_metadata_and_empty_text_make_no_message_and_unknown_things_are_kept_or_skipped() {
    let meta = |text: &str| Update {
        meta: Some(RawJson::new(text).unwrap()),
        ..Update::default()
    };
    let updates = [
        meta(r#"{"tier":"fast","trace":1}"#),
        update(Content::text("")),
        meta(r#"{"trace":2}"#),
    ];
    let response = gathered(updates);
    assert!(response.messages.is_empty());
    let Form::Item(body) = response.vendor.unwrap().form else {
        panic!("another form");
    };
    assert_eq!(body.get(), r#"{"tier":"fast","trace":2}"#);

    // An unknown event of a vendor is skipped, an unknown item is kept.
    let frame =
        |kind: &str, rest: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n");
    let item = r#"{"type":"brand_new","id":"bn_1","x":1.0}"#;
    let done = format!(
        "\"response\":{{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\",\
         \"model\":\"m\",\"service_tier\":\"flex\",\"output\":[{item}]}}"
    );
    let sse = [
        frame("response.something_new", "\"n\":1"),
        frame(
            "response.output_item.added",
            &format!("\"output_index\":0,\"item\":{item}"),
        ),
        frame(
            "response.output_item.done",
            &format!("\"output_index\":0,\"item\":{item}"),
        ),
        frame("response.completed", &done),
    ]
    .concat();
    let responses = codec(&Wire::OpenAiResponses).unwrap();
    let heard = events(responses, &sse);
    let mut fold = Fold::new();
    heard.iter().cloned().for_each(|event| fold.push(event));
    let Form::Item(body) = fold.finish().vendor.unwrap().form else {
        panic!("another form");
    };
    assert!(
        body.get().contains("\"service_tier\":\"flex\""),
        "{}",
        body.get()
    );
    both(async |how| {
        let rig = Rig::new(how, [Step::events(heard.clone())], |agent| agent);
        let outcome = rig.run("go").await;
        assert_eq!(outcome.messages.len(), 2);
        let [content] = &outcome.messages[1].contents[..] else {
            panic!("{:?}", outcome.messages[1]);
        };
        assert!(matches!(&content.body, Body::Opaque(opaque) if opaque.tag == "brand_new"));

        let rig = Rig::new(
            how,
            [Step::events(events_of([update(Content::text(""))]))],
            |agent| agent,
        );
        let outcome = rig.run("go").await;
        assert_eq!(
            (said(&outcome).as_str(), outcome.stop),
            ("u", StopReason::Done)
        );
    });
}
