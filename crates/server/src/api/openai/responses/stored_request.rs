//! What is stored with a run so that any process can resume it, and show it again byte for byte: the request, and the tools of ours that it was begun with.

use std::sync::Arc;

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_store::RunId;

use super::offered::renamed;
use super::wire::{CreateRequest, Ignored};
use crate::api::openai::items::{ServerTool, ToolIndex, ToolList};
use crate::error::ApiError;

/// What is kept with a run.
#[derive(Clone, Debug)]
pub(crate) struct StoredRequest {
    /// What was asked for.
    pub(crate) request: Arc<CreateRequest>,
    /// The tools that run here, by the name that models know.
    pub(crate) tools: Vec<(String, ServerTool)>,
    /// The tool lists that the response shows.
    pub(crate) lists: Vec<ToolList>,
    /// The servers whose tools were listed in this chain so far, with this response.
    pub(crate) listed: Vec<String>,
    /// The response that it continues, where the store does not have it: one that failed.
    pub(crate) previous: Option<RunId>,
    /// The conversation that it belongs to.
    pub(crate) conversation: Option<String>,
    /// Whether the client's tools were offered as functions, by names that each vendor takes.
    pub(crate) functions: bool,
    /// What of the request is not carried out, as far as it was known at the beginning.
    pub(crate) ignored: Vec<Ignored>,
    /// The compacted conversation that it answers with, in place of a model.
    pub(crate) compaction_item: Option<RawJson>,
}

impl StoredRequest {
    /// A request that uses no tools of ours.
    pub(crate) fn plain(request: Arc<CreateRequest>) -> Self {
        Self {
            request,
            tools: Vec::new(),
            lists: Vec::new(),
            listed: Vec::new(),
            previous: None,
            conversation: None,
            functions: false,
            ignored: Vec::new(),
            compaction_item: None,
        }
    }

    pub(crate) fn tool_index(&self) -> ToolIndex {
        let mut tool_index = ToolIndex::new();
        self.add_tools_to(&mut tool_index);
        tool_index
    }

    /// Add its tools to those of other requests.
    pub(crate) fn add_tools_to(&self, tool_index: &mut ToolIndex) {
        for (name, tool) in &self.tools {
            tool_index.insert(name.clone(), tool.clone());
        }
        if self.functions {
            for (offered, tool) in renamed(&self.request) {
                tool_index.rename(offered, tool);
            }
        }
    }

    /// As it is kept: the same for the same, so that the store has it once.
    pub(crate) fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.raw("request", self.request.stored_body().get());
            if !self.tools.is_empty() {
                let mut list = ArrayWriter::new(object.key("tools"));
                for (name, tool) in &self.tools {
                    let mut one = ObjectWriter::new(list.slot());
                    one.str("as", name)
                        .str("label", &tool.label)
                        .str("name", &tool.name)
                        .bool("asks", tool.asks);
                    one.end();
                }
                list.end();
            }
            if !self.lists.is_empty() {
                let mut lists = ArrayWriter::new(object.key("lists"));
                for list in &self.lists {
                    let mut one = ObjectWriter::new(lists.slot());
                    one.str("label", &list.label);
                    let mut tools = ArrayWriter::new(one.key("tools"));
                    for tool in &list.tools {
                        tools.slot().push_str(tool.get());
                    }
                    tools.end();
                    one.end();
                }
                lists.end();
            }
            if !self.listed.is_empty() {
                let mut listed = ArrayWriter::new(object.key("listed"));
                for label in &self.listed {
                    json::push_string(listed.slot(), label);
                }
                listed.end();
            }
            if let Some(previous) = self.previous {
                object.str("previous", &previous.to_string());
            }
            if let Some(conversation) = &self.conversation {
                object.str("conversation", conversation);
            }
            if self.functions {
                object.bool("functions", true);
            }
            if !self.ignored.is_empty() {
                let mut ignored = ArrayWriter::new(object.key("ignored"));
                for one in &self.ignored {
                    one.write_stored(ignored.slot());
                }
                ignored.end();
            }
            if let Some(item) = &self.compaction_item {
                object.raw("in_short", item.get());
            }
        })
    }

    /// What was kept with a run; `None` if a server did not begin it.
    pub(crate) fn of(kept: Option<&RawJson>) -> Result<Option<Self>, ApiError> {
        let Some(kept) = kept else {
            return Ok(None);
        };
        let value = kept.value();
        let Some(host) = value.get("host") else {
            return Ok(None);
        };
        let Some(request) = host.get("request") else {
            return Ok(None);
        };
        let tools = elements(host, "tools").filter_map(|tool| {
            Some((
                text(tool, "as")?,
                ServerTool {
                    label: text(tool, "label")?,
                    name: text(tool, "name")?,
                    asks: tool.get("asks").is_some_and(|asks| asks.raw() == "true"),
                },
            ))
        });
        let lists = elements(host, "lists").filter_map(|list| {
            Some(ToolList {
                label: text(list, "label")?,
                tools: elements(list, "tools").map(RawJson::of).collect(),
            })
        });
        let listed =
            elements(host, "listed").filter_map(|label| Some(label.as_str()?.into_owned()));
        Ok(Some(Self {
            request: Arc::new(CreateRequest::from_stored(&RawJson::of(request))?),
            tools: tools.collect(),
            lists: lists.collect(),
            listed: listed.collect(),
            previous: text(host, "previous").and_then(|run| run.parse().ok()),
            conversation: text(host, "conversation"),
            functions: host
                .get("functions")
                .is_some_and(|found| found.raw() == "true"),
            ignored: elements(host, "ignored")
                .filter_map(Ignored::read_stored)
                .collect(),
            compaction_item: host.get("in_short").map(RawJson::of),
        }))
    }
}

fn elements<'v, 'a>(value: &'v Value<'a>, key: &str) -> impl Iterator<Item = &'v Value<'a>> {
    let list = value.get(key).and_then(Value::as_array);
    list.unwrap_or_default().iter()
}

fn text(value: &Value<'_>, key: &str) -> Option<String> {
    Some(value.get(key)?.as_str()?.into_owned())
}
