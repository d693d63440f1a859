use std::collections::{BTreeMap, BTreeSet};

use throughline_model::json::{RawJson, Value};

/// Members whose value is opaque, and only its owner can read it.
const SEALS: [&str; 5] = [
    "signature",
    "encrypted_content",
    "fingerprint",
    "thoughtSignature",
    "thought_signature",
];

/// Free-form members: an `id` in there is the tool's business.
const FREE: [&str; 4] = ["input", "args", "arguments", "response"];

/// What a service is known to have issued: ids, seals, and the items that they belong to.
///
/// ```
/// use throughline_model::json;
/// use throughline_wire::validate::Issued;
///
/// let body = json::parse(r#"{"id":"resp_1","output":[{"type":"reasoning","id":"rs_1"}]}"#)?;
/// let issued = Issued::default().with_response(&body).with_id("call_7");
/// assert!(issued.has_id("rs_1") && issued.has_id("call_7") && !issued.has_id("rs_2"));
/// # Ok::<(), json::JsonError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    ids: BTreeSet<String>,
    items: BTreeMap<String, RawJson>,
    sealed: BTreeMap<String, Sealed>,
    /// Item to the reasoning that led to it.
    led_by: BTreeMap<String, String>,
}

/// What a seal was issued on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// Counted over everything that was issued.
    pub(crate) order: usize,
    pub(crate) item: RawJson,
}

impl Issued {
    /// The same with one more id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.ids.insert(id.into());
        self
    }

    /// The same with everything in something that the service sent: a response body, its items,
    /// or a message of it.
    #[must_use]
    pub fn with_response(mut self, body: &Value<'_>) -> Self {
        self.take(body);
        self
    }

    /// Whether the service issued this id.
    pub fn has_id(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// What a seal was issued on.
    pub(crate) fn sealed(&self, seal: &str) -> Option<&Sealed> {
        self.sealed.get(seal)
    }

    /// An item as it was issued, by its own id or else by its tag and call id.
    pub(crate) fn item(&self, tag: &str, item: &Value<'_>) -> Option<&RawJson> {
        let by_id = text(item, "id").and_then(|id| self.items.get(&by_item_id(tag, &id)));
        by_id.or_else(|| {
            let call = text(item, "call_id")?;
            self.items.get(&by_call_id(tag, &call))
        })
    }

    /// The reasoning that an item was issued after.
    pub(crate) fn led_by(&self, id: &str) -> Option<&str> {
        self.led_by.get(id).map(String::as_str)
    }

    fn take(&mut self, value: &Value<'_>) {
        for pair in value.as_array().unwrap_or_default().windows(2) {
            self.take_order(&pair[0], &pair[1]);
        }
        for element in value.as_array().unwrap_or_default() {
            self.take(element);
        }
        if value.as_object().is_some() {
            self.take_object(value);
        }
    }

    fn take_order(&mut self, first: &Value<'_>, second: &Value<'_>) {
        let is_reasoning =
            |item: &Value<'_>| item.get("type").is_some_and(|t| t.is_str("reasoning"));
        if !is_reasoning(first) || is_reasoning(second) {
            return;
        }
        if let (Some(reasoning), Some(item)) = (text(first, "id"), text(second, "id")) {
            self.led_by.insert(item, reasoning);
        }
    }

    fn take_object(&mut self, object: &Value<'_>) {
        let tag = text(object, "type");
        for key in ["id", "call_id"] {
            if let Some(id) = text(object, key) {
                if let Some(tag) = &tag {
                    let name = match key {
                        "id" => by_item_id(tag, &id),
                        _ => by_call_id(tag, &id),
                    };
                    self.items.insert(name, RawJson::of(object));
                }
                self.ids.insert(id);
            }
        }
        let redacted = tag.as_deref() == Some("redacted_thinking");
        let seals = SEALS.into_iter().chain(redacted.then_some("data"));
        for seal in seals.filter_map(|key| text(object, key)) {
            let order = self.sealed.len();
            let item = RawJson::of(object);
            self.sealed.entry(seal).or_insert(Sealed { order, item });
        }
        for member in object.members() {
            if !FREE.iter().any(|key| member.key.is(key)) {
                self.take(&member.value);
            }
        }
    }
}

fn by_item_id(tag: &str, id: &str) -> String {
    format!("{tag} id {id}")
}

fn by_call_id(tag: &str, id: &str) -> String {
    format!("{tag} call_id {id}")
}

fn text(object: &Value<'_>, key: &str) -> Option<String> {
    let found = object.get(key)?.as_str()?;
    (!found.is_empty()).then(|| found.into_owned())
}

/// Whether a member is the same text in both; absent and null are one.
pub(crate) fn same_member(a: &Value<'_>, b: &Value<'_>, key: &str) -> bool {
    let compact = |value: &Value<'_>| {
        let member = value.get(key).filter(|member| !member.is_null())?;
        Some(RawJson::of(member))
    };
    compact(a) == compact(b)
}
