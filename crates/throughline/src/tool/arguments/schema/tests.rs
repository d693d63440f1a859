mod property;

use throughline_model::json;

use super::{Schema, SchemaError, Verdict};

fn check(schema: &str, value: &str) -> String {
    let schema = Schema::compile(&json::parse(schema).unwrap()).unwrap();
    match schema.check(&json::parse(value).unwrap(), 8) {
        Verdict::Fits => "fits".to_owned(),
        Verdict::TooMuch => "too much".to_owned(),
        Verdict::Refused(findings) => {
            let told = findings
                .iter()
                .map(|found| format!("{}: {}", found.path, found.message));
            told.collect::<Vec<_>>().join("; ")
        }
    }
}

#[track_caller]
fn all_fit(schema: &str, values: &[&str]) {
    for value in values {
        assert_eq!(check(schema, value), "fits", "{schema} {value}");
    }
}

#[track_caller]
fn refused(schema: &str, cases: &[(&str, &str)]) {
    for (value, told) in cases {
        assert_eq!(check(schema, value), *told, "{schema} {value}");
    }
}

#[test]
fn types() {
    all_fit(
        r#"{"type":"integer"}"#,
        &["1", "-0", "3.0", "1e3", "12e-0", "1.50e1"],
    );
    refused(
        r#"{"type":"integer"}"#,
        &[
            ("1.5", ": expected integer, found number 1.5"),
            ("null", ": expected integer, found null"),
        ],
    );
    all_fit(r#"{"type":["string","null"]}"#, &[r#""""#, "null"]);
    refused(
        r#"{"type":["string","null"]}"#,
        &[("[]", ": expected string or null, found array of 0")],
    );
    all_fit(
        r#"{"type":"string","nullable":true,"enum":["a"]}"#,
        &["null", r#""a""#],
    );
    all_fit("true", &["1"]);
    refused("false", &[("1", ": nothing is allowed here")]);
}

#[test]
fn numbers_are_compared_exactly() {
    let bounded = r#"{"minimum":9007199254740993,"exclusiveMaximum":9007199254740995}"#;
    all_fit(
        bounded,
        &["9007199254740993", "9007199254740994", r#""text""#],
    );
    refused(
        bounded,
        &[
            (
                "9007199254740992",
                ": expected at least 9007199254740993, found 9007199254740992",
            ),
            (
                "9007199254740995",
                ": expected less than 9007199254740995, found 9007199254740995",
            ),
        ],
    );
    all_fit(r#"{"multipleOf":0.01}"#, &["0.07", "19.99", "1e2"]);
    refused(
        r#"{"multipleOf":0.01}"#,
        &[("0.075", ": expected a multiple of 0.01, found 0.075")],
    );
    // In early drafts.
    refused(
        r#"{"minimum":0,"exclusiveMinimum":true}"#,
        &[("0", ": expected more than 0, found 0")],
    );
    all_fit(r#"{"enum":[1]}"#, &["1.0", "10e-1"]);
    all_fit(r#"{"maximum":1}"#, &["-1e999", "1e-999999999999"]);
    refused(
        r#"{"maximum":1}"#,
        &[(
            "1e999999999999",
            ": expected at most 1, found 1e999999999999",
        )],
    );
}

#[test]
fn lengths_and_items() {
    refused(
        r#"{"minLength":2,"maxLength":3}"#,
        &[
            (r#""é""#, ": expected at least 2 characters, found 1"),
            (r#""éééé""#, ": expected at most 3 characters, found 4"),
        ],
    );
    refused(
        r#"{"minItems":1,"maxItems":2,"items":{"type":"string"}}"#,
        &[
            ("[]", ": expected at least 1 item, found 0"),
            (
                r#"["a","b",3]"#,
                ": expected at most 2 items, found 3; [2]: expected string, found number 3",
            ),
        ],
    );
    let tuple = r#"{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}"#;
    let early = r#"{"items":[{"type":"string"}],"additionalItems":{"type":"integer"}}"#;
    for schema in [tuple, early] {
        all_fit(schema, &["[]", r#"["a",1,2]"#]);
        refused(
            schema,
            &[(r#"["a","b"]"#, r#"[1]: expected integer, found string "b""#)],
        );
    }
}

#[test]
fn fields() {
    refused(
        r#"{"additionalProperties":{"type":"integer"},"properties":{"a b":{"type":"string"}}}"#,
        &[
            (
                r#"{"a b":1}"#,
                r#"["a b"]: expected string, found number 1"#,
            ),
            (r#"{"c":{}}"#, "c: expected integer, found empty object"),
        ],
    );
    // It is not known which names a pattern allows.
    all_fit(
        r#"{"patternProperties":{"^x":{}},"additionalProperties":false}"#,
        &[r#"{"xy":1}"#],
    );
    refused(
        r#"{"properties":{"a":{"properties":{"b":{"items":{"required":["c"]}}}}}}"#,
        &[(
            r#"{"a":{"b":[{"c":1},{}]}}"#,
            r#"a.b[1]: missing required field "c""#,
        )],
    );
}

#[test]
fn violations_are_those_of_the_alternative_that_was_meant() {
    let maybe =
        r#"{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"null"}]}"#;
    all_fit(maybe, &["null", "{}"]);
    refused(
        maybe,
        &[
            (r#"{"a":1}"#, "a: expected string, found number 1"),
            ("1", ": expected object or null, found number 1"),
        ],
    );
    let units = r#"{"oneOf":[{"const":"m","description":"metres"},{"const":"ft"}]}"#;
    refused(
        units,
        &[(
            r#""yard""#,
            r#": expected one of "m", "ft", found string "yard""#,
        )],
    );
    let tagged = r##"{
        "oneOf": [
            {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
            {"$ref": "#/$defs/square"}
        ],
        "$defs": {
            "square": {"properties": {"kind": {"const": "square"}, "a": {"type": "number"}}, "required": ["kind", "a"]}
        }
    }"##;
    all_fit(tagged, &[r#"{"kind":"square","a":1}"#]);
    refused(
        tagged,
        &[
            (
                r#"{"kind":"square"}"#,
                r#": missing required field "a" (number)"#,
            ),
            (
                r#"{"kind":"cube"}"#,
                r#"kind: expected one of "circle", "square", found "cube""#,
            ),
            (
                "{}",
                r#": missing required field "kind" (one of "circle", "square")"#,
            ),
        ],
    );
    let loose = r#"{"anyOf":[{"required":["a"]},{"required":["b"]}]}"#;
    refused(
        loose,
        &[(r#"{"c":1}"#, ": the object fits none of 2 alternatives")],
    );
    refused(
        r#"{"oneOf":[{"type":"number"},{"type":"integer"}]}"#,
        &[("1", ": fits 2 of the alternatives, it must fit exactly one")],
    );
    refused(
        r#"{"not":{"type":"string"}}"#,
        &[(r#""a""#, r#": must not be string, found string "a""#)],
    );
    refused(
        r#"{"allOf":[{"type":"object"},{"required":["a"]}]}"#,
        &[("{}", r#": missing required field "a""#)],
    );
}

#[test]
fn references() {
    let tree = r##"{
        "$ref": "#/$defs/tr%65e",
        "$defs": {"tree": {"properties": {"next": {"$ref": "#/$defs/tree"}, "n": {"$ref": "#/definitions/a~1b"}}}},
        "definitions": {"a/b": {"type": "integer"}}
    }"##;
    all_fit(tree, &[r#"{"next":{"next":{"n":1}}}"#]);
    refused(
        tree,
        &[(
            r#"{"next":{"next":{"n":"1"}}}"#,
            r#"next.next.n: expected integer, found string "1""#,
        )],
    );
}

fn broken(schema: &str) -> SchemaError {
    match Schema::compile(&json::parse(schema).unwrap()) {
        Ok(_) => panic!("{schema} was read"),
        Err(error) => error,
    }
}

#[test]
fn schemas_that_make_no_sense_are_refused() {
    let circle = r##"{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}}"##;
    assert_eq!(broken(circle), SchemaError::Endless);
    assert_eq!(broken(r##"{"$ref":"#"}"##), SchemaError::Endless);
    let cases = [
        (
            r#"{"properties":{"a":{"type":"text"}}}"#,
            "type at #/properties/a must be object, array",
        ),
        (
            r#"{"required":true}"#,
            "required at # must be a list of names",
        ),
        (
            r#"{"items":3}"#,
            "a schema at #/items must be an object, true or false",
        ),
        (
            r#"{"multipleOf":0}"#,
            "multipleOf at # must be a number greater than 0",
        ),
        (
            r##"{"$ref":"#/nowhere"}"##,
            "nothing is found at \"#/nowhere\", to which # refers",
        ),
        (
            r#"{"$ref":"https://example.com/a"}"#,
            "nothing is found at \"https://example.com/a\"",
        ),
    ];
    for (schema, told) in cases {
        let error = broken(schema).to_string();
        assert!(error.starts_with(told), "{error}");
    }
    let many = format!(r#"{{"allOf":[{}{{}}]}}"#, "{},".repeat(10_000));
    assert_eq!(broken(&many), SchemaError::TooLarge { limit: 10_000 });
}

#[test]
fn too_much_work_is_given_up() {
    // Each level tries the next one twice.
    let schema = r##"{
        "anyOf": [
            {"properties": {"n": {"$ref": "#"}}, "required": ["a"]},
            {"properties": {"n": {"$ref": "#"}}, "required": ["b"]}
        ]
    }"##;
    let value = format!("{}{{}}{}", r#"{"n":"#.repeat(60), "}".repeat(60));
    let told = check(schema, &value);
    assert!(
        told == "too much" || told.contains("alternatives"),
        "{told}"
    );
    let deep = format!(
        r##"{{"items":{{"$ref":"#/$defs/0"}},"$defs":{{{}"9":{{"items":{{"$ref":"#/$defs/0"}}}}}}}}"##,
        (0..9)
            .map(|n| format!(r##""{n}":{{"allOf":[{{"$ref":"#/$defs/{}"}}]}},"##, n + 1))
            .collect::<String>()
    );
    let value = format!("{}{}", "[".repeat(120), "]".repeat(120));
    assert_eq!(check(&deep, &value), "too much");
}
