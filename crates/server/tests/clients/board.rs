//! Orders of programs to the world around the server: `tests/clients/server-python/harness.py`.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::loopkill::answer_posts;
use throughline_testkit::upstream::{Extent, Fault, ModelInput, Recorded, Verdict};
use throughline_testkit::web::{Cut, Cutter};
use tokio::runtime::Handle;

use crate::clients::world::{Vendor, World};

/// What obeys orders.
pub(crate) struct Board {
    world: Arc<World>,
    cutter: Cutter,
    runtime: Handle,
    /// How many requests have been looked through for refused ones.
    seen: Mutex<HashMap<&'static str, usize>>,
}

impl Board {
    /// Listen for orders; gives the address for orders and the one that stands for the server's.
    pub(crate) fn listen(
        world: &Arc<World>,
        runtime: &Handle,
    ) -> io::Result<(SocketAddr, SocketAddr)> {
        let board = Self {
            world: Arc::clone(world),
            cutter: Cutter::start(world.address()),
            runtime: runtime.clone(),
            seen: Mutex::default(),
        };
        let server = board.cutter.address();
        let orders = answer_posts(move |order| board.obey(order).to_string())?;
        Ok((orders, server))
    }

    fn obey(&self, order: &str) -> Value {
        let words: Vec<&str> = order.split(' ').collect();
        match words[..] {
            ["bytes"] => {
                let (up, down) = self.cutter.bytes();
                json!({"up": up, "down": down})
            }
            ["cut", "reset"] => self.cut(Cut::Reset),
            ["cut", "500"] => self.cut(Cut::Status500),
            ["cut", "after", bytes] => {
                self.cutter.cut_after(number(bytes));
                Value::Null
            }
            ["webhook", response] => self.runtime.block_on(self.world.webhook.about(response)),
            [vendor, ref words @ ..] => self.ask(self.world.vendor(vendor), words),
            [] => Value::Null,
        }
    }

    fn cut(&self, how: Cut) -> Value {
        self.cutter.cut(how);
        Value::Null
    }

    fn ask(&self, vendor: &Vendor, words: &[&str]) -> Value {
        let upstream = &vendor.upstream;
        match *words {
            ["counts"] => {
                let counts = upstream.counts();
                json!({"requests": counts.requests, "refused": counts.refused})
            }
            ["received", requests] => {
                self.runtime.block_on(upstream.received(number(requests)));
                Value::Null
            }
            ["heard"] => heard(vendor),
            ["thoughts"] => last(vendor)
                .map_or(0, |body| thoughts(vendor, &body))
                .into(),
            ["body"] => last(vendor).unwrap_or_default(),
            ["prompts"] => {
                let prompts = upstream.prompts().unwrap_or_default();
                json!({"overflows": prompts.overflows, "continued": prompts.continued,
                    "restarted": prompts.restarted, "largest": prompts.largest})
            }
            ["refused"] => self.refused(vendor),
            ["fault", name, times] => {
                let fault = Fault::named(name).unwrap_or_else(|| panic!("no fault {name}"));
                let extent = Extent::Times(number(times));
                self.runtime.block_on(upstream.inflict(fault, extent));
                Value::Null
            }
            ["heal"] => {
                self.runtime.block_on(upstream.heal());
                Value::Null
            }
            ["hold"] => {
                vendor.gate.close();
                Value::Null
            }
            ["release"] => {
                vendor.gate.open();
                Value::Null
            }
            _ => panic!("no order {words:?}"),
        }
    }

    /// What the vendor has refused since this was last asked. A server of ours sends nothing of the
    /// kind.
    fn refused(&self, vendor: &Vendor) -> Value {
        let requests = vendor.upstream.requests();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.insert(vendor.name, requests.len()).unwrap_or(0);
        let new = requests.iter().skip(before);
        let refused = new.filter_map(|request| match &request.verdict {
            Verdict::Refused(status, words) => {
                Some(json!({"status": status, "words": words, "body": request.body}))
            }
            Verdict::Accepted(_) => None,
        });
        refused.collect()
    }
}

fn number(word: &str) -> usize {
    let number = word.parse();
    number.unwrap_or_else(|_| panic!("{word} is no number"))
}

/// The body of the last request that the vendor took.
fn last(vendor: &Vendor) -> Option<Value> {
    let requests = vendor.upstream.requests();
    let last = requests.into_iter().rev().find(Recorded::is_accepted);
    last.map(|request| request.body)
}

/// What the last request that the vendor took said.
fn heard(vendor: &Vendor) -> Value {
    let heard = last(vendor).map(|body| ModelInput::of(vendor.upstream.wire(), &body));
    let heard = heard.unwrap_or_default();
    json!({"instructions": heard.instructions, "lines": heard.lines()})
}

/// How many pieces of reasoning a request gives back to the vendor with the seal or signature that
/// the vendor issued. The dummy signature that a vendor accepts, such as Gemini's for calls of other
/// models, is none. Chat Completions has no place for reasoning.
fn thoughts(vendor: &Vendor, body: &Value) -> usize {
    let (entries, parts, seal) = match vendor.upstream.wire() {
        Wire::Anthropic => ("messages", Some("content"), "signature"),
        Wire::Gemini => ("contents", Some("parts"), "thoughtSignature"),
        _ => ("input", None, "encrypted_content"),
    };
    let entries = body[entries].as_array().into_iter().flatten();
    let parts: Vec<&Value> = match parts {
        Some(key) => entries
            .filter_map(|entry| entry[key].as_array())
            .flatten()
            .collect(),
        None => entries.collect(),
    };
    // How every seal of the scripted vendors ends, see `upstream/say.rs` of the testkit.
    let is_issued = |text: &str| text.ends_with("sealedA==");
    let sealed = parts.iter().filter_map(|part| part[seal].as_str());
    sealed.filter(|text| is_issued(text)).count()
}
