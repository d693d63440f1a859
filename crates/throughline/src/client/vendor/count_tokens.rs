//! The tokens of a request, as its service counts them.

use async_trait::async_trait;
use throughline_model::json::{RawJson, Value};
use throughline_wire::compose::Delivery;

use super::VendorClient;
use super::send::Outgoing;
use super::stored_by::StoredBy;
use super::whole;
use crate::client::http::HttpMethod;
use crate::client::{ChatRequest, ClientError, ErrorKind, TokenCounter};

#[async_trait]
impl TokenCounter for VendorClient {
    async fn count(&self, request: &ChatRequest<'_>) -> Result<u64, ClientError> {
        let form = self.dialect.counts;
        let form = form.ok_or_else(|| self.setup("this service does not count tokens"))?;
        let (item_form, _) = self.form(request);
        let (body, losses) = self.body(request, Delivery::Whole, &StoredBy::Us, item_form);
        request.note_losses(|| losses);
        let outgoing = Outgoing {
            method: HttpMethod::Post,
            url: self.base.clone().join(form.path).into_url(),
            body: self.counted(&body.to_bytes(), form.members)?.into(),
            betas: self.betas(request.settings),
        };
        let mut answer = self
            .exchange(outgoing, Delivery::Whole, StoredBy::Us)
            .await?;
        let body = answer.whole().await?;
        let body = whole::parse(&answer.head, &body)?;
        let tokens = body.get("input_tokens").and_then(Value::as_u64);
        tokens.ok_or_else(|| {
            let text = "the answer is JSON, but no count of tokens";
            answer.head.error(ErrorKind::Malformed, text)
        })
    }
}

impl VendorClient {
    /// The members of a body that are counted; others are refused there.
    fn counted(&self, body: &[u8], members: &[&str]) -> Result<String, ClientError> {
        let text = std::str::from_utf8(body).ok();
        let whole = text.and_then(|text| RawJson::new(text).ok());
        let whole = whole.ok_or_else(|| self.setup("the request is no JSON"))?;
        Ok(whole
            .without(|key| !members.contains(&key))
            .get()
            .to_owned())
    }
}
