//! Streams: those of [`openai_responses`](crate::openai_responses). Foundry's own items come whole in
//! `output_item.done`; their progress events have no neutral form and are passed on.

use throughline_model::Response;

use super::FOUNDRY;
use crate::openai_responses::stream;
use crate::sse::Frame;
use crate::{Losses, StreamDecoder};

pub(super) fn decoder() -> Box<dyn StreamDecoder> {
    Box::new(stream::Decoder::new(&FOUNDRY))
}

pub(super) fn encode_stream(response: &Response, losses: &mut Losses) -> Vec<Frame> {
    stream::encode_stream(&FOUNDRY, response, losses)
}
