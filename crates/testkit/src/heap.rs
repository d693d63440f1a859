//! An allocator that counts the memory of a thread, for tests that compare an estimate with the
//! truth.

#![expect(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The overhead of an allocation, approximately: its header or the rest of its size class.
const OVERHEAD: isize = 16;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count per thread. A test program declares it as its
/// `#[global_allocator]`.
pub struct CountingAllocator;

impl CountingAllocator {
    /// The bytes that this thread has allocated and not freed, plus 16 for each allocation. Memory
    /// that another thread frees remains counted here.
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
