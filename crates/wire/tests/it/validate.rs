//! The validators: for each rule a history that is accepted and one that is refused, with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use throughline_model::json::{self, RawJson, Value};
use throughline_testkit::{Rng, generate, mutate, property};
use throughline_wire::Wire;
use throughline_wire::validate::{
    Chained, Generation, Issued, Profile, RULES, Rule, RuleClass, Violation, rule, validate,
};

/// A rule, whom to ask, and what is accepted and what is refused.
struct Case {
    rule: &'static str,
    profile: Profile,
    accepted: String,
    refused: String,
    /// Where; several places stand apart by a space.
    path: &'static str,
}

fn check(text: &str, profile: &Profile) -> Vec<Violation> {
    let request = json::parse(text).expect("a case is JSON");
    validate(&request, profile)
}

fn places(violations: &[Violation]) -> Vec<(&str, &str)> {
    violations
        .iter()
        .map(|violation| (violation.rule, violation.path.as_str()))
        .collect()
}

fn issued(text: &str) -> Issued {
    Issued::default().with_response(&json::parse(text).expect("a response is JSON"))
}

fn chained(open: &[&str], answered: &[&str]) -> Option<Chained> {
    let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    Some(Chained {
        open: set(open),
        answered: set(answered),
    })
}

const HI: &str = r#"{"type":"message","role":"user","content":"hi"}"#;
const SAID: &str =
    r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}"#;

fn call(id: &str) -> String {
    format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}"#)
}

fn output(id: &str) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"ok"}}"#)
}

fn reasoning(id: &str, seal: &str) -> String {
    format!(r#"{{"type":"reasoning","id":"{id}","summary":[],"encrypted_content":"{seal}"}}"#)
}

fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|item| item.as_ref().to_owned())
        .collect();
    format!("[{}]", items.join(","))
}

