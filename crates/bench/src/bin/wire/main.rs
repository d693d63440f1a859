//! The cost of reading and writing vendor formats, as ratios within one run.
//!
//! Started by `cargo xtask bench wire`.

use std::process::ExitCode;

use throughline_model::json;
use throughline_model::{CallId, Content, Message, Response, Role, Scope, Stop, ToolCall};
use throughline_testkit::Rng;
use throughline_testkit::bench::{Bench, Limit, black_box};
use throughline_wire::sse::{Decoder, Limits};
use throughline_wire::{Codec, Losses, Wire, codec};

const BODY_BYTES: usize = 100_000;

fn main() -> ExitCode {
    let mut holds = true;
    for codec in Wire::KNOWN.iter().filter_map(codec) {
        holds &= bodies(codec);
    }
    holds &= lines();
    ExitCode::from(u8::from(!holds))
}

/// Words with the quotes, line breaks and accents of real text.
fn prose(rng: &mut Rng, words: usize) -> String {
    const WORDS: [&str; 12] = [
        "the",
        "tide",
        "turns",
        "at",
        "ten\n",
        "\"berth\"",
        "harbour",
        "naïve",
        "and",
        "moors",
        "C:\\charts",
        "again",
    ];
    let chosen: Vec<&str> = (0..words).map(|_| *rng.pick::<&str>(&WORDS)).collect();
    chosen.join(" ")
}

/// A response of about 100 KB: text, and calls with arguments, as agents get them.
fn body(codec: &Codec) -> String {
    let mut rng = Rng::new(7);
    let mut contents = Vec::new();
    let mut size = 0;
    let mut ordinal = 0;
    while size < BODY_BYTES {
        let text = prose(&mut rng, 120);
        let mut arguments = String::new();
        let mut object = json::ObjectWriter::new(&mut arguments);
        object
            .str("path", "src/tide.rs")
            .number("line", rng.below(1_000) as u64)
            .str("text", &prose(&mut rng, 60));
        object.end();
        size += text.len() + arguments.len() + 300;
        contents.push(Content::text(text));
        let id = CallId::natural(&format!("call_{ordinal:08}"))
            .unwrap_or_else(|| CallId::minted(Scope::Place(0), ordinal));
        ordinal += 1;
        contents.push(ToolCall::function(id, "edit_file", arguments).into());
    }
    let response = Response {
        id: Some("resp_1".to_owned()),
        model: Some("some-model".to_owned()),
        messages: vec![Message::new(Role::Assistant, contents)],
        usage: None,
        stop: Stop::Done,
        error: None,
        vendor: None,
        service: None,
    };
    codec.encode_response(&response, &mut Losses::default())
}

fn bodies(codec: &Codec) -> bool {
    let body = body(codec);
    let value: serde_json::Value = match serde_json::from_str(&body) {
        Ok(value) => value,
        Err(_) => return false,
    };
    let Ok(tree) = json::parse(&body) else {
        return false;
    };
    let Ok(response) = codec.decode_response(&tree) else {
        return false;
    };
    let name = format!("{}: a response of {} KB", codec.wire(), body.len() / 1_000);
    let mut bench = Bench::new(name);
    bench.case("serde_json into Value", || {
        black_box(serde_json::from_str::<serde_json::Value>(black_box(&body)).is_ok());
    });
    bench.against(
        "decode to messages",
        "serde_json into Value",
        Limit::AtMost(3.0),
        || {
            let decoded = json::parse(black_box(&body))
                .ok()
                .and_then(|tree| codec.decode_response(&tree).ok());
            black_box(decoded.is_some());
        },
    );
    bench.case("serde_json from Value", || {
        black_box(serde_json::to_string(black_box(&value)).is_ok());
    });
    bench.against(
        "encode from messages",
        "serde_json from Value",
        Limit::AtMost(2.0),
        || {
            black_box(codec.encode_response(black_box(&response), &mut Losses::default()));
        },
    );
    finish(bench)
}

fn lines() -> bool {
    let decode = |mebibytes: usize| {
        let line = format!("data: {}\n\n", "x".repeat(mebibytes << 20));
        move || {
            let mut decoder = Decoder::new(Limits::default());
            for chunk in line.as_bytes().chunks(1_460) {
                decoder.push(chunk);
            }
            black_box(decoder.next_frame().is_ok());
        }
    };
    let mut bench = Bench::new("one event-stream line in 1,460-byte chunks");
    bench.case("1 MiB", decode(1));
    bench.against("2 MiB", "1 MiB", Limit::AtMost(2.2), decode(2));
    finish(bench)
}

/// Prints the rows; returns whether all limits hold.
fn finish(bench: Bench<'_>) -> bool {
    let report = bench.run();
    let _ = report.finish();
    report.holds()
}
