//! What a vendor requires of a rendered history.
//!
//! Every vendor folder has a `render.rs` with one [`RenderFormat`]: facts that hold for the format,
//! and a function that gives the [`Rules`] for one target. The renderer reads these and does not
//! know which vendor it renders for.

use std::borrow::Cow;

use throughline_model::json::RawJson;
use throughline_model::{Content, Message, Reasoning, Role, ToolCall, ToolResult};

use super::body::RenderedInput;
use super::switches::Switches;
use super::target::Target;
use crate::object_builder::ObjectBuilder;

/// Facts about one vendor's format.
#[derive(Clone, Copy)]
pub(crate) struct RenderFormat {
    /// The rules for one target.
    pub(crate) rules: fn(&Target, Switches) -> Rules,
    /// Add the members of a request body that follow from the history and its target: system text,
    /// messages, and what the request continues.
    pub(crate) add_input:
        for<'m> fn(&mut ObjectBuilder<'m>, RenderedInput<'m>, &'m Target, Switches),
    /// Whether a history is a flat list of items, each of which has its own type. Otherwise it is a
    /// list of messages that hold parts.
    pub(crate) flat: bool,
    /// Whether calls of tools that take free text have a form of their own.
    pub(crate) custom_calls: bool,
    /// Whether a result names the function of its call.
    pub(crate) named_results: bool,
    /// Whether the vendor can be asked to think with a budget of tokens.
    pub(crate) thinking_budgets: bool,
    /// The member of a call that holds its id; `None` if the id cannot be changed.
    pub(crate) call_id_key: Option<&'static str>,
    /// The member of a result that holds the id of its call; `None` if it cannot be changed.
    pub(crate) result_id_key: Option<&'static str>,
    /// The words for a role on the wire, as JSON.
    pub(crate) role_words: fn(&Role) -> &'static [&'static str],
    /// What the vendor's messages look like.
    pub(crate) envelope: EnvelopeFormat,
    /// The usual forms of contents.
    pub(crate) plain: PlainForms,
    /// Which violations make a form unusable.
    pub(crate) unusable: UnusableForms,
    /// Tags of items that stand among the model's but are the application's.
    pub(crate) client_items: &'static [&'static str],
    /// Why an item without a neutral form may not be sent, by its tag.
    pub(crate) refused_item: fn(&str, &Target, Switches) -> Option<&'static str>,
    /// Why reasoning of this vendor may not be sent.
    pub(crate) refused_reasoning:
        fn(&Content, &Reasoning, &Target, Switches) -> Option<&'static str>,
    /// A part without what the vendor does not take back; `None` if it is fine as it is. The names
    /// of removed members are added to the list.
    pub(crate) clean_part: fn(&RawJson, &PartContext<'_>, &mut Vec<String>) -> Option<CleanPart>,
    /// Whether a part must be sent although its text is empty.
    pub(crate) keeps_empty: fn(&RawJson) -> bool,
    /// The ids that items have beside those of calls; they must be new and issued by the vendor.
    pub(crate) item_ids: Option<ItemIds>,
    /// Safety checks of calls that results must acknowledge.
    pub(crate) safety_checks: Option<SafetyChecks>,
}

/// What surrounds a part that is cleaned.
pub(crate) struct PartContext<'p> {
    pub(crate) target: &'p Target,
    pub(crate) switches: Switches,
    /// Whether the part has one of the [`PlainForms`].
    pub(crate) plain: bool,
}

/// A part without what the vendor does not take back.
pub(crate) struct CleanPart {
    pub(crate) part: RawJson,
    /// Whether the id was among what was removed.
    pub(crate) id_removed: bool,
}

/// What the messages of a format look like.
#[derive(Clone, Copy)]
pub(crate) struct EnvelopeFormat {
    /// The member with the role.
    pub(crate) role_key: &'static str,
    /// The member that holds the contents.
    pub(crate) content_key: &'static str,
    /// Whether a message without a role is the user's.
    pub(crate) role_defaults_to_user: bool,
    /// Whether the content may be absent in a message of calls alone.
    pub(crate) content_optional: bool,
    /// Whether calls stand in a list beside the content.
    pub(crate) calls_beside_content: bool,
    /// Whether a member beside role and content has the right type, by its key and JSON text.
    pub(crate) member_fits: fn(&str, &str) -> bool,
    /// Whether the message has the members that hold what stands beside its content.
    pub(crate) holds_contents: fn(&RawJson, &[Content]) -> bool,
    /// The members that a message may have; `None` if unknown ones are not removed.
    pub(crate) keys: Option<&'static [&'static str]>,
    /// ObjectBuilder that only messages of the model may have.
    pub(crate) model_keys: &'static [&'static str],
    /// An envelope for a part that is written alone; `None` where parts need none.
    pub(crate) for_part: fn(&Content, &Role) -> Option<RawJson>,
}

