use throughline_model::{Event, Fold, Response};

use crate::sse::Frame;
use crate::{Codec, DecodeError};

/// Reads the frames of one streamed response as model events.
///
/// Feeding its events to a [`Fold`] gives the response that the codec would have read from the
/// whole body.
pub trait StreamDecoder: Send {
    /// Take one frame. After an error the response is lost; nothing more should be pushed.
    fn push(&mut self, frame: &Frame) -> Result<Vec<Event>, DecodeError>;

    /// The input is over. Gives what was held back; nothing if the vendor ended properly.
    fn end(&mut self) -> Result<Vec<Event>, DecodeError>;
}

/// Read all frames of a streamed response.
pub fn assemble(codec: &dyn Codec, frames: &[Frame]) -> Result<Response, DecodeError> {
    let mut decoder = codec.stream();
    let mut fold = Fold::new();
    for frame in frames {
        for event in decoder.push(frame)? {
            fold.push(event);
        }
    }
    for event in decoder.end()? {
        fold.push(event);
    }
    Ok(fold.finish())
}
