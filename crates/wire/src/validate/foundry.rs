//! Azure Foundry: OpenAI Responses with items and rules of its own.

use throughline_model::json::Value;

use super::openai_responses::{Flavour, check_as};
use super::profile::Profile;
use super::report::Report;

pub(super) fn check(request: &Value<'_>, profile: &Profile, report: &mut Report) {
    check_as(Flavour::Foundry, request, profile, report);
}
