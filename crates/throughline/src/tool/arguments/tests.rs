use throughline_model::json::RawJson;
use throughline_model::{Arguments, CallId, ToolCall};

use super::{Parameters, SchemaError, prepare};
use crate::tool::ToolSpec;

const TIDE: &str = r#"{
    "properties": {
        "port": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["m", "ft"]}
    },
    "required": ["port"],
    "additionalProperties": false
}"#;

fn check(schema: &str, arguments: &str) -> String {
    let parameters = Parameters::parse(schema).unwrap();
    match parameters.check(&Arguments::Text(arguments.to_owned())) {
        Ok(json) => json.get().to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn arguments_that_fit_come_out_as_an_object() {
    assert_eq!(
        check(TIDE, r#" {"port": "Dover", "days": 3.0, "unit": "ft"} "#),
        r#"{"port":"Dover","days":3.0,"unit":"ft"}"#
    );
}

#[test]
fn a_text_that_is_not_json_is_told_its_place_and_what_was_expected() {
    let cases = [
        (
            r#"{"port": }"#,
            r#"unexpected character '}' at line 1, column 10 (byte 9), expected a value, after `{"port": `"#,
        ),
        (
            "{\n  \"port\" 3}",
            "unexpected character '3' at line 2, column 10 (byte 11), expected a colon, after `{\n  \"port\" `",
        ),
        (
            "{'port': 3}",
            r"unexpected character '\'' at line 1, column 2 (byte 1), expected a key in double quotes or }, after `{`",
        ),
        (
            r#"{"port": "Do"#,
            r#"the text ends inside a value at line 1, column 13 (byte 12), expected a double quote that ends the string, after `{"port": "Do`"#,
        ),
        (
            r#"{"a": [1, 2"#,
            r#"the text ends inside a value at line 1, column 12 (byte 11), expected a comma or ], after `{"a": [1, 2`"#,
        ),
        (
            r#"{"a": 1,}"#,
            r#"unexpected character '}' at line 1, column 9 (byte 8), expected a key in double quotes, after `{"a": 1,`"#,
        ),
        (
            r#"{"a": 1}}"#,
            r#"text after the end of the document at line 1, column 9 (byte 8), expected nothing after the end of the object, after `{"a": 1}`"#,
        ),
        (
            r#"{"a": "\x"}"#,
            r#"invalid escape in a string at line 1, column 8 (byte 7), expected one of \" \\ \/ \b \f \n \r \t or \u and four hex digits, after `{"a": "`"#,
        ),
    ];
    for (text, expected) in cases {
        let expected = format!("the arguments are not valid JSON: {expected}");
        assert_eq!(check(TIDE, text), expected, "{text}");
    }
}

#[test]
fn only_the_end_of_a_long_text_is_shown() {
    let text = format!(r#"{{"port": "{}" oops"#, "é".repeat(100));
    let expected = format!("expected a comma or }}, after `…{}\" `", "é".repeat(38));
    assert!(
        check(TIDE, &text).ends_with(&expected),
        "{}",
        check(TIDE, &text)
    );
}

#[test]
fn what_is_not_an_object_is_told_what_it_is() {
    let cases = [
        (r#""{\"port\":1}""#, r#"string "{\"port\":1}""#),
        ("[1]", "array of 1"),
        ("null", "null"),
        ("true", "boolean true"),
    ];
    for (text, found) in cases {
        let expected = format!("the arguments must be a JSON object, found {found}");
        assert_eq!(check(TIDE, text), expected);
    }
    let free = Parameters::none().check(&Arguments::Free("ls".to_owned()));
    assert_eq!(
        free.unwrap_err().to_string(),
        "the arguments must be a JSON object, found free text"
    );
}

#[test]
fn violations_name_the_field_and_what_was_expected() {
    let cases = [
        ("{}", r#"missing required field "port" (string)"#),
        (
            r#"{"port":"Dover","days":"three"}"#,
            r#"days: expected integer, found string "three""#,
        ),
        (
            r#"{"port":"Dover","unit":"yard"}"#,
            r#"unit: expected one of "m", "ft", found "yard""#,
        ),
        (
            r#"{"prot":"Dover"}"#,
            r#"missing required field "port" (string); there is "prot" instead; unknown field "prot", did you mean "port"?"#,
        ),
        (
            r#"{"port":"Dover","colour":1}"#,
            r#"unknown field "colour", known are "port", "days", "unit""#,
        ),
        (
            r#"{"port":"Dover","days":0}"#,
            "days: expected at least 1, found 0",
        ),
        (
            r#"{"port":"Dover","port":"Calais"}"#,
            r#"field "port" is there twice"#,
        ),
    ];
    for (text, expected) in cases {
        let expected = format!("the arguments do not fit the schema: {expected}");
        assert_eq!(check(TIDE, text), expected, "{text}");
    }
}

#[test]
fn at_most_eight_violations_are_told() {
    let schema = r#"{"properties":{"list":{"items":{"type":"string"}}}}"#;
    let told = check(schema, r#"{"list":[0,1,2,3,4,5,6,7,8,9]}"#);
    assert!(
        told.contains("list[7]: expected string, found number 7; and more"),
        "{told}"
    );
    let told = check(schema, r#"{"list":[0,1,2,3,4,5,6,7]}"#);
    assert!(
        told.ends_with("list[7]: expected string, found number 7"),
        "{told}"
    );
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    let call = |arguments| ToolCall {
        arguments,
        ..ToolCall::function(CallId::natural("c").unwrap(), "t", "")
    };
    let mut spec = ToolSpec::named("t");
    for arguments in [
        Arguments::None,
        Arguments::Text(String::new()),
        Arguments::Text(" \n".to_owned()),
        Arguments::Json(RawJson::new("{}").unwrap()),
    ] {
        let call = call(arguments);
        assert_eq!(prepare(&spec, &call), Ok(RawJson::new("{}").unwrap()));
    }
    spec.parameters = Parameters::parse(TIDE).unwrap();
    let refused = prepare(&spec, &call(Arguments::None)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"the arguments do not fit the schema: missing required field "port" (string)"#
    );
}

#[test]
fn a_schema_says_that_it_describes_an_object() {
    let json = |text| Parameters::parse(text).map(|it| it.as_json().get().to_owned());
    assert_eq!(json("{}").unwrap(), r#"{"type":"object","properties":{}}"#);
    assert_eq!(
        json(r#"{"description":"d","type":["object"]}"#).unwrap(),
        r#"{"type":"object","properties":{},"description":"d"}"#
    );
    for text in [
        "true",
        "[]",
        r#"{"type":"string"}"#,
        r#"{"type":["object","null"]}"#,
    ] {
        let refused = json(text).unwrap_err();
        assert!(
            matches!(
                refused,
                SchemaError::NotObject | SchemaError::Keyword { .. }
            ),
            "{text}: {refused}"
        );
    }
    assert!(matches!(json("{"), Err(SchemaError::NotJson(_))));
}
