//! The item types that Azure Foundry adds to those of OpenAI, as data.

use throughline_model::Family;

use crate::wire_type::{ArgumentsAt, IdClass, ItemRole, OutputAt, WireType};

/// The roles that messages may have. Tools speak through items, so their role is not among them.
pub(super) static ROLES: [&str; 7] = [
    "user",
    "assistant",
    "system",
    "developer",
    "critic",
    "discriminator",
    "unknown",
];

/// A tool that the service runs, as it is called. Its output is an item of its own.
const fn call(tag: &'static str, family: Family) -> WireType {
    WireType::new(tag, ItemRole::Call, family, IdClass::Natural)
        .by_vendor()
        .arguments(ArgumentsAt::Text("arguments"))
}

/// What such a tool gave back: text, or JSON of any shape.
const fn output(tag: &'static str, family: Family) -> WireType {
    WireType::new(tag, ItemRole::Output, family, IdClass::Natural)
        .by_vendor()
        .output(OutputAt::TextOrJson("output"))
}

const AI_SEARCH: Family = Family::of("azure-ai-search");
const FUNCTION: Family = Family::of("azure-function");
const CUSTOM_SEARCH: Family = Family::of("bing-custom-search");
const BING: Family = Family::of("bing-grounding");
const BROWSER: Family = Family::of("browser-automation");
const FABRIC: Family = Family::of("fabric-data-agent");
const OPENAPI: Family = Family::of("openapi");
const SHAREPOINT: Family = Family::of("sharepoint-grounding");

/// Every item type that only Foundry has. All others are those of
/// [`openai_responses`](crate::openai_responses).
pub static ITEM_TYPES: [WireType; 22] = [
    call("a2a_preview_call", Family::A2A).named_by("name"),
    output("a2a_preview_call_output", Family::A2A).named_by("name"),
    call("azure_ai_search_call", AI_SEARCH),
    output("azure_ai_search_call_output", AI_SEARCH),
    call("azure_function_call", FUNCTION).named_by("name"),
    output("azure_function_call_output", FUNCTION).named_by("name"),
    call("bing_custom_search_preview_call", CUSTOM_SEARCH),
    output("bing_custom_search_preview_call_output", CUSTOM_SEARCH),
    call("bing_grounding_call", BING),
    output("bing_grounding_call_output", BING),
    call("browser_automation_preview_call", BROWSER),
    output("browser_automation_preview_call_output", BROWSER),
    call("fabric_dataagent_preview_call", FABRIC),
    output("fabric_dataagent_preview_call_output", FABRIC),
    call("openapi_call", OPENAPI).named_by("name"),
    output("openapi_call_output", OPENAPI).named_by("name"),
    call("sharepoint_grounding_preview_call", SHAREPOINT),
    output("sharepoint_grounding_preview_call_output", SHAREPOINT),
    // Returned with an id, sent without: the class is that of the instance which has one.
    WireType::new(
        "memory_search_call",
        ItemRole::CallAndOutput,
        Family::MEMORY_SEARCH,
        IdClass::Conflated,
    )
    .by_vendor()
    .output(OutputAt::Json("results")),
    // These have no call; `action_id` names a node of the workflow, which may run many times.
    WireType::new(
        "workflow_action",
        ItemRole::Output,
        Family::WORKFLOW_ACTION,
        IdClass::Conflated,
    )
    .by_vendor()
    .named_by("kind"),
    WireType::new(
        "oauth_consent_request",
        ItemRole::Output,
        Family::OAUTH_CONSENT,
        IdClass::Conflated,
    )
    .by_vendor()
    .named_by("server_label"),
    WireType::new(
        "structured_outputs",
        ItemRole::Other,
        Family::of("structured-outputs"),
        IdClass::Conflated,
    ),
];

/// Whether an item of this tag comes in responses only. Of Foundry's own types the service takes
/// back memory searches alone.
pub(crate) fn is_response_only(tag: &str) -> bool {
    let own = ITEM_TYPES.iter().any(|row| row.tag == tag) || renamed_type(tag).is_some();
    own && tag != "memory_search_call"
}

/// The word that some tags have and that goes when a tool leaves preview.
const PREVIEW: &str = "_preview";

/// The item type of a tag that is spelled with the word `preview` where the table has none, or
/// without where it has.
pub(super) fn renamed_type(tag: &str) -> Option<&'static WireType> {
    let plain = tag.replacen(PREVIEW, "", 1);
    ITEM_TYPES
        .iter()
        .find(|row| row.call.is_some() && row.tag.replacen(PREVIEW, "", 1) == plain)
}
