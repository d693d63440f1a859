//! The body of a stored answer.

use std::borrow::Cow;
use std::collections::BTreeSet;

use throughline_model::json::{RawJson, Value};
use throughline_model::{Message, Response};

use super::super::answer::Head;
use super::super::dialect::StoredForm;
use super::super::whole;
use super::fetch::Fetch;
use crate::client::ClientError;

/// A stored answer, apart from its input.
pub(super) struct StoredAnswer<'b> {
    value: Value<'b>,
    form: StoredForm,
}

impl<'b> StoredAnswer<'b> {
    pub(super) fn parse(
        form: StoredForm,
        head: &Head,
        body: &'b [u8],
    ) -> Result<Self, ClientError> {
        let value = whole::parse(head, body)?;
        Ok(Self { value, form })
    }

    /// The word for how far the service is with it.
    pub(super) fn status(&self) -> Option<String> {
        let status = self.value.get("status").and_then(Value::as_str);
        status.map(Cow::into_owned)
    }

    /// The id of the answer that it continues.
    pub(super) fn previous(&self) -> Option<String> {
        let key = match self.form {
            StoredForm::Responses => "previous_response_id",
            StoredForm::Interactions => "previous_interaction_id",
        };
        let id = self.value.get(key).and_then(Value::as_str);
        id.filter(|id| !id.is_empty()).map(Cow::into_owned)
    }

    /// The response, as the model call would have returned it.
    pub(super) fn response(&self, fetch: &Fetch<'_>, head: &Head) -> Result<Response, ClientError> {
        let (input, output) = self.steps();
        if input.is_empty() {
            return whole::response(fetch.client.codec, head, &self.value);
        }
        // A stored interaction repeats its input; the answer to a call does not.
        let output: Vec<&str> = output.iter().map(Value::raw).collect();
        let output = format!("[{}]", output.join(","));
        let edits = self.value.get("steps").map(|steps| (steps, &*output));
        let body = RawJson::of_with(&self.value, edits.as_slice());
        whole::response(fetch.client.codec, head, &body.value())
    }

    /// The input that comes with the answer.
    pub(super) fn input(&self) -> Vec<RawJson> {
        let (input, _) = self.steps();
        input.iter().map(RawJson::of).collect()
    }

    /// The ids of what the model made.
    pub(super) fn output_ids(&self) -> BTreeSet<String> {
        let items = match self.form {
            StoredForm::Responses => {
                let output = self.value.get("output").and_then(Value::as_array);
                output.unwrap_or_default()
            }
            StoredForm::Interactions => self.steps().1,
        };
        items.iter().filter_map(item_id).collect()
    }

    /// The steps of an interaction: those of its input, and those of the model.
    fn steps(&self) -> (&[Value<'b>], &[Value<'b>]) {
        let steps = match self.form {
            StoredForm::Responses => None,
            StoredForm::Interactions => self.value.get("steps").and_then(Value::as_array),
        };
        let steps = steps.unwrap_or_default();
        let is_input = |step: &Value<'_>| {
            let tag = step.get("type").and_then(Value::as_str);
            matches!(tag.as_deref(), Some("user_input" | "function_result"))
        };
        let input = steps.iter().rposition(is_input).map_or(0, |last| last + 1);
        steps.split_at(input)
    }
}

/// The messages in items of an input.
pub(super) fn messages(
    fetch: &Fetch<'_>,
    head: &Head,
    items: &[RawJson],
) -> Result<Vec<Message>, ClientError> {
    let items: Vec<Value<'_>> = items.iter().map(RawJson::value).collect();
    let messages = fetch.client.codec.decode_messages(&items);
    messages.map_err(|error| whole::malformed(head, error))
}

/// The ids of items.
pub(super) fn item_ids(items: &[RawJson]) -> BTreeSet<String> {
    items
        .iter()
        .filter_map(|item| item_id(&item.value()))
        .collect()
}

fn item_id(item: &Value<'_>) -> Option<String> {
    item.get("id")?.as_str().map(Cow::into_owned)
}
