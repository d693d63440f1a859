//! Azure Foundry: OpenAI Responses, where sealed reasoning is not asked for, because Azure hosts
//! take back no more than that of the newest turn.

use crate::compose::draft::Draft;
use crate::openai_responses::compose as openai_responses;

pub(crate) fn write(draft: &mut Draft<'_>) {
    openai_responses::begin(draft);
    openai_responses::rest(draft);
}
