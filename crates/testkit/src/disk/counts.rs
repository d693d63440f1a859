//! Counts of calls.

/// Calls on the files of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Reads.
    pub reads: u64,
    /// Writes, and changes of a file's size.
    pub writes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Attempts to take or release a lock of the shared memory.
    pub locks: u64,
    /// Calls that were made to fail.
    pub failed: u64,
}

impl DiskCounts {
    /// Calls at which the power can be cut.
    pub fn cuttable(&self) -> u64 {
        self.writes + self.syncs
    }
}
