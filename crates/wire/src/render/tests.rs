use throughline_model::json::{self, RawJson};
use throughline_model::{
    Body, CallId, Content, Family, Form, Media, MediaKind, MediaSource, Message, Output, Role,
    Runner, Source, Text, ToolCall, ToolResult, Wire,
};

use super::{Chain, ChainAt, Options, Rendered, RepairKind, Target, render};
use crate::codec;
use crate::validate::{Chained, Generation, Profile, validate};

fn rendered(history: &[Message], wire: Wire) -> Rendered {
    render(history, &Target::newest(wire), &Options::default())
}

fn call(id: &str) -> Content {
    ToolCall::function(CallId::natural(id).unwrap(), "moor", "{}").into()
}

fn result(id: &str, output: Output) -> Content {
    ToolResult::answering(CallId::natural(id).unwrap(), Family::FUNCTION, output).into()
}

#[test]
fn a_message_of_several_sides_is_said_whole() {
    let done = Output::Text("done".into());
    let history = [
        Message::user("Moor."),
        Message::new(
            Role::Assistant,
            vec![call("c"), result("c", done), Content::text("Moored.")],
        ),
    ];
    let found = rendered(&history, Wire::OpenAiChat);
    assert_eq!(
        found.array(),
        concat!(
            r#"[{"role":"user","content":"Moor."},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"moor","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"c","content":"done"},"#,
            r#"{"role":"assistant","content":"Moored."}]"#
        )
    );
    assert!(found.repairs.is_empty() && found.losses.is_empty());
}

#[test]
fn what_a_result_loses_is_listed_where_the_result_stands() {
    let sound = || {
        Content::new(Body::Media(Media {
            kind: MediaKind::Audio,
            media_type: Some("audio/flac".into()),
            source: MediaSource::Data("ZkxhQw==".into()),
            name: None,
            transcript: None,
        }))
    };
    let parts = || Output::Parts(vec![Content::text("listen"), sound()]);
    let history = [
        Message::user("Listen."),
        Message::new(Role::Assistant, vec![call("a"), call("b")]),
        Message::new(Role::Tool, vec![result("b", parts())]),
        Message::new(Role::Tool, vec![result("a", Output::Text("done".into()))]),
    ];
    for wire in [Wire::Anthropic, Wire::OpenAiChat] {
        let found = rendered(&history, wire.clone());
        assert!(!found.losses.is_empty());
        for loss in found.losses {
            let at = "messages[2].contents[0]";
            assert!(loss.path.starts_with(at), "{wire}: {loss}");
        }
    }
}

#[test]
fn what_a_later_side_of_a_message_loses_is_listed_where_it_stands() {
    let refusal = Content::new(Body::Refusal(Text {
        text: "No further.".into(),
        citations: Vec::new(),
    }));
    let done = Output::Text("done".into());
    let history = [
        Message::user("Moor."),
        Message::new(Role::Assistant, vec![call("c"), result("c", done), refusal]),
    ];
    for wire in [Wire::Anthropic, Wire::Gemini] {
        let found = rendered(&history, wire.clone());
        let places: Vec<&str> = found.losses.iter().map(|loss| loss.path.as_str()).collect();
        assert_eq!(places, ["messages[1].contents[2]"], "{wire}");
    }
}

/// A history that the vendor's codec reads from its own items.
fn said(wire: &Wire, array: &str) -> Vec<Message> {
    let items = json::parse(array).unwrap();
    let codec = codec(wire).unwrap();
    codec.decode_messages(items.as_array().unwrap()).unwrap()
}

fn violations(history: &[Message], target: &Target) -> Vec<(&'static str, String)> {
    let array = render(history, target, &Options::default()).array();
    let profile = Profile {
        stored: target.stored,
        thinking: target.thinking,
        same_account: target.same_account,
        generation: target.generation,
        ..Profile::newest(target.wire.clone())
    };
    let found = validate(&json::parse(&array).unwrap(), &profile);
    found.into_iter().map(|it| (it.rule, it.path)).collect()
}

fn kinds(rendered: &Rendered) -> Vec<RepairKind> {
    rendered.repairs.iter().map(|repair| repair.kind).collect()
}

