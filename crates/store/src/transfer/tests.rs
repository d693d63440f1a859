use throughline_model::json::RawJson;
use throughline_model::{Content, Message, MessageId, Role, Source};

use super::Extent;
use super::format::{EndLine, Header, ItemLine, Line, NodeLine, ThreadLine, What, digest};
use super::parse::{self, Fault};
use super::write;
use crate::{
    Alias, ItemKind, ItemRef, Mode, MovedBy, NewThread, NodeId, Redaction, RunId, RunKind,
    RunState, ServiceId, State, ThreadId,
};

fn node(run: u8, step: u32) -> NodeId {
    NodeId {
        run: RunId::from_bytes([run; 16]),
        step,
    }
}

fn object(text: &str) -> Option<RawJson> {
    Some(RawJson::new(text).unwrap())
}

/// One line of each kind, with everything that it can have.
fn all_lines() -> Vec<Line> {
    let mut state = State::default();
    state.set_service(ServiceId {
        upstream: "openai".into(),
        agent: "scout".into(),
        id: "resp_1".into(),
    });
    let thread = NewThread {
        aliases: vec![Alias::new("conversation", "conv_1")],
        title: Some("Tides \"today\"".into()),
        meta: object(r#"{"team":"a"}"#),
        settings: object("{}"),
        moved_by: MovedBy::LeasedRuns,
        keep: Some(86_400_000),
        ..NewThread::new(ThreadId::new("ticket-4711").unwrap())
    };
    let message = Message {
        id: Some(MessageId::new("msg_1").unwrap()),
        source: Some(Source::Model),
        ..Message::new(Role::Assistant, vec![Content::text("Ebb at 04:12.")])
    };
    let item = |what| {
        Line::Item(Box::new(ItemLine {
            no: 2,
            position: 7,
            tokens: (what != What::Gap).then_some(3),
            what,
        }))
    };
    let header = |version| {
        Line::Header(Header {
            version,
            extent: Extent::Branch,
        })
    };
    vec![
        header(1),
        header(2),
        Line::Thread(Box::new(ThreadLine {
            thread,
            created: 1,
            touched: 2,
            head: Some(node(2, 1)),
            tokens: Some(41),
        })),
        Line::Node(Box::new(NodeLine {
            node: node(2, 1),
            parent: Some(node(1, 0)),
            first: 6,
            first_item: 1,
            items: 3,
            open: true,
            hidden: true,
            created: 4,
            kind: RunKind::Turn,
            mode: Mode::PerCall,
            ended: RunState::Cancelled,
            begun: 3,
            note: object(r#"{"stop":"done"}"#),
            state: Some(state),
        })),
        item(What::Message {
            kind: ItemKind::Part,
            message: Box::new(message),
            again: Some(ItemRef {
                run: RunId::from_bytes([1; 16]),
                no: 9,
            }),
        }),
        item(What::Redacted {
            kind: ItemKind::Message,
            source: Some(Source::Caller),
            redaction: Redaction {
                by: "ada".into(),
                at: 5,
                left: None,
            },
        }),
        item(What::Redacted {
            kind: ItemKind::Message,
            source: None,
            redaction: Redaction {
                by: "ada".into(),
                at: 5,
                left: RawJson::new(&Message::user("[redacted]").to_json()).ok(),
            },
        }),
        item(What::Gap),
        Line::End(EndLine {
            nodes: 1,
            items: 3,
            digest: [0xAB; 16],
        }),
    ]
}

#[test]
fn every_line_is_read_as_it_was_written() {
    for line in all_lines() {
        let mut text = String::new();
        write::line(&mut text, &line);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert_eq!(parse::line(text.trim_end().as_bytes()), Ok(line), "{text}");
    }
}

#[test]
fn what_a_line_cannot_have_is_an_error_with_its_place() {
    let fault = |text: &str| {
        let Fault { column, path, why } = parse::line(text.as_bytes()).unwrap_err();
        format!("{column} {path}: {why}")
    };
    for (text, expected) in [
        ("", "1 : not JSON: the text ends inside a value"),
        (
            r#"{"type":"item",}"#,
            "16 : not JSON: unexpected character '}'",
        ),
        (
            "[]",
            "1 : expected an object, found an array; this is no throughline.export/2",
        ),
        ("{}", "1 : no \"type\"; this is no throughline.export/2"),
        (
            r#"{"type":"nodes"}"#,
            "9 type: unknown kind of line \"nodes\"",
        ),
        (
            r#"{"type":"header","format":"throughline.export/3","extent":"tree"}"#,
            "27 format: written as throughline.export/3; this program reads throughline.export/2, use a newer one",
        ),
        (
            r#"{"type":"header","format":"throughline.export/01","extent":"tree"}"#,
            "27 format: expected throughline.export/2, found \"throughline.export/01\"",
        ),
        (
            r#"{"type":"header","format":"other/1"}"#,
            "27 format: expected throughline.export/2, found \"other/1\"",
        ),
        (
            r#"{"type":"header","format":"throughline.export/1","extent":"tree","é":1,"extra":1}"#,
            "70 é: unknown member; throughline.export/2 has none of this name",
        ),
        (
            r#"{"type":"end","nodes":1,"items":-1,"digest":"00000000000000000000000000000000"}"#,
            "33 items: expected a whole number, found a number",
        ),
        (
            r#"{"type":"end","nodes":1,"nodes":1}"#,
            "1 : a member stands there twice",
        ),
        (
            r#"{"type":"end","nodes":1,"items":1,"digest":"+0000000000000000000000000000000"}"#,
            "44 digest: expected 32 hex digits",
        ),
        (
            r#"{"type":"item","no":1,"position":1,"kind":"message","message":{"v":1,"role":"user","contents":[{"kind":"text","text":7}]}}"#,
            "118 message.contents[0].text: expected a string, found a number",
        ),
        (
            r#"{"type":"item","no":4294967296,"position":1,"kind":"gap"}"#,
            "21 no: 4294967296 is too large",
        ),
        (
            r#"{"type":"item","no":1,"position":1,"kind":"gap","redacted":{"by":"a","at":1}}"#,
            "60 redacted: a gap has nothing to redact",
        ),
        (
            r#"{"type":"item","no":1,"position":1,"kind":"gap","tokens":4}"#,
            "58 tokens: a gap has nothing to count",
        ),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn a_message_of_the_greatest_depth_fits_into_a_line() {
    let levels = 128 - 2;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let message = format!(r#"{{"v":1,"role":"user","contents":[],"x":[{deep}]}}"#);
    assert!(Message::from_json(&message).is_ok());
    let line =
        format!(r#"{{"type":"item","no":1,"position":1,"kind":"message","message":{message}}}"#);
    assert!(parse::line(line.as_bytes()).is_ok());
}

/// The example of `docs/export.md`, whole lines.
fn example() -> String {
    let page = include_str!("../../../../docs/export.md");
    let (_, rest) = page.split_once("```ndjson\n").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    block.to_owned()
}

#[test]
fn the_example_of_the_documentation_is_an_export() {
    let text = example();
    let mut hasher = blake3::Hasher::new();
    let mut again = String::new();
    for line in text.lines() {
        let read = parse::line(line.as_bytes()).unwrap();
        if let Line::End(end) = &read {
            assert_eq!(write::hex(&end.digest), write::hex(&digest(&hasher)));
        }
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
        write::line(&mut again, &read);
    }
    assert_eq!(again, text);
}
