//! The head of a request.

use bytes::Bytes;

use super::target::Target;
use crate::client::http::AGENT;
use crate::client::http::transport::{
    Header, HeaderValue, HttpMethod, HttpRequest, TransportError,
};

/// Headers that follow from how a request is sent. Whoever names one does not change it.
const OWN: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

/// The head of a request.
pub(super) fn head(target: &Target, request: &HttpRequest) -> Result<Bytes, TransportError> {
    let mut head = Vec::with_capacity(512);
    head.extend_from_slice(match request.method {
        HttpMethod::Get => b"GET ",
        HttpMethod::Post => b"POST ",
    });
    head.extend_from_slice(target.path.as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\n");
    let given = &request.headers;
    let is_given = |name: &str| given.iter().any(|header| is_name(header, name));
    for (name, value) in [
        ("host", &*target.authority),
        ("user-agent", AGENT),
        ("accept", "*/*"),
    ] {
        if !is_given(name) {
            push(&mut head, name, &[value]);
        }
    }
    for (place, header) in given.iter().enumerate() {
        let is_later = |later: &Header| is_name(later, &header.name);
        // The last of a name counts.
        if given[place + 1..].iter().any(is_later) || OWN.iter().any(|own| is_name(header, own)) {
            continue;
        }
        let value: [&str; 2] = match &header.value {
            HeaderValue::Plain(text) => ["", text],
            HeaderValue::Secret(before, secret) => [before, secret.reveal()],
        };
        let what = match (is_token(&header.name), value.iter().all(|it| is_text(it))) {
            (true, true) => {
                push(&mut head, &header.name, &value);
                continue;
            }
            (false, _) => "name",
            (true, false) => "value",
        };
        return Err(TransportError::header(what, header));
    }
    // Without a length, a body would be taken for the next request.
    if request.method == HttpMethod::Post || !request.body.is_empty() {
        push(
            &mut head,
            "content-length",
            &[&request.body.len().to_string()],
        );
    }
    head.extend_from_slice(b"\r\n");
    Ok(head.into())
}

fn is_name(header: &Header, name: &str) -> bool {
    header.name.eq_ignore_ascii_case(name)
}

fn push(head: &mut Vec<u8>, name: &str, value: &[&str]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    for part in value {
        head.extend_from_slice(part.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
}

/// Whether a text may be the name of a header.
fn is_token(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_fine)
}

/// Whether a text may be the value of a header: nothing in it ends a line.
fn is_text(value: &str) -> bool {
    let is_fine = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    value.bytes().all(is_fine)
}
