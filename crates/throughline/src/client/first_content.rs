use futures_util::{StreamExt, stream};
use throughline_model::Event;

use super::{ClientError, EventStream};

/// Waits for the first content of a stream. Earlier events are held back until then, so that an
/// attempt that fails before has returned nothing.
pub(super) async fn wait_for_content(mut events: EventStream) -> Result<EventStream, ClientError> {
    let mut first = Vec::new();
    while let Some(event) = events.next().await {
        let event = event?;
        let is_answer = match &event {
            Event::Started { .. } | Event::Speaker { .. } | Event::Other { .. } => false,
            // From here on the service has an answer that can be asked for: the call is not repeated.
            Event::Accepted { .. }
            | Event::Opened { .. }
            | Event::Delta { .. }
            | Event::Summary { .. }
            | Event::Content { .. }
            | Event::Finished { .. } => true,
        };
        first.push(Ok(event));
        // Bounds the number of held events of a vendor.
        if is_answer || first.len() >= MOST_HELD {
            break;
        }
    }
    Ok(Box::pin(stream::iter(first).chain(events)))
}

const MOST_HELD: usize = 64;
