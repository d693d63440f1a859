//! How many bytes a value holds on the heap, for limits that count memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::mem::size_of;
use std::sync::Arc;

/// What an allocator adds to an allocation, about: its header or the rest of its size class.
const ALLOCATION: usize = 16;

/// Values that own memory on the heap.
///
/// The size of the value itself is not part of it, so that the sizes of nested values add up; spare
/// capacity of vectors and strings is. An estimate of allocator overhead is included, because a limit on
/// memory is about what the process really holds.
///
/// ```
/// use throughline_model::{HeapSize, Message};
///
/// let long = Message::user("x".repeat(10_000));
/// assert!(long.heap_size() >= 10_000);
/// ```
pub trait HeapSize {
    /// Bytes of the allocations that this value owns, directly and through its fields.
    fn heap_size(&self) -> usize;
}

/// One allocation of so many bytes; none if there are none.
pub(crate) fn allocation(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + ALLOCATION }
}

impl HeapSize for String {
    fn heap_size(&self) -> usize {
        allocation(self.capacity())
    }
}

impl HeapSize for Box<str> {
    fn heap_size(&self) -> usize {
        allocation(self.len())
    }
}

impl<T: HeapSize> HeapSize for Option<T> {
    fn heap_size(&self) -> usize {
        self.as_ref().map_or(0, T::heap_size)
    }
}

impl<T: HeapSize> HeapSize for Box<T> {
    fn heap_size(&self) -> usize {
        allocation(size_of::<T>()) + T::heap_size(self)
    }
}

/// The whole value counts, however many share it: it lives as long as the last of them.
impl<T: HeapSize> HeapSize for Arc<T> {
    fn heap_size(&self) -> usize {
        allocation(size_of::<T>() + 2 * size_of::<usize>()) + T::heap_size(self)
    }
}

impl<T: HeapSize> HeapSize for Vec<T> {
    fn heap_size(&self) -> usize {
        let elements = self.iter().map(T::heap_size);
        allocation(self.capacity() * size_of::<T>()) + elements.sum::<usize>()
    }
}

impl<T: HeapSize> HeapSize for Box<[T]> {
    fn heap_size(&self) -> usize {
        let elements = self.iter().map(T::heap_size);
        allocation(size_of_val::<[T]>(self)) + elements.sum::<usize>()
    }
}

/// A table of the standard library: a power of two of slots, of which seven eighths are used, and one
/// control byte for each.
fn table(capacity: usize, slot: usize) -> usize {
    match capacity {
        0 => 0,
        _ => allocation((capacity * 8 / 7).next_power_of_two() * (slot + 1) + 16),
    }
}

impl<T: HeapSize, S: BuildHasher> HeapSize for HashSet<T, S> {
    fn heap_size(&self) -> usize {
        let elements = self.iter().map(T::heap_size);
        table(self.capacity(), size_of::<T>()) + elements.sum::<usize>()
    }
}

impl<K: HeapSize, V: HeapSize, S: BuildHasher> HeapSize for HashMap<K, V, S> {
    fn heap_size(&self) -> usize {
        let elements = self
            .iter()
            .map(|(key, value)| key.heap_size() + value.heap_size());
        table(self.capacity(), size_of::<(K, V)>()) + elements.sum::<usize>()
    }
}

/// The nodes of a B-tree, which are two thirds full on average.
fn tree(length: usize, entry: usize) -> usize {
    length * (entry + size_of::<usize>()) * 3 / 2
}

impl<T: HeapSize> HeapSize for BTreeSet<T> {
    fn heap_size(&self) -> usize {
        let elements = self.iter().map(T::heap_size);
        tree(self.len(), size_of::<T>()) + elements.sum::<usize>()
    }
}

impl<K: HeapSize, V: HeapSize> HeapSize for BTreeMap<K, V> {
    fn heap_size(&self) -> usize {
        let elements = self
            .iter()
            .map(|(key, value)| key.heap_size() + value.heap_size());
        tree(self.len(), size_of::<(K, V)>()) + elements.sum::<usize>()
    }
}

macro_rules! nothing_on_the_heap {
    ($($type:ty),*) => {
        $(impl HeapSize for $type {
            fn heap_size(&self) -> usize {
                0
            }
        })*
    };
}

nothing_on_the_heap!(bool, i64, u16, u32, u64, usize);

/// Implements the trait for a struct as the sum of its fields; those behind the semicolon hold nothing. A
/// new field does not compile until it stands on one side.
macro_rules! heap_size_of_fields {
    ($type:ident { $($field:ident),*; $($flat:ident),* }) => {
        impl $crate::HeapSize for $type {
            fn heap_size(&self) -> usize {
                let Self { $($field,)* $($flat: _,)* } = self;
                0 $(+ $crate::HeapSize::heap_size($field))*
            }
        }
    };
}

pub(crate) use heap_size_of_fields;