#[test]
fn a_form_of_the_vendor_that_lost_a_member_is_said_anew() {
    let array = r#"[{"type":"function_call","call_id":"c","name":"moor","arguments":"{}"}]"#;
    let mut history = said(&Wire::OpenAiResponses, array);
    let vendor = history[0].contents[0].vendor.as_mut().unwrap();
    vendor.form = Form::Item(RawJson::new(r#"{"type":"function_call","call_id":"c"}"#).unwrap());
    let found = rendered(&history, Wire::OpenAiResponses);
    assert_eq!(found.items[0].json, array[1..array.len() - 1]);
    assert_eq!(
        kinds(&found),
        [RepairKind::BrokenForm, RepairKind::ClosedCall]
    );
}

#[test]
fn what_only_its_vendor_could_read_is_a_loss_when_its_form_is_broken() {
    let array = r#"[{"type":"code_interpreter_call","id":"ci_1","container_id":"c","code":"","outputs":7,"status":"completed"}]"#;
    let history = said(&Wire::OpenAiResponses, array);
    assert_eq!(
        violations(&history, &Target::newest(Wire::OpenAiResponses)),
        []
    );
    assert!(kinds(&rendered(&history, Wire::OpenAiResponses)).contains(&RepairKind::HostedText));
}

#[test]
fn calls_are_the_models_wherever_they_stand() {
    for role in [Role::System, Role::User, Role::Tool] {
        let history = [Message::new(role, vec![call("c")])];
        for wire in Wire::KNOWN {
            assert_eq!(violations(&history, &Target::newest(wire)), []);
        }
    }
}

#[test]
fn foundry_gets_no_seal_of_an_older_turn() {
    let sealed = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"},{"type":"function_call","call_id":"c","name":"moor","arguments":"{}"}"#;
    let mut history = said(&Wire::Foundry, &format!("[{sealed}]"));
    let newest = rendered(&history, Wire::Foundry);
    assert!(newest.array().contains("gA"));
    history.push(Message::new(Role::Tool, vec![result("c", Output::None)]));
    history.push(Message::new(
        Role::Assistant,
        vec![Content::text("Moored.")],
    ));
    let older = rendered(&history, Wire::Foundry);
    assert!(!older.array().contains("gA") && older.items.len() == 3);
    assert!(kinds(&older).contains(&RepairKind::SealedReasoning));
}

#[test]
fn a_call_without_thoughts_stays_a_call_where_the_model_decides_how_much_to_think() {
    let adaptive = Target {
        thinking: true,
        ..Target::newest(Wire::Anthropic)
    };
    let budget = Target {
        generation: Generation::OLDER,
        ..adaptive.clone()
    };
    let array = r#"[{"role":"user","content":"Moor."},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"moor","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"done"}]}]"#;
    let history = said(&Wire::Anthropic, array);
    let found = render(&history, &adaptive, &Options::default());
    assert_eq!((found.array().as_str(), kinds(&found)), (array, vec![]));
    let found = render(&history, &budget, &Options::default());
    assert!(!found.array().contains("tool_use"));
    assert_eq!(kinds(&found), [RepairKind::TextGroup]);
}

#[test]
fn thinking_opens_the_turn_that_calls() {
    let target = Target {
        thinking: true,
        generation: Generation::OLDER,
        ..Target::newest(Wire::Anthropic)
    };
    let array = r#"[{"role":"assistant","content":"Well."},{"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"c2ln"},{"type":"tool_use","id":"c","name":"moor","input":{}}]}]"#;
    let history = said(&Wire::Anthropic, array);
    assert_eq!(violations(&history, &target), []);
    let found = render(&history, &target, &Options::default());
    assert!(kinds(&found).contains(&RepairKind::BetweenModels));
}

#[test]
fn unknown_members_of_blocks_stay_behind() {
    let array = r#"[{"role":"user","content":[{"type":"text","text":"Moor.","x":1}]}]"#;
    let found = rendered(&said(&Wire::Anthropic, array), Wire::Anthropic);
    assert_eq!(
        found.array(),
        r#"[{"role":"user","content":[{"type":"text","text":"Moor."}]}]"#
    );
    assert_eq!(kinds(&found), [RepairKind::OutputOnlyKey]);
}

#[test]
fn a_signature_that_is_none_gives_way_to_the_placeholder() {
    let array =
        r#"[{"role":"model","parts":[{"functionCall":{"name":"moor"},"thoughtSignature":"n o"}]}]"#;
    let history = said(&Wire::Gemini, array);
    assert_eq!(violations(&history, &Target::newest(Wire::Gemini)), []);
    let found = rendered(&history, Wire::Gemini).array();
    assert!(found.contains("skip_thought_signature_validator") && !found.contains("n o"));
}

#[test]
fn a_chat_message_keeps_its_calls_together() {
    let array = r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"moor","arguments":"{}"}}]}]"#;
    let mut history = said(&Wire::OpenAiChat, array);
    history[0].contents.push(call("b"));
    history[0].contents.push(Content::text("Mooring."));
    assert_eq!(violations(&history, &Target::newest(Wire::OpenAiChat)), []);
    let found = rendered(&history, Wire::OpenAiChat);
    assert_eq!(found.items.len(), 3, "{}", found.array());
}

