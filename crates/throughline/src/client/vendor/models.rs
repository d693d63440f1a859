//! The models that a service lists.

use async_trait::async_trait;
use throughline_model::json::Value;
use throughline_wire::compose::Delivery;

use super::VendorClient;
use super::send::Outgoing;
use super::stored_by::StoredBy;
use super::url::push_encoded;
use super::whole;
use crate::client::http::{HttpMethod, RequestBody};
use crate::client::{ClientError, ErrorKind, ModelList};

/// How many pages are read at most.
const MOST_PAGES: usize = 100;

#[async_trait]
impl ModelList for VendorClient {
    async fn list(&self) -> Result<Vec<String>, ClientError> {
        let form = self.dialect.models;
        let form = form.ok_or_else(|| self.setup("this service does not list its models"))?;
        let mut first = self.base.clone().join(form.path);
        if let Some(page) = form.page {
            first = first.with(page);
        }
        let (mut models, mut page) = (Vec::new(), first.clone());
        for _ in 0..MOST_PAGES {
            let outgoing = Outgoing {
                method: HttpMethod::Get,
                url: page.into_url(),
                body: RequestBody::default(),
                betas: None,
            };
            let mut answer = self
                .exchange(outgoing, Delivery::Whole, StoredBy::Us)
                .await?;
            let body = answer.whole().await?;
            let body = whole::parse(&answer.head, &body)?;
            let Some(list) = body.get(form.list).and_then(Value::as_array) else {
                let text = "the answer is JSON, but no list of models";
                return Err(answer.head.error(ErrorKind::Malformed, text));
            };
            models.extend(list.iter().filter_map(|model| {
                let name = model.get(form.name)?.as_str()?;
                Some(name.strip_prefix(form.prefix).unwrap_or(&name).to_owned())
            }));
            let is_last = body.get("has_more").and_then(Value::as_bool) == Some(false);
            let next = form
                .next
                .filter(|_| !is_last)
                .and_then(|(member, parameter)| {
                    let at = body.get(member)?.as_str().filter(|at| !at.is_empty())?;
                    let mut parameter = format!("{parameter}=");
                    push_encoded(&mut parameter, &at);
                    Some(first.clone().with(&parameter))
                });
            match next {
                Some(next) => page = next,
                None => return Ok(models),
            }
        }
        let text = format!("the list of models has more than {MOST_PAGES} pages");
        Err(self.error(ErrorKind::TooLarge, &text))
    }
}
