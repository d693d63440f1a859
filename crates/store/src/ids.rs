//! Making ids.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{ApprovalId, Clock, OwnerId, RunId, ThreadId};

/// For how many ids randomness is asked for at once.
const AT_ONCE: usize = 32;

/// Makes ids: time-ordered, so that their indexes grow at one edge.
#[derive(Debug)]
pub struct Ids {
    clock: Arc<dyn Clock>,
    last: Mutex<u64>,
    /// Randomness that was not used yet: asking the system for each id costs more than the id.
    random: Mutex<Vec<[u8; 8]>>,
    /// Where randomness comes from, if not from the operating system.
    #[cfg(feature = "conformance")]
    seed: Option<Mutex<u64>>,
}

impl Ids {
    /// Ids from a clock and the operating system's randomness.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            last: Mutex::new(0),
            random: Mutex::default(),
            #[cfg(feature = "conformance")]
            seed: None,
        }
    }

    /// The same ids for the same seed and clock, for simulations. Never for what is kept: two
    /// stores with one seed make the same ids.
    #[cfg(feature = "conformance")]
    pub fn seeded(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self {
            seed: Some(Mutex::new(seed)),
            ..Self::new(clock)
        }
    }

    fn random(&self) -> [u8; 8] {
        #[cfg(feature = "conformance")]
        if let Some(seed) = &self.seed {
            let mut seed = seed.lock().unwrap_or_else(PoisonError::into_inner);
            *seed = seed.wrapping_add(1);
            let hash = blake3::hash(&seed.to_le_bytes());
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&hash.as_bytes()[..8]);
            return bytes;
        }
        let mut left = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = left.pop() {
            return bytes;
        }
        let mut fresh = [0; 8 * AT_ONCE];
        // Without randomness ids could repeat between processes; there is nothing sound to go on with.
        getrandom::fill(&mut fresh).expect("the operating system gives random bytes");
        let (pieces, _) = fresh.as_chunks::<8>();
        left.extend_from_slice(&pieces[1..]);
        pieces[0]
    }

    /// A UUID version 7 whose first 60 bits never go back in this process.
    fn next(&self) -> [u8; 16] {
        let mut bytes = [0u8; 16];
        bytes[8..].copy_from_slice(&self.random());
        let ticks = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            // Twelve bits below the millisecond count within it.
            *last = (*last + 1).max(self.clock.now() << 12);
            *last
        };
        bytes[..6].copy_from_slice(&(ticks >> 12).to_be_bytes()[2..]);
        let low = ticks.to_be_bytes();
        bytes[6] = 0x70 | (low[6] & 0x0F);
        bytes[7] = low[7];
        bytes[8] = 0x80 | (bytes[8] & 0x3F);
        bytes
    }

    /// A thread.
    pub fn thread(&self) -> ThreadId {
        ThreadId::from_bytes(&self.next())
    }

    /// A run.
    pub fn run(&self) -> RunId {
        RunId::from_bytes(self.next())
    }

    /// An approval.
    pub fn approval(&self) -> ApprovalId {
        ApprovalId::from_bytes(self.next())
    }

    /// A process.
    pub fn owner(&self) -> OwnerId {
        OwnerId::from_bytes(self.next())
    }
}
