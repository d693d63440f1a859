//! Tools whose effects happen in another process.

use async_trait::async_trait;
use throughline::Tool;
use throughline::model::Message;
use throughline::model::json::RawJson;
use throughline::tool::{
    Approval, CallContext, Parameters, Probe, SchemaError, ToolError, ToolOutput, ToolSpec,
};
use throughline_testkit::loopkill::{ToolKind, fold, post};

/// A tool of the server of tools.
pub(crate) struct RemoteTool {
    spec: ToolSpec,
    server: String,
}

impl RemoteTool {
    pub(crate) fn new(kind: ToolKind, server: &str) -> Result<Self, SchemaError> {
        let schema = r#"{"type":"object","properties":{"mark":{"type":"string"}},"required":["mark"],"additionalProperties":false}"#;
        let mut spec = ToolSpec::named(kind.name);
        spec.parameters = Parameters::parse(schema)?;
        spec.effect = kind.effect;
        if kind.name == "sign" {
            spec.approval = Approval::Always;
        }
        Ok(Self {
            spec,
            server: server.to_owned(),
        })
    }

    async fn send(
        &self,
        verb: &str,
        arguments: &RawJson,
        context: &CallContext,
    ) -> Result<String, ToolError> {
        let key = &context.idempotency_key;
        let tool = &self.spec.name;
        let body = format!("{verb} {tool} {key} {}", mark(arguments));
        post(&self.server, key, &body)
            .await
            .map_err(ToolError::lost)
    }
}

fn mark(arguments: &RawJson) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    value["mark"].as_str().unwrap_or_default().to_owned()
}

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let text = self.send("call", arguments, &context).await?;
        match self.spec.name.as_str() {
            "poison" => std::process::abort(),
            "note" => {
                let note = format!("[[note {}]] A word in between.", mark(arguments));
                context
                    .inject(Message::user(note))
                    .await
                    .map_err(ToolError::new)?;
            }
            _ => {}
        }
        Ok(ToolOutput::text(format!("{text}\n{}", fold::padding())))
    }

    async fn probe(&self, arguments: &RawJson, context: CallContext) -> Result<Probe, ToolError> {
        let text = self.send("probe", arguments, &context).await?;
        Ok(match text.is_empty() {
            true => Probe::NotDone,
            false => Probe::Done(ToolOutput::text(text)),
        })
    }
}
