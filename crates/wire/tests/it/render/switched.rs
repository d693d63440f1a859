//! Each rule that can be told from a request, switched off in the renderer, is caught by the
//! validator: neither does the renderer uphold it by accident nor does the validator look away.

use std::collections::BTreeSet;

use throughline_model::json::{self, RawJson};
use throughline_model::{
    Body, CallId, Content, Family, Form, Media, MediaKind, MediaSource, Message, Output, Role,
    ToolCall, ToolResult, Wire,
};
use throughline_wire::codec;
use throughline_wire::render::{Chain, ChainAt, Options, Target, render, renderer};
use throughline_wire::validate::{
    Chained, Generation, Issued, Profile, RULES, RuleClass, Violation, validate,
};

use crate::common::decode;

/// A rule, where the renderer upholds it, and a history that needs it.
struct Case {
    rule: &'static str,
    upheld: &'static str,
    target: Target,
    issued: Option<Issued>,
    history: Vec<Message>,
}

fn case(rule: &'static str, upheld: &'static str, wire: Wire, history: Vec<Message>) -> Case {
    Case {
        rule,
        upheld,
        target: Target::newest(wire),
        issued: None,
        history,
    }
}

impl Case {
    fn with(mut self, change: impl FnOnce(&mut Target)) -> Self {
        change(&mut self.target);
        self
    }

    fn issued(mut self, response: &str) -> Self {
        let value = json::parse(response).unwrap();
        self.issued = Some(Issued::default().with_response(&value));
        self
    }

    fn profile(&self) -> Profile {
        let target = &self.target;
        Profile {
            generation: target.generation,
            stored: target.stored,
            thinking: target.thinking,
            same_account: target.same_account,
            issued: self.issued.clone(),
            chained: target.chain.as_ref().map(|chain| chain.calls.clone()),
            ..Profile::newest(target.wire.clone())
        }
    }

    /// What the validator says of what a renderer with these options makes of the history.
    fn violations(&self, options: &Options) -> Vec<Violation> {
        // Nothing is rendered for a format that is not known, so nothing can be refused.
        if renderer(&self.target, options).is_none() {
            return Vec::new();
        }
        let rendered = render(&self.history, &self.target, options);
        let body = rendered.body(&self.target, options);
        validate(&json::parse(&body).unwrap(), &self.profile())
    }
}

/// A history as a vendor said it.
fn said(wire: &Wire, items: &str) -> Vec<Message> {
    decode(codec(wire).unwrap(), &format!("[{items}]")).unwrap()
}

fn hi() -> Message {
    Message::user("hi")
}

fn hello() -> Message {
    Message::new(Role::Assistant, vec![Content::text("hello")])
}

fn asks(id: &str) -> Message {
    let call = ToolCall::function(CallId::natural(id).unwrap(), "moor", "{}");
    Message::new(Role::Assistant, vec![call.into()])
}

fn done(id: &str) -> Content {
    let output = Output::Text("done".into());
    ToolResult::answering(CallId::natural(id).unwrap(), Family::FUNCTION, output).into()
}

fn answers(id: &str) -> Message {
    Message::new(Role::Tool, vec![done(id)])
}

fn picture() -> Content {
    Content::new(Body::Media(Media {
        kind: MediaKind::Image,
        media_type: Some("image/png".into()),
        source: MediaSource::Data("iVBORw0KGgo=".into()),
        name: None,
        transcript: None,
    }))
}

const CALL: &str = r#"{"type":"function_call","call_id":"c","name":"moor","arguments":"{}"}"#;
const THOUGHT: &str =
    r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VhbGVk"}"#;
const SAID: &str = r#"{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]}"#;

