//! The suite on the memory engine.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use throughline_store::conformance::Harness;
use throughline_store::{Ids, Memory, Options, Store};

/// Data in memory, and handles on it as if by several processes.
#[derive(Default)]
struct InMemory(Mutex<Option<Memory>>);

#[async_trait]
impl Harness for InMemory {
    async fn open(&self, options: Options) -> Store {
        let ids = Arc::new(Ids::new(Arc::clone(&options.clock)));
        let mut first = self.0.lock().unwrap();
        let handle = match &*first {
            Some(memory) => memory.handle(options),
            None => {
                let memory = Memory::new(options.clone(), &ids);
                let handle = memory.handle(options);
                *first = Some(memory);
                handle
            }
        };
        Store::on(Arc::new(handle), ids)
    }
}

throughline_store::conformance!(InMemory::default());
