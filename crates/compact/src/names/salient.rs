//! The most informative names of one text, without other knowledge.

use std::collections::HashMap;

use super::scan::{Kind, scan};
use super::worth::base;
use crate::tokens;

/// The names of a text that are worth most for their size, in the order of the text, in about so many units.
pub(crate) fn salient(text: &str, units: u64) -> Vec<&str> {
    struct Seen<'a> {
        shown: &'a str,
        kind: Kind,
        times: u64,
        defined: bool,
    }
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut seen: Vec<Seen<'_>> = Vec::new();
    scan(text, |found| {
        let next = seen.len();
        let id = *ids.entry(found.key).or_insert(next);
        if id == next {
            seen.push(Seen {
                shown: if found.kind == Kind::Path {
                    found.key
                } else {
                    found.shown
                },
                kind: found.kind,
                times: 0,
                defined: false,
            });
        }
        if let Some(seen) = seen.get_mut(id) {
            seen.times += 1;
            seen.defined |= found.defined;
        }
    });
    let mut order: Vec<(u64, u64, usize)> = Vec::with_capacity(seen.len());
    for (id, one) in seen.iter().enumerate() {
        let cost = u64::from(tokens::text_units(one.shown)) + 1;
        let points = base(one.kind) * (100 + 20 * one.times.min(6) + 70 * u64::from(one.defined));
        order.push((points * 64 / cost, cost, id));
    }
    order.sort_by_key(|(density, _, id)| (std::cmp::Reverse(*density), *id));
    let mut room = units;
    let mut chosen = Vec::new();
    for (_, cost, id) in order {
        if cost > room {
            break;
        }
        room -= cost;
        chosen.push(id);
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|id| seen[id].shown).collect()
}
