//! Rendering: any history to any vendor.

mod switched;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use throughline_model::{
    Body, CallId, Content, Media, MediaKind, MediaSource, Message, Outcome, Output, Role, Runner,
    ToolCall, json,
};
use throughline_testkit::{Rng, property};
use throughline_wire::render::{
    Markers, MarkersError, Options, Rendered, RepairKind, Target, TextEmbed, render, renderer,
};
use throughline_wire::validate::{Generation, Profile, validate};
use throughline_wire::{Wire, codec};

use crate::common::decode;
use crate::histories::Histories;

fn targets() -> Vec<Target> {
    Wire::KNOWN
        .iter()
        .filter(|wire| codec(wire).is_some())
        .map(|wire| Target::newest(wire.clone()))
        .collect()
}

/// A target of a format, and the profile of the same service.
fn target(wire: &Wire, rng: &mut Rng) -> (Target, Profile) {
    let newest = rng.bool();
    let mut either = |usual: bool| if newest { usual } else { rng.bool() };
    let generation = Generation {
        system_messages: either(true),
        prefill: either(false),
        call_ids: either(true),
        call_signatures: either(true),
        result_media: either(true),
        tool_combination: either(true),
        thinking_levels: either(true),
        sampling: either(false),
    };
    let target = Target {
        stored: rng.chance(0.3),
        thinking: rng.chance(0.3),
        same_account: rng.chance(0.8),
        generation,
        container: rng.chance(0.3).then(|| "container_1".to_owned()),
        ..Target::newest(wire.clone())
    };
    let profile = Profile {
        generation,
        stored: target.stored,
        thinking: target.thinking,
        same_account: target.same_account,
        ..Profile::newest(wire.clone())
    };
    (target, profile)
}

/// What the validator says of a rendered history.
fn accepted((target, profile): &(Target, Profile), rendered: &Rendered) -> Result<(), String> {
    let codec = codec(&profile.wire).unwrap();
    let array = rendered.array();
    decode(codec, &array).map_err(|error| format!("{error}: {array}"))?;
    let body = rendered.body(target, &Options::default());
    let value = json::parse(&body).map_err(|error| format!("{error}: {body}"))?;
    let violations = validate(&value, profile);
    match violations.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "{}: {first:?}\n{}",
            first.rule,
            json::pretty(&array).unwrap_or(array)
        )),
    }
}

/// The repairs after which a longer history may be rendered in another way.
const PASSING: [RepairKind; 4] = [
    RepairKind::TrailingUser,
    RepairKind::ClosedCall,
    RepairKind::LateResult,
    RepairKind::SealedReasoning,
];

/// The first repair of each of those kinds that only one of two renderings has. Where results
/// were moved, which of several calls with one id they answer depends on everything.
fn passing(a: &Rendered, b: &Rendered) -> BTreeMap<RepairKind, usize> {
    let mut first = BTreeMap::new();
    for (one, other) in [(a, b), (b, a)] {
        for repair in &one.repairs {
            let shared = repair.kind != RepairKind::LateResult && other.repairs.contains(repair);
            if PASSING.contains(&repair.kind) && !shared {
                let at = first.entry(repair.kind).or_insert(repair.item);
                *at = repair.item.min(*at);
            }
        }
    }
    first
}

/// What was looked at.
#[derive(Default)]
struct Seen {
    cuts: usize,
    whole: usize,
    exempted: BTreeMap<RepairKind, usize>,
}

/// The history cut at a place: accepted, and the beginning of the whole as far as that holds.
fn check_cut(
    history: &[Message],
    cut: usize,
    whole: &Rendered,
    (whom, form): (&(Target, Profile), Form),
    seen: &mut Seen,
) -> Result<(), String> {
    let prefix = render(&history[..cut], &whom.0, &form.options());
    accepted(whom, &prefix)?;
    seen.cuts += 1;
    let mut settled = prefix.items.len();
    for (kind, item) in passing(&prefix, whole) {
        settled = settled.min(item);
        if item < prefix.items.len() {
            *seen.exempted.entry(kind).or_default() += 1;
        }
    }
    if settled == prefix.items.len() {
        seen.whole += 1;
    }
    let texts = |rendered: &Rendered| -> Vec<String> {
        let items = rendered.items.iter().take(settled);
        items.map(|item| item.json.clone()).collect()
    };
    let (short, long) = (texts(&prefix), texts(whole));
    if short == long {
        return Ok(());
    }
    Err(format!("prefix: cut at {cut}\n{short:#?}\n{long:#?}"))
}

