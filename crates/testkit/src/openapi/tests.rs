use serde_json::json;

use super::{OpenApi, Others};

fn api() -> OpenApi {
    let text = json!({"components": {"schemas": {
        "Pet": {
            "type": "object",
            "required": ["kind", "name"],
            "properties": {
                "kind": {"type": "string", "enum": ["cat"]},
                "name": {"type": "string", "minLength": 1, "maxLength": 3},
                "age": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 30}, {"type": "null"}]},
                "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
                "notes": {"type": "object", "additionalProperties": {"type": "string"}},
                "any": {}
            }
        },
        "Stone": {"type": "object", "required": ["kind"], "additionalProperties": false,
            "properties": {"kind": {"const": "stone"}}},
        "Thing": {"oneOf": [{"$ref": "#/components/schemas/Pet"}, {"$ref": "#/components/schemas/Stone"}]},
        "Both": {"allOf": [{"$ref": "#/components/schemas/Pet"},
            {"type": "object", "required": ["id"], "properties": {"id": {"type": ["string", "null"]}}}]}
    }}});
    OpenApi::read(&text.to_string()).unwrap()
}

fn wrong(name: &str, value: &serde_json::Value) -> Vec<String> {
    api().check(name, value, Others::Allowed).unwrap_err()
}

#[test]
fn what_fits_is_let_through() {
    for (name, value) in [
        ("Pet", json!({"kind": "cat", "name": "Tom"})),
        (
            "Pet",
            json!({"kind": "cat", "name": "é", "age": null, "tags": [], "other": 1}),
        ),
        (
            "Pet",
            json!({"kind": "cat", "name": "Tom", "age": 3.0, "notes": {"a": "b"}}),
        ),
        ("Thing", json!({"kind": "stone"})),
        ("Both", json!({"kind": "cat", "name": "Tom", "id": null})),
    ] {
        assert_eq!(
            api().check(name, &value, Others::Allowed),
            Ok(()),
            "{value}"
        );
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    for (name, value, expected) in [
        ("Pet", json!([]), "$: [] is not of type \"object\""),
        ("Pet", json!({"kind": "cat"}), "$: name is missing"),
        (
            "Pet",
            json!({"kind": "dog", "name": "Tom"}),
            "$.kind: \"dog\" is none of [\"cat\"]",
        ),
        (
            "Pet",
            json!({"kind": "cat", "name": ""}),
            "$.name: 0 is outside of minLength and maxLength",
        ),
        (
            "Pet",
            json!({"kind": "cat", "name": "Tomi"}),
            "$.name: 4 is outside of minLength and maxLength",
        ),
        (
            "Pet",
            json!({"kind": "cat", "name": "Tom", "age": 31}),
            "$.age: 31 is outside of minimum and maximum",
        ),
        (
            "Pet",
            json!({"kind": "cat", "name": "Tom", "age": 1.5}),
            "$.age: 1.5 is not of type \"integer\"",
        ),
        (
            "Pet",
            json!({"kind": "cat", "name": "Tom", "tags": [1]}),
            "$.tags[0]: 1 is not of type \"string\"",
        ),
        (
            "Pet",
            json!({"kind": "cat", "name": "Tom", "notes": {"a": 1}}),
            "$.notes.a: 1 is not of type \"string\"",
        ),
        (
            "Thing",
            json!({"kind": "stone", "x": 1}),
            "$.x: nothing may stand here",
        ),
        (
            "Both",
            json!({"kind": "cat", "name": "Tom"}),
            "$: id is missing",
        ),
        ("Nobody", json!({}), "there is no schema Nobody"),
    ] {
        assert_eq!(wrong(name, &value), [expected], "{value}");
    }
}

#[test]
fn members_without_a_name_can_be_refused() {
    let refused = |name: &str, value| api().check(name, &value, Others::Refused);
    let plain = json!({"kind": "cat", "name": "Tom", "notes": {"x": "y"}, "any": {"z": 1}});
    assert_eq!(refused("Pet", plain), Ok(()));
    let both = json!({"kind": "cat", "name": "Tom", "id": "1"});
    assert_eq!(refused("Both", both.clone()), Ok(()));
    assert_eq!(
        refused("Pet", both),
        Err(vec!["$.id: no schema has this member".to_owned()])
    );
}

#[test]
fn an_unknown_keyword_is_refused() {
    let read = |schema: &str| {
        let text = format!(r#"{{"components":{{"schemas":{{"A":{schema}}}}}}}"#);
        OpenApi::read(&text).map(|_| ()).unwrap_err()
    };
    assert_eq!(read(r#"{"if":{}}"#), "A.if: this keyword is not known");
    assert_eq!(
        read(r##"{"items":{"$ref":"#/components/schemas/B"}}"##),
        "A.items.$ref: \"#/components/schemas/B\" leads nowhere"
    );
}
