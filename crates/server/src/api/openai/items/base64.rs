//! Base 64 as in RFC 4648, with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0u32;
        for place in 0..3 {
            bits = bits << 8 | u32::from(group.get(place).copied().unwrap_or(0));
        }
        for place in 0..4 {
            let digit = bits >> (18 - 6 * place) & 63;
            let digit = ALPHABET.get(digit as usize).copied().unwrap_or(b'A');
            // One byte makes two digits, two make three.
            out.push(match place <= group.len() {
                true => char::from(digit),
                false => '=',
            });
        }
    }
    out
}

/// Text as bytes; nothing if it is not base 64 as [`encode`] writes it.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let last = (text.len() / 4).checked_sub(1);
    for (number, group) in text.chunks_exact(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || padding > 0 && Some(number) != last {
            return None;
        }
        let mut bits = 0u32;
        for byte in group.iter().take(4 - padding) {
            let digit = ALPHABET.iter().position(|digit| digit == byte)?;
            bits = bits << 6 | u32::try_from(digit).ok()?;
        }
        bits <<= 6 * padding;
        let [_, bytes @ ..] = bits.to_be_bytes();
        let (kept, dropped) = bytes.split_at(3 - padding);
        // Bits that say nothing would give one value two spellings.
        if dropped.iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn texts_of_the_standard_are_written_and_read() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn what_is_not_written_like_this_is_not_read() {
        for text in [
            "Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9=", "====", "Zm9v\n", "Zm-v",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn all_bytes_survive() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
    }
}
