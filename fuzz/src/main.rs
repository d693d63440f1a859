//! All fuzz targets in one binary; the variable `THROUGHLINE_FUZZ` names the one to run.
//!
//! Started by `cargo xtask fuzz`. A target panics when something that must hold does not.

#![no_main]

use std::process::exit;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

mod json;
mod request;
#[path = "../../crates/server/src/suggest.rs"]
mod suggest;
mod wire;

// What the server's sources know by this name.
pub(crate) use request::ApiError;

use throughline_wire::Wire;

struct Target {
    name: &'static str,
    run: fn(&[u8]),
}

/// A new target gets a module, a line here, and a few inputs in `fuzz/corpus/<name>/`.
const TARGETS: &[Target] = &[
    Target {
        name: "json",
        run: json::run,
    },
    Target {
        name: "sse",
        run: wire::sse,
    },
    Target {
        name: "stored",
        run: wire::stored,
    },
    Target {
        name: "responses-request",
        run: request::run,
    },
    Target {
        name: "decode-openai-responses",
        run: |data| wire::decode(&Wire::OpenAiResponses, data),
    },
    Target {
        name: "stream-openai-responses",
        run: |data| wire::stream(&Wire::OpenAiResponses, data),
    },
    Target {
        name: "decode-openai-chat",
        run: |data| wire::decode(&Wire::OpenAiChat, data),
    },
    Target {
        name: "stream-openai-chat",
        run: |data| wire::stream(&Wire::OpenAiChat, data),
    },
    Target {
        name: "decode-anthropic",
        run: |data| wire::decode(&Wire::Anthropic, data),
    },
    Target {
        name: "stream-anthropic",
        run: |data| wire::stream(&Wire::Anthropic, data),
    },
    Target {
        name: "decode-foundry",
        run: |data| wire::decode(&Wire::Foundry, data),
    },
    Target {
        name: "stream-foundry",
        run: |data| wire::stream(&Wire::Foundry, data),
    },
    Target {
        name: "decode-gemini",
        run: |data| wire::decode(&Wire::Gemini, data),
    },
    Target {
        name: "stream-gemini",
        run: |data| wire::stream(&Wire::Gemini, data),
    },
    Target {
        name: "decode-gemini-interactions",
        run: |data| wire::decode(&Wire::GeminiInteractions, data),
    },
    Target {
        name: "stream-gemini-interactions",
        run: |data| wire::stream(&Wire::GeminiInteractions, data),
    },
];

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

fn choose() {
    let name = std::env::var("THROUGHLINE_FUZZ").unwrap_or_default();
    if name == "list" {
        TARGETS
            .iter()
            .for_each(|target| println!("{}", target.name));
        exit(0);
    }
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        eprintln!("THROUGHLINE_FUZZ={name} names no target; `list` shows them");
        exit(2);
    };
    CHOSEN.get_or_init(|| target.run);
}

fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(run) = CHOSEN.get() {
        run(data);
    }
});
