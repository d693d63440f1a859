//! Signatures as Standard Webhooks has them: HMAC-SHA256 over id, time and body.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::config::WebhookSecret;

/// The header `webhook-signature` of a request.
pub(super) fn signature(secret: &WebhookSecret, id: &str, timestamp: u64, body: &str) -> String {
    let key = Key::new(HMAC_SHA256, secret.bytes());
    let signed = format!("{id}.{timestamp}.{body}");
    let tag = sign(&key, signed.as_bytes());
    format!("v1,{}", STANDARD.encode(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret and the message are those of the specification; the tag was computed with Python.
    #[test]
    fn it_is_the_one_that_others_compute() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLESw").unwrap();
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = r#"{"test": 2432232314}"#;
        assert_eq!(
            signature(&secret, id, 1_614_265_330, body),
            "v1,2NakwazZhW+xkLgNvx6QyuOgJ5OdCFCcLITwHj/uQ8k="
        );
    }
}
