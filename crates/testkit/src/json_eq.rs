//! Compares two JSON texts by what they say.

use std::collections::BTreeMap;

use crate::reader::{Kind, Member, Node, read, string_units};

/// How numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// As they are written: `1.0` is not `1`.
    Token,
    /// By exact decimal value, however large: `1.0`, `1` and `10e-1` are the same.
    Value,
}

/// How strings and keys are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strings {
    /// As they are written: `"\u0061"` is not `"a"`.
    Token,
    /// By the text they stand for.
    Value,
}

/// What counts as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compare {
    /// How numbers are compared.
    pub numbers: Numbers,
    /// How strings and keys are compared.
    pub strings: Strings,
}

/// Compares two JSON texts: numbers as written, strings by value, keys in any order.
///
/// Absent, `null` and empty are three different things. A key that occurs twice must occur twice on both
/// sides, with its values in the same order. Whitespace does not count.
///
/// # Errors
///
/// The path of the first difference and what stands on each side; or why a text could not be read.
///
/// ```
/// use throughline_testkit::json_eq;
///
/// assert_eq!(json_eq(r#"{"a":1,"b":"\u00e9"}"#, r#"{ "b": "é", "a": 1 }"#), Ok(()));
/// assert_eq!(json_eq(r#"{"a":[1]}"#, r#"{"a":[1.0]}"#), Err("at /a/0: 1 became 1.0".to_owned()));
/// ```
pub fn json_eq(a: &str, b: &str) -> Result<(), String> {
    json_eq_with(
        a,
        b,
        Compare {
            numbers: Numbers::Token,
            strings: Strings::Value,
        },
    )
}

/// Compares two JSON texts as [`json_eq`] does, with a say in what counts as the same.
///
/// # Errors
///
/// As for [`json_eq`].
pub fn json_eq_with(a: &str, b: &str, compare: Compare) -> Result<(), String> {
    let left = read(a).map_err(|error| format!("the first text is not JSON: {error}"))?;
    let right = read(b).map_err(|error| format!("the second text is not JSON: {error}"))?;
    Comparison {
        texts: [a, b],
        compare,
        path: Vec::new(),
    }
    .nodes(&left, &right)
}

struct Comparison<'a> {
    texts: [&'a str; 2],
    compare: Compare,
    path: Vec<String>,
}

impl Comparison<'_> {
    fn nodes(&mut self, left: &Node<'_>, right: &Node<'_>) -> Result<(), String> {
        let same = match (&left.kind, &right.kind) {
            (Kind::Object(a), Kind::Object(b)) => return self.objects(a, b),
            (Kind::Array(a), Kind::Array(b)) => return self.arrays(a, b),
            (Kind::Null, Kind::Null) => true,
            (Kind::Bool(a), Kind::Bool(b)) => a == b,
            (Kind::Number(a), Kind::Number(b)) => match self.compare.numbers {
                Numbers::Token => a == b,
                Numbers::Value => a == b || same_number(a, b),
            },
            (Kind::String(a), Kind::String(b)) => self.same_string(a, b),
            _ => false,
        };
        if same {
            return Ok(());
        }
        let [a, b] = self.texts;
        let (a, b) = (
            excerpt(&a[left.start..left.end]),
            excerpt(&b[right.start..right.end]),
        );
        Err(format!("at {}: {a} became {b}", self.place()))
    }

    fn arrays(&mut self, left: &[Node<'_>], right: &[Node<'_>]) -> Result<(), String> {
        for (index, (a, b)) in left.iter().zip(right).enumerate() {
            self.path.push(index.to_string());
            self.nodes(a, b)?;
            self.path.pop();
        }
        if left.len() != right.len() {
            let (a, b) = (left.len(), right.len());
            return Err(format!("at {}: {a} elements became {b}", self.place()));
        }
        Ok(())
    }

    fn objects(&mut self, left: &[Member<'_>], right: &[Member<'_>]) -> Result<(), String> {
        let mut others: BTreeMap<Vec<u16>, Vec<&Member<'_>>> = BTreeMap::new();
        for member in right.iter().rev() {
            others
                .entry(string_units(member.key))
                .or_default()
                .push(member);
        }
        for member in left {
            let units = string_units(member.key);
            let Some(other) = others.get_mut(&units).and_then(Vec::pop) else {
                return Err(format!(
                    "at {}: key {} is missing",
                    self.place(),
                    member.key
                ));
            };
            if !self.same_string(member.key, other.key) {
                return Err(format!(
                    "at {}: key {} became {}",
                    self.place(),
                    member.key,
                    other.key
                ));
            }
            self.path.push(
                String::from_utf16_lossy(&units)
                    .replace('~', "~0")
                    .replace('/', "~1"),
            );
            self.nodes(&member.value, &other.value)?;
            self.path.pop();
        }
        match others.values().find_map(|left_over| left_over.last()) {
            Some(member) => Err(format!("at {}: key {} was added", self.place(), member.key)),
            None => Ok(()),
        }
    }

    fn same_string(&self, a: &str, b: &str) -> bool {
        a == b || (self.compare.strings == Strings::Value && string_units(a) == string_units(b))
    }

    fn place(&self) -> String {
        if self.path.is_empty() {
            "the top".to_owned()
        } else {
            format!("/{}", self.path.join("/"))
        }
    }
}

