//! The application's store of messages, which is in another process.

use std::process::abort;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use throughline::model::Message;
use throughline::model::json::{self, RawJson};
use throughline::thread::{MessageStore, MessageStoreError};
use throughline_testkit::loopkill::{post, send_post};

/// Where this process dies during an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before it is sent.
    Before,
    /// It is sent, and not answered.
    Sent,
    /// It is answered, and nothing followed from that.
    Answered,
}

pub(crate) struct RemoteStore {
    address: String,
    /// At which append this process dies.
    dies: Option<(Place, u32)>,
    appends: AtomicU32,
}

impl RemoteStore {
    /// `dies` is like `append.sent@2`.
    pub(crate) fn new(address: &str, dies: Option<&str>) -> Result<Self, String> {
        let dies = match dies {
            None => None,
            Some(text) => {
                let (place, at) = text.split_once('@').ok_or("no number of an append")?;
                let place = match place {
                    "append.before" => Place::Before,
                    "append.sent" => Place::Sent,
                    "append.answered" => Place::Answered,
                    other => return Err(format!("no place of an append: {other}")),
                };
                Some((place, at.parse().map_err(|_| text.to_owned())?))
            }
        };
        Ok(Self {
            address: address.to_owned(),
            dies,
            appends: AtomicU32::new(0),
        })
    }

    /// The process dies if this is the append and the place for it.
    fn pass(&self, place: Place, append: u32) {
        if self.dies == Some((place, append)) {
            abort();
        }
    }
}

#[async_trait]
impl MessageStore for RemoteStore {
    async fn load(
        &self,
        key: &RawJson,
        _budget: Option<u64>,
    ) -> Result<Vec<Message>, MessageStoreError> {
        let text = post(&self.address, "", &format!("load\n{}", key.get())).await?;
        let list = json::parse(&text)?;
        let list = list.as_array().unwrap_or_default().iter();
        let messages = list.map(|one| Message::from_json(one.raw()));
        Ok(messages.collect::<Result<_, _>>()?)
    }

    async fn append(
        &self,
        key: &RawJson,
        messages: &[Message],
        idempotency: &str,
    ) -> Result<Option<RawJson>, MessageStoreError> {
        let append = self.appends.fetch_add(1, Ordering::SeqCst) + 1;
        let list: Vec<String> = messages.iter().map(Message::to_json).collect();
        let (key, list) = (key.get(), list.join(","));
        let body = format!("append\n{key}\n{idempotency}\n[{list}]");
        self.pass(Place::Before, append);
        if self.dies == Some((Place::Sent, append)) {
            send_post(&self.address, idempotency, &body).await?;
            abort();
        }
        let given = post(&self.address, idempotency, &body).await?;
        self.pass(Place::Answered, append);
        let moved = given != key && given.contains("revision");
        Ok(match moved {
            true => Some(RawJson::new(&given)?),
            false => None,
        })
    }
}
