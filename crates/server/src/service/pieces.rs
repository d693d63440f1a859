//! Long texts that several frames share.
//!
//! The last events of an answer repeat its text: `output_text.done`, `content_part.done`,
//! `output_item.done` and `response.completed` each have all of it. A reader that is slow would hold
//! it four times.

use bytes::Bytes;

/// Frames from this size on are searched for texts that are shared. Smaller ones stay in one
/// piece: readers exist that lose a frame which comes in two.
const LONG_FRAME: usize = 64 << 10;

/// A text in JSON is shared from this size on.
const LONG_TEXT: usize = 16 << 10;

/// Bytes in one piece or in several, some of which others have too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// One piece.
    One(Bytes),
    /// Several.
    Many(Vec<Bytes>),
}

impl Pieces {
    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.as_slice().iter().map(Bytes::len).sum()
    }

    /// In their order.
    pub(crate) fn as_slice(&self) -> &[Bytes] {
        match self {
            Self::One(piece) => std::slice::from_ref(piece),
            Self::Many(pieces) => pieces,
        }
    }
}

/// Finds texts that came before, and shares them.
#[derive(Debug, Default)]
pub(crate) struct SharedTexts {
    texts: Vec<Bytes>,
}

impl SharedTexts {
    /// The same bytes, which are JSON or a frame around it, with long texts shared.
    pub(crate) fn pieces(&mut self, whole: Bytes) -> Pieces {
        if whole.len() < LONG_FRAME {
            return Pieces::One(whole);
        }
        let mut pieces = Vec::new();
        let mut from = 0;
        for (start, end) in long_texts(&whole) {
            // What is not shared is copied, or a few bytes would keep all of it.
            pieces.push(Bytes::copy_from_slice(&whole[from..start]));
            pieces.push(self.shared(&whole[start..end]));
            from = end;
        }
        if from == 0 {
            return Pieces::One(whole);
        }
        pieces.push(Bytes::copy_from_slice(&whole[from..]));
        Pieces::Many(pieces)
    }

    fn shared(&mut self, text: &[u8]) -> Bytes {
        if let Some(known) = self.texts.iter().find(|known| known[..] == *text) {
            return known.clone();
        }
        let text = Bytes::copy_from_slice(text);
        self.texts.push(text.clone());
        text
    }

    /// Share nothing of what came before any longer.
    pub(crate) fn clear(&mut self) {
        self.texts.clear();
    }
}

/// How many bytes of memory pieces take, each text once.
pub(crate) fn held_bytes<'p>(all: impl IntoIterator<Item = &'p Pieces>) -> usize {
    let mut seen = Vec::new();
    let mut held = 0;
    for piece in all.into_iter().flat_map(Pieces::as_slice) {
        if piece.len() >= LONG_TEXT {
            if seen.contains(&piece.as_ptr()) {
                continue;
            }
            seen.push(piece.as_ptr());
        }
        held += piece.len();
    }
    held
}

/// Where long texts stand in JSON, without their quotation marks.
fn long_texts(json: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(quote) = json[at..].iter().position(|byte| *byte == b'"') {
        let start = at + quote + 1;
        let mut end = start;
        while let Some(byte) = json.get(end) {
            match byte {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        let end = end.min(json.len());
        if end - start >= LONG_TEXT {
            found.push((start, end));
        }
        at = (end + 1).min(json.len());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &Pieces) -> Vec<u8> {
        pieces.as_slice().concat()
    }

    #[test]
    fn frames_with_the_same_text_share_it_and_say_the_same() {
        let text = r#"Ebb \"and\" flow \\ "#.repeat(LONG_FRAME / 16);
        let frames: Vec<Bytes> = (0..4)
            .map(|number| {
                let part = r#"{"type":"output_text","text":"#;
                format!("event: a\ndata: {{\"n\":{number},\"part\":{part}\"{text}\"}}}}\n\n").into()
            })
            .collect();
        let mut shared = SharedTexts::default();
        let pieces: Vec<Pieces> = frames
            .iter()
            .map(|frame| shared.pieces(frame.clone()))
            .collect();
        for (pieces, frame) in pieces.iter().zip(&frames) {
            assert_eq!(joined(pieces), frame[..]);
            assert_eq!(pieces.len(), frame.len());
        }
        let held = held_bytes(&pieces);
        assert!(held < text.len() + 1_000, "{held} of {}", text.len());
    }

    #[test]
    fn small_frames_and_what_has_no_long_text_stay_in_one_piece() {
        let mut shared = SharedTexts::default();
        let small = Bytes::from(format!("{{\"text\":\"{}\"}}", "x".repeat(LONG_TEXT)));
        assert_eq!(shared.pieces(small.clone()), Pieces::One(small));
        let list = Bytes::from(format!("[{}\"\"]", "\"ab\\\"\",".repeat(LONG_FRAME)));
        assert_eq!(shared.pieces(list.clone()), Pieces::One(list));
    }

    #[test]
    fn what_breaks_off_in_a_text_is_kept_whole() {
        let mut shared = SharedTexts::default();
        for end in ["", "\\", "\\\"", "\""] {
            let cut = Bytes::from(format!("{{\"text\":\"{}{end}", "x".repeat(LONG_FRAME)));
            assert_eq!(joined(&shared.pieces(cut.clone())), cut[..]);
        }
    }
}
