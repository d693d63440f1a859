//! What kind of thing a tool does, which decides what its digest keeps.

mod kind;
mod table;
mod words;

use throughline_model::{Family, ToolCall};

use crate::arguments::Args;

pub use kind::Category;

/// What the caller knows about one tool.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Annotations {
    /// The name of the tool.
    pub name: String,
    /// What it is declared to be.
    pub category: Option<Category>,
    /// A hint that it changes nothing.
    pub read_only: Option<bool>,
    /// A hint that it may destroy something.
    pub destructive: Option<bool>,
}

/// The category of a call: configured glob, declaration, annotation, known tools, words of the name, shape of
/// the arguments, else other.
pub(crate) fn classify(
    call: &ToolCall,
    args: &Args<'_>,
    configured: &[(String, Category)],
    known: &[Annotations],
) -> Category {
    let name = call.name.as_str();
    let configured = configured.iter().find(|(glob, _)| words::glob(glob, name));
    if let Some((_, category)) = configured {
        return *category;
    }
    if let Some(tool) = known.iter().find(|tool| tool.name == name) {
        if let Some(category) = tool.category {
            return category;
        }
        if tool.destructive == Some(true) {
            return Category::Write;
        }
        if tool.read_only == Some(true) {
            // A read-only hint does not distinguish reading from searching.
            return match by_name_or_shape(call, args) {
                Category::Query => Category::Query,
                Category::Structured => Category::Structured,
                _ => Category::Read,
            };
        }
    }
    by_name_or_shape(call, args)
}

fn by_name_or_shape(call: &ToolCall, args: &Args<'_>) -> Category {
    by_family(&call.family)
        .or_else(|| table::known(&call.name))
        .or_else(|| words::by_words(&call.name))
        .or_else(|| by_shape(args))
        .unwrap_or(Category::Other)
}

fn by_family(family: &Family) -> Option<Category> {
    [
        (Family::CODE_INTERPRETER, Category::Execute),
        (Family::CODE_EXECUTION, Category::Execute),
        (Family::SHELL, Category::Execute),
        (Family::LOCAL_SHELL, Category::Execute),
        (Family::APPLY_PATCH, Category::Write),
        (Family::WEB_SEARCH, Category::Query),
        (Family::FILE_SEARCH, Category::Query),
        (Family::TOOL_SEARCH, Category::Query),
        (Family::MEMORY_SEARCH, Category::Query),
        (Family::IMAGE_GENERATION, Category::Media),
    ]
    .into_iter()
    .find_map(|(known, category)| (known == *family).then_some(category))
}

fn by_shape(args: &Args<'_>) -> Option<Category> {
    let has = |key: &str| args.has(key);
    if (has("old_string") && has("new_string")) || (has("oldText") && has("newText")) {
        return Some(Category::Write);
    }
    if has("patch") || has("diff") {
        return Some(Category::Write);
    }
    if has("command") || has("cmd") || has("script") {
        return Some(Category::Execute);
    }
    let named = args.path().is_some();
    if named && (has("content") || has("contents")) {
        return Some(Category::Write);
    }
    if has("query") || has("pattern") || has("regex") {
        return Some(Category::Query);
    }
    named.then_some(Category::Read)
}

#[cfg(test)]
mod tests;