#[test]
fn only_functions_answer_unasked() {
    let alone = |family| {
        let id = CallId::natural("c").unwrap();
        let result = ToolResult::standalone(id, family, Output::Text("done".into()));
        [Message::new(Role::Tool, vec![result.into()])]
    };
    let found = rendered(&alone(Family::FUNCTION), Wire::OpenAiResponses);
    assert!(found.repairs.is_empty());
    let found = rendered(&alone(Family::CUSTOM), Wire::OpenAiResponses);
    assert_eq!(kinds(&found), [RepairKind::OrphanResult]);
}

#[test]
fn older_models_of_gemini_get_no_ids_no_signatures_and_media_behind_results() {
    let target = Target {
        generation: Generation::OLDER,
        ..Target::newest(Wire::Gemini)
    };
    let array =
        r#"[{"role":"model","parts":[{"functionCall":{"id":"x1","name":"moor","args":{}}}]}]"#;
    let mut history = said(&Wire::Gemini, array);
    let picture = Content::new(Body::Media(Media {
        kind: MediaKind::Image,
        media_type: Some("image/png".into()),
        source: MediaSource::Data("iVBORw0KGgo=".into()),
        name: None,
        transcript: None,
    }));
    let output = Output::Parts(vec![Content::text("see"), picture]);
    history.push(Message::new(Role::Tool, vec![result("x1", output)]));
    let found = render(&history, &target, &Options::default());
    assert_eq!(
        found.array(),
        concat!(
            r#"[{"role":"user","parts":[{"text":"Continue."}]},"#,
            r#"{"role":"model","parts":[{"functionCall":{"name":"moor","args":{}}}]},"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"moor","response":{"output":"see"}}}]},"#,
            r#"{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}]"#
        )
    );
}

#[test]
fn models_that_take_prefill_may_end_with_the_model() {
    let target = Target {
        generation: Generation::OLDER,
        ..Target::newest(Wire::Anthropic)
    };
    let ends = |text: &str| {
        let said = Message::new(Role::Assistant, vec![Content::text(text)]);
        let history = [Message::user("Moor."), said];
        assert_eq!(violations(&history, &target), []);
        render(&history, &target, &Options::default()).items.len()
    };
    assert_eq!((ends("Well"), ends("Well ")), (2, 3));
}

#[test]
fn what_the_service_has_is_not_sent_again() {
    let calls = Chained {
        open: ["b".to_owned()].into(),
        answered: ["a".to_owned()].into(),
    };
    let target = Target {
        chain: Some(Chain {
            at: ChainAt::Response("resp_1".into()),
            calls,
        }),
        ..Target::newest(Wire::OpenAiResponses)
    };
    let history = [
        Message::new(Role::Assistant, vec![call("a"), call("b")]),
        Message::new(
            Role::Tool,
            vec![result("a", Output::None), result("b", Output::None)],
        ),
    ];
    let found = render(&history, &target, &Options::default());
    assert_eq!(
        found.body(&target, &Options::default()),
        r#"{"input":[{"type":"function_call_output","call_id":"b","output":""}],"previous_response_id":"resp_1"}"#
    );
    assert_eq!(kinds(&found), [RepairKind::Chained, RepairKind::Chained]);
}

#[test]
fn a_result_that_lost_its_item_is_no_item_that_reasoning_led_to() {
    let array = r#"[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"},{"type":"file_search_call","id":"fs_1","queries":[],"status":"completed","results":[]}]"#;
    let mut history = said(&Wire::OpenAiResponses, array);
    history[0].contents.remove(1);
    let target = Target::newest(Wire::OpenAiResponses);
    assert_eq!(violations(&history, &target), []);
    let found = rendered(&history, Wire::OpenAiResponses);
    assert!(found.array().contains("[Result of file-search]"));
}

#[test]
fn what_the_application_says_is_nothing_that_reasoning_led_to() {
    let array = r#"[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"},{"type":"configuration_update"}]"#;
    let mut history = said(&Wire::OpenAiResponses, array);
    let update = history.remove(1);
    history[0].contents.extend(update.contents);
    let target = Target::newest(Wire::OpenAiResponses);
    assert_eq!(violations(&history, &target), []);
}

