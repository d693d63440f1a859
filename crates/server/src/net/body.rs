//! The body of a request, within bounds: its size before and after decompression, how much it may
//! grow, how long it may take, how deep its JSON is, and how much memory all bodies together take.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use futures_util::StreamExt as _;
use throughline::client::Reservation;

use super::decode::{DecodeError, Decoder, Encoding};
use super::state::NetState;
use crate::config::LimitsConfig;
use crate::error::ApiError;

/// A whole body, decompressed. The memory that it is counted with is free again when this is
/// dropped; see [`Payload::into_memory`].
#[derive(Debug)]
pub struct Payload {
    bytes: Bytes,
    memory: Reservation,
}

impl Payload {
    /// A message of a WebSocket, which has its size limit already.
    pub(crate) fn of_message(bytes: Bytes, net: &NetState) -> Result<Self, ApiError> {
        check_depth(&bytes, &net.limits)?;
        let mut memory = net.memory.reservation();
        reserve((net, &mut memory), bytes.len(), 0)?;
        Ok(Self { bytes, memory })
    }

    /// What was sent.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The memory that is counted for it and for what is made of it. Keep it as long as that.
    pub fn into_memory(self) -> Reservation {
        self.memory
    }
}

impl<S> FromRequest<S> for Payload
where
    Arc<NetState>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let net = Arc::<NetState>::from_ref(state);
        let (parts, body) = request.into_parts();
        let limits = &net.limits;
        let mut frames = body.into_data_stream();
        let reading = read(&parts.headers, &mut frames, &net);
        match tokio::time::timeout(limits.body_time, reading).await {
            Ok(Err(error)) => {
                // A client that waits for `100 Continue` has not sent anything yet.
                if !parts.headers.contains_key(EXPECT) {
                    linger(&mut frames, limits).await;
                }
                Err(error)
            }
            Ok(read) => read,
            Err(_) => {
                let text = format!(
                    "The body did not come within {} seconds.",
                    limits.body_time.as_secs()
                );
                let error = ApiError::new(408, "invalid_request_error", text);
                Err(error.code("request_timeout").retry(true))
            }
        }
    }
}

/// Let a client that is refused finish sending, within reason: one that is cut off in the middle of
/// it may never see the answer.
async fn linger(frames: &mut BodyDataStream, limits: &LimitsConfig) {
    let rest = async {
        let mut left = limits.body_bytes;
        while let Some(Ok(frame)) = frames.next().await
            && left > 0
        {
            left = left.saturating_sub(frame.len());
        }
    };
    // Whether it ended or not, the answer is the same.
    let _ = tokio::time::timeout(LINGER, rest).await;
}

/// How long a client that is refused may keep sending.
const LINGER: Duration = Duration::from_secs(1);

async fn read(
    headers: &HeaderMap,
    frames: &mut BodyDataStream,
    net: &NetState,
) -> Result<Payload, ApiError> {
    let limits = &net.limits;
    let encoding = encoding(headers)?;
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.body_bytes as u64) {
        return Err(too_large(limits));
    }
    let mut memory = net.memory.reservation();
    let mut decoder = Decoder::new(encoding, limits.body_bytes, limits.decoded_ratio)
        .map_err(|error| refuse(&error, limits))?;
    while let Some(frame) = frames.next().await {
        let frame = frame.map_err(|_| {
            // The connection is gone; this is for the log.
            ApiError::invalid("The body broke off.").code("incomplete_body")
        })?;
        for piece in frame.chunks(PIECE) {
            decoder
                .push(piece)
                .map_err(|error| refuse(&error, limits))?;
            reserve((net, &mut memory), decoder.decoded(), decoder.window())?;
        }
    }
    let bytes = decoder.finish().map_err(|error| refuse(&error, limits))?;
    check_depth(&bytes, limits)?;
    // The window is gone.
    reserve((net, &mut memory), bytes.len(), 0)?;
    Ok(Payload {
        bytes: bytes.into(),
        memory,
    })
}

