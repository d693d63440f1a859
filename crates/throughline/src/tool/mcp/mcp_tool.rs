//! A tool of a server.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, RequestMetaObject, Tool as Listed,
};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use throughline_model::json::RawJson;

use super::link::Link;
use super::{IDEMPOTENCY_KEY, McpServer, output};
use crate::tool::{
    Approval, CallContext, Effect, Parameters, Runs, Tool, ToolError, ToolOutput, ToolSpec,
};

/// The longest name that vendors accept.
const LONGEST_NAME: usize = 64;

pub(super) struct McpTool {
    link: Arc<Link>,
    /// The server's name of the tool.
    name: String,
    spec: ToolSpec,
}

impl McpTool {
    pub(super) fn new(link: Arc<Link>, name: String, spec: ToolSpec) -> Self {
        Self { link, name, spec }
    }

    pub(super) fn is(&self, name: &str, spec: &ToolSpec) -> bool {
        self.name == name && self.spec == *spec
    }
}

/// The spec of a tool. Annotations of the server about effects are ignored.
pub(super) fn spec(server: &McpServer, tool: &Listed) -> ToolSpec {
    let own = tool.name.as_ref();
    let effect = server.effects.get(own).copied();
    let guarded = server.approval.iter().any(|name| name == own);
    ToolSpec {
        name: offered_name(server, own),
        description: tool
            .description
            .as_ref()
            .map(ToString::to_string)
            .or_else(|| tool.title.clone()),
        parameters: parameters(server, tool),
        effect: effect.unwrap_or(Effect::Once),
        strict: None,
        vendor: None,
        offered: true,
        approval: if guarded {
            Approval::Always
        } else {
            Approval::Never
        },
        runs: Runs::Here,
        timeout: server.call_timeout,
    }
}

/// The name under which a tool is offered. A name with characters or a length that vendors refuse
/// is shortened, with a hash that keeps it unique.
fn offered_name(server: &McpServer, own: &str) -> String {
    let name = match server.prefixed {
        true => format!("{}__{own}", server.label),
        false => own.to_owned(),
    };
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits) {
        return name;
    }
    let mark = blake3::hash(name.as_bytes()).to_hex();
    let mark = &mark.as_str()[..6];
    let letters = name.chars().take(LONGEST_NAME - 7);
    let plain: String = letters
        .map(|letter| if fits(letter) { letter } else { '_' })
        .collect();
    format!("{plain}_{mark}")
}

fn parameters(server: &McpServer, tool: &Listed) -> Parameters {
    let text = serde_json::to_string(&tool.input_schema).unwrap_or_default();
    let read = match RawJson::new(&text) {
        // Vendors read one dialect, and some refuse a schema that names its dialect.
        Ok(json) => Parameters::new(&json.without(|key| key == "$schema")),
        Err(_) => Parameters::parse(&text),
    };
    read.unwrap_or_else(|error| {
        tracing::warn!(
            server = %server.label,
            tool = %tool.name,
            error = &error as &dyn Error,
            "the schema of an MCP tool cannot be used, any object is taken"
        );
        Parameters::any()
    })
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let arguments = serde_json::from_str(arguments.get()).map_err(ToolError::arguments)?;
        let mut meta = RequestMetaObject::new();
        let key = context.idempotency_key.as_str();
        meta.0.0.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
        let name = self.name.clone();
        let mut request = CallToolRequestParams::new(name).with_arguments(arguments);
        request.meta = Some(meta);

        let peer = tokio::select! {
            peer = self.link.peer() => peer?,
            () = context.cancel.cancelled() => {
                return Err(ToolError::cancelled("cancelled before the server was asked"));
            }
        };
        // Dropping this future before the answer sends a cancellation to the server.
        let answer = tokio::select! {
            answer = peer.call_tool_once(request) => answer,
            () = context.cancel.cancelled() => {
                return Err(ToolError::lost("cancelled while the server was at work"));
            }
        };
        match answer {
            Ok(CallToolResponse::Complete(result)) => output::read(result),
            Ok(CallToolResponse::InputRequired(_)) => Err(ToolError::new(
                "the server asks for more input, which is not supported",
            )),
            Ok(_) => Err(ToolError::lost(
                "the server goes on by itself and will answer later, which is not supported",
            )),
            Err(error) => Err(failure(error)),
        }
    }
}

/// The error of a call without a result. Its effect is unknown unless the server answered or was
/// never reached.
fn failure(error: ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(answer) if answer.code == ErrorCode::INVALID_PARAMS => {
            ToolError::arguments(answer.message.into_owned())
        }
        ServiceError::McpError(answer) => ToolError::new(answer.message.into_owned()),
        error if never_left(&error) => ToolError::new(error),
        error => ToolError::lost(error),
    }
}

/// Whether no connection was made.
fn never_left(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(failed) = error else {
        return false;
    };
    match failed.error.downcast_ref() {
        Some(StreamableHttpError::Client(error)) => reqwest::Error::is_connect(error),
        _ => false,
    }
}
