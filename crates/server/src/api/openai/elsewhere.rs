//! Routes of OpenAI's API that this server does not have, and what to use instead.

use crate::error::ApiError;

/// What a path begins with after `/v1/`, what it is, and what to use.
const ELSEWHERE: [(&str, &str, &str); 22] = [
    (
        "assistants",
        "assistants",
        "an `[[agent]]` of the configuration, as model `agent/ID`",
    ),
    ("audio", "audio", VENDOR),
    ("batches", "batches", "`background: true` in a response"),
    (
        "chat",
        "stored chat completions",
        "`/v1/responses`, which are kept",
    ),
    ("chatkit", "ChatKit", "`/v1/responses`"),
    ("completions", "legacy completions", "`/v1/responses`"),
    ("containers", "containers", VENDOR),
    ("edits", "edits", "`/v1/responses`"),
    ("embeddings", "embeddings", VENDOR),
    ("evals", "evaluations", VENDOR),
    (
        "files",
        "files",
        "`input_file` with `file_data` or `file_url` in the input of a response",
    ),
    ("fine_tuning", "fine-tuning", VENDOR),
    ("images", "images", VENDOR),
    ("moderations", "moderations", VENDOR),
    ("organization", "administration", VENDOR),
    ("realtime", "the Realtime API", VENDOR),
    ("skills", "skills", "tools of an MCP server"),
    (
        "threads",
        "threads of the Assistants API",
        "`/v1/conversations`",
    ),
    (
        "uploads",
        "uploads",
        "`input_file` with `file_data` or `file_url` in the input of a response",
    ),
    (
        "vector_stores",
        "vector stores",
        "a search tool of an MCP server",
    ),
    ("videos", "videos", VENDOR),
    (
        "webhooks",
        "the management of webhooks",
        "polling with `GET /v1/responses/{id}`",
    ),
];

const VENDOR: &str = "the vendor's own address for these requests";

/// The error for a path of OpenAI's API that is not served here; `None` for other paths.
pub(crate) fn not_served(path: &str) -> Option<ApiError> {
    let rest = path.strip_prefix("/v1/")?;
    let first = rest.split('/').next()?;
    let (_, what, instead) = ELSEWHERE.iter().find(|(known, ..)| *known == first)?;
    Some(
        ApiError::not_found(format!(
            "This server has no route for {what}: it keeps conversations with models. Use {instead}."
        ))
        .code("route_not_served")
        .retry(false),
    )
}

#[cfg(test)]
mod tests {
    use super::{ELSEWHERE, not_served};

    #[test]
    fn routes_of_other_features_name_what_to_use() {
        for (first, ..) in ELSEWHERE {
            for path in [format!("/v1/{first}"), format!("/v1/{first}/some/id")] {
                let error = not_served(&path).map(|error| (error.status, error.message));
                assert!(error.is_some_and(|(status, text)| status == 404 && text.contains("Use ")));
            }
        }
        for path in ["/v1/responses", "/v1/filesystem", "/files", "/v1/"] {
            assert_eq!(not_served(path), None, "{path}");
        }
    }
}
