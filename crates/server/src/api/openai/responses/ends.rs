//! How responses ended, for webhooks.

use async_trait::async_trait;
use throughline_model::json::Value;
use throughline_store::{Error, RunId, TenantScope};

use super::errors;
use super::stored_response::StoredResponse;
use crate::app::App;
use crate::webhooks::{ResponseEnd, ResponseEnds};

/// Reads them from the record.
pub(crate) struct Ends(pub(crate) App);

#[async_trait]
impl ResponseEnds for Ends {
    async fn end_of(&self, scope: &TenantScope, run: RunId) -> Result<ResponseEnd, String> {
        // Most runs that are asked about have not ended, and journals are long.
        match self.0.store.run(scope, run).await {
            Ok(run) if !run.state.is_settled() => return Ok(ResponseEnd::Unfinished),
            Ok(_) => {}
            Err(Error::NotFound { .. }) => return Ok(ResponseEnd::Missing),
            Err(error) => return Err(error.to_string()),
        }
        let stored = match StoredResponse::read(&self.0, scope, &self.id(run)).await {
            Ok(stored) => stored,
            Err(error) if error.status == 404 => return Ok(ResponseEnd::Missing),
            Err(error) => return Err(error.message),
        };
        let response = stored.response(&self.0, scope).await;
        let response = response.map_err(|error| error.message)?;
        let response = response.value();
        let status = response.get("status").and_then(Value::as_str);
        let ended = ["completed", "failed", "incomplete", "cancelled"];
        let ended = ended
            .into_iter()
            .find(|word| status.as_deref() == Some(*word));
        Ok(match ended {
            Some(status) => ResponseEnd::Ended(status, stored.journal.run.progress),
            None => ResponseEnd::Unfinished,
        })
    }

    fn id(&self, run: RunId) -> String {
        errors::response_id(run)
    }
}
