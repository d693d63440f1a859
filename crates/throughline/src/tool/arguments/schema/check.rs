//! Checking a value against a schema.

use std::cmp::Ordering;

use throughline_model::json::{Member, Node as Json, Value};

use super::findings::{Finding, FindingKind, Findings, ValuePath, counted, found, nearest, shown};
use super::value::{Literal, Number};
use super::{Bound, Node, NodeId, Range, Schema, Types};

/// How much work a check may do: about one unit for each pair of a part and a value.
const WORK: usize = 500_000;
/// How deep parts and values may be nested together, because checking is recursive.
const DEPTH: usize = 512;

/// The result of a check.
pub(in super::super) enum Verdict {
    Fits,
    Refused(Vec<Finding>),
    /// The check was not finished: too much work, or nested too deep.
    TooMuch,
}

impl Schema {
    /// Checks a value, and returns at most `most` violations.
    pub(in super::super) fn check(&self, value: &Value<'_>, most: usize) -> Verdict {
        let mut check = Check {
            schema: self,
            work: WORK,
            depth: 0,
            gave_up: false,
        };
        let mut sink = Findings::collect(most);
        refuse_twice(value, &ValuePath::Root, &mut sink);
        check.node(NodeId(0), value, &ValuePath::Root, &mut sink);
        let findings = sink.into_findings();
        match (findings.is_empty(), check.gave_up) {
            (true, false) => Verdict::Fits,
            (true, true) => Verdict::TooMuch,
            (false, _) => Verdict::Refused(findings),
        }
    }
}

pub(super) struct Check<'s> {
    pub(super) schema: &'s Schema,
    work: usize,
    depth: usize,
    /// Set when a limit was reached. The result is then unknown unless a violation was found.
    pub(super) gave_up: bool,
}

