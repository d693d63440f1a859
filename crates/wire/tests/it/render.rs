//! Rendering: any history to any vendor.

use throughline_model::{Message, json};
use throughline_testkit::{Rng, messages, property};
use throughline_wire::render::{Options, Rendered, RepairKind, Target, render, renderer};
use throughline_wire::validate::{Profile, validate};
use throughline_wire::{Codec, Losses, Wire, codec};

use crate::common::{Entry, decode, entries};

fn targets() -> Vec<Target> {
    Wire::KNOWN
        .iter()
        .filter(|wire| codec(wire).is_some())
        .map(|wire| Target::newest(wire.clone()))
        .collect()
}

/// A history in which vendors are mixed: neutral turns, and turns as one of the vendors said them.
fn mixed(all: &[Entry], rng: &mut Rng, size: usize) -> Vec<Message> {
    let mut history = Vec::new();
    for _ in 0..rng.range(1..=4) {
        let mut part = messages::history(rng, size.min(6));
        if rng.bool() {
            // As a vendor would have said it.
            let wires: Vec<&Wire> = Wire::KNOWN.iter().filter(|w| codec(w).is_some()).collect();
            let wire: &Wire = rng.pick::<&Wire>(&wires);
            let codec = codec(wire).unwrap();
            let array = codec.encode_messages(&part, &mut Losses::default());
            part = decode(codec, &array).unwrap();
        }
        history.extend(part);
        if rng.chance(0.5) {
            let entry = rng.pick(all);
            let array = format!("[{}]", entry.wrapped());
            history.extend(decode(entry.codec(), &array).unwrap());
        }
    }
    if rng.chance(0.3) && !history.is_empty() {
        // Results and calls in the wrong order, or gone.
        let at = rng.below(history.len());
        let message = history.remove(at);
        if rng.bool() {
            let to = rng.below(history.len() + 1);
            history.insert(to, message);
        }
    }
    history
}

/// What the validator says of a rendered history.
fn accepted(codec: &dyn Codec, rendered: &Rendered) -> Result<(), String> {
    let array = rendered.array();
    let value = json::parse(&array).map_err(|error| format!("{error}: {array}"))?;
    decode(codec, &array).map_err(|error| format!("{error}: {array}"))?;
    let violations = validate(&value, &Profile::newest(codec.wire()));
    match violations.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "{first:?}\n{}",
            json::pretty(&array).unwrap_or(array)
        )),
    }
}

/// Items before the first repair after which a longer history may differ.
fn stable(rendered: &Rendered) -> usize {
    rendered
        .repairs
        .iter()
        .filter(|repair| {
            matches!(
                repair.kind,
                RepairKind::TrailingUser
                    | RepairKind::ClosedCall
                    | RepairKind::LateResult
                    | RepairKind::SealedReasoning
            )
        })
        .map(|repair| repair.item)
        .min()
        .unwrap_or(rendered.items.len())
}

#[test]
fn any_history_renders_for_every_target_and_keeps_its_prefix() {
    let all = entries();
    for target in targets() {
        let codec = codec(&target.wire).unwrap();
        let name = format!("histories for {}", target.wire);
        let mut cuts = 0usize;
        let mut exempt = 0usize;
        property(&name, 300, |rng, size| {
            let history = mixed(&all, rng, size);
            let options = Options::default();
            let whole = render(&history, &target, &options);
            accepted(codec, &whole)?;
            for cut in 0..history.len() {
                let prefix = render(&history[..cut], &target, &options);
                accepted(codec, &prefix)?;
                let settled = stable(&prefix).min(stable(&whole));
                cuts += 1;
                exempt += usize::from(settled < prefix.items.len());
                let same = prefix.items[..settled.min(prefix.items.len())]
                    .iter()
                    .zip(&whole.items)
                    .all(|(a, b)| a.json == b.json);
                if !same || whole.items.len() < settled {
                    return Err(format!(
                        "cut at {cut}:\n{:#?}\n{:#?}\n{history:#?}",
                        prefix.items, whole.items
                    ));
                }
            }
            Ok(())
        });
        println!("table {name}: cuts={cuts} exempted={exempt}");
    }
}

#[test]
fn a_renderer_that_goes_on_gives_what_rendering_the_whole_gives() {
    let all = entries();
    for target in targets() {
        let name = format!("going on for {}", target.wire);
        property(&name, 300, |rng, size| {
            let history = mixed(&all, rng, size);
            let options = Options::default();
            let mut going = renderer(&target, &options).unwrap();
            for (index, message) in history.iter().enumerate() {
                if going.push(message).is_err() {
                    return Ok(());
                }
                let Ok(tail) = going.tail() else {
                    return Ok(());
                };
                let mut items = going.items().to_vec();
                items.extend(tail.items);
                let whole = render(&history[..=index], &target, &options);
                if items != whole.items {
                    return Err(format!("{items:#?}\n{:#?}", whole.items));
                }
            }
            Ok(())
        });
    }
}
