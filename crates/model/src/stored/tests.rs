use super::StoredError;
use crate::{Body, Message, Role};

fn round_trip(text: &str) -> String {
    Message::from_json(text).unwrap().to_json()
}

#[test]
fn unknown_members_survive_at_every_level() {
    let text = concat!(
        r#"{"v":1,"role":"assistant","contents":[{"kind":"text","text":"hi","citations":"#,
        r#"[{"url":"u","later":1.50}],"vendor":{"wire":"some-new-wire","item":{"a":"\/"},"#,
        r#""new":null},"x":[1]},{"kind":"tool_call","call":"c","origin":"minted","family":"#,
        r#""brand-new","arguments":"{\"a\": 1}","why":true}],"usage":{"input":3,"more":"y"},"#,
        r#""meta":{"k":1e400},"z":{"deep":[{}]}}"#
    );
    assert_eq!(round_trip(text), text);
}

#[test]
fn an_unknown_kind_of_content_survives() {
    let text = r#"{"v":1,"role":"user","contents":[{"kind":"hologram","n":1.0e0,"n":2}]}"#;
    let message = Message::from_json(text).unwrap();
    assert!(matches!(message.contents[0].body, Body::Unknown(_)));
    assert_eq!(message.to_json(), text);
}

#[test]
fn an_unknown_role_and_source_survive() {
    let text = r#"{"v":1,"role":"critic","contents":[],"source":"oracle"}"#;
    let message = Message::from_json(text).unwrap();
    assert_eq!(message.role, Role::Other("critic".into()));
    assert_eq!(message.to_json(), text);
}

#[test]
fn a_known_member_of_the_wrong_type_is_an_error_with_its_place() {
    for (text, path) in [
        (r#"{"role":"user","contents":{}}"#, "contents"),
        (r#"{"role":7}"#, "role"),
        (r#"{"contents":[]}"#, "role"),
        (
            r#"{"role":"user","contents":[{"kind":"text","text":null}]}"#,
            "contents[0].text",
        ),
        (
            r#"{"role":"user","contents":[{"kind":"tool_call","call":"","origin":"item","family":"f"}]}"#,
            "contents[0].call",
        ),
        (
            r#"{"role":"user","contents":[{"kind":"tool_call","call":"c","origin":"guessed","family":"f"}]}"#,
            "contents[0].origin",
        ),
    ] {
        match Message::from_json(text) {
            Err(StoredError::Corrupt { path: found, .. }) => assert_eq!(found, path, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_later_version_is_refused_by_name() {
    let error = Message::from_json(r#"{"v":2,"role":"user","contents":[]}"#).unwrap_err();
    assert!(
        matches!(error, StoredError::Newer { version: 2, .. }),
        "{error}"
    );
}

#[test]
fn serde_gives_the_same_form() {
    let text = r#"{"v":1,"role":"user","contents":[{"kind":"text","text":"hi"}],"n":1.10}"#;
    let message: Message = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&message).unwrap(), text);
}
