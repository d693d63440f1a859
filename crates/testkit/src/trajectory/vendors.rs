//! Whether vendors would accept a view.

use std::sync::Arc;

use throughline_model::{Message, Wire, json};
use throughline_wire::render::{Options, Target, render};
use throughline_wire::validate::{Profile, validate};

/// Whether a vendor's rules refuse a view, rendered as it would be sent.
///
/// ```
/// use std::sync::Arc;
/// use throughline_model::{Message, Wire};
/// use throughline_testkit::trajectory::is_refused;
///
/// let view = [Arc::new(Message::user("When is high water?"))];
/// assert!(!Wire::KNOWN.iter().any(|wire| is_refused(&view, wire)));
/// ```
pub fn is_refused(view: &[Arc<Message>], wire: &Wire) -> bool {
    let target = Target::newest(wire.clone());
    let options = Options::default();
    let whole: Vec<Message> = view.iter().map(|message| (**message).clone()).collect();
    let body = render(&whole, &target, &options).body(&target, &options);
    let Ok(request) = json::parse(&body) else {
        return true;
    };
    !validate(&request, &Profile::newest(wire.clone())).is_empty()
}