/// What sort of failure it is, by its first word.
fn sort(failure: &str) -> String {
    failure.split(':').take(1).collect()
}

/// A smaller history that fails in the same way, with its failure.
fn smaller(
    history: &[Message],
    failure: String,
    fails: impl Fn(&[Message]) -> Option<String>,
) -> String {
    let mut least = (history.to_vec(), failure);
    let mut at = 0;
    while at < least.0.len() {
        let mut less = least.0.clone();
        less.remove(at);
        match fails(&less) {
            Some(failure) => least = (less, failure),
            None => at += 1,
        }
    }
    for at in 0..least.0.len() {
        let mut place = 0;
        while place < least.0[at].contents.len() {
            let mut less = least.0.clone();
            less[at].contents.remove(place);
            match fails(&less) {
                Some(failure) => least = (less, failure),
                None => place += 1,
            }
        }
    }
    let stored: Vec<String> = least.0.iter().map(Message::to_json).collect();
    format!("{}\n{}", least.1, stored.join("\n"))
}

/// One in this many histories is cut at every position, the others at one.
const EVERYWHERE: usize = 20;

/// How tool history is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Native,
    Text,
}

impl Form {
    fn options(self) -> Options {
        match self {
            Self::Native => Options::default(),
            Self::Text => Options::with_strategy(Arc::new(TextEmbed::default())),
        }
    }

    /// How many histories are looked at for each format.
    fn cases(self) -> u64 {
        match self {
            Self::Native => 5_000,
            Self::Text => 1_500,
        }
    }

    /// As text there is neither a call nor a result of the application.
    fn check(self, wire: &Wire, rendered: &Rendered) -> Result<(), String> {
        if self == Self::Native {
            return Ok(());
        }
        let array = rendered.array();
        let messages = decode(codec(wire).unwrap(), &array).map_err(|error| error.to_string())?;
        let is_ours = |content: &Content| {
            let call = content.as_tool_call().map(|call| call.runner);
            let result = content.as_tool_result().map(|result| result.runner);
            call.or(result) == Some(Runner::Client)
        };
        let mut contents = messages.iter().flat_map(|message| &message.contents);
        match contents.find(|content| is_ours(content)) {
            Some(found) => Err(format!("tool item: {found:?}")),
            None => Ok(()),
        }
    }
}

/// Any history renders to something that the target accepts, and so does each of its beginnings,
/// to the beginning of the same. Says what was looked at.
fn any_history_renders_for(wire: &Wire, form: Form) -> String {
    let histories = Histories::new();
    let name = match form {
        Form::Native => format!("histories for {wire}"),
        Form::Text => format!("histories as text for {wire}"),
    };
    let mut seen = Seen::default();
    let mut cases = 0usize;
    property(&name, form.cases(), |rng, size| {
        let history = histories.any(rng, size, wire);
        let whom = target(wire, rng);
        cases += 1;
        let cuts = match rng.below(EVERYWHERE) {
            0 => 0..history.len(),
            _ => {
                let cut = rng.below(history.len());
                cut..(cut + 1).min(history.len())
            }
        };
        let check = |history: &[Message], cuts: Range<usize>, seen: &mut Seen| {
            let whole = render(history, &whom.0, &form.options());
            accepted(&whom, &whole)?;
            form.check(wire, &whole)?;
            for cut in cuts {
                check_cut(history, cut, &whole, (&whom, form), seen)?;
            }
            Ok(())
        };
        check(&history, cuts, &mut seen).map_err(|failure: String| {
            let sought = sort(&failure);
            let small = smaller(&history, failure, |less| {
                let failure = check(less, 0..less.len(), &mut Seen::default()).err()?;
                (sort(&failure) == sought).then_some(failure)
            });
            format!("{:?}\n{small}", whom.0)
        })
    });
    let exempted: Vec<String> = PASSING
        .iter()
        .map(|kind| {
            format!(
                "{}={}",
                kind.as_str(),
                seen.exempted.get(kind).unwrap_or(&0)
            )
        })
        .collect();
    format!(
        "table {name}: histories={cases} cuts={} violations=0 whole={} exempted: {}",
        seen.cuts,
        seen.whole,
        exempted.join(" ")
    )
}

#[test]
fn any_history_renders_for_openai_chat() {
    println!(
        "{}",
        any_history_renders_for(&Wire::OpenAiChat, Form::Native)
    );
}

#[test]
fn any_history_renders_for_openai_responses() {
    println!(
        "{}",
        any_history_renders_for(&Wire::OpenAiResponses, Form::Native)
    );
}

