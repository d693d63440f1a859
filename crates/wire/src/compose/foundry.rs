//! Azure Foundry: OpenAI Responses, where sealed reasoning is not asked for, because Azure hosts
//! take back no more than that of the newest turn.

use super::draft::Draft;
use super::openai_responses;

pub(super) fn write(draft: &mut Draft<'_>) {
    openai_responses::begin(draft);
    openai_responses::rest(draft);
}
