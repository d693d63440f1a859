//! Every example of the wire catalogue, there and back.
use throughline_model::json;
use throughline_wire::{Losses, Wire, assemble, codec};

#[test]
fn probe() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/wire/examples.json"
    ))
    .unwrap();
    let list = json::parse(&text).unwrap();
    let mut bad = 0;
    let mut n = 0;
    for row in list.as_array().unwrap() {
        if row.get("provider").unwrap().as_str().unwrap() != "openai"
            || row.get("api").unwrap().is_str("chat")
        {
            continue;
        }
        n += 1;
        let ex = json::RawJson::of(row.get("example").unwrap());
        let array = format!("[{}]", ex.get());
        let c = codec(&Wire::OpenAiResponses).unwrap();
        let v = json::parse(&array).unwrap();
        let m = c.decode_messages(v.as_array().unwrap());
        let m = match m {
            Ok(m) => m,
            Err(e) => {
                println!("{e} {array}");
                bad += 1;
                continue;
            }
        };
        let mut l = Losses::default();
        let out = c.encode_messages(&m, &mut l);
        if out != array || !l.is_empty() {
            println!("DIFF\n{array}\n{out}");
            bad += 1;
        }
        for x in &m {
            let back = throughline_model::Message::from_json(&x.to_json()).unwrap();
            assert_eq!(&back, x);
        }
    }
    println!("{n} {bad}");
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/wire/streams.json"
    ))
    .unwrap();
    let list = json::parse(&text).unwrap();
    for row in list.as_array().unwrap() {
        if !row.get("api").unwrap().is_str("responses") {
            continue;
        }
        let frames: Vec<_> = row
            .get("events")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|e| throughline_wire::sse::Frame {
                event: None,
                data: e.raw().to_owned(),
                id: None,
                retry: None,
            })
            .collect();
        let r = assemble(codec(&Wire::OpenAiResponses).unwrap(), &frames).unwrap();
        println!("{r:#?}");
    }
    assert_eq!(bad, 0);
}
