use throughline_model::{Event, Fold, Path, Response};

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
    let root = Path::Root.key("event");
    for (index, frame) in frames.iter().enumerate() {
        let events = decoder
            .push(frame)
            .map_err(|error| error.inside(&root.index(index)))?;
        for event in events {
            fold.push(event);
        }
    }
    for event in decoder.end()? {
        fold.push(event);
    }
    Ok(fold.finish())
}