#[test]
fn results_of_the_vendor_go_by_the_ids_on_the_wire() {
    let array =
        r#"[{"type":"processing_call","id":"p"},{"type":"processing_result","call_id":"p"}]"#;
    let mut history = said(&Wire::GeminiInteractions, array);
    let contents = &mut history[0].contents;
    contents.remove(0);
    if let Body::ToolResult(result) = &mut contents[0].body {
        let id = CallId::natural("other").unwrap();
        *result = ToolResult::standalone(id, result.family.clone(), Output::None);
        result.runner = Runner::Vendor;
    }
    let target = Target::newest(Wire::GeminiInteractions);
    assert_eq!(violations(&history, &target), []);
}

#[test]
fn what_loses_its_reasoning_stays_as_clean_as_it_was() {
    let array = r#"[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"c","name":"moor","arguments":"{}","created_by":{}},{"type":"program_output","id":"","call_id":"p","result":"ok","status":"completed"}]"#;
    let history = said(&Wire::Foundry, array);
    assert_eq!(violations(&history, &Target::newest(Wire::Foundry)), []);
}

#[test]
fn reasoning_that_led_to_reasoning_which_stays_behind_stays_behind_too() {
    let one = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA"}"#;
    let two = one.replace("rs_1", "rs_2");
    let wire = Wire::OpenAiResponses;
    for array in [format!("[{one},{one}]"), format!("[{one},{two}]")] {
        let target = Target::newest(wire.clone());
        assert_eq!(violations(&said(&wire, &array), &target), []);
    }
}

#[test]
fn an_output_of_a_local_shell_without_its_call_is_said_as_text() {
    let output =
        r#"[{"type":"local_shell_call_output","id":"call_1","call_id":null,"output":"{}"}]"#;
    let wire = Wire::OpenAiResponses;
    let target = Target::newest(wire.clone());
    let mut history = said(&wire, output);
    assert_eq!(violations(&history, &target), []);
    // Also where the result claims to stand alone.
    for content in history.iter_mut().flat_map(|message| &mut message.contents) {
        if let Body::ToolResult(result) = &content.body {
            let alone = ToolResult::standalone(
                result.call().clone(),
                result.family.clone(),
                result.output.clone(),
            );
            content.body = Body::ToolResult(alone);
        }
    }
    assert_eq!(violations(&history, &target), []);
}

#[test]
fn an_empty_text_in_a_result_is_left_out() {
    let array = r#"[{"role":"user","content":"Moor."},
        {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1",
            "content":[{"type":"text","text":""},{"type":"text","text":"done"}]}]}]"#;
    let target = Target::newest(Wire::Anthropic);
    let history = said(&Wire::Anthropic, array);
    assert_eq!(violations(&history, &target), []);
    let rendered = render(&history, &target, &Options::default());
    assert_eq!(kinds(&rendered), [RepairKind::Empty]);
}

#[test]
fn a_call_of_the_vendor_in_a_message_of_another_role_keeps_its_kind() {
    let array = r#"[{"type":"tool_search_call","call_id":"","execution":"client","arguments":{}}]"#;
    let mut history = said(&Wire::OpenAiResponses, array);
    history[0].role = Role::Other("critic".into());
    let target = Target::newest(Wire::OpenAiResponses);
    assert_eq!(violations(&history, &target), []);
}

/// The history with another envelope around its first message.
fn reopened(mut history: Vec<Message>, envelope: &str) -> Vec<Message> {
    let vendor = history[0].contents[0].vendor.as_mut().unwrap();
    assert!(vendor.envelope.is_some());
    vendor.envelope = Some(RawJson::new(envelope).unwrap());
    history
}