/// Exact comparison of two number tokens: sign, digits without outer zeros, power of ten.
fn same_number(a: &str, b: &str) -> bool {
    match (normal_form(a), normal_form(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

fn normal_form(token: &str) -> Option<(bool, String, i128)> {
    let (negative, rest) = token
        .strip_prefix('-')
        .map_or((false, token), |rest| (true, rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let exponent = exponent.parse::<i128>().ok()?;
    let power = exponent
        .checked_add(trailing as i128)?
        .checked_sub(fraction.len() as i128)?;
    Some((negative, significant.to_owned(), power))
}

fn excerpt(source: &str) -> String {
    const LONGEST: usize = 120;
    match source.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &source[..cut]),
        None => source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Compare, Numbers, Strings, json_eq, json_eq_with};

    const BY_VALUE: Compare = Compare {
        numbers: Numbers::Value,
        strings: Strings::Value,
    };
    const BY_TOKEN: Compare = Compare {
        numbers: Numbers::Token,
        strings: Strings::Token,
    };

    fn difference(a: &str, b: &str) -> String {
        json_eq(a, b).unwrap_err()
    }

    #[test]
    fn order_of_keys_and_whitespace_do_not_count() {
        assert_eq!(
            json_eq(
                r#"{"a":1,"b":[{"c":2,"d":3}]}"#,
                "{\"b\": [ {\"d\":3 , \"c\":2}],\n\"a\":1}"
            ),
            Ok(())
        );
    }

    #[test]
    fn absent_null_and_empty_are_different() {
        assert_eq!(
            difference(r#"{"a":null}"#, "{}"),
            "at the top: key \"a\" is missing"
        );
        assert_eq!(
            difference("{}", r#"{"a":null}"#),
            "at the top: key \"a\" was added"
        );
        assert_eq!(
            difference(r#"{"a":null}"#, r#"{"a":[]}"#),
            "at /a: null became []"
        );
        assert_eq!(
            difference(r#"{"a":{}}"#, r#"{"a":[]}"#),
            "at /a: {} became []"
        );
        assert_eq!(
            difference(r#"{"a":""}"#, r#"{"a":null}"#),
            "at /a: \"\" became null"
        );
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        assert_eq!(
            difference(r#"{"a/b":[1,{"~":2}]}"#, r#"{"a/b":[1,{"~":3}]}"#),
            "at /a~1b/1/~0: 2 became 3"
        );
        assert_eq!(
            difference("[1,2]", "[1]"),
            "at the top: 2 elements became 1"
        );
        assert_eq!(
            difference("[1", "[1]"),
            "the first text is not JSON: expected a comma or a closing bracket at byte 2, found the end"
        );
    }

    #[test]
    fn numbers_are_tokens_unless_asked_for_by_value() {
        assert!(json_eq("1.0", "1").is_err());
        assert!(json_eq("12345678901234567890123", "12345678901234567890123").is_ok());
        for (a, b) in [
            ("1.0", "1"),
            ("1e2", "100"),
            ("0.10e1", "1"),
            ("-0", "0.000"),
            ("1E400", "10e399"),
            (
                "123456789012345678901234567890",
                "1.2345678901234567890123456789e29",
            ),
            ("-5e-1", "-0.5"),
        ] {
            assert_eq!(json_eq_with(a, b, BY_VALUE), Ok(()), "{a} {b}");
        }
        for (a, b) in [
            ("1", "-1"),
            ("1", "10"),
            ("0.1", "0.01"),
            ("9007199254740993", "9007199254740992"),
            ("1", "0"),
            ("1e99999999999999999999999999999999999999999", "1e9"),
        ] {
            assert!(json_eq_with(a, b, BY_VALUE).is_err(), "{a} {b}");
        }
    }

    #[test]
    fn strings_are_values_unless_asked_for_by_token() {
        assert_eq!(json_eq(r#"{"\u0061":"\/"}"#, r#"{"a":"/"}"#), Ok(()));
        assert_eq!(
            json_eq_with(r#"{"\u0061":1}"#, r#"{"a":1}"#, BY_TOKEN),
            Err(r#"at the top: key "\u0061" became "a""#.to_owned())
        );
        assert!(json_eq_with(r#"["\/"]"#, r#"["/"]"#, BY_TOKEN).is_err());
        assert!(json_eq(r#""\ud800""#, r#""\ud801""#).is_err());
        assert_eq!(json_eq(r#""\ud800""#, r#""\uD800""#), Ok(()));
    }

    #[test]
    fn a_repeated_key_keeps_its_count_and_its_order() {
        assert_eq!(
            json_eq(r#"{"a":1,"b":0,"a":2}"#, r#"{"a":1,"a":2,"b":0}"#),
            Ok(())
        );
        assert_eq!(
            difference(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            "at /a: 1 became 2"
        );
        assert_eq!(
            difference(r#"{"a":1,"a":2}"#, r#"{"a":1}"#),
            "at the top: key \"a\" is missing"
        );
        assert_eq!(
            difference(r#"{"a":1}"#, r#"{"a":1,"a":1}"#),
            "at the top: key \"a\" was added"
        );
    }
}
