//! Request bodies in pieces.

use bytes::Bytes;

/// The body of a request, in one piece or in several consecutive pieces. A long history is rendered
/// once and shared by all requests that contain it.
///
/// ```
/// use throughline::client::RequestBody;
///
/// let body = RequestBody::from("{\"model\":\"m\"}".to_owned());
/// assert_eq!((body.len(), body.pieces().len()), (13, 1));
/// assert_eq!(body.to_bytes(), "{\"model\":\"m\"}");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestBody(Vec<Bytes>);

impl RequestBody {
    /// Inserts shared bytes into a text, at a position, without copying them.
    pub(crate) fn around(mut text: String, place: usize, lent: Bytes) -> Self {
        let after = text.split_off(place);
        Self(vec![text.into(), lent, after.into()])
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Bytes] {
        &self.0
    }

    /// The total number of bytes.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole body in one piece.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0[..] {
            [whole] => whole.clone(),
            pieces => pieces.concat().into(),
        }
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self(vec![bytes])
    }
}

impl From<String> for RequestBody {
    fn from(text: String) -> Self {
        Self(vec![text.into()])
    }
}