fn responses() -> Vec<Case> {
    let wire = Wire::OpenAiResponses;
    let of = |rule, upheld, history| case(rule, upheld, Wire::OpenAiResponses, history);
    let own = |rule, upheld, items: &str| of(rule, upheld, said(&wire, items));
    let long = "c".repeat(70);
    let mut as_user = said(&wire, SAID);
    as_user[0].role = Role::User;
    let spaced = CALL.replace("\"name\"", "\"namespace\":\"harbour\",\"name\"");
    let thought_out = format!("{THOUGHT},{SAID}");
    vec![
        of("O-1", "a round that closes", vec![hi(), asks("c")]),
        of(
            "O-2",
            "a result that nothing asked for",
            vec![hi(), answers("c")],
        ),
        of(
            "O-3",
            "a result that nothing waits for",
            vec![hi(), asks("c"), answers("c"), answers("c")],
        ),
        own("O-4", "item ids", &format!("{SAID},{SAID}")),
        own("O-5", "reasoning and what it led to", THOUGHT),
        own("O-6", "reasoning and what it led to", &thought_out)
            .with(|target| target.same_account = false)
            .issued(&format!("[{thought_out}]")),
        own(
            "O-7",
            "items without a word of ours",
            r#"{"type":"item_reference","id":"msg_9"}"#,
        ),
        own("O-8", "what is sealed", &thought_out).with(|target| target.same_account = false),
        own(
            "O-9",
            "call ids",
            &CALL.replace("\"c\"", &format!("\"{long}\"")),
        ),
        own("O-10", "item ids", &SAID.replace("msg_1", "item_1")),
        own(
            "O-11",
            "envelopes",
            r#"{"type":"message","role":"user","content":"hi","x":1}"#,
        ),
        own(
            "O-12",
            "the vendor's forms",
            r#"{"type":"","id":"x_1","more":1}"#,
        ),
        of("O-13", "the vendor's forms", as_user),
        own(
            "O-14",
            "results of computer calls",
            r#"{"type":"computer_call","call_id":"c","status":"completed","action":{"type":"wait"},"pending_safety_checks":[{"id":"sc_1"}]}"#,
        ),
        own("O-15", "calls of the vendor", &spaced).issued(&format!("[{spaced}]")),
        own(
            "O-16",
            "items without a word of ours",
            &format!(r#"{{"type":"compaction_trigger"}},{SAID}"#),
        ),
        of("S-O1", "every item", vec![hi()]),
        own(
            "S-O2",
            "the vendor's forms",
            r#"{"type":"code_interpreter_call","id":"ci_1","container_id":"k","code":"","outputs":7,"status":"completed"}"#,
        ),
        own(
            "S-O3",
            "roles",
            r#"{"type":"message","role":"critic","content":"hm"}"#,
        ),
        of("S-O4", "the body", vec![hi()]).with(|target| {
            target.chain = Some(Chain {
                at: ChainAt::Response("resp_1".into()),
                calls: Chained::default(),
            });
        }),
    ]
}

fn chat() -> Vec<Case> {
    let wire = Wire::OpenAiChat;
    let of = |rule, upheld, history| case(rule, upheld, Wire::OpenAiChat, history);
    let own = |rule, upheld, items: &str| of(rule, upheld, said(&wire, items));
    let call = |id: &str| {
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"moor","arguments":"{{}}"}}}}]}}"#
        )
    };
    let image = r#"{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}"#;
    let tool =
        |content: &str| format!(r#"{{"role":"tool","tool_call_id":"c","content":{content}}}"#);
    // A result whose form holds more than its content says.
    let mut pictured = said(&wire, &format!("{},{}", call("c"), tool("\"x\"")));
    let result = &mut pictured[1].contents[0];
    if let Body::ToolResult(result) = &mut result.body {
        result.output = Output::None;
    }
    result.vendor.as_mut().unwrap().form =
        Form::Item(RawJson::new(&tool(&format!("[{image}]"))).unwrap());
    let twice = Message::new(Role::Tool, vec![done("c"), done("c")]);
    vec![
        of("C-1", "a round that closes", vec![hi(), asks("c"), hi()]),
        of(
            "C-2",
            "a result that nothing asked for",
            vec![hi(), answers("c")],
        ),
        own(
            "C-3",
            "envelopes",
            r#"{"role":"assistant","content":"x","tool_calls":[]}"#,
        ),
        own("C-4", "call ids", &call(&"c".repeat(50))),
        of("C-5", "the vendor's forms", pictured),
        of("S-C1", "every item", vec![hi()]),
        own(
            "S-C2",
            "the vendor's forms",
            r#"{"role":"user","content":[{"type":"","text":"x"}]}"#,
        ),
        own(
            "S-C3",
            "the vendor's forms",
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"odd"}]}"#,
        ),
        of(
            "S-C4",
            "a result that nothing waits for",
            vec![hi(), asks("c"), twice],
        ),
        own(
            "S-C5",
            "the vendor's forms",
            &format!(r#"{{"role":"assistant","content":[{image}]}}"#),
        ),
    ]
}

