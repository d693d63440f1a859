//! Combinations of schemas, and which of several alternatives to complain about.

use throughline_model::json::Value;

use super::check::Check;
use super::describe::{found, shown};
use super::sink::{Finding, Kind, Place, Sink};
use super::{Node, NodeId, Schema};

/// How many reasons are looked for in one alternative.
const REASONS: usize = 9;

impl Check<'_> {
    pub(super) fn combinations(
        &mut self,
        node: &Node,
        value: &Value<'_>,
        place: &Place<'_>,
        sink: &mut Sink,
    ) {
        for part in node.all_of.iter().copied().chain(node.reference) {
            self.node(part, value, place, sink);
        }
        if let Some(part) = node.not
            && self.fits(part, value)
            && !self.gave_up
        {
            let schema = self.schema;
            sink.add(Kind::Other, place, || {
                let unwanted = schema.expected(&[part]);
                format!("must not be {unwanted}, found {}", found(value))
            });
        }
        if !node.any_of.is_empty() && !node.any_of.iter().any(|part| self.fits(*part, value)) {
            self.complain(&node.any_of, value, place, sink);
        }
        if !node.one_of.is_empty() {
            let mut fitting = 0;
            for part in &node.one_of {
                fitting += usize::from(self.fits(*part, value));
            }
            match fitting {
                0 => self.complain(&node.one_of, value, place, sink),
                1 => {}
                _ if self.gave_up => {}
                _ => sink.add(Kind::Other, place, || {
                    format!("fits {fitting} of the alternatives, it must fit exactly one")
                }),
            }
        }
    }

    /// None of some alternatives fits. If one of them was plainly meant, say what is wrong with the
    /// value as that one; else say what the alternatives are.
    fn complain(
        &mut self,
        parts: &[NodeId],
        value: &Value<'_>,
        place: &Place<'_>,
        sink: &mut Sink,
    ) {
        if self.gave_up {
            return;
        }
        if matches!(sink, Sink::Quiet { .. }) {
            sink.add(Kind::Other, place, String::new);
            return;
        }
        if self.complain_of_tag(parts, value, place, sink) {
            return;
        }
        let mut reasons = Vec::with_capacity(parts.len());
        for part in parts {
            let mut inner = Sink::loud(REASONS);
            self.node(*part, value, place, &mut inner);
            reasons.push(inner.into_findings());
        }
        let depth = place.depth();
        let own = |finding: &Finding, within: usize| {
            finding.kind != Kind::Other && finding.depth <= depth + within
        };
        // First those of the right type, then those whose tag is right.
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
            sink.add(Kind::Type, place, || {
                format!(
                    "expected {}, found {}",
                    schema.expected(parts),
                    found(value)
                )
            });
        } else {
            sink.add(Kind::Other, place, || {
                format!(
                    "the {} fits none of {} alternatives",
                    found(value),
                    parts.len()
                )
            });
        }
    }

    /// Alternatives may differ by one field that names them. Complain of that field if it is missing
    /// or names none of them.
    fn complain_of_tag(
        &mut self,
        parts: &[NodeId],
        value: &Value<'_>,
        place: &Place<'_>,
        sink: &mut Sink,
    ) -> bool {
        let schema = self.schema;
        let Some((name, tags)) = schema.tag(parts) else {
            return false;
        };
        if value.as_object().is_none() {
            return false;
        }
        let Some(found) = value.get(name) else {
            sink.add(Kind::Other, place, || {
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
        sink.add(Kind::Value, &Place::Key(place, name), || {
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
    /// The field that all of some objects require and for which each names the values it can have.
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

    /// The part itself, or what it is a mere reference to.
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
