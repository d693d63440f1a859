//! The suite on SQLite: each handle is a connection of its own, as another process would have.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use async_trait::async_trait;
use throughline_store::conformance::Harness;
use throughline_store::{Options, Store};
use throughline_testkit::Scratch;

struct OnDisk(Scratch);

#[async_trait]
impl Harness for OnDisk {
    async fn open(&self, options: Options) -> Store {
        let url = self.0.sqlite("store.db");
        Store::open_with(&url, options).await.unwrap()
    }
}

throughline_store::conformance!(OnDisk(Scratch::new("suite")));
