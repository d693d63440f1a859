//! The input of a vendor's model, read from the vendor's JSON without the codec under test.

use serde_json::Value;
use throughline_model::json::RawJson;
use throughline_model::{
    Body, CallId, Content, Family, Message, Outcome, Output, Role, Settings, ToolCall, ToolChoice,
    ToolDef, ToolResult, Wire,
};

/// The input of a model call.
///
/// It has only what tests need: texts, calls of functions, their results, and offered tools.
/// Results of a round are a message of their own, whatever the vendor's format.
#[derive(Clone, Debug, Default)]
pub struct ModelInput {
    /// The instructions.
    pub instructions: Option<String>,
    /// The conversation, in order.
    pub messages: Vec<Message>,
    /// The functions on offer.
    pub tools: Vec<ToolDef>,
    /// The tool choice.
    pub choice: ToolChoice,
    /// The token limit, and whether calls may be parallel.
    pub settings: Settings,
}

impl ModelInput {
    /// Reads the body of a request that the vendor accepts.
    pub fn of(wire: &Wire, body: &Value) -> Self {
        let mut heard = Self::default();
        match wire {
            Wire::OpenAiChat => heard.chat(body),
            Wire::Anthropic => heard.anthropic(body),
            Wire::Gemini => heard.gemini(body),
            Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions | Wire::Other(_) => {
                heard.responses(body);
            }
        }
        heard
    }

