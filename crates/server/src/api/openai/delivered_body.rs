//! Answers of which it is known whether the client got them.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use futures_util::stream;

use crate::service::{Delivery, Pieces};

/// A body that records when all of it was written.
pub(super) fn delivered(body: &Pieces, delivery: Delivery) -> Body {
    let pieces = body.as_slice().to_vec().into_iter();
    let chunks = stream::unfold(pieces, move |mut left| {
        let delivery = delivery.clone();
        async move {
            let Some(piece) = left.next() else {
                delivery.written();
                return None;
            };
            Some((Ok::<Bytes, Infallible>(piece), left))
        }
    });
    Body::from_stream(chunks)
}
