//! Reading whole messages out of a branch of items: the same for every engine.

use crate::item::{Item, ItemKind, located as read};
use crate::trials;
use crate::{Entry, Position, Result, Span};

/// Items that are read at once when a message turns out to be longer than hoped.
const MORE: u64 = 32;

/// What `fetch` must give: the items at the positions from `lo` to `hi`, all of them, in order.
pub(crate) trait Fetch: FnMut(Position, Position) -> Result<Vec<Item>> {}
impl<F: FnMut(Position, Position) -> Result<Vec<Item>>> Fetch for F {}

/// Whether an item starts a message for certain.
fn starts(item: &Item) -> bool {
    item.kind == ItemKind::Message
}

/// Messages of a branch that ends at `last`, and whether there are more in the direction of reading.
pub(crate) fn page(
    span: Span,
    last: Position,
    limit: usize,
    fetch: impl Fetch,
) -> Result<(Vec<Entry>, bool)> {
    match span {
        Span::Tail => before(last, limit, fetch),
        Span::After(position) => after(position, last, limit, fetch),
        Span::Before(position) => until(position, last, limit, fetch),
    }
}

/// The last `limit` messages that end at or before `last`, and whether there are earlier ones.
pub(crate) fn before(
    last: Position,
    limit: usize,
    mut fetch: impl Fetch,
) -> Result<(Vec<Entry>, bool)> {
    let mut items: Vec<Item> = Vec::new();
    let mut first = last + 1;
    let mut want = limit as u64;
    loop {
        let whole = first == 1
            || items.first().is_some_and(starts)
            || (trials::planted("tail-splits") && !items.is_empty());
        if whole {
            let mut found = read(&items, first)?;
            if found.len() >= limit || first == 1 {
                let cut = found.len().saturating_sub(limit);
                let more = cut > 0 || first > 1;
                found.drain(..cut);
                return Ok((found, more));
            }
            want = (limit - found.len()) as u64;
        } else if !items.is_empty() {
            want = MORE;
        }
        if limit == 0 || last == 0 {
            return Ok((Vec::new(), last > 0));
        }
        let lo = first.saturating_sub(want).max(1);
        let mut earlier = fetch(lo, first - 1)?;
        earlier.append(&mut items);
        items = earlier;
        first = lo;
    }
}

/// The first `limit` messages that start after `after` and end at or before `last`, and whether
/// there are later ones.
pub(crate) fn after(
    after: Position,
    last: Position,
    limit: usize,
    mut fetch: impl Fetch,
) -> Result<(Vec<Entry>, bool)> {
    let mut items: Vec<Item> = Vec::new();
    // The item at `after` tells whether what follows still belongs to its message.
    let mut next = after.max(1);
    let first = next;
    let mut want = (limit as u64).saturating_add(2);
    loop {
        let hi = next.saturating_add(want).min(last);
        if next <= hi {
            items.extend(fetch(next, hi)?);
            next = hi + 1;
        }
        let mut found = read(&items, first)?;
        let skipped = u64::from(trials::planted("cursor-skips") && after > 0);
        found.retain(|entry| entry.first > after + skipped);
        // The last message read may go on.
        let settled = if next > last || trials::planted("page-cuts") {
            found.len()
        } else {
            found.len().saturating_sub(1)
        };
        if settled >= limit || next > last {
            let more = found.len() > limit;
            found.truncate(limit);
            return Ok((found, more));
        }
        want = MORE.max((limit - settled) as u64);
    }
}

/// The last `limit` messages that end before `position` on a branch that ends at `last`, and
/// whether there are earlier ones. A message that goes on at `position` or after it is left out.
fn until(
    position: Position,
    last: Position,
    limit: usize,
    mut fetch: impl Fetch,
) -> Result<(Vec<Entry>, bool)> {
    if position > last {
        return before(last, limit, fetch);
    }
    // Read on to where the next message starts for certain: only then it is known where the one
    // before ends.
    let mut end = position.saturating_sub(1);
    while end < last {
        let hi = end.saturating_add(MORE).min(last);
        let items = fetch(end + 1, hi)?;
        let Some(place) = items.iter().position(starts) else {
            end = hi;
            continue;
        };
        end += place as u64;
        break;
    }
    let (mut found, mut more) = before(end, limit.saturating_add(1), fetch)?;
    found.retain(|entry| entry.last < position);
    if found.len() > limit {
        found.drain(..found.len() - limit);
        more = true;
    }
    Ok((found, more))
}