/// Tests for the forms that nearly all contents have. `true` means that the vendor takes the form
/// as it is and that it says what its content says; `false` that it needs a closer look.
#[derive(Clone, Copy)]
pub(crate) struct PlainForms {
    /// A text; the flag is true for text of the model.
    pub(crate) text: fn(&RawJson, bool) -> bool,
    /// A call of a function.
    pub(crate) call: fn(&Content, &RawJson, &ToolCall) -> bool,
    /// The result of a function.
    pub(crate) result: fn(&Content, &RawJson, &ToolResult) -> bool,
}

/// The rules whose violation makes the vendor's form of a content unusable. What has a repair of
/// its own is not among them.
#[derive(Clone, Copy)]
pub(crate) struct UnusableForms {
    /// For every content.
    pub(crate) always: &'static [&'static str],
    /// For calls and results of the vendor's own tools, and items without a neutral form.
    pub(crate) hosted: &'static [&'static str],
    /// For everything but items of a type that may be newer than this code.
    pub(crate) known_types: &'static [&'static str],
}

/// The ids that items have beside those of calls.
#[derive(Clone, Copy)]
pub(crate) struct ItemIds {
    /// Whether the id of a content, or of the message that it opens, looks like one that the vendor
    /// issued.
    pub(crate) is_issued: fn(&Content, &str) -> bool,
    /// Whether an item cannot be sent without its id.
    pub(crate) is_required: fn(&RawJson) -> bool,
}

/// Safety checks that a call carries and its result must acknowledge.
#[derive(Clone, Copy)]
pub(crate) struct SafetyChecks {
    /// The checks of a call.
    pub(crate) of_call: fn(&Content) -> Option<RawJson>,
    /// Whether an item is the result of some call, by its JSON text.
    pub(crate) is_result: fn(&str) -> bool,
    /// Whether a result acknowledges checks at all.
    pub(crate) takes_checks: fn(&str) -> bool,
    /// The result with the checks acknowledged.
    pub(crate) acknowledge: fn(&str, &RawJson) -> Option<String>,
}

/// How the first call of a step is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSignatures {
    /// The call with a placeholder; `None` if it has a signature.
    pub(crate) sign: fn(&Content) -> Option<Content>,
    /// A later call without the signature of the first; `None` if it has another or none.
    pub(crate) unsign: fn(&Content, &Content) -> Option<Content>,
}

/// A message of which some contents were replaced, and their indexes.
pub(crate) type Replaced<'m> = (Cow<'m, Message>, Vec<usize>);

/// When the results of calls must stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adjacency {
    /// Right after the message with the calls.
    Next,
    /// Anywhere before the next message of the model.
    BeforeModel,
}

/// Where system text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemPlace {
    /// Among the messages, in order.
    InOrder,
    /// Outside, if it stands before everything else; later ones become user text.
    Outside,
}

/// What becomes of images, files and sound in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultMedia {
    /// They stay in the result.
    Kept,
    /// They follow in a user message; the codec leaves them out of the result.
    Moved,
    /// They follow in a user message and are removed from the result before it is encoded.
    MovedAndRemoved,
}

/// What ids of calls may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRule {
    /// The greatest number of characters.
    pub(crate) longest: usize,
    /// Whether only letters, digits, `_` and `-` are allowed.
    pub(crate) plain: bool,
    /// Whether ids are ours to choose at all.
    pub(crate) ours: bool,
    /// Whether each call has its own.
    pub(crate) unique: bool,
    /// Whether an id that the vendor left out must be written.
    pub(crate) required: bool,
}

