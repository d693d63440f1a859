//! The suite on the engine in memory.
#![cfg(feature = "conformance")]

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use throughline_store::conformance::Harness;
use throughline_store::{Ids, Memory, Options, Store};

/// One store in memory; the first that opens it makes it.
#[derive(Default)]
struct InMemory(Mutex<Option<(Memory, Arc<Ids>)>>);

#[async_trait]
impl Harness for InMemory {
    async fn open(&self, options: Options) -> Store {
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (memory, ids) = opened.get_or_insert_with(|| {
            let ids = Arc::new(Ids::new(Arc::clone(&options.clock)));
            (Memory::new(options.clone(), &ids), ids)
        });
        Store::on(Arc::new(memory.handle(options)), Arc::clone(ids))
    }
}

throughline_store::conformance!(InMemory::default());