    /// One line per content: `user: …`, `assistant: …`, `call: NAME ARGUMENTS`, `result: …`.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for message in &self.messages {
            for content in &message.contents {
                lines.push(match &content.body {
                    Body::ToolCall(call) => format!("call: {} {}", call.name, arguments(call)),
                    Body::ToolResult(result) => format!("result: {}", shown(&result.output)),
                    _ => {
                        let text = content.as_text().unwrap_or_default();
                        format!("{}: {text}", message.role.as_str())
                    }
                });
            }
        }
        lines
    }

    fn chat(&mut self, body: &Value) {
        for message in list(body, "messages") {
            let content = texts(message.get("content"));
            match string(message, "role") {
                "system" | "developer" => self.told(&content),
                "tool" => self.result(string(message, "tool_call_id"), content.join("")),
                "assistant" => {
                    self.say(Role::Assistant, content);
                    for call in list(message, "tool_calls") {
                        let function = &call["function"];
                        let (name, given) =
                            (string(function, "name"), string(function, "arguments"));
                        self.call(string(call, "id"), name, given.to_owned());
                    }
                }
                _ => self.say(Role::User, content),
            }
        }
        for tool in list(body, "tools") {
            let function = &tool["function"];
            self.offer(string(function, "name"), function.get("parameters"));
        }
        self.choice = choice(&body["tool_choice"], |choice| {
            string(&choice["function"], "name")
        });
        let most = ["max_completion_tokens", "max_tokens"];
        self.settings.max_output_tokens = most.iter().find_map(|key| body.get(*key)?.as_u64());
        self.settings.parallel_calls = body.get("parallel_tool_calls").and_then(Value::as_bool);
    }

    fn anthropic(&mut self, body: &Value) {
        self.told(&texts(body.get("system")));
        for message in list(body, "messages") {
            let role = match string(message, "role") {
                "assistant" => Role::Assistant,
                _ => Role::User,
            };
            if let Some(text) = message["content"].as_str() {
                self.say(role, vec![text.to_owned()]);
                continue;
            }
            for block in list(message, "content") {
                let id = |key: &str| string(block, key);
                match string(block, "type") {
                    "text" => self.go_on(role.clone(), id("text").to_owned()),
                    "tool_use" => self.call(id("id"), id("name"), block["input"].to_string()),
                    "tool_result" => {
                        let output = texts(block.get("content")).join("");
                        self.result(id("tool_use_id"), output);
                    }
                    _ => {}
                }
            }
        }
        for tool in list(body, "tools") {
            self.offer(string(tool, "name"), tool.get("input_schema"));
        }
        let given = &body["tool_choice"];
        self.choice = match string(given, "type") {
            "any" => ToolChoice::Required,
            "none" => ToolChoice::None,
            "tool" => ToolChoice::Named(string(given, "name").to_owned()),
            _ => ToolChoice::Auto,
        };
        self.settings.max_output_tokens = body.get("max_tokens").and_then(Value::as_u64);
        self.settings.parallel_calls =
            (given["disable_parallel_tool_use"] == true).then_some(false);
    }

    fn gemini(&mut self, body: &Value) {
        self.told(&texts(body["systemInstruction"].get("parts")));
        for content in list(body, "contents") {
            let role = match string(content, "role") {
                "model" => Role::Assistant,
                _ => Role::User,
            };
            for part in list(content, "parts") {
                if let Some(call) = part.get("functionCall") {
                    self.call(
                        string(call, "id"),
                        string(call, "name"),
                        call["args"].to_string(),
                    );
                } else if let Some(result) = part.get("functionResponse") {
                    // A call of another vendor has no id here, and is known by its name.
                    let id = match string(result, "id") {
                        "" => string(result, "name"),
                        id => id,
                    };
                    self.result(id, only_text(&result["response"]));
                } else if part["thought"] != true
                    && let Some(text) = part["text"].as_str()
                {
                    self.go_on(role.clone(), text.to_owned());
                }
            }
        }
        for tool in list(body, "tools") {
            for function in list(tool, "functionDeclarations") {
                let schema = ["parametersJsonSchema", "parameters"];
                let schema = schema.iter().find_map(|key| function.get(*key));
                self.offer(string(function, "name"), schema);
            }
        }
        let config = &body["toolConfig"]["functionCallingConfig"];
        self.choice = match (
            string(config, "mode"),
            config["allowedFunctionNames"][0].as_str(),
        ) {
            ("NONE", _) => ToolChoice::None,
            ("ANY", Some(name)) => ToolChoice::Named(name.to_owned()),
            ("ANY", None) => ToolChoice::Required,
            _ => ToolChoice::Auto,
        };
        self.settings.max_output_tokens = body["generationConfig"]["maxOutputTokens"].as_u64();
    }

    fn responses(&mut self, body: &Value) {
        self.told(&texts(body.get("instructions")));
        if let Some(text) = body["input"].as_str() {
            self.say(Role::User, vec![text.to_owned()]);
        }
        for item in list(body, "input") {
            match item["type"].as_str().unwrap_or("message") {
                "function_call" => {
                    let given = string(item, "arguments").to_owned();
                    self.call(string(item, "call_id"), string(item, "name"), given);
                }
                "function_call_output" => {
                    let output = texts(item.get("output")).join("");
                    self.result(string(item, "call_id"), output);
                }
                "message" => match string(item, "role") {
                    "system" | "developer" => self.told(&texts(item.get("content"))),
                    "assistant" => self.say(Role::Assistant, texts(item.get("content"))),
                    _ => self.say(Role::User, texts(item.get("content"))),
                },
                _ => {}
            }
        }
        for tool in list(body, "tools") {
            self.offer(string(tool, "name"), tool.get("parameters"));
        }
        self.choice = choice(&body["tool_choice"], |choice| string(choice, "name"));
        self.settings.max_output_tokens = body.get("max_output_tokens").and_then(Value::as_u64);
        self.settings.parallel_calls = body.get("parallel_tool_calls").and_then(Value::as_bool);
    }

    fn told(&mut self, texts: &[String]) {
        if !texts.is_empty() {
            let before = self.instructions.take().map(|text| text + "\n");
            self.instructions = Some(before.unwrap_or_default() + &texts.join("\n"));
        }
    }

    fn say(&mut self, role: Role, texts: Vec<String>) {
        if !texts.is_empty() {
            let contents = texts.into_iter().map(Content::text).collect();
            self.messages.push(Message::new(role, contents));
        }
    }

    /// Adds a content of this role.
    fn go_on(&mut self, role: Role, text: String) {
        self.push(role, Content::text(text));
    }

    fn push(&mut self, role: Role, content: Content) {
        match self.messages.last_mut().filter(|last| last.role == role) {
            Some(last) => last.contents.push(content),
            None => self.messages.push(Message::new(role, vec![content])),
        }
    }

    fn call(&mut self, id: &str, name: &str, arguments: String) {
        let id = CallId::natural(id).or_else(|| CallId::natural(name));
        if let Some(id) = id {
            let call = ToolCall::function(id, name, arguments);
            self.push(Role::Assistant, Content::from(call));
        }
    }

    fn result(&mut self, id: &str, text: String) {
        let output = Output::Text(text);
        let call = self
            .messages
            .iter()
            .rev()
            .flat_map(|message| &message.contents);
        let call = call
            .filter_map(Content::as_tool_call)
            .find(|call| call.call.value() == id);
        let result = match call {
            Some(call) => call.answer(Outcome::Ok, output),
            None => match CallId::natural(id) {
                Some(id) => ToolResult::answering(id, Family::FUNCTION, output),
                None => return,
            },
        };
        self.push(Role::Tool, Content::from(result));
    }

    fn offer(&mut self, name: &str, schema: Option<&Value>) {
        self.tools.push(ToolDef {
            family: Family::FUNCTION,
            name: name.to_owned(),
            description: None,
            parameters: schema.and_then(|schema| RawJson::new(&schema.to_string()).ok()),
            ..ToolDef::default()
        });
    }
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn string<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a content that is a string or a list of parts.
fn texts(content: Option<&Value>) -> Vec<String> {
    match content {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// The only text of an object, else the whole object.
fn only_text(value: &Value) -> String {
    let mut members = value.as_object().into_iter().flatten();
    match (members.next(), members.next()) {
        (Some((_, Value::String(text))), None) => text.clone(),
        _ => value.to_string(),
    }
}

fn choice<'v>(given: &'v Value, name: impl Fn(&'v Value) -> &'v str) -> ToolChoice {
    match given {
        Value::String(word) if word == "none" => ToolChoice::None,
        Value::String(word) if word == "required" => ToolChoice::Required,
        Value::Object(_) => ToolChoice::Named(name(given).to_owned()),
        _ => ToolChoice::Auto,
    }
}

fn arguments(call: &ToolCall) -> String {
    match &call.arguments {
        throughline_model::Arguments::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn shown(output: &Output) -> String {
    match output {
        Output::Text(text) => text.clone(),
        Output::None | Output::Json(_) | Output::Parts(_) => format!("{output:?}"),
    }
}