fn anthropic() -> Vec<Case> {
    let wire = Wire::Anthropic;
    let of = |rule, upheld, history| case(rule, upheld, Wire::Anthropic, history);
    let model = |blocks: &str| {
        let mut history = vec![hi()];
        history.extend(said(
            &wire,
            &format!(r#"{{"role":"assistant","content":[{blocks}]}}"#),
        ));
        history.push(hi());
        history
    };
    let user = |blocks: &str| said(&wire, &format!(r#"{{"role":"user","content":[{blocks}]}}"#));
    let thought = r#"{"type":"thinking","thinking":"so it is","signature":"c2ln"}"#;
    let unsigned = r#"{"type":"thinking","thinking":"so it is","signature":""}"#;
    let text = r#"{"type":"text","text":"x"}"#;
    let search = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
    let by_program = r#"{"type":"tool_use","id":"c","name":"moor","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_9"}}"#;
    let system = Message::new(Role::System, vec![Content::text("Mind the tide.")]);
    let misplaced = Message::new(Role::User, asks("c").contents);
    vec![
        of("A-1", "a round that closes", vec![hi(), asks("c"), hi()]),
        of(
            "A-2",
            "a result that nothing asked for",
            vec![hi(), answers("c")],
        ),
        of(
            "A-3",
            "a result that nothing waits for",
            vec![hi(), asks("c"), answers("c"), answers("c")],
        ),
        of(
            "A-4",
            "call ids",
            vec![hi(), asks("c"), answers("c"), asks("c"), answers("c")],
        ),
        of("A-5", "results of the vendor", model(found)),
        of("A-6", "calls of the vendor", model(search)),
        of(
            "A-7",
            "call ids",
            model(r#"{"type":"tool_use","id":"a b","name":"moor","input":{}}"#),
        ),
        of("A-8", "what the user says", vec![hi(), asks("c"), hi()]),
        of(
            "A-9",
            "reasoning and what it led to",
            model(&format!("{thought},{text}")),
        )
        .issued(&format!("[{thought}]")),
        of(
            "A-10",
            "what is sealed",
            model(&format!("{unsigned},{text}")),
        ),
        of(
            "A-11",
            "a round that opens",
            vec![hi(), asks("c"), answers("c")],
        )
        .with(|target| {
            target.thinking = true;
            target.generation.thinking_levels = false;
        }),
        of(
            "A-12",
            "texts",
            model(&format!(r#"{{"type":"text","text":""}},{text}"#)),
        ),
        of("A-13", "the end", vec![hi(), hello()]),
        of(
            "A-14",
            "items without a word of ours",
            model(&format!(
                r#"{text},{{"type":"compaction","content":"before"}}"#
            )),
        ),
        of("A-15", "system text", vec![hi(), hello(), system, hi()]),
        of("A-16", "members of blocks", model(by_program)),
        of("A-18", "the beginning", vec![hello(), hi()]),
        of(
            "A-19",
            "members of blocks",
            user(r#"{"type":"text","text":"x","more":1}"#),
        ),
        of("S-A1", "every item", vec![hi()]),
        of(
            "S-A2",
            "roles",
            said(&wire, r#"{"role":"critic","content":"hm"}"#),
        ),
        of(
            "S-A3",
            "the vendor's forms",
            user(r#"{"type":"search_result","title":"t","source":"s","content":7}"#),
        ),
        of(
            "S-A4",
            "the vendor's forms",
            user(r#"{"type":"input_text","text":"x"}"#),
        ),
        of("S-A5", "what the model did", vec![hi(), misplaced]),
    ]
}

fn gemini() -> Vec<Case> {
    let wire = Wire::Gemini;
    let of = |rule, upheld, history| case(rule, upheld, Wire::Gemini, history);
    let own = |rule, upheld, items: &str| of(rule, upheld, said(&wire, items));
    let model = |parts: &str| {
        format!(
            r#"{{"role":"user","parts":[{{"text":"hi"}}]}},{{"role":"model","parts":[{parts}]}},{{"role":"user","parts":[{{"text":"hi"}}]}}"#
        )
    };
    let call = r#"{"functionCall":{"id":"x1","name":"moor","args":{}},"thoughtSignature":"c2ln"}"#;
    let combined = r#"{"toolCall":{"id":"t1","toolType":"GOOGLE_SEARCH"}},{"toolResponse":{"id":"t1","toolType":"GOOGLE_SEARCH"}}"#;
    let misplaced = Message::new(Role::User, asks("c").contents);
    let id = CallId::natural("c").unwrap();
    let pictured = ToolResult::answering(id, Family::FUNCTION, Output::Parts(vec![picture()]));
    let pictured = Message::new(Role::Tool, vec![pictured.into()]);
    vec![
        of("G-1", "a round that closes", vec![hi(), asks("c"), hi()]),
        of("G-2", "a round that opens", vec![hi(), hello(), asks("c")]),
        of(
            "G-3",
            "a result that nothing asked for",
            vec![hi(), answers("c")],
        ),
        own("G-4", "ids of the vendor", &model(call))
            .with(|target| target.generation = Generation::OLDER),
        own("G-4", "results of the vendor's calls", &model(call)),
        of("G-5", "a round that opens", vec![hi(), asks("c")]),
        own(
            "G-6",
            "signatures",
            &model(r#"{"text":"x","thoughtSignature":"n o"}"#),
        ),
        of("G-7", "the end", vec![hi(), hello()]),
        own("G-8", "texts", &model(r#"{"text":""},{"text":"x"}"#)),
        of("G-9", "a round that closes", vec![hi(), asks("c")]),
        own("G-10", "the vendor's forms", &model(combined))
            .with(|target| target.generation.tool_combination = false),
        of("S-G1", "every item", vec![hi()]),
        own(
            "S-G2",
            "roles",
            r#"{"role":"critic","parts":[{"text":"hm"}]}"#,
        ),
        own(
            "S-G3",
            "the vendor's forms",
            &model(r#"{"executableCode":{"code":"x"}}"#),
        ),
        of("S-G4", "what the model did", vec![hi(), misplaced]),
        of(
            "S-G5",
            "results with media",
            vec![hi(), asks("c"), pictured],
        )
        .with(|target| target.generation.result_media = false),
    ]
}

fn interactions() -> Vec<Case> {
    let wire = Wire::GeminiInteractions;
    let of = |rule, upheld, history| case(rule, upheld, Wire::GeminiInteractions, history);
    let own = |rule, upheld, items: &str| of(rule, upheld, said(&wire, items));
    vec![
        own(
            "I-1",
            "call ids",
            r#"{"type":"function_call","name":"moor","arguments":{}}"#,
        ),
        of(
            "I-2",
            "a result that nothing asked for",
            vec![hi(), answers("c")],
        ),
        of("I-3", "a round that closes", vec![hi(), asks("c")]),
        of("S-I1", "every item", vec![hi()]),
        own(
            "S-I2",
            "the vendor's forms",
            r#"{"type":"google_search_call","id":"g1"}"#,
        ),
    ]
}

fn foundry() -> Vec<Case> {
    let wire = Wire::Foundry;
    let own = |rule, upheld, items: &str| case(rule, upheld, Wire::Foundry, said(&wire, items));
    let output = r#"{"type":"function_call_output","call_id":"c","output":"ok"}"#;
    let azure = r#"{"type":"azure_function_call","id":"azf_1","call_id":"a","name":"book","arguments":"{}","status":"completed"},{"type":"azure_function_call_output","id":"azfo_1","call_id":"a","name":"book","output":"ok","status":"completed"}"#;
    let made = CALL.replace("\"name\"", "\"created_by\":{},\"name\"");
    vec![
        own("F-1", "envelopes", r#"{"role":"user","content":"hi"}"#),
        own("F-2", "items that come in answers only", azure),
        own(
            "F-3",
            "what is sealed",
            &format!("{THOUGHT},{CALL},{output},{SAID}"),
        ),
        own(
            "F-4",
            "what the service has",
            &format!("{CALL},{output},{SAID}"),
        )
        .with(|target| {
            target.chain = Some(Chain {
                at: ChainAt::Response("resp_1".into()),
                calls: Chained {
                    open: BTreeSet::new(),
                    answered: ["c".to_owned()].into(),
                },
            });
        }),
        own("F-6", "members of items", &format!("{made},{output}")),
        case(
            "S-1",
            "the renderer of a format",
            Wire::Other("new-wire".into()),
            vec![hi()],
        ),
    ]
}

#[test]
fn each_rule_switched_off_is_caught() {
    let cases = [
        responses(),
        chat(),
        anthropic(),
        gemini(),
        interactions(),
        foundry(),
    ];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    let mut problems = Vec::new();
    for case in &cases {
        let (rule, wire) = (case.rule, &case.target.wire);
        let upheld = case.violations(&Options::default());
        if !upheld.is_empty() {
            problems.push(format!("{rule} for {wire}: {upheld:?}"));
        }
        let found = case.violations(&Options::without(rule));
        match found.iter().find(|found| found.rule == rule) {
            Some(found) => {
                let (where_, path) = (case.upheld, &found.path);
                println!("table {rule:<5} | {where_:<32} | caught: {rule} at {path}");
            }
            None => problems.push(format!("{rule} for {wire} is not caught: {found:?}")),
        }
    }
    let covered: BTreeSet<&str> = cases.iter().map(|case| case.rule).collect();
    let checked = |class: &RuleClass| *class != RuleClass::Transport;
    let wanted: BTreeSet<&str> = RULES
        .iter()
        .filter(|rule| checked(&rule.class))
        .map(|rule| rule.name)
        .collect();
    println!(
        "table {} rules of {} switched off and caught",
        covered.len(),
        wanted.len()
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(covered, wanted);
}
