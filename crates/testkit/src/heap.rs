//! An allocator that counts what a thread holds, for tests that compare an estimate of memory with the truth.

#![expect(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What an allocator adds to each allocation, about: its header or the rest of its size class.
const OVERHEAD: isize = 16;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The allocator of the system, with a count for each thread. A test program names it as its
/// `#[global_allocator]`.
pub struct CountingAllocator;

impl CountingAllocator {
    /// How many bytes this thread has allocated and not freed, with 16 more for each allocation. Memory
    /// that another thread frees stays counted here.
    pub fn held() -> isize {
        HELD.get()
    }
}

fn add(bytes: isize) {
    // A thread that is ending has no count any more; nothing is measured there.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every method hands its arguments on to the allocator of the system, which upholds the contract.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize + OVERHEAD);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize + OVERHEAD));
        // SAFETY: `pointer` came from `alloc` with this layout, which is that of the system.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as isize - layout.size() as isize);
        // SAFETY: as for `dealloc`; the caller upholds that `size` is not zero.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
