//! Pages of a list of items.

use throughline_model::json::{ArrayWriter, RawJson};

use super::Item;
use crate::api::query::{Query, wrong};
use crate::error::ApiError;

/// Which items of a list a client asks for.
pub(in crate::api::openai) struct ItemPage {
    limit: usize,
    ascending: bool,
    after: Option<String>,
}

impl ItemPage {
    /// The parameters of a query.
    pub(in crate::api::openai) fn of_query(query: &Query) -> Result<Self, ApiError> {
        let limit = match query.number("limit")? {
            None => 20,
            Some(limit @ 1..=100) => usize::try_from(limit).unwrap_or(100),
            Some(_) => return Err(wrong("limit", "a number from 1 to 100")),
        };
        let ascending = match query.get("order") {
            None | Some("desc" | "") => false,
            Some("asc") => true,
            Some(_) => return Err(wrong("order", "'asc' or 'desc'")),
        };
        let after = query.get("after").filter(|after| !after.is_empty());
        Ok(Self {
            limit,
            ascending,
            after: after.map(str::to_owned),
        })
    }

    /// The list, of all items, oldest first.
    pub(in crate::api::openai) fn of(&self, mut items: Vec<Item>) -> Result<RawJson, ApiError> {
        if !self.ascending {
            items.reverse();
        }
        let start = match &self.after {
            None => 0,
            Some(after) => match items.iter().position(|item| item.id == *after) {
                Some(place) => place + 1,
                None => return Err(wrong("after", "the id of an item of this list")),
            },
        };
        let rest = items.get(start..).unwrap_or_default();
        let page = rest.get(..self.limit).unwrap_or(rest);
        Ok(listed(page, rest.len() > self.limit))
    }
}

/// A page of items.
pub(in crate::api::openai) fn listed(page: &[Item], has_more: bool) -> RawJson {
    RawJson::object(|object| {
        object.str("object", "list");
        let mut data = ArrayWriter::new(object.key("data"));
        for item in page {
            data.slot().push_str(item.json.get());
        }
        data.end();
        for (key, item) in [("first_id", page.first()), ("last_id", page.last())] {
            // A text also for an empty page, as OpenAI's description wants it.
            object.str(key, item.map_or("", |item| &item.id));
        }
        object.bool("has_more", has_more);
    })
}
