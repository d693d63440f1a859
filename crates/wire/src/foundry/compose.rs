//! Azure Foundry: OpenAI Responses, where sealed reasoning is not asked for, because Azure hosts
//! take back no more than that of the newest turn.

use crate::compose::body_builder::BodyBuilder;
use crate::openai_responses::compose as openai_responses;

pub(crate) fn write(builder: &mut BodyBuilder<'_>) {
    openai_responses::add_model_and_input(builder);
    openai_responses::add_tools_and_settings(builder);
}
