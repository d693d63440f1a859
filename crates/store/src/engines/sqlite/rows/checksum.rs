//! A check over what a run's row says of its last node.
//!
//! Which node is a run's last, and whether results were left unsent behind it, is said by the row of the run alone:
//! it changes after the node was written, so that the digest of the node cannot cover it. The bits of `run.flags`
//! above the lowest eight hold a checksum over it, which finds every changed bit. Rows of older versions have none.

use crate::engines::sqlite::rows::flag;
use crate::{Position, RunId};

/// Two bits that every seal has, so that no single changed bit makes a row one without a seal.
const MARK: u32 = 0x0300_0000;

/// The flags proper.
pub(crate) const FLAGS: u32 = 0xFF;

/// Those that the seal covers. The others are set by other processes while the run goes on.
const COVERED: u32 = flag::LEASED | flag::PER_CALL | flag::APPEND | flag::UNSENT;

/// The last node of a run: timeline, first position, step.
pub(crate) type LastNode = (i64, Position, u32);

/// The bits to set in `run.flags` for a run with these flags and this last node.
pub(crate) fn checksum(run: &RunId, flags: u32, last: Option<LastNode>) -> u32 {
    let mut sum = crc16(0xFFFF, run.as_bytes());
    sum = crc16(sum, &(flags & COVERED).to_le_bytes());
    if let Some((timeline, first, step)) = last {
        sum = crc16(sum, &timeline.to_le_bytes());
        sum = crc16(sum, &first.to_le_bytes());
        sum = crc16(sum, &step.to_le_bytes());
    }
    MARK | u32::from(sum) << 8
}

/// Whether what was read is what was sealed.
pub(crate) fn is_intact(run: &RunId, flags: u32, last: Option<LastNode>) -> bool {
    flags & !FLAGS == 0 || flags & !FLAGS == checksum(run, flags, last)
}

/// One byte's part of the CRC-16 with the polynomial 0x1021.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 0x8000 == 0 {
                sum << 1
            } else {
                sum << 1 ^ 0x1021
            };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

fn crc16(sum: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(sum, |sum, byte| {
        let place = (sum >> 8) as u8 ^ byte;
        sum << 8 ^ TABLE[usize::from(place)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_bit_is_found() {
        let run = RunId::from_bytes([7; 16]);
        let last = (12, 345, 6);
        for flags in [0, flag::UNSENT, flag::LEASED | flag::PER_CALL] {
            let stored = flags | checksum(&run, flags, Some(last));
            assert!(is_intact(&run, stored, Some(last)));
            assert!(is_intact(
                &run,
                stored | flag::HIDDEN | flag::MOVED,
                Some(last)
            ));
            assert!(!is_intact(&run, stored, None));
            for bit in 0..64 {
                let (timeline, first, step) = last;
                assert!(!is_intact(
                    &run,
                    stored,
                    Some((timeline ^ (1 << bit), first, step))
                ));
                assert!(!is_intact(
                    &run,
                    stored,
                    Some((timeline, first ^ (1 << bit), step))
                ));
            }
            for bit in 0..32 {
                let changed = stored ^ (1 << bit);
                let is_covered = (1 << bit) & (COVERED | !FLAGS) != 0;
                assert_eq!(
                    is_intact(&run, changed, Some(last)),
                    !is_covered,
                    "bit {bit}"
                );
                let step = last.2 ^ (1 << bit);
                assert!(!is_intact(&run, stored, Some((last.0, last.1, step))));
            }
        }
        // What an older version wrote has no seal.
        assert!(is_intact(&run, flag::UNSENT, Some(last)));
    }
}