/// The rules that the renderer follows for one target. A rule that a test switched off is not
/// among them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) adjacency: Adjacency,
    pub(crate) system: SystemPlace,
    pub(crate) id: IdRule,
    /// A user message must be first.
    pub(crate) first_user: bool,
    /// A user message or results must be last.
    pub(crate) last_user: bool,
    /// Empty texts are refused.
    pub(crate) no_empty: bool,
    /// Calls may not follow a message of the model.
    pub(crate) calls_after_user: bool,
    /// Results without a call have a form of their own.
    pub(crate) standalone: bool,
    pub(crate) result_media: ResultMedia,
    /// Every call has a result.
    pub(crate) calls_answered: bool,
    /// Every result has a call.
    pub(crate) results_asked: bool,
    /// A call has one result.
    pub(crate) one_result: bool,
    /// Messages and items are JSON objects.
    pub(crate) object_items: bool,
    /// Messages have a known role.
    pub(crate) known_roles: bool,
    /// Results stand before contents of the user in the same message.
    pub(crate) results_first: bool,
    /// What the model did stands in a message of the model.
    pub(crate) model_role: bool,
    /// Arguments of calls are objects, also where a stream ended inside them.
    pub(crate) object_arguments: bool,
    /// Calls of this vendor go back in the form in which they came.
    pub(crate) native_calls: bool,
    /// A call of a hosted tool has its result in the same message.
    pub(crate) hosted_calls_answered: bool,
    /// A result of a hosted tool follows its call in the same message.
    pub(crate) hosted_results_asked: bool,
    /// A summary by the vendor is the first block of a request.
    pub(crate) compaction_first: bool,
    /// What was sealed for another account is left out.
    pub(crate) drops_foreign_seals: bool,
    /// Only the newest turn's sealed reasoning may be sent.
    pub(crate) only_newest_sealed: bool,
    /// Messages have no members but the known ones.
    pub(crate) known_keys: bool,
    /// Messages have their `type`.
    pub(crate) typed_messages: bool,
    /// Whether the history may end with this message of the model, given as JSON text.
    pub(crate) may_end_with: Option<fn(&str) -> bool>,
    /// System text that comes later, as a message.
    pub(crate) later_system: Option<fn(&str) -> String>,
    /// Make contents of several origins one message of the vendor.
    pub(crate) merge_message: Option<fn(&mut Cow<'_, Message>)>,
    /// How calls are signed, if they must be.
    pub(crate) signatures: Option<CallSignatures>,
    /// Replace contents that the vendor sends but does not take back.
    pub(crate) replace_response_only: Option<for<'m> fn(&'m Message) -> Replaced<'m>>,
}

/// The names of rules that every format has under a name of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleNames {
    /// Every call has a result.
    pub(crate) calls_answered: &'static str,
    /// Every result has a call.
    pub(crate) results_asked: &'static str,
    /// A call has one result.
    pub(crate) one_result: &'static str,
    /// Messages and items are JSON objects.
    pub(crate) object_items: &'static str,
    /// Messages have a known role.
    pub(crate) known_roles: &'static str,
    /// What was sealed for another account is not sent.
    pub(crate) own_seals: &'static str,
}

impl Rules {
    /// The rules that most formats share.
    pub(crate) fn common(names: &RuleNames, target: &Target, switches: Switches) -> Self {
        let on = |rule: &str| switches.enforces(rule);
        Self {
            adjacency: Adjacency::Next,
            system: SystemPlace::InOrder,
            id: IdRule {
                longest: 64,
                plain: false,
                ours: true,
                unique: true,
                required: true,
            },
            first_user: false,
            last_user: false,
            no_empty: false,
            calls_after_user: false,
            standalone: false,
            result_media: ResultMedia::Kept,
            calls_answered: on(names.calls_answered),
            results_asked: on(names.results_asked),
            one_result: on(names.one_result),
            object_items: on(names.object_items),
            known_roles: on(names.known_roles),
            results_first: true,
            model_role: true,
            object_arguments: false,
            native_calls: true,
            hosted_calls_answered: false,
            hosted_results_asked: false,
            compaction_first: false,
            drops_foreign_seals: !target.same_account && on(names.own_seals),
            only_newest_sealed: false,
            known_keys: true,
            typed_messages: false,
            may_end_with: None,
            later_system: None,
            merge_message: None,
            signatures: None,
            replace_response_only: None,
        }
    }
}

impl RenderFormat {
    /// The facts that most formats share.
    pub(crate) const fn common(
        rules: fn(&Target, Switches) -> Rules,
        add_input: for<'m> fn(&mut ObjectBuilder<'m>, RenderedInput<'m>, &'m Target, Switches),
    ) -> Self {
        Self {
            rules,
            add_input,
            flat: false,
            custom_calls: false,
            named_results: false,
            thinking_budgets: false,
            call_id_key: None,
            result_id_key: None,
            role_words,
            envelope: EnvelopeFormat::COMMON,
            plain: PlainForms {
                text: |_, _| false,
                call: |_, _, _| false,
                result: |_, _, _| false,
            },
            unusable: UnusableForms {
                always: &[],
                hosted: &[],
                known_types: &[],
            },
            client_items: &[],
            refused_item: |_, _, _| None,
            refused_reasoning: |_, _, _, _| None,
            clean_part: |_, _, _| None,
            keeps_empty: |_| false,
            item_ids: None,
            safety_checks: None,
        }
    }
}

impl EnvelopeFormat {
    /// Messages with a role and a content.
    pub(crate) const COMMON: Self = Self {
        role_key: "role",
        content_key: "content",
        role_defaults_to_user: false,
        content_optional: false,
        calls_beside_content: false,
        member_fits: |_, _| true,
        holds_contents: |_, _| true,
        keys: None,
        model_keys: &[],
        for_part: |_, _| None,
    };
}

/// The words for a role in most formats, as JSON.
fn role_words(role: &Role) -> &'static [&'static str] {
    match role {
        Role::Assistant => &["\"assistant\""],
        Role::User | Role::Tool | Role::Other(_) => &["\"user\""],
        Role::System | Role::Developer => &["\"system\"", "\"developer\""],
    }
}