#[test]
fn any_history_renders_for_anthropic() {
    println!(
        "{}",
        any_history_renders_for(&Wire::Anthropic, Form::Native)
    );
}

#[test]
fn any_history_renders_for_gemini() {
    println!("{}", any_history_renders_for(&Wire::Gemini, Form::Native));
}

#[test]
fn any_history_renders_for_gemini_interactions() {
    println!(
        "{}",
        any_history_renders_for(&Wire::GeminiInteractions, Form::Native)
    );
}

#[test]
fn any_history_renders_for_foundry() {
    println!("{}", any_history_renders_for(&Wire::Foundry, Form::Native));
}

#[test]
fn any_history_renders_as_text_for_openai_chat() {
    println!("{}", any_history_renders_for(&Wire::OpenAiChat, Form::Text));
}

#[test]
fn any_history_renders_as_text_for_openai_responses() {
    println!(
        "{}",
        any_history_renders_for(&Wire::OpenAiResponses, Form::Text)
    );
}

#[test]
fn any_history_renders_as_text_for_anthropic() {
    println!("{}", any_history_renders_for(&Wire::Anthropic, Form::Text));
}

#[test]
fn any_history_renders_as_text_for_gemini() {
    println!("{}", any_history_renders_for(&Wire::Gemini, Form::Text));
}

#[test]
fn any_history_renders_as_text_for_gemini_interactions() {
    println!(
        "{}",
        any_history_renders_for(&Wire::GeminiInteractions, Form::Text)
    );
}

#[test]
fn any_history_renders_as_text_for_foundry() {
    println!("{}", any_history_renders_for(&Wire::Foundry, Form::Text));
}

#[test]
fn a_renderer_that_goes_on_gives_what_rendering_the_whole_gives() {
    let histories = Histories::new();
    let forms = [Form::Native, Form::Text];
    let each = |target: Target| forms.map(|form| (target.clone(), form));
    for (target, form) in targets().into_iter().flat_map(each) {
        let name = format!("going on for {} {form:?}", target.wire);
        property(&name, 300, |rng, size| {
            let history = histories.any(rng, size, &target.wire);
            let options = form.options();
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

#[test]
fn markers_that_look_like_calls_are_refused() {
    for before in [
        "<tool_call>{tool}",
        "<|tool|>{tool}",
        "[TOOL_CALLS] {tool}",
        "{tool}(",
        "call {tool}{",
        "```\n{tool}",
        "<function={tool}>",
        "<invoke name={tool}>",
        "{\"name\": {tool}}",
    ] {
        let error = Markers::new(before, "").unwrap_err();
        assert!(matches!(error, MarkersError::Callable { .. }), "{before}");
    }
    assert_eq!(Markers::new("result", ""), Err(MarkersError::NoTool));
    assert_eq!(Markers::new("{tool} {tool}", ""), Err(MarkersError::NoTool));
    let long = "x".repeat(300);
    assert_eq!(Markers::new("{tool}", long), Err(MarkersError::NotPlain));
    assert_eq!(Markers::new("{tool}\u{7}", ""), Err(MarkersError::NotPlain));
    // Those that hold without a word are allowed as well.
    let usual = Markers::default();
    assert_eq!(Markers::new(usual.before(), usual.after()), Ok(usual));
}

#[test]
fn b173_as_text_pictures_follow_and_long_arguments_are_cut() {
    let arguments = format!(r#"{{"path":"/a","content":"{}"}}"#, "x".repeat(5_000));
    let call = ToolCall::function(CallId::natural("c").unwrap(), "write", arguments);
    let picture = Content::new(Body::Media(Media {
        kind: MediaKind::Image,
        media_type: Some("image/png".into()),
        source: MediaSource::Data("iVBORw0KGgo=".into()),
        name: None,
        transcript: None,
    }));
    let output = Output::Parts(vec![Content::text("written"), picture]);
    let result = call.answer(Outcome::Ok, output);
    let history = [
        Message::user("Write."),
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::Tool, vec![result.into()]),
    ];
    for target in targets() {
        let rendered = render(&history, &target, &Options::text());
        let array = rendered.array();
        assert!(array.contains("iVBORw0KGgo="), "{array}");
        assert!(array.len() < 2_000, "{array}");
        let head = r#"[Result of write, which was given path: \"/a\"; content: \"xxx"#;
        assert!(array.contains(head), "{array}");
        let profile = Profile::newest(target.wire.clone());
        accepted(&(target, profile), &rendered).unwrap();
    }
}
