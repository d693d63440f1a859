//! What is kept beside a record so that its view can be shown again.

use throughline_model::json::{self, RawJson};
use throughline_model::{Body, Message};

use crate::epoch::Epoch;
use crate::tokens::Calibrations;

/// The version of the stored form.
const VERSION: &str = "1";

/// The epoch that holds, and what was billed so far: all that a view needs beside its record.
///
/// ```
/// use throughline_compact::KeptEpoch;
///
/// // A view is made again at any time, so what cannot be read is as if it had never been.
/// assert_eq!(KeptEpoch::from_json(r#"{"v":2}"#), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KeptEpoch {
    /// The epoch.
    pub epoch: Epoch,
    /// The bills.
    pub bills: Calibrations,
}

impl KeptEpoch {
    /// The stored form of an epoch and bills.
    pub fn written(epoch: &Epoch, bills: &Calibrations) -> RawJson {
        RawJson::object(|object| {
            object
                .raw("v", VERSION)
                .raw("epoch", &epoch.to_json())
                .raw("bills", bills.to_json().get());
        })
    }

    /// From the stored form; `None` if this version cannot read it.
    pub fn from_json(text: &str) -> Option<Self> {
        let value = json::parse(text).ok()?;
        let member = |key: &str| value.get(key).map(|value| RawJson::of(value));
        if member("v")?.get() != VERSION {
            return None;
        }
        let epoch = Epoch::from_json(member("epoch")?.get()).ok()?;
        let bills = member("bills").map(|bills| Calibrations::from_json(bills.get()));
        Some(Self {
            epoch,
            bills: bills.unwrap_or_default(),
        })
    }
}

/// How many numbers of a record a message takes: one, and one more for each further result.
///
/// A record counts results, so that a digest can name each of them. The number of a message is the
/// first that it takes, and the first message has number one.
pub fn places(message: &Message) -> u64 {
    let results = message.contents.iter();
    let results = results.filter(|content| matches!(content.body, Body::ToolResult(_)));
    (results.count() as u64).max(1)
}
