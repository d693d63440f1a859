//! The call that the output limit cut off.
//!
//! Few vendors report which item of an answer was being written when its output limit was reached. It is the last one:
//! a call that stands there is marked incomplete, unless its own status is completed. The mark is on our side; what the
//! vendor sent is kept and written as it was.

use throughline_model::{Body, Content, Event, Place, Stop};

/// Mark the last content of an answer, if it is a call that the output limit cut off.
pub(crate) fn mark(contents: &mut [Content], stop: &Stop) {
    if *stop == Stop::Length
        && let Some(Body::ToolCall(call)) = contents.last_mut().map(|last| &mut last.body)
    {
        call.mark_cut_off();
    }
}

/// The last content of a stream whose contents are reported before it is known how the answer ends.
#[derive(Debug, Default)]
pub(crate) struct LastContent(Option<(Place, Content)>);

impl LastContent {
    /// One more content, behind those before it.
    pub(crate) fn push(&mut self, at: Place, content: &Content) {
        self.0 = content.as_tool_call().map(|_| (at, content.clone()));
    }

    /// The last content again with its mark, if it is a call that the output limit cut off and was not known
    /// to be incomplete.
    pub(crate) fn finished(&mut self, stop: &Stop) -> Option<Event> {
        let (at, reported) = self.0.take()?;
        let mut content = reported.clone();
        mark(std::slice::from_mut(&mut content), stop);
        (content != reported).then_some(Event::Content { at, content })
    }
}
