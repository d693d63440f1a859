//! Looking for words in the record.

use std::collections::BTreeSet;

use throughline_model::{Arguments, Body, Content};

use crate::record::Record;
use crate::text;

/// Bytes of one content that are searched.
const LOOKED_AT: usize = 1 << 20;
/// Words of a question that count.
const MOST_WORDS: usize = 32;

/// The numbers of the messages that have most of the words; rare words weigh more, newer messages win.
pub(crate) fn recall(record: &Record, words: &str, k: usize) -> Vec<u64> {
    let mut wanted = BTreeSet::new();
    terms(words, |word| {
        if wanted.len() < MOST_WORDS {
            wanted.insert(word.to_ascii_lowercase());
        }
    });
    let wanted: Vec<String> = wanted.into_iter().collect();
    if wanted.is_empty() || k == 0 {
        return Vec::new();
    }
    let mut found: Vec<(u64, u32)> = Vec::new();
    let mut documents = vec![0u64; wanted.len()];
    for entry in record.entries() {
        let mut hits = 0u32;
        for content in &entry.message.contents {
            each_text(content, |text| {
                terms(text::start(text, LOOKED_AT), |word| {
                    let place = wanted.binary_search_by(|one| {
                        one.bytes()
                            .cmp(word.bytes().map(|byte| byte.to_ascii_lowercase()))
                    });
                    if let Ok(place) = place {
                        hits |= 1 << place;
                    }
                });
            });
        }
        if hits != 0 {
            for (place, count) in documents.iter_mut().enumerate() {
                *count += u64::from(hits >> place & 1);
            }
            found.push((entry.seq, hits));
        }
    }
    // A word that is in every message does not help.
    let total = record.len() as u64 + 1;
    let weight = |hits: u32| -> u64 {
        let counts = documents.iter().enumerate();
        let counts = counts.filter(|(place, _)| hits >> place & 1 == 1);
        counts
            .map(|(_, count)| u64::from((total * 16 / count.max(&1)).ilog2()))
            .sum()
    };
    let mut ranked: Vec<(u64, u64)> = found
        .into_iter()
        .map(|(seq, hits)| (weight(hits), seq))
        .collect();
    ranked.sort_unstable_by(|one, two| two.cmp(one));
    ranked.truncate(k);
    ranked.into_iter().map(|(_, seq)| seq).collect()
}

/// The words of a text: letters, digits and `_`.
fn terms(text: &str, mut found: impl FnMut(&str)) {
    for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
        if word.len() > 1 {
            found(word);
        }
    }
}

pub(crate) fn each_text(content: &Content, mut found: impl FnMut(&str)) {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => found(&text.text),
        Body::Reasoning(reasoning) => {
            for text in reasoning.text.iter().chain(&reasoning.summary) {
                found(text);
            }
        }
        Body::ToolCall(call) => {
            found(&call.name);
            match &call.arguments {
                Arguments::None => {}
                Arguments::Text(text) | Arguments::Free(text) => found(text),
                Arguments::Json(json) => found(json.get()),
            }
        }
        Body::ToolResult(result) => found(&text::of_output(&result.output)),
        Body::Error(fault) => found(&fault.message),
        Body::Media(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => {}
    }
}
