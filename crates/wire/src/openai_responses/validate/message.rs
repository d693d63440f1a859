//! Messages and the parts of results.

use throughline_model::Path;
use throughline_model::json::Value;

use super::{Checker, Flavour, OUTPUT_ONLY};
use crate::validate::object_schema::text;

const MESSAGE_KEYS: [&str; 7] = ["type", "role", "content", "id", "status", "phase", "agent"];
const INPUT_PARTS: [&str; 4] = ["input_text", "input_image", "input_file", "input_audio"];
const OUTPUT_PARTS: [&str; 2] = ["output_text", "refusal"];
const RESULT_PARTS: [&str; 3] = ["input_text", "input_image", "input_file"];

impl Checker<'_> {
    pub(super) fn message(&mut self, value: &Value<'_>, path: &Path<'_>) {
        let role = text(value, "role").unwrap_or_default();
        if !["user", "assistant", "system", "developer"].contains(&role.as_str()) {
            let message = "`role` must be `user`, `assistant`, `system` or `developer`";
            self.report
                .add("S-O3", &path.key("role"), message)
                .about([role.as_str()]);
        }
        for member in value.members() {
            let key = member.key.to_str();
            let output_only = self.flavour == Flavour::Foundry && OUTPUT_ONLY.contains(&&*key);
            let problem = if key == "phase" && role != "assistant" && !member.value.is_null() {
                "`phase` stands on assistant messages only".to_owned()
            } else if !MESSAGE_KEYS.contains(&&*key) && !output_only {
                format!("a message has no `{key}`")
            } else {
                continue;
            };
            self.report
                .add("O-11", &path.key(&key), format!("{problem}; leave it out"))
                .about([&*key]);
        }
        let content = path.key("content");
        let parts = match value.get("content") {
            Some(found) if found.as_str().is_some() => return,
            Some(found) => found.as_array(),
            None => None,
        };
        let Some(parts) = parts else {
            let message = "`content` must be a string or an array of parts";
            self.report.add("S-O3", &content, message);
            return;
        };
        let allowed: &[&str] = match role.as_str() {
            "assistant" => &OUTPUT_PARTS,
            _ => &INPUT_PARTS,
        };
        for (place, part) in parts.iter().enumerate() {
            let kind = text(part, "type").unwrap_or_default();
            if !allowed.contains(&kind.as_str()) {
                let words = allowed.join("`, `");
                let message = format!("a part of a `{role}` message must be one of `{words}`");
                self.report
                    .add("O-13", &content.index(place), message)
                    .about([kind]);
            }
        }
    }

    pub(super) fn result_parts(&mut self, tag: &str, value: &Value<'_>, path: &Path<'_>) {
        if !["function_call_output", "custom_tool_call_output"].contains(&tag) {
            return;
        }
        let output = path.key("output");
        let parts = value.get("output").and_then(Value::as_array);
        for (place, part) in parts.unwrap_or_default().iter().enumerate() {
            let kind = text(part, "type").unwrap_or_default();
            if !RESULT_PARTS.contains(&kind.as_str()) {
                let words = RESULT_PARTS.join("`, `");
                let message = format!("a part of a result must be one of `{words}`");
                self.report
                    .add("S-O2", &output.index(place), message)
                    .about([kind]);
            }
        }
    }
}
