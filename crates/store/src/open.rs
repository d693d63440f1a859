//! Opening stores by URL.

use std::sync::Arc;

use crate::{Engine, Error, Ids, Memory, Options, Result, Store};

impl Store {
    /// Open the store that a URL names: `memory:`, `sqlite://PATH`.
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(url, Options::default()).await
    }

    /// Open a store in a certain way.
    pub async fn open_with(url: &str, options: Options) -> Result<Self> {
        let ids = Arc::new(Ids::new(Arc::clone(&options.clock)));
        let engine = engine(url, options, &ids).await?;
        Ok(Self::on(engine, ids))
    }
}

/// The engines, each with the scheme that names it. A new one is one folder and one line.
async fn engine(url: &str, options: Options, ids: &Arc<Ids>) -> Result<Arc<dyn Engine>> {
    match url.split(':').next().unwrap_or(url) {
        "memory" => Ok(Arc::new(Memory::new(options, ids))),
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            let path = url.strip_prefix("sqlite:").unwrap_or_default();
            crate::sqlite::open(path, options, ids).await
        }
        scheme @ ("postgres" | "redis" | "redis+cluster") => Err(Error::url(
            url,
            format!("the engine {scheme:?} is not built yet; use memory: or sqlite://PATH"),
        )),
        scheme => Err(Error::url(
            url,
            format!("{scheme:?} is no engine; use memory: or sqlite://PATH"),
        )),
    }
}
