//! Lists that come in pages.

use throughline_model::json::{RawJson, Value};

use super::super::answer::Head;
use super::super::url::{Base, push_encoded};
use super::super::whole;
use super::fetch::Fetch;
use crate::client::{ClientError, ErrorKind};

/// How many items a page has at most; the largest number that the services allow.
const PAGE: &str = "limit=100";

impl Fetch<'_> {
    /// All items of a list, oldest first, and the head of its last page.
    pub(super) async fn items(&mut self, list: Base) -> Result<(Head, Vec<RawJson>), ClientError> {
        let list = list.with("order=asc").with(PAGE);
        let mut items = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = match &after {
                None => list.clone(),
                Some(id) => {
                    let mut parameter = "after=".to_owned();
                    push_encoded(&mut parameter, id);
                    list.clone().with(&parameter)
                }
            };
            let (head, body) = self.get(page).await?;
            let page = whole::parse(&head, &body)?;
            let Some(data) = page.get("data").and_then(Value::as_array) else {
                return Err(malformed(&head, "the answer is JSON, but no list"));
            };
            items.extend(data.iter().map(RawJson::of));
            if page.get("has_more").and_then(Value::as_bool) != Some(true) {
                return Ok((head, items));
            }
            let last = page.get("last_id").and_then(Value::as_str);
            let last = last.or_else(|| data.last()?.get("id")?.as_str());
            match last {
                Some(last) if after.as_deref() != Some(&*last) => after = Some(last.into_owned()),
                _ => {
                    let text = "the list has more items, but its page does not say after which";
                    return Err(malformed(&head, text));
                }
            }
        }
    }
}

fn malformed(head: &Head, text: &str) -> ClientError {
    head.error(ErrorKind::Malformed, text)
}
