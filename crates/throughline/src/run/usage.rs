use std::collections::BTreeMap;

use throughline_model::Usage;
use throughline_model::json::{Node, Value};

/// Tokens of all model calls of a run: the sum of what was reported, nothing estimated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunUsage {
    /// Tokens sent, cached ones included.
    pub input: Option<u64>,
    /// Tokens made, reasoning included.
    pub output: Option<u64>,
    /// Their sum, where vendors state one.
    pub total: Option<u64>,
    /// Of the input: read from prompt caches.
    pub cache_read: Option<u64>,
    /// Of the input: written to prompt caches.
    pub cache_write: Option<u64>,
    /// Of the output: reasoning.
    pub reasoning: Option<u64>,
    /// Every counter of the vendors' own objects by its name, such as
    /// `input_tokens_details.cached_tokens`.
    pub counters: BTreeMap<String, u64>,
    /// Whether a call reported nothing, so that the sums are too small.
    pub partial: bool,
}

impl RunUsage {
    /// Add what a model call reported.
    pub(crate) fn add(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else {
            self.partial = true;
            return;
        };
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        };
        add(&mut self.input, usage.input);
        add(&mut self.output, usage.output);
        add(&mut self.total, usage.total);
        add(&mut self.cache_read, usage.cache_read);
        add(&mut self.cache_write, usage.cache_write);
        add(&mut self.reasoning, usage.reasoning);
        if usage.input.is_none() && usage.output.is_none() && usage.total.is_none() {
            self.partial = true;
        }
        if let Some(vendor) = &usage.vendor {
            self.count(&mut String::new(), &vendor.value());
        }
    }

    fn count(&mut self, name: &mut String, value: &Value<'_>) {
        match value.node() {
            Node::Object(members) => {
                let end = name.len();
                for member in members {
                    if end > 0 {
                        name.push('.');
                    }
                    name.push_str(&member.key.to_str());
                    self.count(name, &member.value);
                    name.truncate(end);
                }
            }
            _ => {
                if let Some(more) = value.as_u64() {
                    let sum = self.counters.entry(name.clone()).or_default();
                    *sum = sum.saturating_add(more);
                }
            }
        }
    }

    /// Tokens sent and made, as far as they were reported.
    pub fn tokens(&self) -> u64 {
        match (self.input, self.output) {
            (None, None) => self.total.unwrap_or(0),
            (input, output) => input.unwrap_or(0).saturating_add(output.unwrap_or(0)),
        }
    }
}
