//! How flushes are packed: several into one row of a settled run, those of many runs into a slot.

use crate::{Flush, varint};

/// What a slot holds; with what SQLite adds, a row of it fills one page and never another one.
pub(super) const SLOT_BYTES: usize = 8000;

/// What the numbers before the bytes of a flush take, at most.
pub(super) const ENTRY_OVERHEAD: usize = 40;

/// A flush in a slot.
pub(super) struct SlotEntry {
    pub(super) run: i64,
    pub(super) flush: Flush,
}

/// Pack a flush as rows of settled runs have it.
pub(super) fn push_flush(out: &mut Vec<u8>, flush: &Flush) {
    varint::push(out, u64::from(flush.count));
    varint::push(out, flush.payload.len() as u64);
    out.extend_from_slice(&flush.payload);
}

/// Pack a flush as slots have it; where the part begins that rows of settled runs have.
pub(super) fn push_entry(out: &mut Vec<u8>, run: i64, flush: &Flush) -> usize {
    varint::push(out, run.cast_unsigned());
    varint::push(out, flush.first);
    let inner = out.len();
    push_flush(out, flush);
    inner
}

fn take_flush(rest: &mut &[u8], first: u64) -> Option<Flush> {
    let count = u32::try_from(varint::take(rest)?).ok()?;
    let length = usize::try_from(varint::take(rest)?).ok()?;
    let (payload, after) = rest.split_at_checked(length)?;
    *rest = after;
    // A number that runs over is damage, and so is a flush of nothing.
    first.checked_add(u64::from(count)).filter(|_| count > 0)?;
    Some(Flush {
        first,
        count,
        payload: payload.to_vec(),
    })
}

/// The flushes in a row of a settled run. `None` if the bytes are damaged.
pub(super) fn flushes(first: u64, bytes: &[u8]) -> Option<Vec<Flush>> {
    let mut rest = bytes;
    let mut next = first;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let flush = take_flush(&mut rest, next)?;
        next = flush.end();
        found.push(flush);
    }
    Some(found)
}

/// The entries of a slot: up to a run of number 0, which no run has. `None` if it is damaged.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<SlotEntry>> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let run = varint::take(&mut rest)?.cast_signed();
        if run == 0 {
            return rest.iter().all(|byte| *byte == 0).then_some(found);
        }
        let first = varint::take(&mut rest)?;
        let flush = take_flush(&mut rest, first)?;
        found.push(SlotEntry { run, flush });
    }
    Some(found)
}
