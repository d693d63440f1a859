use throughline_model::json::RawJson;
use throughline_model::{
    AnswerShape, Effort, Family, Settings, ToolChoice, ToolDef, Vendor, Verbosity, Wire,
};

use super::{Delivery, Prompt, TokenLimit, compose};
use crate::Losses;
use crate::render::{Chain, ChainAt, Items, Target};
use crate::validate::{Chained, Generation};

fn raw(text: &str) -> RawJson {
    RawJson::new(text).unwrap()
}

fn tools() -> Vec<ToolDef> {
    let schema = r#"{"type":"object","properties":{"port":{"type":"string"}}}"#;
    vec![ToolDef {
        family: Family::FUNCTION,
        name: "get_tide".into(),
        description: Some("When is high water?".into()),
        parameters: Some(raw(schema)),
        ..ToolDef::default()
    }]
}

fn answer(schema: &str) -> Option<AnswerShape> {
    Some(AnswerShape {
        name: "tide report".into(),
        schema: Some(raw(schema)),
        ..AnswerShape::default()
    })
}

const CLOSED: &str =
    r#"{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}"#;

/// Everything set.
fn full() -> Settings {
    Settings {
        max_output_tokens: Some(9000),
        temperature: Some(0.5),
        top_p: Some(1.0),
        stop: vec!["END".into()],
        effort: Some(Effort::Low),
        parallel_calls: Some(false),
        answer: answer(CLOSED),
        ..Settings::default()
    }
}

fn older(wire: Wire) -> Target {
    Target {
        generation: Generation::OLDER,
        ..Target::newest(wire)
    }
}

/// The body, and the places and details of what was lost.
fn composed(prompt: &Prompt<'_>) -> (String, Vec<String>) {
    let mut losses = Losses::default();
    let body = compose(prompt, &mut losses);
    throughline_model::json::parse(&body).unwrap();
    let lost = losses.as_slice().iter();
    let lost = lost.map(|loss| format!("{}: {}", loss.path, loss.detail));
    (body, lost.collect())
}