impl Check<'_> {
    /// Whether a value matches a part. Meaningless once the check gave up.
    pub(super) fn fits(&mut self, id: NodeId, value: &Value<'_>) -> bool {
        let mut sink = Findings::Flag { failed: false };
        self.node(id, value, &ValuePath::Root, &mut sink);
        !sink.is_full()
    }

    pub(super) fn node(
        &mut self,
        id: NodeId,
        value: &Value<'_>,
        place: &ValuePath<'_>,
        sink: &mut Findings,
    ) {
        if sink.is_full() || self.gave_up {
            return;
        }
        if self.depth == DEPTH || !self.spend(cost(value)) {
            self.gave_up = true;
            return;
        }
        self.depth += 1;
        self.rules(id, value, place, sink);
        self.depth -= 1;
    }

    /// Subtracts work from the budget; false if it is used up.
    fn spend(&mut self, work: usize) -> bool {
        match self.work.checked_sub(work) {
            Some(left) => {
                self.work = left;
                true
            }
            None => {
                self.gave_up = true;
                false
            }
        }
    }

    fn rules(&mut self, id: NodeId, value: &Value<'_>, place: &ValuePath<'_>, sink: &mut Findings) {
        let schema = self.schema;
        let node = schema.node(id);
        if node.never {
            sink.add(FindingKind::Type, place, || {
                "nothing is allowed here".to_owned()
            });
            return;
        }
        if node.nullable && value.is_null() {
            return;
        }
        let fits_type = |types: Types| types.meets(types_of(value));
        if node.types.is_some_and(|types| !fits_type(types)) {
            sink.add(FindingKind::Type, place, || mismatch(schema, id, value));
            return;
        }
        let compared = node.allowed.as_ref().map_or(0, Vec::len) / 8;
        if !self.spend(compared.saturating_mul(cost(value))) {
            return;
        }
        if let Some(allowed) = &node.allowed
            && !allowed.iter().any(|literal| literal.is(value))
        {
            let kind = match allowed.iter().all(Literal::is_null) {
                true => FindingKind::Type,
                false => FindingKind::Value,
            };
            sink.add(kind, place, || mismatch(schema, id, value));
            return;
        }
        match value.node() {
            Json::Number => numbers(node, value, place, sink),
            Json::String(_) if node.length.is_set() => {
                let text = value.as_str().unwrap_or_default();
                let count = text.chars().count() as u64;
                node.length.check(count, "character", place, sink);
            }
            Json::Array(values) => self.array(node, values, place, sink),
            Json::Object(members) => self.object(node, value, members, place, sink),
            Json::String(_) | Json::Null | Json::Bool(_) => {}
        }
        self.combinations(node, value, place, sink);
    }

    fn array(
        &mut self,
        node: &Node,
        values: &[Value<'_>],
        place: &ValuePath<'_>,
        sink: &mut Findings,
    ) {
        node.count.check(values.len() as u64, "item", place, sink);
        for (index, value) in values.iter().enumerate() {
            let part = node.prefix.get(index).copied().or(node.items);
            let Some(part) = part else {
                return;
            };
            self.node(part, value, &ValuePath::Index(place, index), sink);
        }
    }

    fn object(
        &mut self,
        node: &Node,
        value: &Value<'_>,
        members: &[Member<'_>],
        place: &ValuePath<'_>,
        sink: &mut Findings,
    ) {
        let known = |key: &str| node.fields.get(key).copied();
        for name in &node.required {
            if !self.spend(members.len() / 16) {
                return;
            }
            if value.get(name).is_some() {
                continue;
            }
            let schema = self.schema;
            sink.add(FindingKind::Other, place, || {
                let kind = match known(name) {
                    Some(part) => format!(" ({})", schema.expected(&[part])),
                    None => String::new(),
                };
                let strangers = members.iter().map(|member| member.key.to_str());
                let strangers: Vec<_> = strangers.filter(|key| known(key).is_none()).collect();
                let meant = nearest(name, strangers.iter().map(AsRef::as_ref));
                let meant = meant.map(|key| format!("; there is {key:?} instead"));
                format!(
                    "missing required field {name:?}{kind}{}",
                    meant.unwrap_or_default()
                )
            });
        }
        for member in members {
            let key = member.key.to_str();
            let inner = ValuePath::Key(place, &key);
            let Some(part) = known(&key).or(node.additional) else {
                continue;
            };
            if self.schema.node(part).never && known(&key).is_none() {
                sink.add(FindingKind::Other, place, || unknown_field(node, &key));
                continue;
            }
            self.node(part, &member.value, &inner, sink);
        }
    }
}

/// The work of looking at a value, by the length of its text.
fn cost(value: &Value<'_>) -> usize {
    match value.node() {
        Json::Number | Json::String(_) => 1 + value.raw().len() / 256,
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => 1,
    }
}

/// The types of a value: a whole number is a number too.
fn types_of(value: &Value<'_>) -> Types {
    let names: &[&str] = match value.node() {
        Json::Null => &["null"],
        Json::Bool(_) => &["boolean"],
        Json::Number if Number::read(value.raw()).is_whole() => &["integer", "number"],
        Json::Number => &["number"],
        Json::String(_) => &["string"],
        Json::Array(_) => &["array"],
        Json::Object(_) => &["object"],
    };
    let known = names.iter().filter_map(|name| Types::named(name));
    known.fold(Types::NONE, Types::and)
}

fn mismatch(schema: &Schema, id: NodeId, value: &Value<'_>) -> String {
    let named = schema.node(id).allowed.is_some();
    let found = match value.node() {
        Json::String(_) | Json::Number if named => shown(value),
        _ => found(value),
    };
    format!("expected {}, found {found}", schema.expected(&[id]))
}

fn unknown_field(node: &Node, key: &str) -> String {
    let names = || node.properties.iter().map(String::as_str);
    if let Some(meant) = nearest(key, names()) {
        return format!("unknown field {key:?}, did you mean {meant:?}?");
    }
    let known: Vec<String> = names().take(16).map(|name| format!("{name:?}")).collect();
    match known.as_slice() {
        [] => format!("unknown field {key:?}, there are no fields"),
        known => format!("unknown field {key:?}, known are {}", known.join(", ")),
    }
}

fn numbers(node: &Node, value: &Value<'_>, place: &ValuePath<'_>, sink: &mut Findings) {
    let number = Number::read(value.raw());
    let mut demand = |bound: &Option<Bound>, holds: &dyn Fn(&Bound) -> bool, words: [&str; 2]| {
        if let Some(bound) = bound
            && !holds(bound)
        {
            let word = words[usize::from(bound.exclusive)];
            sink.add(FindingKind::Other, place, || {
                format!("expected {word} {}, found {}", bound.raw, shown(value))
            });
        }
    };
    let within = |bound: &Bound, side: Ordering| match number.compare(bound.number) {
        Ordering::Equal => !bound.exclusive,
        other => other == side,
    };
    let above = |bound: &Bound| within(bound, Ordering::Greater);
    let below = |bound: &Bound| within(bound, Ordering::Less);
    let multiple = |bound: &Bound| number.is_multiple_of(bound.number);
    demand(&node.minimum, &above, ["at least", "more than"]);
    demand(&node.maximum, &below, ["at most", "less than"]);
    demand(&node.multiple_of, &multiple, ["a multiple of"; 2]);
}

impl Range {
    fn is_set(self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    fn check(self, count: u64, noun: &str, place: &ValuePath<'_>, sink: &mut Findings) {
        if let Some(min) = self.min.filter(|min| count < *min) {
            sink.add(FindingKind::Other, place, || {
                format!("expected at least {}, found {count}", counted(min, noun))
            });
        }
        if let Some(max) = self.max.filter(|max| count > *max) {
            sink.add(FindingKind::Other, place, || {
                format!("expected at most {}, found {count}", counted(max, noun))
            });
        }
    }
}

/// Refuses duplicate fields: JSON readers differ in which of them counts.
fn refuse_twice(value: &Value<'_>, place: &ValuePath<'_>, sink: &mut Findings) {
    match value.node() {
        Json::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                refuse_twice(value, &ValuePath::Index(place, index), sink);
            }
        }
        Json::Object(members) => {
            if value.has_duplicate_keys() {
                let mut keys: Vec<_> = members.iter().map(|member| member.key.to_str()).collect();
                keys.sort_unstable();
                for pair in keys.windows(2).filter(|pair| pair[0] == pair[1]) {
                    let message = || format!("field {:?} is there twice", pair[0]);
                    sink.add(FindingKind::Other, place, message);
                }
            }
            for member in members {
                let key = member.key.to_str();
                refuse_twice(&member.value, &ValuePath::Key(place, &key), sink);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number | Json::String(_) => {}
    }
}

/// How many violations are collected for one alternative.
const REASONS: usize = 9;

impl Check<'_> {
    pub(super) fn combinations(
        &mut self,
        node: &Node,
        value: &Value<'_>,
        place: &ValuePath<'_>,
        sink: &mut Findings,
    ) {
        for part in node.all_of.iter().copied().chain(node.reference) {
            self.node(part, value, place, sink);
        }
        if let Some(part) = node.not
            && self.fits(part, value)
            && !self.gave_up
        {
            let schema = self.schema;
            sink.add(FindingKind::Other, place, || {
                let unwanted = schema.expected(&[part]);
                format!("must not be {unwanted}, found {}", found(value))
            });
        }
        if !node.any_of.is_empty() && !node.any_of.iter().any(|part| self.fits(*part, value)) {
            self.report_no_match(&node.any_of, value, place, sink);
        }
        if !node.one_of.is_empty() {
            let mut fitting = 0;
            for part in &node.one_of {
                fitting += usize::from(self.fits(*part, value));
            }
            match fitting {
                0 => self.report_no_match(&node.one_of, value, place, sink),
                1 => {}
                _ if self.gave_up => {}
                _ => sink.add(FindingKind::Other, place, || {
                    format!("fits {fitting} of the alternatives, it must fit exactly one")
                }),
            }
        }
    }

    /// Reports that none of the alternatives matches. If one of them was plainly meant, reports the
    /// violations of that one, else what the alternatives are.
    fn report_no_match(
        &mut self,
        parts: &[NodeId],
        value: &Value<'_>,
        place: &ValuePath<'_>,
        sink: &mut Findings,
    ) {
        if self.gave_up {
            return;
        }
        if matches!(sink, Findings::Flag { .. }) {
            sink.add(FindingKind::Other, place, String::new);
            return;
        }
        if self.report_tag(parts, value, place, sink) {
            return;
        }
        let mut reasons = Vec::with_capacity(parts.len());
        for part in parts {
            let mut inner = Findings::collect(REASONS);
            self.node(*part, value, place, &mut inner);
            reasons.push(inner.into_findings());
        }
        let depth = place.depth();
        let own = |finding: &Finding, within: usize| {
            finding.kind != FindingKind::Other && finding.depth <= depth + within
        };
        // First those of the right type, then those with the right tag.
        for within in [0, 1] {
            let mut meant = reasons
                .iter_mut()
                .filter(|findings| !findings.iter().any(|finding| own(finding, within)));
            if let (Some(findings), None) = (meant.next(), meant.next())
                && !findings.is_empty()
            {
                sink.extend(std::mem::take(findings));
                return;
            }
        }
        let mut firsts = reasons.iter().map(|findings| findings.first());
        let all_own = firsts.all(|first| first.is_some_and(|finding| own(finding, 0)));
        let schema = self.schema;
        if all_own {
            sink.add(FindingKind::Type, place, || {
                format!(
                    "expected {}, found {}",
                    schema.expected(parts),
                    found(value)
                )
            });
        } else {
            sink.add(FindingKind::Other, place, || {
                format!(
                    "the {} fits none of {} alternatives",
                    found(value),
                    parts.len()
                )
            });
        }
    }

    /// Alternatives may differ by one field that names them. Reports that field if it is missing or
    /// names none of them.
    fn report_tag(
        &mut self,
        parts: &[NodeId],
        value: &Value<'_>,
        place: &ValuePath<'_>,
        sink: &mut Findings,
    ) -> bool {
        let schema = self.schema;
        let Some((name, tags)) = schema.tag(parts) else {
            return false;
        };
        if value.as_object().is_none() {
            return false;
        }
        let Some(found) = value.get(name) else {
            sink.add(FindingKind::Other, place, || {
                format!(
                    "missing required field {name:?} ({})",
                    schema.expected(&tags)
                )
            });
            return true;
        };
        if tags.iter().any(|tag| self.fits(*tag, found)) {
            return false;
        }
        sink.add(FindingKind::Value, &ValuePath::Key(place, name), || {
            format!(
                "expected {}, found {}",
                schema.expected(&tags),
                shown(found)
            )
        });
        true
    }
}

impl Schema {
    /// The field that all alternatives require and for which each lists its values.
    fn tag(&self, parts: &[NodeId]) -> Option<(&str, Vec<NodeId>)> {
        let names = |part: &NodeId, name: &str| {
            let node = self.target(*part);
            let tag = *node.fields.get(name)?;
            let required = node.required.iter().any(|required| required == name);
            (required && self.target(tag).allowed.is_some()).then_some(tag)
        };
        let first = self.target(*parts.first()?);
        first.properties.iter().find_map(|name| {
            let tags: Option<Vec<_>> = parts.iter().map(|part| names(part, name)).collect();
            Some((name.as_str(), tags?))
        })
    }

    /// The part itself, or the part that it refers to.
    fn target(&self, id: NodeId) -> &Node {
        let node = self.node(id);
        match node.reference {
            Some(target) if node.properties.is_empty() && node.allowed.is_none() => {
                self.target(target)
            }
            _ => node,
        }
    }
}
