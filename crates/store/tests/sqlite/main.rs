//! The suite that every engine passes, on SQLite.

#![cfg(all(feature = "sqlite", feature = "conformance"))]
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod dir;

use async_trait::async_trait;
use dir::Dir;
use throughline_store::conformance::Harness;
use throughline_store::{Options, Store};

struct OnFile(Dir);

#[async_trait]
impl Harness for OnFile {
    async fn open(&self, options: Options) -> Store {
        Store::open_with(&self.0.url(), options).await.unwrap()
    }
}

throughline_store::conformance!(OnFile(Dir::new()));