#[test]
fn a_message_without_a_hole_for_its_contents_is_made_anew() {
    let broken = [
        (
            Wire::OpenAiResponses,
            r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"Moor."}]}]"#,
            r#"{"type":"message","role":"user","content":null}"#,
        ),
        (
            Wire::OpenAiChat,
            r#"[{"role":"user","content":"Moor."}]"#,
            r#"{"role":"user","content":[]}"#,
        ),
        (
            Wire::Anthropic,
            r#"[{"role":"user","content":[{"type":"text","text":"Moor."}]}]"#,
            r#"{"role":"user","content":""}"#,
        ),
        (
            Wire::Gemini,
            r#"[{"role":"user","parts":[{"text":"Moor."}]}]"#,
            r#"{"role":"user","parts":null}"#,
        ),
        (
            Wire::GeminiInteractions,
            r#"[{"type":"user_input","content":[{"type":"text","text":"Moor."}]}]"#,
            r#"{"type":"user_input","content":""}"#,
        ),
        (
            Wire::Foundry,
            r#"[{"type":"message","role":"user","content":"Moor."}]"#,
            r#"{"type":"message","role":"user","content":null}"#,
        ),
    ];
    for (wire, array, envelope) in broken {
        let history = reopened(said(&wire, array), envelope);
        assert_eq!(violations(&history, &Target::newest(wire.clone())), []);
        let found = rendered(&history, wire.clone());
        assert!(found.array().contains("Moor."), "{wire}: {}", found.array());
        assert_eq!(kinds(&found), [RepairKind::BrokenForm], "{wire}");
    }
}

#[test]
fn a_message_that_says_it_is_none_is_made_anew() {
    let array =
        r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"Moor."}]}]"#;
    for wire in [Wire::OpenAiResponses, Wire::Foundry] {
        for tag in ["null", "7", "\"\"", "{}"] {
            let envelope = format!(r#"{{"type":{tag},"role":"user","content":[]}}"#);
            let history = reopened(said(&wire, array), &envelope);
            assert_eq!(violations(&history, &Target::newest(wire.clone())), []);
            assert_eq!(rendered(&history, wire.clone()).array(), array);
        }
    }
}

#[test]
fn a_chat_message_that_lost_its_list_of_calls_is_made_anew() {
    let array = r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"moor","arguments":"{}"}}]}]"#;
    for list in ["null", "7", "[\"a\"]"] {
        let envelope = format!(r#"{{"role":"assistant","content":null,"tool_calls":{list}}}"#);
        let history = reopened(said(&Wire::OpenAiChat, array), &envelope);
        assert_eq!(violations(&history, &Target::newest(Wire::OpenAiChat)), []);
        let found = rendered(&history, Wire::OpenAiChat);
        assert_eq!(found.items[0].json, array[1..array.len() - 1]);
    }
}

#[test]
fn what_a_chat_message_says_beside_its_content_is_not_lost_with_the_member() {
    let array = r#"[{"role":"assistant","content":null,"refusal":"I will not."}]"#;
    let envelope = r#"{"role":"assistant","content":null}"#;
    let history = reopened(said(&Wire::OpenAiChat, array), envelope);
    assert_eq!(violations(&history, &Target::newest(Wire::OpenAiChat)), []);
    let found = rendered(&history, Wire::OpenAiChat).array();
    assert!(found.contains("I will not."), "{found}");
}

#[test]
fn an_item_goes_by_the_id_that_stands_in_it() {
    let array = r#"[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"moor","arguments":"{}"},
        {"type":"function_call_output","call_id":"call_1","output":"done"}]"#;
    let mut history = said(&Wire::OpenAiResponses, array);
    let Form::Item(item) = &mut history[0].contents[0].vendor.as_mut().unwrap().form else {
        panic!("an item of the vendor");
    };
    *item = RawJson::new(&item.get().replace("fc_1", "\\u0072x")).unwrap();
    let found = violations(&history, &Target::newest(Wire::OpenAiResponses));
    assert_eq!(found, [], "{history:?}");
}

/// Items that a caller sends back have ids that another service issued, or invented ones.
#[test]
fn items_of_a_caller_go_without_the_names_they_came_with() {
    let items = concat!(
        r#"[{"type":"message","id":"msg_1","status":"completed","role":"assistant","#,
        r#""content":[{"type":"output_text","text":"Moor.","annotations":[],"logprobs":[]}]},"#,
        r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"moor","arguments":"{}"},"#,
        r#"{"type":"function_call_output","id":"fc_2","call_id":"c","output":"done"}]"#,
    );
    let items = json::parse(items).unwrap();
    let codec = codec(&Wire::OpenAiResponses).unwrap();
    let mut history = codec.decode_messages(items.as_array().unwrap()).unwrap();
    let ids = |history: &[Message], stored: bool| {
        let target = Target {
            stored,
            ..Target::newest(Wire::OpenAiResponses)
        };
        let found = render(history, &target, &Options::default());
        found.array().matches(r#""id":"#).count()
    };
    assert_eq!((ids(&history, false), ids(&history, true)), (3, 3));
    for message in &mut history {
        message.source = Some(Source::Caller);
    }
    assert_eq!((ids(&history, false), ids(&history, true)), (0, 3));
}
