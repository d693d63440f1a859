//! Azure Foundry: OpenAI Responses with items and rules of its own.

use throughline_model::json::Value;

use crate::openai_responses::validate::{Flavour, check_as};
use crate::validate::profile::Profile;
use crate::validate::report::Report;

pub(super) fn check(request: &Value<'_>, profile: &Profile, report: &mut Report) {
    check_as(Flavour::Foundry, request, profile, report);
}