/// Everything that can be said, for a target.
fn everything(target: &Target, choice: &ToolChoice, settings: &Settings) -> (String, Vec<String>) {
    composed(&Prompt {
        instructions: Some("Be \"brief\"."),
        system: Some("You know the sea."),
        tools: &tools(),
        choice,
        settings,
        delivery: Delivery::Streamed,
        ..Prompt::new(target, "some-model", r#"[{"the":"items"}]"#)
    })
}

fn with(target: &Target, settings: &Settings) -> (String, Vec<String>) {
    let items = "[]";
    composed(&Prompt {
        settings,
        ..Prompt::new(target, "m", items)
    })
}

/// The tool as OpenAI Responses and Foundry have it.
const RESPONSES_TOOLS: &str = concat!(
    r#""tools":[{"type":"function","name":"get_tide","description":"When is high water?","#,
    r#""parameters":{"type":"object","properties":{"port":{"type":"string"}}},"strict":false}]"#,
);

#[test]
fn everything_for_openai_responses() {
    let named = ToolChoice::Named("get_tide".into());
    let (body, lost) = everything(&Target::newest(Wire::OpenAiResponses), &named, &full());
    let expected = [
        r#"{"model":"some-model","instructions":"Be \"brief\".\n\nYou know the sea.","#,
        r#""input":[{"the":"items"}],"store":false,"include":["reasoning.encrypted_content"],"#,
        RESPONSES_TOOLS,
        r#","tool_choice":{"type":"function","name":"get_tide"},"parallel_tool_calls":false,"#,
        r#""max_output_tokens":9000,"temperature":0.5,"top_p":1.0,"reasoning":{"effort":"low"},"#,
        r#""text":{"format":{"type":"json_schema","name":"tide_report","schema":"#,
        CLOSED,
        r#","strict":false}},"stream":true}"#,
    ];
    assert_eq!(body, expected.concat());
    assert_eq!(lost, ["settings.stop: there are no stop texts here"]);
}

#[test]
fn everything_for_foundry() {
    let target = Target {
        stored: true,
        ..Target::newest(Wire::Foundry)
    };
    let (body, lost) = everything(&target, &ToolChoice::Required, &full());
    let expected = [
        r#"{"model":"some-model","instructions":"Be \"brief\".\n\nYou know the sea.","#,
        r#""input":[{"the":"items"}],"store":true,"#,
        RESPONSES_TOOLS,
        r#","tool_choice":"required","parallel_tool_calls":false,"max_output_tokens":9000,"#,
        r#""temperature":0.5,"top_p":1.0,"reasoning":{"effort":"low"},"#,
        r#""text":{"format":{"type":"json_schema","name":"tide_report","schema":"#,
        CLOSED,
        r#","strict":false}},"stream":true}"#,
    ];
    assert_eq!(body, expected.concat());
    assert_eq!(lost, ["settings.stop: there are no stop texts here"]);
}

#[test]
fn everything_for_openai_chat() {
    let named = ToolChoice::Named("get_tide".into());
    let (body, lost) = everything(&Target::newest(Wire::OpenAiChat), &named, &full());
    let expected = [
        r#"{"model":"some-model","messages":["#,
        r#"{"role":"system","content":"Be \"brief\".\n\nYou know the sea."},{"the":"items"}],"#,
        r#""tools":[{"type":"function","function":{"name":"get_tide","#,
        r#""description":"When is high water?","#,
        r#""parameters":{"type":"object","properties":{"port":{"type":"string"}}}}}],"#,
        r#""tool_choice":{"type":"function","function":{"name":"get_tide"}},"#,
        r#""parallel_tool_calls":false,"max_completion_tokens":9000,"temperature":0.5,"#,
        r#""top_p":1.0,"stop":["END"],"reasoning_effort":"low","#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"tide_report","schema":"#,
        CLOSED,
        r#","strict":false}},"stream":true,"stream_options":{"include_usage":true}}"#,
    ];
    assert_eq!(body, expected.concat());
    assert!(lost.is_empty(), "{lost:?}");
}

const ANTHROPIC_HEAD: &str = concat!(
    r#"{"model":"some-model","max_tokens":9000,"system":"Be \"brief\".\n\nYou know the sea.","#,
    r#""messages":[{"the":"items"}],"tools":[{"name":"get_tide","#,
    r#""description":"When is high water?","#,
    r#""input_schema":{"type":"object","properties":{"port":{"type":"string"}}}}],"#,
);

#[test]
fn everything_for_anthropic() {
    let (body, lost) = everything(
        &Target::newest(Wire::Anthropic),
        &ToolChoice::Required,
        &full(),
    );
    let expected = [
        ANTHROPIC_HEAD,
        r#""tool_choice":{"type":"any","disable_parallel_tool_use":true},"#,
        r#""stop_sequences":["END"],"thinking":{"type":"adaptive"},"#,
        r#""output_config":{"effort":"low","format":{"type":"json_schema","schema":"#,
        CLOSED,
        r#"}},"stream":true}"#,
    ];
    assert_eq!(body, expected.concat());
    assert_eq!(
        lost,
        [
            "settings.temperature: the newest models choose words by themselves",
            "settings.top_p: the newest models choose words by themselves",
        ]
    );
}

#[test]
fn everything_for_an_older_anthropic_model() {
    let named = ToolChoice::Named("get_tide".into());
    let settings = Settings {
        effort: Some(Effort::Off),
        ..full()
    };
    let (body, lost) = everything(&older(Wire::Anthropic), &named, &settings);
    let expected = [
        ANTHROPIC_HEAD,
        r#""tool_choice":{"type":"tool","name":"get_tide","disable_parallel_tool_use":true},"#,
        r#""temperature":0.5,"stop_sequences":["END"],"thinking":{"type":"disabled"},"#,
        r#""output_config":{"format":{"type":"json_schema","schema":"#,
        CLOSED,
        r#"}},"stream":true}"#,
    ];
    assert_eq!(body, expected.concat());
    assert_eq!(lost, ["settings.top_p: not together with a temperature"]);
}

#[test]
fn an_older_anthropic_model_thinks_within_a_budget() {
    let target = Target {
        thinking: true,
        ..older(Wire::Anthropic)
    };
    let budget = |effort, most| {
        let settings = Settings {
            effort,
            max_output_tokens: most,
            temperature: Some(0.5),
            ..Settings::default()
        };
        with(&target, &settings)
    };
    let lost = ["settings.temperature: not while the model thinks"];
    for (effort, most, limit, tokens) in [
        (None, None, 16_384, 8192),
        (Some(Effort::Minimal), None, 16_384, 1024),
        (Some(Effort::Low), None, 16_384, 2048),
        (Some(Effort::Medium), None, 16_384, 8192),
        (Some(Effort::High), None, 16_384, 12_288),
        (Some(Effort::High), Some(64_000), 64_000, 24_576),
        (Some(Effort::High), Some(1025), 1025, 1024),
    ] {
        let expected = format!(
            r#"{{"model":"m","max_tokens":{limit},"messages":[],"thinking":{{"type":"enabled","budget_tokens":{tokens}}}}}"#
        );
        assert_eq!(
            budget(effort, most),
            (expected, lost.map(String::from).into())
        );
    }
    let (body, lost) = budget(Some(Effort::High), Some(1024));
    assert_eq!(
        body,
        r#"{"model":"m","max_tokens":1024,"messages":[],"temperature":0.5}"#
    );
    assert_eq!(
        lost,
        ["settings.effort: thinking needs a limit of more than 1024 tokens"]
    );
}

#[test]
fn a_history_without_thoughts_goes_to_an_older_anthropic_model_without_thinking() {
    let settings = Settings {
        effort: Some(Effort::High),
        top_p: Some(0.25),
        ..Settings::default()
    };
    let (body, lost) = with(&older(Wire::Anthropic), &settings);
    assert_eq!(
        body,
        r#"{"model":"m","max_tokens":16384,"messages":[],"top_p":0.25}"#
    );
    assert_eq!(lost, ["settings.effort: the target does not think"]);
}

#[test]
fn everything_for_gemini() {
    let target = Target {
        thinking: true,
        ..Target::newest(Wire::Gemini)
    };
    let named = ToolChoice::Named("get_tide".into());
    let (body, lost) = everything(&target, &named, &full());
    let expected = [
        r#"{"systemInstruction":{"parts":[{"text":"Be \"brief\".\n\nYou know the sea."}]},"#,
        r#""contents":[{"the":"items"}],"tools":[{"functionDeclarations":[{"name":"get_tide","#,
        r#""description":"When is high water?","#,
        r#""parametersJsonSchema":{"type":"object","properties":{"port":{"type":"string"}}}}]}],"#,
        r#""toolConfig":{"functionCallingConfig":{"mode":"ANY","#,
        r#""allowedFunctionNames":["get_tide"]}},"#,
        r#""generationConfig":{"maxOutputTokens":9000,"temperature":0.5,"topP":1.0,"#,
        r#""stopSequences":["END"],"responseMimeType":"application/json","responseJsonSchema":"#,
        CLOSED,
        r#","thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}}"#,
    ];
    assert_eq!(body, expected.concat());
    assert_eq!(
        lost,
        ["settings.parallel_calls: parallel calls cannot be switched off"]
    );
}

#[test]
fn an_older_gemini_model_thinks_within_a_budget() {
    let (body, lost) = everything(&older(Wire::Gemini), &ToolChoice::None, &full());
    let end = concat!(
        r#""toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"#,
        r#""generationConfig":{"maxOutputTokens":9000,"temperature":0.5,"topP":1.0,"#,
        r#""stopSequences":["END"],"thinkingConfig":{"thinkingBudget":1024}}}"#,
    );
    assert!(body.ends_with(end), "{body}");
    assert_eq!(
        lost,
        [
            "settings.parallel_calls: parallel calls cannot be switched off",
            "settings.answer: not together with functions on this model",
        ]
    );
}

#[test]
fn everything_for_gemini_interactions() {
    let target = Target {
        stored: true,
        thinking: true,
        ..Target::newest(Wire::GeminiInteractions)
    };
    let named = ToolChoice::Named("get_tide".into());
    let (body, lost) = everything(&target, &named, &full());
    let expected = [
        r#"{"model":"some-model","system_instruction":"Be \"brief\".\n\nYou know the sea.","#,
        r#""input":[{"the":"items"}],"store":true,"#,
        r#""tools":[{"type":"function","name":"get_tide","description":"When is high water?","#,
        r#""parameters":{"type":"object","properties":{"port":{"type":"string"}}}}],"#,
        r#""generation_config":{"max_output_tokens":9000,"temperature":0.5,"top_p":1.0,"#,
        r#""stop_sequences":["END"],"thinking_level":"low","thinking_summaries":"auto","#,
        r#""tool_choice":{"allowed_tools":{"mode":"any","tools":["get_tide"]}}},"#,
        r#""response_format":{"type":"text","mime_type":"application/json","schema":"#,
        CLOSED,
        r#"},"stream":true}"#,
    ];
    assert_eq!(body, expected.concat());
    assert_eq!(
        lost,
        ["settings.parallel_calls: parallel calls cannot be switched off"]
    );
}

#[test]
fn nothing_is_said_that_nobody_set() {
    let minimal = [
        (
            Wire::OpenAiResponses,
            r#"{"model":"m","input":[],"store":false,"include":["reasoning.encrypted_content"]}"#,
        ),
        (Wire::Foundry, r#"{"model":"m","input":[],"store":false}"#),
        (Wire::OpenAiChat, r#"{"model":"m","messages":[]}"#),
        (
            Wire::Anthropic,
            r#"{"model":"m","max_tokens":16384,"messages":[]}"#,
        ),
        (Wire::Gemini, r#"{"contents":[]}"#),
        (
            Wire::GeminiInteractions,
            r#"{"model":"m","input":[],"store":false}"#,
        ),
    ];
    for (wire, expected) in minimal {
        let target = Target::newest(wire);
        let found = with(&target, &Settings::default());
        assert_eq!(found, (expected.to_owned(), Vec::new()));
        // Blank instructions are none, and without tools nothing is said about them.
        let found = composed(&Prompt {
            instructions: Some(" \n"),
            system: Some(""),
            choice: &ToolChoice::None,
            settings: &Settings {
                parallel_calls: Some(false),
                ..Settings::default()
            },
            ..Prompt::new(&target, "m", "[]")
        });
        assert_eq!(found, (expected.to_owned(), Vec::new()));
    }
}

#[test]
fn a_system_message_goes_before_any_items() {
    let target = Target::newest(Wire::OpenAiChat);
    for (items, rest) in [
        ("[]", "]"),
        (" [ ] ", "] "),
        ("[ {\"a\":1}]", ",{\"a\":1}]"),
    ] {
        let (body, _) = composed(&Prompt {
            instructions: Some("Moor."),
            ..Prompt::new(&target, "m", items)
        });
        let expected =
            format!(r#"{{"model":"m","messages":[{{"role":"system","content":"Moor."}}{rest}}}"#);
        assert_eq!(body, expected);
    }
}

#[test]
fn items_in_two_pieces_are_written_as_one_array() {
    for (settled, rest, whole) in [
        ("[", "]", "[]"),
        ("[", "{\"a\":1}]", "[{\"a\":1}]"),
        ("[{\"a\":1}", "]", "[{\"a\":1}]"),
        ("[{\"a\":1}", ",{\"b\":2}]", "[{\"a\":1},{\"b\":2}]"),
    ] {
        for instructions in [None, Some("Moor.")] {
            for wire in Wire::KNOWN {
                let target = Target::newest(wire);
                let pieces = Items { settled, rest };
                let [found, expected] = [pieces, Items::from(whole)].map(|items| {
                    composed(&Prompt {
                        instructions,
                        ..Prompt::new(&target, "m", items)
                    })
                });
                assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn what_answers_stands_in_place_of_a_model() {
    let target = Target::newest(Wire::Foundry);
    let settings = Settings {
        extra: Some(raw(r#"{"agent":1,"model":"other","store":true}"#)),
        ..Settings::default()
    };
    let (body, _) = composed(&Prompt {
        settings: &settings,
        answered_by: &[("agent", "{\"name\":\"pilot\"}".to_owned())],
        ..Prompt::new(&target, "m", "[]")
    });
    assert_eq!(
        body,
        r#"{"input":[],"store":true,"agent":{"name":"pilot"}}"#
    );
}

#[test]
fn the_limit_has_the_name_that_the_server_knows() {
    let target = Target::newest(Wire::OpenAiChat);
    let settings = Settings {
        max_output_tokens: Some(7),
        ..Settings::default()
    };
    let (body, _) = composed(&Prompt {
        settings: &settings,
        limit: TokenLimit::MaxTokens,
        ..Prompt::new(&target, "m", "[]")
    });
    assert_eq!(body, r#"{"model":"m","messages":[],"max_tokens":7}"#);
}

#[test]
fn extra_members_win_where_they_stand() {
    let extra = r#"{"seed":1,"m\u006fdel":"other","seed":2.50,"temperature":null}"#;
    let settings = Settings {
        temperature: Some(1.0),
        top_p: Some(0.5),
        extra: Some(raw(extra)),
        ..Settings::default()
    };
    let (body, lost) = with(&Target::newest(Wire::OpenAiChat), &settings);
    assert_eq!(
        body,
        r#"{"model":"other","messages":[],"temperature":null,"top_p":0.5,"seed":2.50}"#
    );
    assert!(lost.is_empty());
    let settings = Settings {
        extra: Some(raw(r#"{"messages":["mine"]}"#)),
        ..Settings::default()
    };
    let target = Target::newest(Wire::Other("sea".into()));
    assert_eq!(
        composed(&Prompt {
            instructions: Some("Moor."),
            settings: &settings,
            ..Prompt::new(&target, "m", "[1]")
        }),
        (
            r#"{"model":"m","messages":["mine"]}"#.to_owned(),
            vec!["target.wire: sea is not known; written as openai-chat".to_owned()]
        )
    );
}

#[test]
fn what_is_continued_is_named_or_lost() {
    let at = |wire: Wire, at: ChainAt| {
        let chain = Some(Chain {
            at,
            calls: Chained::default(),
        });
        let target = Target {
            chain,
            stored: true,
            ..Target::newest(wire)
        };
        with(&target, &Settings::default())
    };
    let response = || ChainAt::Response("resp_1".into());
    let conversation = || ChainAt::Conversation("conv_1".into());
    assert_eq!(
        at(Wire::OpenAiResponses, response()).0,
        r#"{"model":"m","input":[],"previous_response_id":"resp_1","store":true}"#
    );
    assert_eq!(
        at(Wire::Foundry, conversation()).0,
        r#"{"model":"m","input":[],"conversation":"conv_1","store":true}"#
    );
    assert_eq!(
        at(Wire::GeminiInteractions, response()).0,
        r#"{"model":"m","input":[],"previous_interaction_id":"resp_1","store":true}"#
    );
    let lost = |wire, chain| at(wire, chain).1.join("; ");
    assert_eq!(
        lost(Wire::GeminiInteractions, conversation()),
        "target.chain: gemini-interactions does not continue a conversation"
    );
    for wire in [Wire::OpenAiChat, Wire::Anthropic, Wire::Gemini] {
        let expected = format!("target.chain: {wire} does not continue a response");
        assert_eq!(lost(wire, response()), expected);
    }
}

#[test]
fn numbers_that_no_vendor_takes_are_lost() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, 2.5] {
        let settings = Settings {
            temperature: Some(value),
            top_p: Some(value),
            ..Settings::default()
        };
        for wire in [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Gemini] {
            let target = Target::newest(wire);
            let (body, lost) = with(&target, &settings);
            assert_eq!(body, with(&target, &Settings::default()).0);
            assert_eq!(
                lost,
                [
                    format!("settings.temperature: {value} is not between 0 and 2"),
                    format!("settings.top_p: {value} is not between 0 and 1"),
                ]
            );
        }
    }
}

#[test]
fn more_stop_texts_than_a_vendor_takes_are_lost() {
    let settings = Settings {
        stop: (0..7).map(|n| n.to_string()).collect(),
        ..Settings::default()
    };
    for (wire, sent, most) in [
        (Wire::OpenAiChat, r#""stop":["0","1","2","3"]"#, 4),
        (Wire::Gemini, r#""stopSequences":["0","1","2","3","4"]"#, 5),
        (
            Wire::GeminiInteractions,
            r#""stop_sequences":["0","1","2","3","4"]"#,
            5,
        ),
    ] {
        let (body, lost) = with(&Target::newest(wire), &settings);
        assert!(body.contains(sent), "{body}");
        assert_eq!(
            lost,
            [format!("settings.stop: only the first {most} are sent")]
        );
    }
}

#[test]
fn thinking_that_cannot_be_switched_off_is_made_short() {
    let settings = Settings {
        effort: Some(Effort::Off),
        ..Settings::default()
    };
    for (wire, said) in [
        (Wire::Gemini, r#""thinkingLevel":"MINIMAL""#),
        (Wire::GeminiInteractions, r#""thinking_level":"minimal""#),
    ] {
        let (body, lost) = with(&Target::newest(wire), &settings);
        assert!(body.contains(said), "{body}");
        assert_eq!(
            lost,
            ["settings.effort: thinking cannot be switched off, only made short"]
        );
    }
}

fn hosted(family: Family, json: &str) -> ToolDef {
    ToolDef {
        name: family.as_str().to_owned(),
        family,
        vendor: Some(Vendor::item(Wire::OpenAiResponses, raw(json))),
        ..ToolDef::default()
    }
}

#[test]
fn a_tool_that_the_vendor_does_not_run_and_its_choice_are_lost() {
    let patch = hosted(Family::APPLY_PATCH, r#"{"type":"apply_patch"}"#);
    for wire in Wire::KNOWN {
        if matches!(wire, Wire::OpenAiResponses | Wire::Foundry) {
            continue;
        }
        let target = Target::newest(wire.clone());
        let plain = with(&target, &Settings::default()).0;
        for (choice, lost_choice) in [
            (ToolChoice::Required, "choice: there is no tool on offer"),
            (
                ToolChoice::Named("apply-patch".into()),
                "choice: there is no tool 'apply-patch' on offer",
            ),
        ] {
            let (body, lost) = composed(&Prompt {
                tools: std::slice::from_ref(&patch),
                choice: &choice,
                ..Prompt::new(&target, "m", "[]")
            });
            assert_eq!(body, plain);
            let lost_tool = format!("tools[0]: {wire} has no tool apply-patch");
            assert_eq!(lost, [lost_tool.as_str(), lost_choice]);
        }
    }
}

#[test]
fn tools_of_the_vendor_are_offered_in_its_own_words() {
    let search = hosted(
        Family::WEB_SEARCH,
        r#"{"type":"web_search","search_context_size":"low","filters":{"allowed_domains":["tides.example"]},"user_location":{"city":"Brest","country":null}}"#,
    );
    let code = hosted(
        Family::CODE_INTERPRETER,
        r#"{"type":"code_interpreter","container":{"type":"auto"}}"#,
    );
    let offered = [search, code];
    let call = |wire: Wire, choice: &ToolChoice| {
        composed(&Prompt {
            tools: &offered,
            choice,
            ..Prompt::new(&Target::newest(wire), "m", "[]")
        })
    };
    let named = ToolChoice::Named("web-search".into());
    let (body, lost) = call(Wire::Anthropic, &named);
    let tools = concat!(
        r#""tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["tides.example"],"#,
        r#""user_location":{"type":"approximate","city":"Brest"}},"#,
        r#"{"type":"code_execution_20250825","name":"code_execution"}],"#,
        r#""tool_choice":{"type":"tool","name":"web_search"}"#
    );
    assert!(body.contains(tools), "{body}");
    let size = "tools[0].search_context_size: the tool has no such option here";
    assert_eq!(lost, [size]);

    let (body, lost) = call(Wire::Gemini, &named);
    assert!(body.contains(r#""tools":[{"googleSearch":{}},{"codeExecution":{}}]"#));
    let option = |key: &str| format!("tools[0].{key}: the tool has no such option here");
    let options = ["search_context_size", "filters", "user_location"].map(option);
    assert_eq!(lost[..3], options);
    assert_eq!(lost[3], "choice: a call of 'web-search' cannot be demanded");

    for wire in [Wire::OpenAiResponses, Wire::Foundry] {
        let (body, lost) = call(wire, &named);
        assert!(body.contains(r#""search_context_size":"low""#), "{body}");
        assert!(
            body.contains(r#""tool_choice":{"type":"web_search"}"#),
            "{body}"
        );
        assert!(lost.is_empty(), "{lost:?}");
    }
    let (body, lost) = call(Wire::OpenAiChat, &ToolChoice::Auto);
    assert!(!body.contains("tools"));
    assert_eq!(lost.len(), 2);
}

#[test]
fn gemini_is_told_of_its_own_tools_beside_functions() {
    let mut offered = tools();
    offered.push(hosted(Family::WEB_SEARCH, r#"{"type":"web_search"}"#));
    let call = |target: &Target| {
        composed(&Prompt {
            tools: &offered,
            ..Prompt::new(target, "m", "[]")
        })
    };
    let (body, lost) = call(&Target::newest(Wire::Gemini));
    assert!(body.contains(r#"}]},{"googleSearch":{}}]"#), "{body}");
    assert!(body.contains(r#""includeServerSideToolInvocations":true"#));
    assert!(lost.is_empty());
    let (body, lost) = call(&older(Wire::Gemini));
    assert!(!body.contains("googleSearch"));
    assert_eq!(lost, ["tools[1]: gemini has no tool web-search"]);
}

#[test]
fn settings_that_a_vendor_has_no_member_for_are_lost() {
    let settings = Settings {
        summary: true,
        verbosity: Some(Verbosity::Low),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(0.0),
        user: Some("u1".into()),
        service_tier: Some("flex".into()),
        cache_key: Some("k".into()),
        cache_retention: Some("24h".into()),
        betas: vec!["context-1".into()],
        ..Settings::default()
    };
    let lost = |wire: Wire| {
        let (body, lost) = with(&Target::newest(wire), &settings);
        let names = lost.iter().map(|lost| {
            let name = lost.strip_prefix("settings.").unwrap_or(lost);
            name.split(':').next().unwrap_or_default().to_owned()
        });
        (body, names.collect::<Vec<_>>())
    };
    let (body, names) = lost(Wire::OpenAiChat);
    assert_eq!(names, ["summary", "betas"]);
    assert!(body.contains(r#""verbosity":"low","presence_penalty":0.5,"frequency_penalty":0.0,"user":"u1","service_tier":"flex","prompt_cache_key":"k","prompt_cache_retention":"24h""#), "{body}");
    let (body, names) = lost(Wire::OpenAiResponses);
    assert_eq!(names, ["presence_penalty", "betas"]);
    assert!(body.contains(r#""reasoning":{"summary":"auto"},"text":{"verbosity":"low"},"safety_identifier":"u1","service_tier":"flex","prompt_cache_key":"k""#), "{body}");
    let (body, names) = lost(Wire::Anthropic);
    let left = [
        "service_tier",
        "verbosity",
        "presence_penalty",
        "cache_key",
        "cache_retention",
    ];
    assert_eq!(names, left);
    assert!(
        body.contains(r#""thinking":{"type":"adaptive","display":"summarized"}"#),
        "{body}"
    );
    assert!(body.contains(r#""metadata":{"user_id":"u1"}"#), "{body}");
    let (body, names) = lost(Wire::Gemini);
    assert_eq!(
        names,
        ["verbosity", "user", "cache_key", "cache_retention", "betas"]
    );
    assert!(body.contains(r#""presencePenalty":0.5,"frequencyPenalty":0.0,"thinkingConfig":{"includeThoughts":true}"#), "{body}");
    assert!(body.contains(r#""serviceTier":"FLEX""#), "{body}");
}

#[test]
fn a_limit_below_the_least_is_raised_and_said() {
    let settings = Settings {
        max_output_tokens: Some(3),
        ..Settings::default()
    };
    let (body, lost) = with(&Target::newest(Wire::OpenAiResponses), &settings);
    assert!(body.contains(r#""max_output_tokens":16"#));
    assert_eq!(
        lost,
        ["settings.max_output_tokens: 16 is the least, and was sent"]
    );
}

#[test]
fn a_call_may_be_demanded_of_a_model_that_decides_how_much_to_think() {
    let settings = Settings {
        effort: Some(Effort::ExtraHigh),
        ..Settings::default()
    };
    let target = Target {
        thinking: true,
        ..Target::newest(Wire::Anthropic)
    };
    let (body, lost) = everything(&target, &ToolChoice::Required, &settings);
    assert!(body.contains(r#""tool_choice":{"type":"any"}"#), "{body}");
    assert!(
        body.contains(r#""thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}"#),
        "{body}"
    );
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn a_strict_tool_is_one_where_the_vendor_has_them() {
    let strict = |schema: &str| {
        vec![ToolDef {
            name: "get_tide".into(),
            parameters: Some(raw(schema)),
            strict: Some(true),
            ..ToolDef::default()
        }]
    };
    let call = |wire: Wire, tools: &[ToolDef]| {
        composed(&Prompt {
            tools,
            ..Prompt::new(&Target::newest(wire), "m", "[]")
        })
    };
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic] {
        let (body, lost) = call(wire, &strict(CLOSED));
        assert!(
            body.contains(r#""strict":true"#) && lost.is_empty(),
            "{body}"
        );
    }
    let (_, lost) = call(Wire::Gemini, &strict(CLOSED));
    assert_eq!(
        lost,
        ["tools[0].strict: arguments are not held to their schema"]
    );
    let open = r#"{"type":"object","additionalProperties":{"type":"string"}}"#;
    let (body, lost) = call(Wire::Anthropic, &strict(open));
    assert!(!body.contains("strict"));
    assert!(lost[0].starts_with("tools[0].strict: "), "{lost:?}");
}

#[test]
fn a_shape_that_a_vendor_refuses_is_lost() {
    let shaped = |wire: Wire, schema: &str| {
        let settings = Settings {
            answer: answer(schema),
            ..Settings::default()
        };
        with(&Target::newest(wire), &settings).1
    };
    for wire in Wire::KNOWN {
        let lost = shaped(wire.clone(), "true");
        assert_eq!(lost, ["settings.answer: its schema is not an object"]);
    }
    let open = r#"{"type":"object","additionalProperties":{"type":"string"}}"#;
    assert_eq!(
        shaped(Wire::Anthropic, open),
        ["settings.answer: objects of its schema may not allow `additionalProperties`"]
    );
    assert!(shaped(Wire::OpenAiResponses, open).is_empty());
    let not_an_object = Settings {
        extra: Some(raw("[]")),
        ..Settings::default()
    };
    let (_, lost) = with(&Target::newest(Wire::Gemini), &not_an_object);
    assert_eq!(lost, ["settings.extra: not an object"]);
}

#[test]
fn anthropic_gets_schemas_whose_objects_are_closed() {
    for (open, closed) in [
        (
            r#"{"type":"object"}"#,
            r#"{"type":"object","additionalProperties":false}"#,
        ),
        (
            r#"{"properties":{"a":{"type":["object","null"]}}}"#,
            r#"{"properties":{"a":{"type":["object","null"],"additionalProperties":false}},"additionalProperties":false}"#,
        ),
        (
            r#"{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object"}]}}"#,
            r#"{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","additionalProperties":false}]}}"#,
        ),
        (
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}"##,
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","additionalProperties":false}}}"##,
        ),
    ] {
        let settings = Settings {
            answer: answer(open),
            ..Settings::default()
        };
        let (body, lost) = with(&Target::newest(Wire::Anthropic), &settings);
        assert!(body.contains(&format!(r#""schema":{closed}"#)), "{body}");
        assert!(lost.is_empty(), "{lost:?}");
    }
}

#[test]
fn any_json_is_asked_for_where_the_vendor_has_a_word_for_it() {
    let settings = Settings {
        answer: Some(AnswerShape::default()),
        ..Settings::default()
    };
    for (wire, said) in [
        (
            Wire::OpenAiChat,
            r#""response_format":{"type":"json_object"}"#,
        ),
        (
            Wire::OpenAiResponses,
            r#""text":{"format":{"type":"json_object"}}"#,
        ),
        (
            Wire::Gemini,
            r#""generationConfig":{"responseMimeType":"application/json"}"#,
        ),
    ] {
        let (body, lost) = with(&Target::newest(wire), &settings);
        assert!(body.contains(said) && lost.is_empty(), "{body}");
    }
    let (_, lost) = with(&Target::newest(Wire::Anthropic), &settings);
    assert_eq!(lost, ["settings.answer: an answer in JSON needs a schema"]);
}

#[test]
fn a_shape_without_a_fitting_name_gets_one() {
    let name = |name: &str| {
        crate::openai::schema_name(&AnswerShape {
            name: name.into(),
            schema: Some(raw("{}")),
            ..AnswerShape::default()
        })
    };
    assert_eq!(name(""), "answer");
    assert_eq!(name("tide.report é"), "tide_report__");
    assert_eq!(name(&"x".repeat(99)), "x".repeat(64));
}
