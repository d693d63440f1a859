use serde_json::{Value, json};
use throughline_model::{CallId, Content, Message, Outcome, Output, Role, ToolCall, Wire};
use throughline_testkit::trajectory::Session;
use throughline_testkit::upstream::{KEY, Origins, Recorded, Reply, Script, Upstream};

use super::{AskError, Condition, Endpoint, Exam, Score};

/// A session that fails once and then reads so much that the value of the first result is digested.
fn session() -> Session {
    let mut said = vec![Message::user("bring the harbour in order")];
    let mut round = |arguments: String, outcome, output: String| {
        let id = CallId::natural(&format!("call_{}", said.len())).unwrap();
        let call = ToolCall::function(id, "Bash", arguments);
        let result = call.answer(outcome, Output::Text(output));
        said.push(Message::new(Role::Assistant, vec![Content::from(call)]));
        said.push(Message::new(Role::Tool, vec![Content::from(result)]));
    };
    let depths: Vec<String> = (0..60)
        .map(|berth| format!("depth_of_berth_{berth} = {}", 4000 + berth * 7))
        .collect();
    let measured = json!({"command": "measure all"}).to_string();
    round(measured, Outcome::Ok, depths.join("\n"));
    for place in 0..60 {
        let command = json!({"command": format!("look {place}")}).to_string();
        round(command, Outcome::Ok, "nothing of note here; ".repeat(120));
    }
    said.push(Message::new(Role::Assistant, vec![Content::text("done")]));
    Session::new("harbour", said)
}

fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// A model that can read and no more: it quotes the line with the value it is asked for, or looks it
/// up if it may.
fn reader(request: &Recorded) -> Reply {
    let messages = request.body["messages"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let is_question = |message: &&Value| message["role"] == "user";
    let question = messages
        .iter()
        .rfind(is_question)
        .map(text_of)
        .unwrap_or_default();
    let wanted = question
        .split('`')
        .find(|part| part.starts_with("depth_of"));
    let Some(wanted) = wanted else {
        return Reply::text("I do not know what is asked.");
    };
    // A place that was found is not yet what stands there.
    let line = |text: &str| {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let found = lines.find_map(|line| line.split_once(&format!("{wanted} = ")));
        found.map(|(_, value)| value.to_owned())
    };
    if let Some(value) = messages.iter().find_map(|message| line(text_of(message))) {
        return Reply::text(value);
    }
    if request.body.get("tools").is_none() {
        return Reply::text("That is not shown.");
    }
    // First the places, then the first of them in full.
    let found = messages
        .iter()
        .rev()
        .find_map(|message| text_of(message).strip_prefix('#'));
    match found.and_then(|found| found.split(' ').next()) {
        Some(seq) => Reply::calls([("expand", json!({"seq": seq}).to_string())]),
        None => Reply::calls([("recall", json!({"query": wanted}).to_string())]),
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

#[test]
fn what_is_compacted_is_answered_from_the_record_and_not_from_the_view() {
    run(async {
        let upstream = Upstream::of(Wire::OpenAiChat)
            .origins(Origins::Any)
            .script(Script::respond_with(reader))
            .start()
            .await;
        let endpoint = Endpoint::new(&upstream.base_url(), "gpt-5", Some(KEY.to_owned())).unwrap();
        let exam = Exam::new(&session(), 8_000, 2);
        assert!(!exam.questions.is_empty());
        let mut scores = [Score::default(); 3];
        for question in &exam.questions {
            for (condition, score) in Condition::ALL.into_iter().zip(&mut scores) {
                score.add(exam.ask(&endpoint, question, condition).await.unwrap());
            }
        }
        let asked = exam.questions.len();
        let [raw, compacted, with_tools] = scores;
        assert_eq!((raw.asked, raw.right, raw.lookups), (asked, asked, 0));
        assert_eq!(
            (compacted.asked, compacted.right, compacted.refused),
            (asked, 0, 0)
        );
        assert_eq!((with_tools.right, with_tools.lookups), (asked, 2 * asked));
    });
}

#[test]
fn a_refusal_is_counted_and_an_endpoint_that_is_not_there_is_an_error() {
    run(async {
        let upstream = Upstream::start(Wire::OpenAiChat, Script::default()).await;
        let exam = Exam::new(&session(), 8_000, 1);
        let question = &exam.questions[0];
        let wrong =
            Endpoint::new(&upstream.base_url(), "gpt-5", Some("another".to_owned())).unwrap();
        let score = exam.ask(&wrong, question, Condition::Raw).await.unwrap();
        assert_eq!((score.asked, score.refused), (0, 1));
        let nowhere = Endpoint::new("http://127.0.0.1:9/v1", "gpt-5", None).unwrap();
        let error = exam
            .ask(&nowhere, question, Condition::Raw)
            .await
            .unwrap_err();
        assert!(matches!(error, AskError::Unreachable { .. }), "{error}");
    });
}
