//! What is stored with a recorded run beside its messages.

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::{RunId, ThreadId};

/// What a client asked for, apart from its messages. Equal ones are stored once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedRequest<'r> {
    /// The API, as in its route.
    pub(crate) api: &'r str,
    /// The model, as the client named it.
    pub(crate) model: &'r str,
    /// The request without its messages.
    pub(crate) settings: Option<&'r RawJson>,
}

/// Marks the request of a recorded run; its value is the version of the form.
const MARK: &str = "recorded";

impl RecordedRequest<'_> {
    pub(super) fn to_json(self, instructions: &[&Message]) -> RawJson {
        RawJson::object(|object| {
            object
                .number(MARK, 1)
                .str("api", self.api)
                .str("model", self.model);
            let text: Vec<String> = instructions.iter().map(|message| message.text()).collect();
            if !text.is_empty() {
                object.str("instructions", &text.join("\n\n"));
            }
            if let Some(settings) = self.settings {
                object.raw("settings", settings.get());
            }
        })
    }
}

/// Whether the stored request of a run is that of a recorded one.
pub(super) fn is_recorded(request: Option<&RawJson>) -> bool {
    request.is_some_and(|request| request.value().get(MARK).is_some())
}

/// What is kept with a thread whose conversation comes from another one.
pub(super) fn meta(api: &str, origin: Option<&(ThreadId, RunId)>) -> RawJson {
    RawJson::object(|object| {
        object.str("recorded_from", api);
        if let Some((thread, run)) = origin {
            object
                .str("origin_thread", thread.as_str())
                .str("origin_run", &run.to_string());
        }
    })
}
