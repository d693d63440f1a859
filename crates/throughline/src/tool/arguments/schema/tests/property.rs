//! Random schemas and values: values made to match are accepted, others are refused, and every
//! check terminates.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use throughline_model::json;
use throughline_testkit::{Rng, property};

use super::super::{Schema, Verdict};

/// A schema, a value that matches it, and one that does not.
struct Case {
    schema: String,
    good: String,
    bad: String,
}

fn one<'c>(rng: &mut Rng, choices: &[&'c str]) -> &'c str {
    choices[rng.below(choices.len())]
}

fn case(rng: &mut Rng, depth: usize) -> Case {
    let of = |schema: &str, good: &str, bad: &str| Case {
        schema: schema.to_owned(),
        good: good.to_owned(),
        bad: bad.to_owned(),
    };
    match rng.below(if depth == 0 { 6 } else { 12 }) {
        0 => of(r#"{"type":"string","minLength":1}"#, r#""x""#, r#""""#),
        1 => {
            let least = rng.below(100);
            let schema = format!(r#"{{"type":"integer","minimum":{least}}}"#);
            of(
                &schema,
                &(least + rng.below(9)).to_string(),
                &format!("{least}.5"),
            )
        }
        2 => of(
            r#"{"enum":["m",1,null,[true]]}"#,
            one(rng, &["1.0", "null", "[true]"]),
            "[false]",
        ),
        3 => of(r#"{"type":["boolean","null"]}"#, "true", "{}"),
        4 => of(
            r#"{"const":{"a":[1]}}"#,
            r#"{"a":[1.0]}"#,
            r#"{"a":[1],"b":0}"#,
        ),
        5 => of(
            r#"{"type":"number","exclusiveMaximum":0.5}"#,
            "-1e-3",
            "0.50",
        ),
        6 => {
            let inner = case(rng, depth - 1);
            let good = vec![inner.good.as_str(); rng.range(1..=3)].join(",");
            Case {
                schema: format!(
                    r#"{{"type":"array","items":{},"minItems":1}}"#,
                    inner.schema
                ),
                bad: format!("[{good},{}]", inner.bad),
                good: format!("[{good}]"),
            }
        }
        7 | 8 => object(rng, depth),
        9 => {
            let inner = case(rng, depth - 1);
            Case {
                schema: format!(r#"{{"allOf":[true,{}]}}"#, inner.schema),
                ..inner
            }
        }
        10 => {
            // No schema above accepts this text.
            let inner = case(rng, depth - 1);
            let keyword = one(rng, &["anyOf", "oneOf"]);
            Case {
                schema: format!(r#"{{"{keyword}":[{{"const":"other"}},{}]}}"#, inner.schema),
                ..inner
            }
        }
        _ => {
            let inner = case(rng, depth - 1);
            Case {
                schema: format!(r#"{{"not":{}}}"#, inner.schema),
                good: inner.bad,
                bad: inner.good,
            }
        }
    }
}

fn object(rng: &mut Rng, depth: usize) -> Case {
    let fields: Vec<Case> = (0..rng.range(1..=4))
        .map(|_| case(rng, depth - 1))
        .collect();
    let wrong = rng.below(fields.len());
    let (mut properties, mut good, mut bad) = (String::new(), String::new(), String::new());
    for (place, field) in fields.iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        write!(properties, r#"{comma}"f{place}":{}"#, field.schema).unwrap();
        write!(good, r#"{comma}"f{place}":{}"#, field.good).unwrap();
        let value = if place == wrong {
            &field.bad
        } else {
            &field.good
        };
        write!(bad, r#"{comma}"f{place}":{value}"#).unwrap();
    }
    match rng.below(3) {
        0 => bad = good.replacen("\"f0\"", "\"g0\"", 1),
        1 => bad = format!(r#"{good},"stranger":1"#),
        _ => {}
    }
    Case {
        schema: format!(
            r#"{{"type":"object","properties":{{{properties}}},"required":["f0"],"additionalProperties":false}}"#
        ),
        good: format!("{{{good}}}"),
        bad: format!("{{{bad}}}"),
    }
}

#[test]
fn what_fits_is_taken_and_what_does_not_is_refused() {
    property(
        "schema: what fits is taken, what does not is refused",
        4_000,
        |rng, size| {
            let Case { schema, good, bad } = case(rng, 1 + size / 25);
            let compiled =
                Schema::compile(&json::parse(&schema).map_err(|error| error.to_string())?)
                    .map_err(|error| format!("{schema}: {error}"))?;
            let verdict = |text: &str| compiled.check(&json::parse(text).unwrap(), 8);
            let Verdict::Fits = verdict(&good) else {
                return Err(format!("{schema} refuses {good}"));
            };
            match verdict(&bad) {
                Verdict::Refused(findings) if !findings.is_empty() => Ok(()),
                _ => Err(format!("{schema} takes {bad}")),
            }
        },
    );
}

const KEYWORDS: &[&str] = &[
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "$ref",
    "nullable",
    "$defs",
    "pattern",
    "whatever",
];

/// Text that may look like a schema or like a value.
fn anything(rng: &mut Rng, depth: usize, out: &mut String) {
    match rng.below(if depth == 0 { 6 } else { 10 }) {
        0 => out.push_str(one(rng, &["null", "true", "false"])),
        1 => out.push_str(one(
            rng,
            &["0", "-1", "1.5", "1e400", "3.0", "12345678901234567890123"],
        )),
        2 => out.push_str(one(
            rng,
            &[
                r#""string""#,
                r#""object""#,
                r#""a""#,
                r#""\ud800""#,
                r#""""#,
            ],
        )),
        3 => out.push_str(one(
            rng,
            &[
                r##""#""##,
                r##""#/$defs/a""##,
                r##""#/properties/a/items""##,
            ],
        )),
        4 => out.push_str(r#"["object","null"]"#),
        5 => out.push_str(r##"{"$ref":"#/$defs/a"}"##),
        6 => {
            out.push('[');
            for place in 0..rng.below(4) {
                out.push_str(if place > 0 { "," } else { "" });
                anything(rng, depth - 1, out);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for place in 0..rng.below(5) {
                out.push_str(if place > 0 { "," } else { "" });
                let key = if rng.bool() {
                    *rng.pick(KEYWORDS)
                } else {
                    *rng.pick(&["a", "b", "$defs"])
                };
                write!(out, "\"{key}\":").unwrap();
                anything(rng, depth - 1, out);
            }
            out.push('}');
        }
    }
}

#[test]
fn any_schema_and_any_value_come_to_an_end() {
    let (mut read, mut checked) = (0u64, 0u64);
    property(
        "schema: any schema and any value come to an end",
        20_000,
        |rng, size| {
            let mut text = String::new();
            anything(rng, 1 + size / 15, &mut text);
            let schema = json::parse(&text).map_err(|error| format!("{text}: {error}"))?;
            let Ok(schema) = Schema::compile(&schema) else {
                return Ok(());
            };
            read += 1;
            let started = Instant::now();
            for _ in 0..4 {
                let mut value = String::new();
                anything(rng, 1 + size / 15, &mut value);
                schema.check(&json::parse(&value).unwrap(), 8);
                checked += 1;
            }
            if started.elapsed() > Duration::from_secs(5) {
                return Err(format!("{text} took {:?}", started.elapsed()));
            }
            Ok(())
        },
    );
    println!("table schemas: read={read} checked={checked}");
    assert!(read > 0);
}