fn responses_cases() -> Vec<Case> {
    let plain = Profile::newest(Wire::OpenAiResponses);
    let with = |rule, profile: &Profile, accepted: String, refused: String, path| Case {
        rule,
        profile: profile.clone(),
        accepted,
        refused,
        path,
    };
    let case = |rule, accepted, refused, path| with(rule, &plain, accepted, refused, path);
    let stored = Profile {
        stored: true,
        ..plain.clone()
    };
    let other = Profile {
        same_account: false,
        ..plain.clone()
    };
    let chain = Profile {
        chained: chained(&["call_a"], &["call_b"]),
        ..plain.clone()
    };
    let led = Profile {
        issued: Some(issued(
            r#"{"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"},
                {"type":"message","id":"msg_1","role":"assistant","content":[]}]}"#,
        )),
        ..plain.clone()
    };
    let program = Profile {
        issued: Some(issued(
            r#"[{"type":"program","id":"prog_1","call_id":"call_p","code":"c","fingerprint":"fp"}]"#,
        )),
        ..plain.clone()
    };
    let message = |id: &str| {
        format!(
            r#"{{"type":"message","role":"assistant","content":"x","id":"{id}","status":"completed"}}"#
        )
    };
    let user = |parts: &str| format!(r#"[{{"role":"user","content":[{parts}]}}]"#);
    let long = "c".repeat(65);
    let computer = |checks: &str| {
        let call = r#"{"type":"computer_call","call_id":"call_c","status":"completed","action":{"type":"wait"},"pending_safety_checks":[{"id":"sc_1"}]}"#;
        let output = format!(
            r#"{{"type":"computer_call_output","call_id":"call_c","output":{{"type":"computer_screenshot","file_id":"f"}}{checks}}}"#
        );
        list([HI, call, &output])
    };
    let fingerprint = |print: &str| {
        list([
            HI,
            &format!(
                r#"{{"type":"program","id":"prog_1","call_id":"call_p","code":"c","fingerprint":"{print}"}}"#
            ),
        ])
    };
    vec![
        case("O-1", list([HI, &call("call_1"), &output("call_1")]), list([HI, &call("call_1")]), "input[1]"),
        case(
            "O-1",
            list([HI, &call("call_1"), &call("call_2"), SAID, &output("call_2"), &output("call_1")]),
            list([HI, &call("call_1"), &call("call_2"), &output("call_2")]),
            "input[1]",
        ),
        // An id that is used twice is paired by occurrence.
        case(
            "O-1",
            list([&call("call_1"), &output("call_1"), &call("call_1"), &output("call_1")]),
            list([&call("call_1"), &output("call_1"), &call("call_1")]),
            "input[2]",
        ),
        case(
            "O-1",
            r#"[{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}","async":true}]"#.to_owned(),
            r#"[{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}","async":false}]"#.to_owned(),
            "input[0]",
        ),
        case(
            "O-1",
            r#"[{"type":"shell_call","call_id":"call_1","action":{"commands":[]},"environment":{"type":"container_reference","container_id":"c"}},
                {"type":"tool_search_call","call_id":null,"execution":"server","arguments":{}}]"#.to_owned(),
            r#"[{"type":"shell_call","call_id":"call_1","action":{"commands":[]},"environment":{"type":"local"}}]"#.to_owned(),
            "input[0]",
        ),
        with("O-1", &chain, list([output("call_a")]), list([HI]), "input"),
        case("O-2", list([&call("call_1"), &output("call_1")]), list([HI, &output("call_1")]), "input[1].call_id"),
        case(
            "O-2",
            r#"[{"type":"function_call_output","call_id":null,"name":"news","output":"x"},
                {"type":"function_call_output","name":"news","output":"x"}]"#.to_owned(),
            r#"[{"type":"function_call_output","call_id":"call_9","name":"news","output":"x"}]"#.to_owned(),
            "input[0].call_id",
        ),
        case(
            "O-2",
            format!(r#"{{"previous_response_id":"resp_1","input":[{}]}}"#, output("call_x")),
            format!(r#"{{"input":[{}]}}"#, output("call_x")),
            "input[0].call_id",
        ),
        with(
            "O-2",
            &chain,
            format!(r#"{{"conversation":"conv_1","input":[{}]}}"#, output("call_a")),
            format!(r#"{{"conversation":"conv_1","input":[{},{}]}}"#, output("call_a"), output("call_x")),
            "input[1].call_id",
        ),
        case(
            "O-3",
            r#"[{"type":"local_shell_call","call_id":"call_1","status":"completed","action":{}},
                {"type":"function_call_output","call_id":"call_1","output":"x"}]"#.to_owned(),
            r#"[{"type":"custom_tool_call","call_id":"call_1","name":"f","input":""},
                {"type":"function_call_output","call_id":"call_1","output":"x"}]"#.to_owned(),
            "input[1].type",
        ),
        case(
            "O-3",
            list([&call("call_1"), &output("call_1")]),
            list([&call("call_1"), &output("call_1"), &output("call_1")]),
            "input[2].call_id",
        ),
        case(
            "O-3",
            list([
                call("call_1"),
                r#"{"type":"custom_tool_call","call_id":"call_1","name":"f","input":""}"#.to_owned(),
                r#"{"type":"custom_tool_call_output","call_id":"call_1","output":"x"}"#.to_owned(),
                output("call_1"),
            ]),
            list([
                call("call_1"),
                r#"{"type":"custom_tool_call_output","call_id":"call_1","output":"x"}"#.to_owned(),
            ]),
            "input[1].type",
        ),
        with(
            "O-3",
            &chain,
            list([output("call_a")]),
            list([output("call_a"), output("call_b")]),
            "input[1].call_id",
        ),
        case("O-4", list([message("msg_1"), message("msg_2")]), list([message("msg_1"), message("msg_1")]), "input[1].id"),
        case("O-5", list([HI, &reasoning("rs_1", "gA"), SAID]), list([HI, &reasoning("rs_1", "gA")]), "input[1]"),
        case(
            "O-5",
            list([HI, &reasoning("rs_1", "gA"), &call("call_1"), &output("call_1")]),
            list([HI, &reasoning("rs_1", "gA"), HI, SAID]),
            "input[1]",
        ),
        with("O-6", &led, list([&reasoning("rs_1", "gA"), &message("msg_1")]), list([message("msg_1")]), "input[0]"),
        case(
            "O-7",
            format!(r#"{{"store":true,"input":[{{"type":"item_reference","id":"rs_1"}},{SAID}]}}"#),
            format!(r#"{{"store":false,"input":[{{"type":"item_reference","id":"rs_1"}},{SAID}]}}"#),
            "input[0]",
        ),
        with(
            "O-7",
            &stored,
            r#"[{"id":"rs_1"}]"#.to_owned(),
            r#"{"store":false,"input":[{"id":"rs_1"}]}"#.to_owned(),
            "input[0]",
        ),
        case(
            "O-7",
            list([&reasoning("rs_1", "gA"), SAID]),
            list([r#"{"type":"reasoning","id":"rs_1","summary":[]}"#, SAID]),
            "input[0]",
        ),
        with("O-8", &other, list([HI]), list([&reasoning("rs_1", "gA"), SAID]), "input[0].encrypted_content"),
        with(
            "O-8",
            &led,
            list([&reasoning("rs_1", "gA"), SAID]),
            list([&reasoning("rs_1", "gB"), SAID]),
            "input[0].encrypted_content",
        ),
        case(
            "O-9",
            list([&call(&long[..64]), &output(&long[..64])]),
            r#"[{"type":"tool_search_call","call_id":"","arguments":{},"execution":"server"}]"#.to_owned(),
            "input[0].call_id",
        ),
        case(
            "O-9",
            list([call("é@ /"), output("é@ /")]),
            format!(r#"[{{"type":"program","id":"prog_1","call_id":"{long}","code":"","fingerprint":""}}]"#),
            "input[0].call_id",
        ),
        case("O-10", list([message("msg_1")]), list([message("item_1")]), "input[0].id"),
        with("O-10", &led, list([&reasoning("rs_1", "gA"), &message("msg_1")]), list([message("msg_2")]), "input[0].id"),
        case(
            "O-11",
            r#"[{"role":"assistant","content":"x","phase":"commentary"}]"#.to_owned(),
            r#"[{"role":"user","content":"x","phase":"commentary"}]"#.to_owned(),
            "input[0].phase",
        ),
        case("O-11", list([HI]), r#"[{"role":"user","content":"x","name":"eve"}]"#.to_owned(), "input[0].name"),
        case(
            "O-12",
            r#"[{"type":"configuration_update"},{"role":"user","content":"x"}]"#.to_owned(),
            r#"[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]"#.to_owned(),
            "input[0]",
        ),
        case("O-12", list([HI]), r#"[{"type":"memory_search_call"}]"#.to_owned(), "input[0]"),
        case("O-12", list([HI]), r#"[{"text":"x","id":"y","z":1}]"#.to_owned(), "input[0]"),
        case(
            "O-13",
            user(r#"{"type":"input_text","text":"x"},{"type":"input_audio"}"#),
            user(r#"{"type":"input_text","text":"x"},{"type":"output_text","text":"x"}"#),
            "input[0].content[1]",
        ),
        case(
            "O-13",
            list([SAID]),
            r#"[{"role":"assistant","content":[{"type":"input_text","text":"x"}]}]"#.to_owned(),
            "input[0].content[0]",
        ),
        case(
            "O-14",
            computer(r#","acknowledged_safety_checks":[{"id":"sc_1"}]"#),
            computer(""),
            "input[2].acknowledged_safety_checks",
        ),
        with("O-15", &program, fingerprint("fp"), fingerprint("fq"), "input[1].fingerprint"),
        case(
            "O-16",
            list([HI, r#"{"type":"compaction_trigger"}"#]),
            list([r#"{"type":"compaction_trigger"}"#, HI]),
            "input[0]",
        ),
        case("S-O1", r#"{"input":"hi"}"#.to_owned(), r#"{"input":7}"#.to_owned(), "input"),
        case("S-O1", r#"{"prompt":{"id":"p"}}"#.to_owned(), r#"{"model":"m"}"#.to_owned(), "input"),
        case("S-O1", list([HI]), list([HI, "null"]), "input[1]"),
        case(
            "S-O2",
            list([&call("call_1"), &output("call_1")]),
            list([r#"{"type":"function_call","call_id":"call_1","arguments":"{}"}"#, &output("call_1")]),
            "input[0].name",
        ),
        case(
            "S-O2",
            list([&call("call_1"), r#"{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":""}]}"#]),
            list([&call("call_1"), r#"{"type":"function_call_output","call_id":"call_1","output":[{"type":"text","text":""}]}"#]),
            "input[1].output[0]",
        ),
        case("S-O2", list([HI]), r#"[{"type":"web_search_call","status":"completed","action":"search"}]"#.to_owned(), "input[0].action"),
        case("S-O3", list([HI]), r#"[{"role":"tool","content":"x"}]"#.to_owned(), "input[0].role"),
        case("S-O3", list([HI]), r#"[{"role":"user","content":null}]"#.to_owned(), "input[0].content"),
        case(
            "S-O4",
            format!(r#"{{"previous_response_id":"resp_1","conversation":null,"input":[{HI}]}}"#),
            format!(r#"{{"previous_response_id":"resp_1","conversation":"conv_1","input":[{HI}]}}"#),
            "conversation",
        ),
    ]
}

fn foundry_cases() -> Vec<Case> {
    let plain = Profile::newest(Wire::Foundry);
    let chain = Profile {
        chained: chained(&[], &["call_b"]),
        ..plain.clone()
    };
    let case = |rule, accepted, refused, path| Case {
        rule,
        profile: plain.clone(),
        accepted,
        refused,
        path,
    };
    vec![
        case(
            "F-1",
            list([HI]),
            r#"[{"role":"user","content":"hi"}]"#.to_owned(),
            "input[0]",
        ),
        case(
            "F-2",
            list([HI, r#"{"type":"memory_search_call","results":null}"#]),
            list([
                HI,
                r#"{"type":"bing_grounding_call","id":"b","call_id":"c","arguments":"{}","status":"completed"}"#,
            ]),
            "input[1]",
        ),
        case(
            "F-2",
            list([HI]),
            list([r#"{"type":"a2a_preview_call_output"}"#]),
            "input[0]",
        ),
        case(
            "F-2",
            list([HI]),
            list([r#"{"type":"workflow_action"}"#]),
            "input[0]",
        ),
        case(
            "F-3",
            list([
                HI,
                SAID,
                HI,
                &reasoning("rs_2", "gB"),
                &call("c"),
                &output("c"),
            ]),
            list([
                HI,
                &reasoning("rs_1", "gA"),
                SAID,
                HI,
                &reasoning("rs_2", "gB"),
                &call("c"),
                &output("c"),
            ]),
            "input[1]",
        ),
        Case {
            rule: "F-4",
            profile: chain,
            accepted: list([HI]),
            refused: list([HI, &call("call_b"), &output("call_b")]),
            path: "input[1]",
        },
        case(
            "F-6",
            list([&call("call_1"), &output("call_1")]),
            list([
                call("call_1").replace("\"name\"", "\"response_id\":\"r\",\"name\""),
                output("call_1"),
            ]),
            "input[0].response_id",
        ),
        case(
            "F-6",
            list([HI]),
            r#"[{"type":"message","role":"user","content":"x","created_by":"me"}]"#.to_owned(),
            "input[0].created_by",
        ),
        // All rules of OpenAI hold here too.
        case("O-1", list([HI]), list([HI, &call("call_1")]), "input[1]"),
        case(
            "O-12",
            list([HI]),
            list([HI, r#"{"type":"tool_use"}"#]),
            "input[1]",
        ),
    ]
}

fn chat_cases() -> Vec<Case> {
    let case = |rule, accepted: &[&str], refused: &[&str], path| Case {
        rule,
        profile: Profile::newest(Wire::OpenAiChat),
        accepted: list(accepted),
        refused: list(refused),
        path,
    };
    let hi = r#"{"role":"user","content":"hi"}"#;
    let said = r#"{"role":"assistant","content":"hello"}"#;
    let calls = |ids: &[&str]| {
        let call = |id: &&str| {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#
            )
        };
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":{}}}"#,
            list(ids.iter().map(call))
        )
    };
    let tool = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"ok"}}"#);
    let (a, b, ab) = (tool("a"), tool("b"), calls(&["a", "b"]));
    let (one, none) = (calls(&["a"]), calls(&[]));
    let long = "c".repeat(41);
    let (fits, over) = (calls(&[&long[..40]]), calls(&[&long]));
    let (fits_tool, over_tool) = (tool(&long[..40]), tool(&long));
    let image = r#"[{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]"#;
    let picture = |role: &str| format!(r#"{{"role":"{role}","content":{image}}}"#);
    let custom = |body: &str| {
        format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"a","type":"custom","custom":{body}}}]}}"#
        )
    };
    vec![
        case(
            "C-1",
            &[hi, &ab, &b, &a, hi],
            &[hi, &ab, &a, hi],
            "messages[1].tool_calls",
        ),
        case(
            "C-1",
            &[hi, &one, &a],
            &[hi, &one],
            "messages[1].tool_calls",
        ),
        case("C-2", &[hi, &one, &a], &[hi, said, &a], "messages[2].role"),
        case(
            "C-2",
            &[hi, &one, &a],
            &[hi, &one, &a, &b],
            "messages[3].tool_call_id",
        ),
        case("C-3", &[hi, said], &[hi, &none], "messages[1].tool_calls"),
        case(
            "C-5",
            &[
                hi,
                &one,
                r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":""}]}"#,
            ],
            &[hi, &one, &a.replace("\"ok\"", image)],
            "messages[2].content[0]",
        ),
        case("S-C1", &[hi], &[hi, "[]"], "messages[1]"),
        case(
            "S-C2",
            &[hi],
            &[r#"{"role":"model","content":"x"}"#],
            "messages[0].role",
        ),
        case(
            "S-C2",
            &[hi],
            &[r#"{"role":"user"}"#],
            "messages[0].content",
        ),
        case(
            "S-C2",
            &[hi],
            &[r#"{"role":"user","content":{}}"#],
            "messages[0].content",
        ),
        case(
            "S-C2",
            &[hi, &one, &a],
            &[hi, r#"{"role":"tool","content":"x"}"#],
            "messages[1].tool_call_id",
        ),
        case(
            "S-C3",
            &[hi, &custom(r#"{"name":"f","input":""}"#), &a],
            &[hi, &custom(r#"{"name":"f"}"#), &a],
            "messages[1].tool_calls[0].custom.input",
        ),
        case(
            "S-C3",
            &[hi, &one, &a],
            &[
                hi,
                &one.replace("\"type\":\"function\"", "\"type\":\"web\""),
                &a,
            ],
            "messages[1].tool_calls[0].type",
        ),
        case(
            "S-C4",
            &[hi, &one, &a],
            &[hi, &one, &a, &a],
            "messages[3].tool_call_id",
        ),
        case(
            "S-C5",
            &[&picture("user")],
            &[&picture("system")],
            "messages[0].content[0]",
        ),
        case(
            "C-4",
            &[hi, &fits, &fits_tool],
            &[hi, &over, &over_tool],
            "messages[1].tool_calls[0].id messages[2].tool_call_id",
        ),
    ]
}

fn anthropic_cases() -> Vec<Case> {
    let plain = Profile::newest(Wire::Anthropic);
    let older = Profile {
        generation: Generation::OLDER,
        ..plain.clone()
    };
    let thinks = Profile {
        thinking: true,
        generation: Generation {
            thinking_levels: false,
            ..Generation::NEWEST
        },
        ..plain.clone()
    };
    let other = Profile {
        same_account: false,
        ..plain.clone()
    };
    let signed = Profile {
        issued: Some(issued(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"sig1"},
                {"type":"thinking","thinking":"u","signature":"sig2"},
                {"type":"compaction","content":"sum","signature":"sig3"},
                {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}"#,
        )),
        ..plain.clone()
    };
    let chain = Profile {
        chained: chained(&["toolu_a"], &[]),
        ..plain.clone()
    };
    let with = |rule, profile: &Profile, accepted: &[&str], refused: &[&str], path| Case {
        rule,
        profile: profile.clone(),
        accepted: list(accepted),
        refused: list(refused),
        path,
    };
    let case = |rule, accepted: &[&str], refused: &[&str], path| {
        with(rule, &plain, accepted, refused, path)
    };
    let hi = r#"{"role":"user","content":"hi"}"#;
    let said = r#"{"role":"assistant","content":"hello"}"#;
    let rule = r#"{"role":"system","content":"be brief"}"#;
    let assistant =
        |blocks: &[&str]| format!(r#"{{"role":"assistant","content":{}}}"#, list(blocks));
    let user = |blocks: &[&str]| format!(r#"{{"role":"user","content":{}}}"#, list(blocks));
    let use_ = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#);
    let result =
        |id: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}"#);
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let search = |id: &str| {
        format!(r#"{{"type":"server_tool_use","id":"{id}","name":"web_search","input":{{}}}}"#)
    };
    let found = |id: &str| {
        format!(r#"{{"type":"web_search_tool_result","tool_use_id":"{id}","content":[]}}"#)
    };
    let thought = |text: &str, seal: &str| {
        format!(r#"{{"type":"thinking","thinking":"{text}","signature":"{seal}"}}"#)
    };
    let (t1, r1, t2, r2) = (
        use_("toolu_1"),
        result("toolu_1"),
        use_("toolu_2"),
        result("toolu_2"),
    );
    let (call1, answer1) = (assistant(&[&t1]), user(&[&r1]));
    let (call12, answer12) = (assistant(&[&t1, &t2]), user(&[&r2, &r1]));
    let (s1, f1, x) = (search("srvtoolu_1"), found("srvtoolu_1"), text("x"));
    let looked = assistant(&[&s1, &f1, &x]);
    let program =
        r#"{"type":"server_tool_use","id":"srvtoolu_p","name":"code_execution","input":{}}"#;
    let made = r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_p"}}"#;
    let body = |rest: &str, messages: &[&str]| {
        format!(
            r#"{{"model":"m","max_tokens":9{rest},"messages":{}}}"#,
            list(messages)
        )
    };
    let summary = r#"{"type":"compaction","content":"sum","signature":"sig3"}"#;
    let unsigned = r#"{"type":"compaction","content":"sum"}"#;
    let from_body = |rule, accepted: String, refused: String, path| Case {
        rule,
        profile: plain.clone(),
        accepted,
        refused,
        path,
    };
    vec![
        case(
            "A-1",
            &[hi, &call12, &answer12],
            &[hi, &call12, &answer1],
            "messages.1",
        ),
        case("A-1", &[hi, &call1, &answer1], &[hi, &call1], "messages.1"),
        // The service joins neighbours of one role.
        case(
            "A-1",
            &[hi, &call1, said, &answer1, &user(&[&x])],
            &[hi, &call1, hi],
            "messages.1",
        ),
        case(
            "A-1",
            &[
                hi,
                &assistant(&[&t1]),
                &assistant(&[&t2]),
                &user(&[&r1]),
                &user(&[&r2]),
            ],
            &[hi, &assistant(&[&t1]), &assistant(&[&t2]), &user(&[&r1])],
            "messages.2",
        ),
        with(
            "A-1",
            &chain,
            &[&user(&[&result("toolu_a")])],
            &[hi],
            "messages.0",
        ),
        case(
            "A-2",
            &[hi, &call1, &answer1],
            &[hi, said, &answer1],
            "messages.2.content.0",
        ),
        case(
            "A-2",
            &[hi, &call1, &answer1],
            &[hi, &call1, &user(&[&r1, &r2])],
            "messages.2.content.1",
        ),
        from_body(
            "A-2",
            body(
                r#","thread":{"type":"continue","previous_message_id":"msg_1"}"#,
                &[&answer1],
            ),
            body("", &[&answer1]),
            "messages.0.content.0",
        ),
        case(
            "A-3",
            &[hi, &call1, &answer1],
            &[hi, &call1, &user(&[&r1, &r1])],
            "messages.2.content.1",
        ),
        case(
            "A-4",
            &[hi, &call12, &answer12],
            &[hi, &assistant(&[&t1, &t1]), &answer1],
            "messages.1.content.1",
        ),
        case(
            "A-5",
            &[hi, &looked, hi],
            &[hi, &assistant(&[&f1, &x]), hi],
            "messages.1.content.0",
        ),
        case(
            "A-5",
            &[hi, &looked, hi],
            &[
                hi,
                &assistant(&[
                    &s1,
                    &f1,
                    &f1.replace("web_search_tool_result", "mcp_tool_result")
                        .replace("[]", "\"\""),
                    &x,
                ]),
                hi,
            ],
            "messages.1.content.2",
        ),
        case(
            "A-6",
            &[hi, &assistant(&[&x, &s1])],
            &[hi, &assistant(&[&x, &s1]), hi],
            "messages.1",
        ),
        case(
            "A-6",
            &[
                hi,
                &assistant(&[&s1, &t1]),
                &answer1,
                &assistant(&[&f1, &x]),
                hi,
            ],
            &[hi, &assistant(&[&s1, &t1]), &answer1, said, hi],
            "messages.1",
        ),
        case(
            "A-6",
            &[hi, &assistant(&[&s1, &t1]), &answer1],
            &[hi, &assistant(&[&s1]), said, hi],
            "messages.1",
        ),
        case(
            "A-7",
            &[hi, &looked, hi],
            &[hi, &assistant(&[&search("toolu_1")])],
            "messages.1.content.0.id",
        ),
        case(
            "A-7",
            &[hi, &call1, &answer1],
            &[hi, &assistant(&[&x, &s1.replace("web_search", "dig")])],
            "messages.1.content.1.name",
        ),
        case(
            "A-7",
            &[hi, &call1, &answer1],
            &[hi, &assistant(&[&use_("a.b")]), &user(&[&result("a.b")])],
            "messages.1.content.0.id messages.2.content.0.tool_use_id",
        ),
        with(
            "A-7",
            &signed,
            &[hi, &assistant(&[&s1])],
            &[hi, &assistant(&[&search("srvtoolu_2")])],
            "messages.1.content.0.id",
        ),
        case(
            "A-8",
            &[hi, &call1, &user(&[&r1, &x])],
            &[hi, &call1, &user(&[&x, &r1])],
            "messages.2.content.1",
        ),
        case(
            "A-8",
            &[hi, &call1, &answer1],
            &[
                hi,
                &call1,
                &answer1,
                &assistant(&[&x, &result("toolu_9")]),
                hi,
            ],
            "messages.3.content.1",
        ),
        with(
            "A-9",
            &signed,
            &[hi, &assistant(&[&thought("t", "sig1"), &x]), hi],
            &[hi, &assistant(&[&thought("T", "sig1"), &x]), hi],
            "messages.1.content.0",
        ),
        with(
            "A-9",
            &signed,
            &[
                hi,
                &assistant(&[&thought("t", "sig1"), &thought("u", "sig2"), &x]),
                hi,
            ],
            &[
                hi,
                &assistant(&[&thought("u", "sig2"), &thought("t", "sig1"), &x]),
                hi,
            ],
            "messages.1.content.1",
        ),
        case(
            "A-10",
            &[hi, &assistant(&[&thought("", "sig"), &x]), hi],
            &[
                hi,
                &assistant(&[r#"{"type":"thinking","thinking":"t"}"#, &x]),
                hi,
            ],
            "messages.1.content.0",
        ),
        with(
            "A-10",
            &other,
            &[hi, said, hi],
            &[hi, &assistant(&[&thought("t", "sig1"), &x]), hi],
            "messages.1.content.0",
        ),
        with(
            "A-10",
            &signed,
            &[hi, said, hi],
            &[hi, &assistant(&[&thought("t", "sig9"), &x]), hi],
            "messages.1.content.0",
        ),
        with(
            "A-10",
            &signed,
            &[hi, &assistant(&[&thought("t", "sig1"), &x]), hi, said, hi],
            &[hi, &assistant(&[&thought("T", "sig1"), &x]), hi, said, hi],
            "messages.1.content.0",
        ),
        with(
            "A-11",
            &thinks,
            &[hi, &assistant(&[&thought("t", "s"), &t1]), &answer1],
            &[hi, &assistant(&[&x, &t1]), &answer1],
            "messages.1.content.0.type",
        ),
        // One thought may stand before several steps.
        with(
            "A-11",
            &thinks,
            &[
                hi,
                &assistant(&[&thought("t", "s"), &t1]),
                &answer1,
                &assistant(&[&t2]),
                &user(&[&r2]),
            ],
            &[
                hi,
                &assistant(&[&t1]),
                &answer1,
                &assistant(&[&t2]),
                &user(&[&r2]),
            ],
            "messages.3.content.0.type",
        ),
        with(
            "A-11",
            &thinks,
            &[hi, &call1, &answer1, said, hi],
            &[hi, &call1, &answer1],
            "messages.1.content.0.type",
        ),
        from_body(
            "A-11",
            body(
                r#","thinking":{"type":"adaptive"}"#,
                &[hi, &call1, &answer1],
            ),
            body(r#","thinking":{"type":"enabled"}"#, &[hi, &call1, &answer1]),
            "messages.1.content.0.type",
        ),
        from_body(
            "A-11",
            body(
                r#","thinking":{"type":"disabled"}"#,
                &[hi, &call1, &answer1],
            ),
            body(r#","thinking":{"type":"enabled"}"#, &[hi, &call1, &answer1]),
            "messages.1.content.0.type",
        ),
        case(
            "A-12",
            &[&user(&[&x])],
            &[&user(&[&x, &text("")])],
            "messages.0.content.1",
        ),
        case(
            "A-12",
            &[hi, said, hi],
            &[hi, r#"{"role":"assistant","content":""}"#, hi],
            "messages.1",
        ),
        with(
            "A-12",
            &older,
            &[hi, r#"{"role":"assistant","content":[]}"#],
            &[hi, r#"{"role":"assistant","content":"so "}"#],
            "messages.1.content",
        ),
        case(
            "A-12",
            &[
                hi,
                &call1,
                &user(&[r#"{"type":"tool_result","tool_use_id":"toolu_1"}"#]),
            ],
            &[
                hi,
                &call1,
                &user(&[
                    r#"{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":""}]}"#,
                ]),
            ],
            "messages.2.content.0.content.0",
        ),
        from_body(
            "A-12",
            body(r#","system":[{"type":"text","text":"x"}]"#, &[hi]),
            body(r#","system":[{"type":"text","text":""}]"#, &[hi]),
            "system.0",
        ),
        case("A-13", &[hi, said, hi, rule], &[hi, said], "messages.1"),
        case(
            "A-14",
            &[&assistant(&[summary]), hi],
            &[hi, &assistant(&[summary, &x]), hi],
            "messages.1.content.0",
        ),
        case(
            "A-14",
            &[hi, &assistant(&[unsigned, &x]), hi],
            &[hi, &assistant(&[&x, unsigned]), hi],
            "messages.1.content.1",
        ),
        case(
            "A-14",
            &[&user(&[summary, &x])],
            &[&user(&[summary, &x, unsigned])],
            "messages.0.content.2",
        ),
        case(
            "A-14",
            &[&user(&[
                r#"{"type":"compaction","content":null}"#,
                &x,
                r#"{"type":"compaction"}"#,
            ])],
            &[&user(&[&x, summary])],
            "messages.0.content.1",
        ),
        with(
            "A-14",
            &signed,
            &[&assistant(&[summary]), hi],
            &[&assistant(&[&summary.replace("sum", "SUM")]), hi],
            "messages.0.content.0",
        ),
        case("A-15", &[hi, rule, said, hi], &[rule, hi], "messages.0"),
        case("A-15", &[hi, rule], &[hi, said, rule], "messages.2"),
        case(
            "A-15",
            &[hi, &assistant(&[&s1, &f1]), rule, said, hi],
            &[hi, rule, hi],
            "messages.1",
        ),
        with("A-15", &older, &[hi], &[hi, rule], "messages.1"),
        from_body(
            "A-16",
            body(
                r#","container":"c""#,
                &[hi, &assistant(&[program, made]), &answer1],
            ),
            body("", &[hi, &assistant(&[program, made]), &answer1]),
            "container",
        ),
        case("A-18", &[hi, said, hi], &[said, hi], "messages.0.role"),
        from_body(
            "A-19",
            body(r#","top_k":1"#, &[hi]),
            body(r#","seed":1"#, &[hi]),
            "seed",
        ),
        case(
            "A-19",
            &[hi],
            &[r#"{"role":"user","content":"x","name":"eve"}"#],
            "messages.0.name",
        ),
        case(
            "A-19",
            &[&user(&[&x])],
            &[&user(&[r#"{"type":"text","text":"x","bogus":1}"#])],
            "messages.0.content.0.bogus",
        ),
        from_body(
            "S-A1",
            body("", &[hi]),
            r#"{"model":"m"}"#.to_owned(),
            "messages",
        ),
        case("S-A1", &[hi], &[hi, "1"], "messages.1"),
        case(
            "S-A2",
            &[hi],
            &[r#"{"role":"tool","content":"x"}"#],
            "messages.0.role",
        ),
        case("S-A2", &[hi], &[r#"{"role":"user"}"#], "messages.0.content"),
        case(
            "S-A3",
            &[hi, &call1, &answer1],
            &[hi, &assistant(&[&t1.replace("{}", "null")]), &answer1],
            "messages.1.content.0.input",
        ),
        case(
            "S-A4",
            &[&user(&[&x])],
            &[&user(&[r#"{"type":"input_text","text":"x"}"#])],
            "messages.0.content.0.type",
        ),
        case(
            "S-A4",
            &[&user(&[r#"{"type":"brand_new"}"#])],
            &[&user(&[r#"{"text":"x"}"#])],
            "messages.0.content.0.type",
        ),
        case(
            "S-A5",
            &[hi, &looked, hi],
            &[&user(&[&s1, &f1])],
            "messages.0.content.0 messages.0.content.1",
        ),
    ]
}

fn gemini_cases() -> Vec<Case> {
    let plain = Profile::newest(Wire::Gemini);
    let older = Profile {
        generation: Generation::OLDER,
        ..plain.clone()
    };
    let known = Profile {
        issued: Some(issued(
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{}},"thoughtSignature":"c2ln"}]}}]}"#,
        )),
        ..plain.clone()
    };
    let with = |rule, profile: &Profile, accepted: &[&str], refused: &[&str], path| Case {
        rule,
        profile: profile.clone(),
        accepted: list(accepted),
        refused: list(refused),
        path,
    };
    let case = |rule, accepted: &[&str], refused: &[&str], path| {
        with(rule, &plain, accepted, refused, path)
    };
    let hi = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
    let said = r#"{"role":"model","parts":[{"text":"hello"}]}"#;
    let model = |parts: &[&str]| format!(r#"{{"role":"model","parts":{}}}"#, list(parts));
    let user = |parts: &[&str]| format!(r#"{{"role":"user","parts":{}}}"#, list(parts));
    let call = |id: &str| format!(r#"{{"functionCall":{{"id":"{id}","name":"f","args":{{}}}}}}"#);
    let sign = |part: &str, seal: &str| {
        format!(
            r#"{},"thoughtSignature":"{seal}"}}"#,
            &part[..part.len() - 1]
        )
    };
    let result =
        |id: &str| format!(r#"{{"functionResponse":{{"id":"{id}","name":"f","response":{{}}}}}}"#);
    let (c1, c2, r1, r2) = (call("c1"), call("c2"), result("c1"), result("c2"));
    let s1 = sign(&c1, "c2ln");
    let (one, answer) = (model(&[&s1]), user(&[&r1]));
    let (two, both) = (model(&[&s1, &c2]), user(&[&r2, &r1]));
    let bare = r#"{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"}"#;
    let bare_result = r#"{"functionResponse":{"name":"f","response":{}}}"#;
    let search = r#"{"toolCall":{"id":"t1","toolType":"URL_CONTEXT","args":{}}}"#;
    let media = r#"{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"aa"}}]}}"#;
    vec![
        case(
            "G-1",
            &[hi, &two, &both],
            &[hi, &two, &answer],
            "contents[2]",
        ),
        case(
            "G-1",
            &[hi, &one, &answer, hi],
            &[hi, &one, hi],
            "contents[1]",
        ),
        case("G-2", &[hi, &one, &answer], &[&one, &answer], "contents[0]"),
        case(
            "G-2",
            &[
                hi,
                &one,
                &answer,
                &model(&[&sign(&c2, "c2ln")]),
                &user(&[&r2]),
            ],
            &[hi, said, &one, &answer],
            "contents[2]",
        ),
        case(
            "G-3",
            &[hi, &one, &answer, said, hi],
            &[hi, said, hi, &answer],
            "contents[3]",
        ),
        case(
            "G-4",
            &[hi, &one, &answer],
            &[hi, &one, &user(&[bare_result])],
            "contents[2].parts[0].functionResponse.id",
        ),
        case(
            "G-4",
            &[hi, &model(&[bare]), &user(&[bare_result])],
            &[hi, &model(&[bare]), &answer],
            "contents[2].parts[0].functionResponse.id",
        ),
        with(
            "G-4",
            &older,
            &[hi, &model(&[bare]), &user(&[bare_result])],
            &[
                hi,
                &model(&[r#"{"functionCall":{"name":"f","id":"c1"}}"#]),
                &user(&[bare_result]),
            ],
            "contents[1].parts[0].functionCall.id",
        ),
        with(
            "G-4",
            &known,
            &[hi, &one, &answer],
            &[hi, &model(&[&sign(&c2, "c2ln")]), &user(&[&r2])],
            "contents[1].parts[0].functionCall.id contents[2].parts[0].functionResponse.id",
        ),
        case(
            "G-5",
            &[hi, &one, &answer],
            &[hi, &model(&[&c1]), &answer],
            "contents[1].parts[0]",
        ),
        case(
            "G-5",
            &[hi, &model(&[&c1]), &answer, said, hi],
            &[hi, &model(&[&s1, &sign(&c2, "c2ln")]), &both],
            "contents[1].parts[1]",
        ),
        case(
            "G-5",
            &[
                hi,
                &model(&[r#"{"function_call":{"name":"f"},"thought_signature":"c2ln"}"#]),
                &user(&[bare_result]),
            ],
            &[
                hi,
                &one,
                &answer,
                &model(&[r#"{"function_call":{"name":"f"}}"#]),
                &user(&[bare_result]),
            ],
            "contents[3].parts[0]",
        ),
        case(
            "G-6",
            &[
                hi,
                &model(&[&sign(&c1, "skip_thought_signature_validator")]),
                &answer,
            ],
            &[hi, &model(&[&sign(&c1, "made up")]), &answer],
            "contents[1].parts[0].thoughtSignature",
        ),
        with(
            "G-6",
            &known,
            &[hi, &one, &answer],
            &[hi, &model(&[&sign(&c1, "bWFkZQ==")]), &answer],
            "contents[1].parts[0].thoughtSignature",
        ),
        case("G-7", &[hi, &one, &answer], &[hi, said], "contents[1]"),
        case("G-7", &[hi, said, hi], &[hi, &one], "contents[1]"),
        case(
            "G-8",
            &[
                hi,
                &model(&[r#"{"text":"","thoughtSignature":"c2ln"}"#]),
                hi,
            ],
            &[hi, &model(&[r#"{"text":""}"#]), hi],
            "contents[1].parts[0]",
        ),
        case(
            "G-8",
            &[hi],
            &[hi, r#"{"role":"user","parts":[]}"#],
            "contents[1]",
        ),
        case(
            "G-8",
            &[&user(&[r#"{"brandNew":{}}"#])],
            &[&user(&[r#"{"text":"x"}"#, r#"{"thought":true}"#])],
            "contents[0].parts[1]",
        ),
        case(
            "G-9",
            &[hi, &one, &answer],
            &[hi, &one, &user(&[&r1.replace("\"f\"", "\"c1\"")])],
            "contents[2].parts[0].functionResponse.name",
        ),
        case(
            "G-9",
            &[hi, &one, &answer],
            &[hi, &one, &user(&[&r1.replace("\"name\":\"f\",", "")])],
            "contents[2].parts[0].functionResponse.name",
        ),
        case(
            "G-10",
            &[hi, &model(&[search]), hi],
            &[hi, &model(&[&search.replace("\"id\":\"t1\",", "")]), hi],
            "contents[1].parts[0].toolCall",
        ),
        with(
            "G-10",
            &older,
            &[hi],
            &[hi, &model(&[search]), hi],
            "contents[1].parts[0].toolCall",
        ),
        with(
            "G-10",
            &known,
            &[hi],
            &[hi, &model(&[search]), hi],
            "contents[1].parts[0].toolCall",
        ),
        case("S-G1", &[hi], &[hi, "null"], "contents[1]"),
        case(
            "S-G1",
            &[hi],
            &[r#"{"role":"user","parts":{}}"#],
            "contents[0].parts",
        ),
        case(
            "S-G2",
            &[r#"{"parts":[{"text":"hi"}]}"#],
            &[r#"{"role":"system","parts":[{"text":"hi"}]}"#],
            "contents[0].role",
        ),
        case(
            "S-G2",
            &[hi, &one, &answer.replace("user", "function")],
            &[&hi.replace("user", "function")],
            "contents[0].role",
        ),
        case(
            "S-G3",
            &[hi],
            &[&user(&[r#"{"text":"x","fileData":{"fileUri":"u"}}"#])],
            "contents[0].parts[0]",
        ),
        case(
            "S-G3",
            &[hi, &one, &answer],
            &[hi, &one, &user(&[&r1.replace("{}", "\"ok\"")])],
            "contents[2].parts[0].functionResponse.response",
        ),
        case(
            "S-G4",
            &[hi, &one, &answer],
            &[&user(&[&s1])],
            "contents[0].parts[0]",
        ),
        case(
            "S-G4",
            &[hi, &one, &answer],
            &[hi, &one, &model(&[&r1]), hi],
            "contents[2].parts[0]",
        ),
        with(
            "S-G5",
            &Profile {
                generation: Generation {
                    call_signatures: true,
                    ..Generation::OLDER
                },
                ..plain.clone()
            },
            &[hi, &model(&[bare]), &user(&[bare_result])],
            &[hi, &model(&[bare]), &user(&[media])],
            "contents[2].parts[0].functionResponse.parts",
        ),
    ]
}

fn interactions_cases() -> Vec<Case> {
    let plain = Profile::newest(Wire::GeminiInteractions);
    let case = |rule, accepted: String, refused: String, path| Case {
        rule,
        profile: plain.clone(),
        accepted,
        refused,
        path,
    };
    let call = r#"{"type":"function_call","id":"a","name":"f","arguments":{}}"#;
    let result = r#"{"type":"function_result","call_id":"a","result":"ok"}"#;
    let code = r#"{"type":"code_execution_call","id":"a","arguments":{}}"#;
    let chain = Profile {
        chained: chained(&["b"], &[]),
        ..plain.clone()
    };
    vec![
        case(
            "I-1",
            list([call, result]),
            list([code.replace("\"id\":\"a\",", "")]),
            "input[0].id",
        ),
        case(
            "I-1",
            list([call, result]),
            list([call, result, &result.replace("\"a\"", "\"\"")]),
            "input[2].call_id",
        ),
        case(
            "I-2",
            list([call, result]),
            list([result]),
            "input[0].call_id",
        ),
        case(
            "I-2",
            list([code]),
            list([code, result]),
            "input[1].call_id",
        ),
        case(
            "I-2",
            format!(r#"{{"previous_interaction_id":"i","input":[{result}]}}"#),
            format!(r#"{{"input":[{result}]}}"#),
            "input[0].call_id",
        ),
        case(
            "I-3",
            list([call, result]),
            list([call, result, result]),
            "input[2].call_id",
        ),
        case(
            "I-3",
            list([call, call, result, result]),
            list([call, call, result]),
            "input[1]",
        ),
        Case {
            rule: "I-3",
            profile: chain,
            accepted: list([result.replace("\"a\"", "\"b\"")]),
            refused: list([r#"{"type":"user_input","content":[]}"#]),
            path: "input",
        },
        case(
            "S-I1",
            r#"{"input":"hi"}"#.to_owned(),
            r#"{"input":1}"#.to_owned(),
            "input",
        ),
        case(
            "S-I1",
            list([call, result]),
            list([call, result, "7"]),
            "input[2]",
        ),
        case(
            "S-I2",
            list([call, result]),
            list([&call.replace("{}", "\"{}\""), result]),
            "input[0].arguments",
        ),
    ]
}

fn cases() -> Vec<Case> {
    let mut cases = responses_cases();
    cases.extend(foundry_cases());
    cases.extend(chat_cases());
    cases.extend(anthropic_cases());
    cases.extend(gemini_cases());
    cases.extend(interactions_cases());
    cases.push(Case {
        rule: "S-1",
        profile: Profile::newest(Wire::Other("cohere".into())),
        accepted: String::new(),
        refused: "[]".to_owned(),
        path: "",
    });
    cases
}

#[test]
fn every_rule_accepts_and_refuses_at_its_place() {
    let cases = cases();
    let mut wrong = Vec::new();
    for case in &cases {
        let Case {
            rule,
            profile,
            accepted,
            refused,
            path,
        } = case;
        if !accepted.is_empty() {
            let found = check(accepted, profile);
            if !found.is_empty() {
                wrong.push(format!("{rule} accepts {accepted}, but {found:?}"));
            }
        }
        let found = check(refused, profile);
        let expected: Vec<_> = path.split(' ').map(|path| (*rule, path)).collect();
        if places(&found) != expected {
            wrong.push(format!("{rule} refuses {refused}, but {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("table rules: {} cases", cases.len());
}

#[test]
fn every_rule_that_is_checked_has_a_case() {
    let tested: BTreeSet<&str> = cases().iter().map(|case| case.rule).collect();
    let (mut history, mut profile, mut transport) = (0, 0, 0);
    for Rule { name, class, .. } in RULES {
        match class {
            RuleClass::History => history += 1,
            RuleClass::NeedsProfile(_) => profile += 1,
            RuleClass::Transport => transport += 1,
        }
        let checked = *class != RuleClass::Transport;
        assert_eq!(tested.contains(name), checked, "{name}");
    }
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len(), "each name stands once");
    println!("table rules: {history} history, {profile} profile, {transport} transport");
}

/// The table as it stands in the documentation.
fn table() -> String {
    let mut out = String::new();
    let mut title = "";
    for rule in RULES {
        let section = match rule.name.trim_start_matches("S-").chars().next() {
            Some('O') => "OpenAI Responses",
            Some('C') => "OpenAI Chat Completions",
            Some('A') => "Anthropic Messages",
            Some('G') => "Gemini generateContent",
            Some('I') => "Gemini Interactions",
            Some('F') => "Azure Foundry",
            _ => "Any format",
        };
        if section != title {
            title = section;
            out += &format!(
                "\n## {title}\n\n| rule | class | what it says | not seen | the vendor's words |\n\
                 | --- | --- | --- | --- | --- |\n"
            );
        }
        let class = match rule.class {
            RuleClass::History => "history".to_owned(),
            RuleClass::NeedsProfile(field) => format!("needs profile field `{}`", field.as_str()),
            RuleClass::Transport => "transport, not checked".to_owned(),
        };
        let also: Vec<String> = rule
            .fields
            .iter()
            .map(|field| format!("`{}`", field.as_str()))
            .collect();
        let also = if also.is_empty() {
            String::new()
        } else {
            format!("; more with {}", also.join(", "))
        };
        let words = rule.error.unwrap_or_default();
        let words = words
            .replace("{path}", "…")
            .replace("{items}", "…")
            .replace("{item}", "…");
        let words = if words.is_empty() || words.starts_with('`') || words.starts_with("400") {
            words
        } else {
            format!("`` {words} ``")
        };
        out += &format!(
            "| {} | {class}{also} | {} | {} | {words} |\n",
            rule.name,
            rule.says,
            rule.unseen.unwrap_or_default()
        );
    }
    out
}

#[test]
fn the_documentation_shows_the_same_rules() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let page = std::fs::read_to_string(path).expect("docs/rules.md is there");
    let table = table();
    assert!(
        page.ends_with(&table),
        "docs/rules.md must end with:\n{table}"
    );
}

#[test]
fn violations_carry_the_vendors_words() {
    let text = |text: &str, wire| {
        let found = check(text, &Profile::newest(wire));
        found[0].vendor_text.clone().unwrap_or_default()
    };
    assert_eq!(
        text(&list([call("call_7")]), Wire::OpenAiResponses),
        "No tool output found for function call call_7."
    );
    assert_eq!(
        text(
            r#"[{"role":"assistant","content":[{"type":"text","text":"x"}]},{"role":"user","content":"x"}]"#,
            Wire::Anthropic
        ),
        "messages: first message must use the \"user\" role"
    );
    let calls = r#"[{"role":"user","content":"x"},
        {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}},{"type":"tool_use","id":"toolu_2","name":"f","input":{}}]},
        {"role":"user","content":"x"}]"#;
    assert_eq!(
        text(calls, Wire::Anthropic),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: \
         toolu_1, toolu_2. Each `tool_use` block must have a corresponding `tool_result` block in \
         the next message."
    );
    let id = "c".repeat(116);
    let long = format!(
        r#"[{{"type":"program","id":"prog_1","call_id":"{id}","code":"","fingerprint":""}}]"#
    );
    assert_eq!(
        text(&long, Wire::OpenAiResponses),
        "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, \
         but got a string with length 116 instead."
    );
    let bad = r#"[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a.b","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a.b"}]}]"#;
    assert_eq!(
        text(bad, Wire::Anthropic),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    );
    let older = Profile {
        generation: Generation::OLDER,
        ..Profile::newest(Wire::Gemini)
    };
    let found = check(
        r#"[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]"#,
        &older,
    );
    assert_eq!(
        found[0].vendor_text.as_deref(),
        Some(
            "Invalid JSON payload received. Unknown name \"id\" at \
             'contents[1].parts[0].function_call': Cannot find field."
        )
    );
    for case in cases() {
        for violation in check(&case.refused, &case.profile) {
            let words = violation.vendor_text.clone().unwrap_or_default();
            assert!(
                !words.contains('{') || words.contains("{}"),
                "{violation:?}"
            );
            assert!(!violation.message.is_empty());
            let mut json = String::new();
            violation.write_json(&mut json);
            assert!(json::parse(&json).is_ok(), "{json}");
        }
    }
}

#[test]
fn older_models_take_a_prefill_and_unsigned_calls() {
    let older = |wire| Profile {
        generation: Generation::OLDER,
        ..Profile::newest(wire)
    };
    let prefill = r#"[{"role":"user","content":"x"},{"role":"assistant","content":"Well"}]"#;
    assert_eq!(check(prefill, &older(Wire::Anthropic)), []);
    let unsigned = r#"[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]"#;
    assert_eq!(check(unsigned, &older(Wire::Gemini)), []);
}

/// One example of the catalogue that may be sent.
struct Example {
    wire: Wire,
    tag: String,
    role: String,
    call_id: Option<String>,
    json: String,
}

/// The project's own catalogue, and the one beside the project if it is there.
fn examples() -> Vec<Example> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let own = root.join("tests/fixtures/catalogue/examples.json");
    let shared = root.join("../../../shared/wire/examples.json");
    let mut found = read_examples(&std::fs::read_to_string(own).expect("a fixture is readable"));
    if let Ok(text) = std::fs::read_to_string(shared) {
        found.extend(read_examples(&text));
    }
    found
}

fn read_examples(text: &str) -> Vec<Example> {
    let catalogue = json::parse(text).expect("the catalogue is JSON");
    let string = |row: &Value<'_>, key: &str| {
        let found = row.get(key).and_then(Value::as_str);
        found.map(std::borrow::Cow::into_owned).unwrap_or_default()
    };
    let rows = catalogue
        .as_array()
        .expect("the catalogue is a list")
        .iter();
    rows.filter(|row| string(row, "direction") != "response")
        .map(|row| {
            let wire = match (
                string(row, "provider").as_str(),
                string(row, "api").as_str(),
            ) {
                ("openai", "chat") => Wire::OpenAiChat,
                ("openai", _) => Wire::OpenAiResponses,
                ("anthropic", _) => Wire::Anthropic,
                ("gemini", "interactions") => Wire::GeminiInteractions,
                ("gemini", _) => Wire::Gemini,
                ("foundry", _) => Wire::Foundry,
                other => Wire::Other(format!("{other:?}").into()),
            };
            let example = row.get("example").expect("a row has an example");
            let path = string(row, "call_id_path");
            let keys: Vec<&str> = path.split('/').skip(1).collect();
            let call_id = (!keys.is_empty()).then(|| example.at(&keys)).flatten();
            Example {
                wire,
                tag: string(row, "tag"),
                role: string(row, "role"),
                call_id: call_id
                    .and_then(Value::as_str)
                    .map(std::borrow::Cow::into_owned),
                json: RawJson::of(example).get().to_owned(),
            }
        })
        .collect()
}

/// A piece of history: messages or items that stand on their own after any other piece.
struct Piece {
    wire: Wire,
    profile: Profile,
    json: Vec<String>,
    /// Where it must stand.
    place: Place,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    First,
    Any,
    Last,
}

fn item_piece(example: &Example, wire: &Wire, all: &[Example]) -> Piece {
    let half = |role: &str| {
        let pair = |other: &&Example| {
            other.wire == Wire::OpenAiResponses
                && other.role == role
                && other.call_id == example.call_id
        };
        all.iter().find(pair).map(|other| other.json.clone())
    };
    let own = Some(example.json.clone());
    let halves = match (example.role.as_str(), &example.call_id) {
        ("call", Some(_)) => [own, half("output")],
        ("output", Some(_)) => [half("call"), own],
        _ => [own, (example.tag == "reasoning").then(|| SAID.to_owned())],
    };
    let mut profile = Profile::newest(wire.clone());
    profile.stored = example.tag == "item_reference";
    let place = match example.tag.as_str() {
        "compaction_trigger" => Place::Last,
        _ => Place::Any,
    };
    let json = [HI.to_owned()]
        .into_iter()
        .chain(halves.into_iter().flatten());
    Piece {
        wire: wire.clone(),
        profile,
        json: json.collect(),
        place,
    }
}

fn chat_piece(example: &Example) -> Piece {
    let calls =
        |call: &str| format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#);
    let id = example.call_id.clone().unwrap_or_default();
    let (call, result) = if example.tag == "tool" {
        let call = format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#
        );
        (calls(&call), example.json.clone())
    } else {
        let result = format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"ok"}}"#);
        (calls(&example.json), result)
    };
    let hi = r#"{"role":"user","content":"hi"}"#.to_owned();
    Piece {
        wire: Wire::OpenAiChat,
        profile: Profile::newest(Wire::OpenAiChat),
        json: vec![hi, call, result],
        place: Place::Any,
    }
}

fn anthropic_piece(example: &Example) -> Piece {
    let message =
        |role: &str, blocks: &[&str]| format!(r#"{{"role":"{role}","content":{}}}"#, list(blocks));
    let hi = message("user", &[r#"{"type":"text","text":"hi"}"#]);
    let said = r#"{"type":"text","text":"hello"}"#;
    let id = example.call_id.clone().unwrap_or_default();
    let own = example.json.as_str();
    let mut place = Place::Any;
    let json = match example.tag.as_str() {
        "tool_use" => {
            let result = format!(r#"{{"type":"tool_result","tool_use_id":"{id}"}}"#);
            vec![
                hi,
                message("assistant", &[own]),
                message("user", &[&result]),
            ]
        }
        "tool_result" => {
            let call = format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#);
            vec![hi, message("assistant", &[&call]), message("user", &[own])]
        }
        "server_tool_use" => {
            let result =
                format!(r#"{{"type":"web_search_tool_result","tool_use_id":"{id}","content":[]}}"#);
            vec![hi, message("assistant", &[own, &result, said])]
        }
        "mcp_tool_use" => {
            let result = format!(r#"{{"type":"mcp_tool_result","tool_use_id":"{id}"}}"#);
            vec![hi, message("assistant", &[own, &result, said])]
        }
        "mcp_tool_result" => {
            let call = format!(
                r#"{{"type":"mcp_tool_use","id":"{id}","name":"f","server_name":"s","input":{{}}}}"#
            );
            vec![hi, message("assistant", &[&call, own, said])]
        }
        tag if tag.ends_with("_tool_result") => {
            let name = match tag.trim_end_matches("_tool_result") {
                "tool_search" => "tool_search_tool_regex",
                name => name,
            };
            let call =
                format!(r#"{{"type":"server_tool_use","id":"{id}","name":"{name}","input":{{}}}}"#);
            vec![hi, message("assistant", &[&call, own, said])]
        }
        "tool_addition" => vec![hi, message("system", &[own]), message("assistant", &[said])],
        "container_upload" => vec![message("user", &[own])],
        "compaction" => {
            place = Place::First;
            vec![message("assistant", &[own]), hi]
        }
        _ => vec![hi, message("assistant", &[own, said])],
    };
    Piece {
        wire: Wire::Anthropic,
        profile: Profile::newest(Wire::Anthropic),
        json,
        place,
    }
}

fn gemini_piece(example: &Example) -> Piece {
    let content = |role: &str, part: &str| format!(r#"{{"role":"{role}","parts":[{part}]}}"#);
    let hi = content("user", r#"{"text":"hi"}"#);
    let own = example.json.as_str();
    let value = json::parse(own).expect("an example is JSON");
    let name = |key: &str| {
        value
            .at(&[key, "name"])
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let id = match &example.call_id {
        Some(id) => format!(r#""id":"{id}","#),
        None => String::new(),
    };
    let json = match example.tag.as_str() {
        "functionCall" => {
            let name = name("functionCall");
            let result =
                format!(r#"{{"functionResponse":{{{id}"name":"{name}","response":{{}}}}}}"#);
            vec![hi, content("model", own), content("user", &result)]
        }
        "functionResponse" => {
            let name = name("functionResponse");
            let call =
                format!(r#"{{"functionCall":{{{id}"name":"{name}"}},"thoughtSignature":"c2ln"}}"#);
            vec![hi, content("model", &call), content("user", own)]
        }
        _ => vec![hi, content("model", own)],
    };
    let after = [content("model", r#"{"text":"hello"}"#)];
    Piece {
        wire: Wire::Gemini,
        profile: Profile::newest(Wire::Gemini),
        json: json.into_iter().chain(after).collect(),
        place: Place::Any,
    }
}

fn interactions_piece(example: &Example, all: &[Example]) -> Piece {
    let half = |role: &str| {
        let pair = |other: &&Example| {
            other.wire == Wire::GeminiInteractions
                && other.role == role
                && other.call_id == example.call_id
        };
        all.iter()
            .find(pair)
            .expect("a pair has two halves")
            .json
            .clone()
    };
    Piece {
        wire: Wire::GeminiInteractions,
        profile: Profile::newest(Wire::GeminiInteractions),
        json: vec![half("call"), half("output")],
        place: Place::Any,
    }
}

/// Every example that may be sent, each with what belongs to it.
fn pieces() -> Vec<Piece> {
    let all = examples();
    let mut pieces = Vec::new();
    let mut unknown = Vec::new();
    for example in &all {
        pieces.push(match &example.wire {
            Wire::OpenAiResponses | Wire::Foundry => item_piece(example, &example.wire, &all),
            Wire::OpenAiChat => chat_piece(example),
            Wire::Anthropic => anthropic_piece(example),
            Wire::Gemini => gemini_piece(example),
            Wire::GeminiInteractions => interactions_piece(example, &all),
            Wire::Other(_) => {
                unknown.push(example.wire.clone());
                continue;
            }
        });
        // Foundry takes what OpenAI takes.
        if example.wire == Wire::OpenAiResponses {
            pieces.push(item_piece(example, &Wire::Foundry, &all));
        }
    }
    assert_eq!(unknown, [], "every format has its histories");
    pieces
}

/// The last words of a history: the user's.
fn ending(wire: &Wire) -> Option<&'static str> {
    match wire {
        Wire::Anthropic | Wire::OpenAiChat => Some(r#"{"role":"user","content":"and?"}"#),
        Wire::Gemini => Some(r#"{"role":"user","parts":[{"text":"and?"}]}"#),
        Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions | Wire::Other(_) => None,
    }
}

fn history(pieces: &[&Piece]) -> String {
    let items = pieces
        .iter()
        .flat_map(|piece| piece.json.iter().map(String::as_str));
    let end = pieces.first().and_then(|piece| ending(&piece.wire));
    list(items.chain(end))
}

fn body(wire: &Wire, messages: &str) -> String {
    match wire {
        Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions => {
            format!(r#"{{"model":"m","input":{messages}}}"#)
        }
        Wire::Gemini => format!(r#"{{"contents":{messages}}}"#),
        Wire::Anthropic | Wire::OpenAiChat | Wire::Other(_) => {
            format!(r#"{{"model":"m","messages":{messages}}}"#)
        }
    }
}

#[test]
fn histories_of_examples_are_accepted() {
    let pieces = pieces();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for piece in &pieces {
        let messages = history(&[piece]);
        for text in [body(&piece.wire, &messages), messages] {
            assert_eq!(check(&text, &piece.profile), [], "{} {text}", piece.wire);
        }
        *counts.entry(piece.wire.as_str()).or_default() += 1;
    }
    println!("table histories of examples: {counts:?}");
}

#[test]
fn pieces_of_history_are_accepted_in_any_order() {
    let pieces = pieces();
    property("pieces of history in any order", 600, |rng, size| {
        let wire = rng.pick(&Wire::KNOWN);
        let mut chosen: Vec<&Piece> = pieces.iter().filter(|piece| piece.wire == *wire).collect();
        rng.shuffle(&mut chosen);
        // Ids must not come twice, so one of each kind of pair.
        let mut seen = BTreeSet::new();
        chosen.retain(|piece| {
            let mut ids = ids(&piece.json);
            // Only one can be first, and one last.
            match piece.place {
                Place::First => ids.insert("first".to_owned()),
                Place::Last => ids.insert("last".to_owned()),
                Place::Any => false,
            };
            let is_new = ids.is_disjoint(&seen);
            seen.extend(ids);
            is_new
        });
        chosen.truncate(1 + size / 4);
        chosen.sort_by_key(|piece| match piece.place {
            Place::First => 0,
            Place::Any => 1,
            Place::Last => 2,
        });
        let profile = Profile {
            stored: chosen.iter().any(|piece| piece.profile.stored),
            ..Profile::newest(wire.clone())
        };
        let text = history(&chosen);
        // Sealed reasoning of an older turn is refused on Azure hosts.
        let found: Vec<Violation> = check(&text, &profile)
            .into_iter()
            .filter(|violation| violation.rule != "F-3")
            .collect();
        if found.is_empty() {
            Ok(())
        } else {
            Err(format!("{text}: {found:?}"))
        }
    });
}

/// The ids of a piece: of items and of calls.
fn ids(items: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for key in ["\"id\":\"", "\"call_id\":\"", "\"tool_use_id\":\""] {
        for item in items {
            let after = item.split(key).skip(1);
            found.extend(
                after
                    .filter_map(|rest| rest.split('"').next())
                    .map(str::to_owned),
            );
        }
    }
    found
}

fn profiles(rng: &mut Rng) -> Profile {
    Profile {
        generation: *rng.pick(&[Generation::NEWEST, Generation::OLDER]),
        stored: rng.bool(),
        thinking: rng.bool(),
        same_account: rng.bool(),
        issued: rng
            .bool()
            .then(|| issued(r#"[{"type":"thinking","signature":"x","id":"y"}]"#)),
        chained: if rng.bool() {
            chained(&["call_1"], &["call_2"])
        } else {
            None
        },
        ..Profile::newest(rng.pick(&Wire::KNOWN).clone())
    }
}

/// Asks every validator, whatever the request was written for.
fn survives(text: &str, rng: &mut Rng) -> Result<(), String> {
    let Ok(request) = json::parse(text) else {
        return Ok(());
    };
    for wire in Wire::KNOWN {
        let profile = Profile {
            wire,
            ..profiles(rng)
        };
        let violations = validate(&request, &profile);
        if violations != validate(&request, &profile) {
            return Err(format!("{text} is judged differently each time"));
        }
        for violation in violations {
            let known = rule(violation.rule).map(|rule| rule.class);
            if known.is_none() || known == Some(RuleClass::Transport) {
                return Err(format!("no such rule: {violation}"));
            }
        }
    }
    Ok(())
}

#[test]
fn random_json_never_panics() {
    let json = generate::Json {
        duplicate_keys: true,
        lone_surrogates: true,
        ..generate::Json::default()
    };
    property("validators survive random JSON", 2_000, |rng, size| {
        let text = json.document(rng, size);
        survives(&text, rng)?;
        let key = *rng.pick(&["input", "messages", "contents"]);
        survives(&format!(r#"{{"{key}":{text}}}"#), rng)?;
        survives(&format!(r#"{{"{key}":[{text},{text}]}}"#), rng)
    });
}

#[test]
fn damaged_requests_never_panic() {
    let mut texts: Vec<String> = Vec::new();
    for case in cases() {
        texts.extend([case.accepted, case.refused]);
    }
    texts.extend(pieces().iter().map(|piece| history(&[piece])));
    property("validators survive damaged requests", 4_000, |rng, _| {
        let mut text = rng.pick(&texts).clone();
        for _ in 0..rng.range(1..=3) {
            text = match rng.below(4) {
                0 => mutate::insert_unknown_field(&text, rng).unwrap_or(text),
                1 => mutate::insert_duplicate_key(&text, rng).unwrap_or(text),
                2 => swap(&text, rng),
                _ => String::from_utf8(mutate::flip(text.as_bytes(), rng)).unwrap_or(text),
            };
        }
        survives(&text, rng)
    });
}

/// Replaces some value by another kind of value.
fn swap(text: &str, rng: &mut Rng) -> String {
    let with = *rng.pick(&["null", "0", "\"\"", "[]", "{}", "[null]", "[{}]", "true"]);
    let places: Vec<usize> = text.match_indices(':').map(|(at, _)| at + 1).collect();
    let Some(at) = (!places.is_empty()).then(|| *rng.pick(&places)) else {
        return text.to_owned();
    };
    let rest = &text[at..];
    // Only the end of a plain value is found this way; other texts are no JSON and count for nothing.
    let end = rest.find([',', '}', ']']).unwrap_or(rest.len());
    format!("{}{with}{}", &text[..at], &rest[end..])
}
