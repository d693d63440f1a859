//! What is kept with a run so that any process can go on with it, and tell it again in the same
//! words: the request, and the tools of ours that it was begun with.

use std::sync::Arc;

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_store::RunId;

use super::wire::{CreateRequest, Labels, ServerTool, ToolList};
use crate::error::ApiError;

/// What is kept with a run.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// What was asked for.
    pub(crate) request: Arc<CreateRequest>,
    /// The tools that run here, by the name that models know.
    pub(crate) tools: Vec<(String, ServerTool)>,
    /// The tool lists that the response shows.
    pub(crate) lists: Vec<ToolList>,
    /// The labels that were listed in this chain so far, with this response.
    pub(crate) listed: Vec<String>,
    /// The response that it goes on from, where the record does not say so: one that failed.
    pub(crate) previous: Option<RunId>,
}

impl Host {
    /// A request that uses no tools of ours.
    pub(crate) fn plain(request: Arc<CreateRequest>) -> Self {
        Self {
            request,
            tools: Vec::new(),
            lists: Vec::new(),
            listed: Vec::new(),
            previous: None,
        }
    }

    pub(crate) fn labels(&self) -> Labels {
        let mut labels = Labels::new();
        for (name, tool) in &self.tools {
            labels.insert(name.clone(), tool.clone());
        }
        labels
    }

    /// As it is kept: the same for the same, so that the store has it once.
    pub(crate) fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.raw("request", self.request.kept().get());
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
            request: Arc::new(CreateRequest::of_kept(&RawJson::of(request))?),
            tools: tools.collect(),
            lists: lists.collect(),
            listed: listed.collect(),
            previous: text(host, "previous").and_then(|run| run.parse().ok()),
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