/// The parser checks the highest bound; only a lower one is checked here.
fn check_depth(bytes: &[u8], limits: &LimitsConfig) -> Result<(), ApiError> {
    if limits.json_depth < PARSER_DEPTH && deeper_than(bytes, limits.json_depth) {
        return Err(ApiError::invalid(format!(
            "The JSON of the body is nested deeper than {} levels.",
            limits.json_depth
        )));
    }
    Ok(())
}

/// Bodies are read in pieces of this size.
const PIECE: usize = 64 << 10;

/// How many copies of a body exist at once: the body or the request to the upstream, its items, their
/// messages and those of the run, what is stored of them, and the store's own copy.
const COPIES: usize = 6;

/// Have room for a body of so many bytes, for what is made of it, and for decompressing it.
fn reserve(
    (net, memory): (&NetState, &mut Reservation),
    bytes: usize,
    window: usize,
) -> Result<(), ApiError> {
    let needed = bytes * COPIES + window;
    if needed > net.memory.largest() {
        let text = format!(
            "The body is larger than {} bytes, which is all that limits.memory has room for.",
            net.memory.largest() / COPIES
        );
        let error = ApiError::new(413, "invalid_request_error", text);
        return Err(error.code("request_too_large"));
    }
    // Reserved in steps: bodies come in small pieces.
    let needed = match needed {
        ..=PIECE => needed,
        _ => needed.next_multiple_of(PIECE),
    };
    if needed == memory.bytes() {
        return Ok(());
    }
    memory.try_resize(needed).map_err(|error| {
        tracing::info!(%error, "a body is refused");
        ApiError::overloaded(
            "The server has no memory left for a request of this size (limits.memory).",
            "out_of_memory",
        )
    })
}

/// How deep JSON may be wherever it is parsed.
const PARSER_DEPTH: usize = 64;

fn encoding(headers: &HeaderMap) -> Result<Encoding, ApiError> {
    let mut named = headers.get_all(CONTENT_ENCODING).iter();
    let first = named
        .next()
        .map(|value| value.to_str().unwrap_or("?").trim());
    let encoding = match (first, named.next()) {
        (None, None) => Some(Encoding::Identity),
        (Some(name), None) => Encoding::named(name),
        (_, Some(_)) => None,
    };
    encoding.ok_or_else(|| {
        let text = "The body's content-encoding is not one of gzip, deflate, zstd and identity.";
        ApiError::new(415, "invalid_request_error", text).code("unsupported_content_encoding")
    })
}

fn too_large(limits: &LimitsConfig) -> ApiError {
    let text = format!(
        "The body is larger than {} bytes (limits.body_bytes).",
        limits.body_bytes
    );
    ApiError::new(413, "invalid_request_error", text).code("request_too_large")
}

fn refuse(error: &DecodeError, limits: &LimitsConfig) -> ApiError {
    match error {
        DecodeError::TooLarge => too_large(limits),
        DecodeError::GrowsTooMuch => {
            let text = format!(
                "The body becomes more than {} times larger when it is decompressed \
                 (limits.decoded_ratio).",
                limits.decoded_ratio
            );
            ApiError::new(413, "invalid_request_error", text).code("request_too_large")
        }
        DecodeError::Damaged => ApiError::invalid("The compressed body is damaged or broke off.")
            .code("invalid_content_encoding"),
    }
}

/// Whether JSON is nested deeper than so many levels. What is not JSON is for the parser to refuse.
fn deeper_than(bytes: &[u8], most: usize) -> bool {
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut escaped = false;
    for byte in bytes {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::deeper_than;

    #[test]
    fn brackets_in_texts_are_not_levels() {
        assert!(!deeper_than(br#"{"a":[1,[2]],"b":"[[[["}"#, 3));
        assert!(deeper_than(br#"{"a":[1,[2]]}"#, 2));
        assert!(!deeper_than(br#"["\"[[[["]"#, 1));
        assert!(!deeper_than(b"]]]][", 1));
    }
}
