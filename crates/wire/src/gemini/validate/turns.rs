//! Which content may follow which, and which calls must be signed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throughline_model::Path;

use super::{CALL, Checker, Content, PLACEHOLDER, Part, RESPONSE};

impl Checker<'_> {
    /// Which content may follow which.
    pub(super) fn turns(&mut self, contents: &[Content<'_, '_>]) {
        let root = Path::Root.key("contents");
        for (place, content) in contents.iter().enumerate() {
            let path = root.index(content.index);
            let before = place.checked_sub(1).and_then(|place| contents.get(place));
            let first_after_cache = before.is_none() && self.cached;
            if content.is_model && content.has(CALL) {
                if before.is_none_or(|before| before.is_model) && !first_after_cache {
                    let message = "calls must follow a user content or results; join them with \
                                   the model content before, or add a user content";
                    self.report
                        .add("G-2", &path, message)
                        .about(content.names(CALL));
                }
                let next = contents.get(place + 1);
                if next.is_some_and(|next| !next.has(RESPONSE)) {
                    let message = "the calls are not answered in the next content; add a content \
                                   with one result for each";
                    self.report
                        .add("G-1", &path, message)
                        .about(content.names(CALL));
                }
            }
            if content.has(RESPONSE) && !content.is_model {
                match before.filter(|before| before.is_model && before.has(CALL)) {
                    Some(calls) => self.results(calls, content),
                    None if first_after_cache => {}
                    None => {
                        let message = "results must follow directly on the content with their \
                                       calls; move them there, or send them as text";
                        self.report
                            .add("G-3", &path, message)
                            .about(content.names(RESPONSE));
                    }
                }
            }
        }
        if let Some(last) = contents.last().filter(|last| last.is_model) {
            let message = "the history must end with a user content or with results";
            self.report
                .add("G-7", &root.index(last.index), message)
                .about(last.names(CALL));
        }
    }

    /// The results of one content against the calls of the one before.
    fn results(&mut self, asked: &Content<'_, '_>, given: &Content<'_, '_>) {
        let root = Path::Root.key("contents");
        let path = root.index(given.index);
        let parts = path.key("parts");
        let (asks, results) = (asked.of(CALL).count(), given.of(RESPONSE).count());
        if asks != results {
            let message = format!("{asks} calls and {results} results; send one for each call");
            self.report
                .add("G-1", &path, message)
                .about(asked.names(CALL));
        }
        // Results go to the call with their id, or else to the first call that is left.
        let mut by_id: BTreeMap<Option<String>, VecDeque<usize>> = BTreeMap::new();
        let calls: Vec<&Part<'_, '_>> = asked.of(CALL).collect();
        for (place, call) in calls.iter().enumerate() {
            by_id.entry(call.id()).or_default().push_back(place);
        }
        let mut left: BTreeSet<usize> = (0..calls.len()).collect();
        for result in given.of(RESPONSE) {
            let place = parts.index(result.index);
            let place = place.key(result.key);
            let id = result.id();
            let same = by_id.get_mut(&id).and_then(|places| {
                // Some may be gone to results that fit no call.
                while places.front().is_some_and(|place| !left.contains(place)) {
                    places.pop_front();
                }
                places.pop_front()
            });
            // There may be more results than calls, which is reported above.
            let Some(at) = same.or_else(|| left.first().copied()) else {
                continue;
            };
            left.remove(&at);
            let call = calls[at];
            if same.is_none() && self.profile.generation.call_ids {
                let wanted = call.id();
                let message = match &wanted {
                    Some(wanted) => format!("the call has the id `{wanted}`; echo it"),
                    None => "the call has no id; leave it out here too".to_owned(),
                };
                self.report
                    .add("G-4", &place.key("id"), message)
                    .about(id.into_iter().chain(wanted))
                    .without_vendor_text();
            }
            let (name, wanted) = (result.name(), call.name());
            if name.is_none() || (wanted.is_some() && name != wanted) {
                let at = place.to_string().replace(result.key, result.snake);
                let vendor = match name {
                    None => format!("* GenerateContentRequest.{at}.name: Name cannot be empty."),
                    Some(_) => String::new(),
                };
                let wanted = wanted.unwrap_or_default();
                let message = format!("the name must be that of the function, `{wanted}`");
                self.report
                    .add("G-9", &place.key("name"), message)
                    .about(name.into_iter().chain([wanted]))
                    .with_vendor_text(vendor);
            }
        }
    }

    pub(super) fn signatures(&mut self, contents: &[Content<'_, '_>]) {
        if !self.profile.generation.call_signatures {
            return;
        }
        let human = |content: &Content<'_, '_>| !content.is_model && !content.has(RESPONSE);
        let start = contents
            .iter()
            .rposition(human)
            .map_or(0, |place| place + 1);
        let root = Path::Root.key("contents");
        for content in contents[start..].iter().filter(|content| content.is_model) {
            let path = root.index(content.index);
            let parts = path.key("parts");
            let mut calls = content.of(CALL);
            let Some(first) = calls.next() else { continue };
            let place = parts.index(first.index);
            let Some(signature) = &first.signature else {
                let message = format!(
                    "the first call of a step must have its `thoughtSignature`; put \
                     `{PLACEHOLDER}` there if another model made the call"
                );
                self.report.add("G-5", &place, message).about(first.name());
                continue;
            };
            for call in calls.filter(|call| call.signature.as_ref() == Some(signature)) {
                if signature != PLACEHOLDER {
                    let message = "the signature belongs to the first call; leave it out here";
                    self.report
                        .add("G-5", &parts.index(call.index), message)
                        .about(call.name())
                        .without_vendor_text();
                }
            }
        }
    }
}
