//! Reads stored conversations.

use std::collections::BTreeSet;

use throughline_model::Message;

use super::super::dialect::StoredForm;
use super::fetch::Fetch;
use super::stored_answer::{StoredAnswer, item_ids, messages};
use crate::client::{ClientError, ErrorKind};

impl Fetch<'_> {
    /// The messages of a conversation.
    pub(super) async fn conversation(&mut self, id: &str) -> Result<Vec<Message>, ClientError> {
        let list = self.conversation_address(id)?.join("/items");
        let (head, items) = self.items(list).await?;
        messages(self, &head, &items)
    }

    /// The messages of a chain of answers, which is walked from its newest answer.
    pub(super) async fn chain(&mut self, newest: String) -> Result<Vec<Message>, ClientError> {
        // Newest first.
        let mut parts: Vec<Vec<Message>> = Vec::new();
        let mut seen = BTreeSet::new();
        // The ids in the input of the answer after this one.
        let mut listed = BTreeSet::new();
        let mut next = Some(newest);
        while let Some(id) = next {
            let at = self.answer(&id)?;
            let (head, body) = self.get(at).await?;
            let answer = StoredAnswer::parse(self.form, &head, &body)?;
            // Some services list with an input everything before it.
            if !listed.is_disjoint(&answer.output_ids()) {
                break;
            }
            let (head, input) = match self.form {
                StoredForm::Responses => {
                    let list = self.answer(&id)?.join("/input_items");
                    self.items(list).await?
                }
                StoredForm::Interactions => {
                    let input = answer.input();
                    (head, input)
                }
            };
            let ids = item_ids(&input);
            if !listed.is_disjoint(&ids) {
                break;
            }
            parts.push(answer.response(self, &head)?.messages);
            parts.push(messages(self, &head, &input)?);
            listed = ids;
            next = answer.previous();
            if !seen.insert(id) {
                let text = "the stored answers continue each other in a circle";
                return Err(head.error(ErrorKind::Malformed, text));
            }
        }
        parts.reverse();
        Ok(parts.into_iter().flatten().collect())
    }
}
