//! Numbers and literals of a schema, compared by value: `1` and `1.0` are the same.

use std::cmp::Ordering;

use throughline_model::json::{Node as Json, RawJson, Value};

/// A JSON number, exact up to about 38 digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    /// `mantissa * 10^exponent`, without trailing zeros in the mantissa.
    exact: Option<(i128, i32)>,
    approximate: f64,
}

impl Number {
    /// Reads a number token of JSON; other text becomes NaN.
    pub(super) fn read(raw: &str) -> Self {
        Self {
            exact: exact(raw),
            approximate: raw.parse().unwrap_or(f64::NAN),
        }
    }

    /// Whether the number has no fractional part.
    pub(super) fn is_whole(self) -> bool {
        match self.exact {
            Some((_, exponent)) => exponent >= 0,
            None => self.approximate.fract() == 0.0,
        }
    }

    pub(super) fn is_positive(self) -> bool {
        match self.exact {
            Some((mantissa, _)) => mantissa > 0,
            None => self.approximate > 0.0,
        }
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        match self.aligned(other) {
            Some((one, two)) => one.cmp(&two),
            None => self.approximate.total_cmp(&other.approximate),
        }
    }

    pub(super) fn is_multiple_of(self, other: Self) -> bool {
        match self.aligned(other) {
            Some((one, two)) => two != 0 && one % two == 0,
            None => (self.approximate / other.approximate).fract() == 0.0,
        }
    }

    /// Both numbers as integers of the same unit.
    fn aligned(self, other: Self) -> Option<(i128, i128)> {
        let ((one, e1), (two, e2)) = (self.exact?, other.exact?);
        let unit = e1.min(e2);
        Some((
            scaled(one, e1.checked_sub(unit)?)?,
            scaled(two, e2.checked_sub(unit)?)?,
        ))
    }
}

fn scaled(mantissa: i128, zeros: i32) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    mantissa.checked_mul(10i128.checked_pow(u32::try_from(zeros).ok()?)?)
}

fn exact(raw: &str) -> Option<(i128, i32)> {
    let (digits, exponent) = match raw.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (raw, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let mut exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if mantissa == 0 {
        return Some((0, 0));
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent = exponent.checked_add(1)?;
    }
    Some((mantissa, exponent))
}

/// A value that a schema lists.
pub(super) struct Literal {
    /// As it is written in the schema.
    pub(super) raw: RawJson,
    kind: LiteralValue,
}

enum LiteralValue {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<LiteralValue>),
    Object(Vec<(String, LiteralValue)>),
}

impl Literal {
    pub(super) fn of(value: &Value<'_>) -> Self {
        Self {
            raw: RawJson::of(value),
            kind: LiteralValue::of(value),
        }
    }

    /// Whether a value is equal; `1` and `1.0` are.
    pub(super) fn is(&self, value: &Value<'_>) -> bool {
        self.kind.is(value)
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, LiteralValue::Null)
    }
}

impl LiteralValue {
    fn of(value: &Value<'_>) -> Self {
        match value.node() {
            Json::Null => Self::Null,
            Json::Bool(found) => Self::Bool(*found),
            Json::Number => Self::Number(Number::read(value.raw())),
            Json::String(_) => Self::String(value.as_str().unwrap_or_default().into_owned()),
            Json::Array(values) => Self::Array(values.iter().map(Self::of).collect()),
            Json::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|member| (member.key.to_str().into_owned(), Self::of(&member.value)))
                    .collect(),
            ),
        }
    }

    fn is(&self, value: &Value<'_>) -> bool {
        match (self, value.node()) {
            (Self::Null, Json::Null) => true,
            (Self::Bool(one), Json::Bool(two)) => one == two,
            (Self::Number(one), Json::Number) => {
                one.compare(Number::read(value.raw())) == Ordering::Equal
            }
            (Self::String(one), Json::String(_)) => value.is_str(one),
            (Self::Array(ones), Json::Array(twos)) => {
                ones.len() == twos.len() && ones.iter().zip(twos).all(|(one, two)| one.is(two))
            }
            (Self::Object(ones), Json::Object(twos)) => {
                ones.len() == twos.len()
                    && ones
                        .iter()
                        .all(|(key, one)| value.get(key).is_some_and(|two| one.is(two)))
            }
            _ => false,
        }
    }
}
