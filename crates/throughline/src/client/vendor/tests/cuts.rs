//! Streams that are cut at every byte.

use bytes::Bytes;
use futures_util::stream;
use throughline_model::json::{self, Value};
use throughline_model::{Fold, Response, Wire};
use throughline_wire::sse::{Frame, Limits, encode};
use throughline_wire::{Codec, codec};

use super::super::answer::{Head, VendorAnswer};
use super::super::answer_memory::AnswerMemory;
use super::super::dialect::EndMark;
use super::super::stored_by::StoredBy;
use super::super::stream::EventReader;
use crate::client::http::{BodyReader, HttpResponse};
use crate::client::{ClientError, ErrorKind};

/// Streams of every vendor: from the catalogue, and as each codec encodes them.
fn streams() -> Vec<(&'static Codec, String, Vec<u8>)> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../wire/tests/fixtures/catalogue/streams.json"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let rows = json::parse(&text).unwrap();
    let mut found = Vec::new();
    for row in rows.as_array().unwrap() {
        let word = |key: &str| row.get(key).and_then(Value::as_str).unwrap().into_owned();
        let wire = match (word("provider").as_str(), word("api").as_str()) {
            ("openai", "chat") => Wire::OpenAiChat,
            ("openai", _) => Wire::OpenAiResponses,
            ("anthropic", _) => Wire::Anthropic,
            ("gemini", "interactions") => Wire::GeminiInteractions,
            ("gemini", _) => Wire::Gemini,
            other => panic!("{other:?}"),
        };
        let events = row.get("events").unwrap().as_array().unwrap();
        let mut frames: Vec<Frame> = events.iter().map(|event| frame(event.raw())).collect();
        if wire == Wire::OpenAiChat {
            frames.push(frame("[DONE]"));
        }
        let texts = frames.iter().map(|frame| encode(frame).unwrap());
        let bytes = texts.collect::<String>().into_bytes();
        found.push((codec(&wire).unwrap(), word("name"), bytes));
    }
    assert!(found.len() >= 8);
    found
}

fn frame(data: &str) -> Frame {
    Frame {
        data: data.to_owned(),
        ..Frame::default()
    }
}

/// The response that a client reads from the pieces of a stream.
async fn read(codec: &'static Codec, pieces: &[&[u8]]) -> Result<Response, ClientError> {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    let response = HttpResponse {
        status: 200,
        headers: Vec::new(),
        body: Box::pin(stream::iter(pieces)),
    };
    let head = Head {
        upstream: "test".to_owned(),
        status: 200,
        meta: throughline_wire::http::ResponseMeta::default(),
        content_type: None,
        secret: None,
        stored_by: StoredBy::Us,
        can_be_asked: false,
    };
    let body = BodyReader::new(response, "test", None, u64::MAX);
    let answer = VendorAnswer::new(head, body, AnswerMemory::new(u64::MAX, None));
    let mut reader = EventReader::new(codec, answer, Limits::default(), EndMark::Required);
    let mut fold = Fold::new();
    while let Some(event) = reader.next().await? {
        fold.push(event);
    }
    Ok(fold.finish())
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_is_an_error_or_whole() {
    let mut whole_ones = 0;
    for (codec, name, bytes) in streams() {
        let whole = read(codec, &[&bytes]).await;
        whole_ones += usize::from(whole.is_ok());
        for cut in 0..bytes.len() {
            match (read(codec, &[&bytes[..cut]]).await, &whole) {
                (Err(error), _) => assert_eq!(error.kind(), ErrorKind::Cut, "{name} at {cut}"),
                (Ok(found), Ok(whole)) => assert_eq!(found, *whole, "{name} at {cut}"),
                (Ok(_), Err(_)) => panic!("{name} at {cut}: whole, though all of it is not"),
            }
        }
    }
    assert!(whole_ones >= 6, "{whole_ones}");
}

#[tokio::test]
async fn how_a_stream_is_cut_into_pieces_does_not_show() {
    for (codec, name, bytes) in streams() {
        let whole = read(codec, &[&bytes]).await.map_err(|error| error.kind());
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let found = read(codec, &single).await.map_err(|error| error.kind());
        assert_eq!(found, whole, "{name}");
        for cut in (0..bytes.len()).step_by(7) {
            let (one, two) = bytes.split_at(cut);
            let found = read(codec, &[one, two]).await.map_err(|error| error.kind());
            assert_eq!(found, whole, "{name} at {cut}");
        }
    }
}
