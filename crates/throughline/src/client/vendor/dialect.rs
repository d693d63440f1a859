//! Differences between vendors, as data.

use throughline_model::Wire;

use crate::client::StoresHistory;

/// How requests to one vendor's service are made.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) wire: Wire,
    /// The name of the service, unless the builder sets one.
    pub(super) upstream: &'static str,
    /// The address of the service, if all customers share one.
    pub(super) home: Option<&'static str>,
    /// Environment variables that may contain a key, the preferred one first.
    pub(super) key_env: &'static [&'static str],
    pub(super) auth: Auth,
    /// Headers of every request.
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) route: Route,
    pub(super) end: EndMark,
    pub(super) stores: StoresHistory,
    /// How stored answers are asked for, if the service stores any.
    pub(super) stored: Option<StoredForm>,
    /// How the service lists its models, if it does.
    pub(super) models: Option<ModelsForm>,
    /// How the service counts the tokens of a request, if it does.
    pub(super) counts: Option<CountForm>,
    /// Whether reasoning can be sent back.
    pub(super) reasoning: bool,
}

/// Where the key goes. Access tokens are always bearer tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Auth {
    Bearer,
    Header(&'static str),
}

/// The path below the address of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A fixed path.
    Fixed(&'static str),
    /// The path contains the model, and whether the answer is streamed.
    PerModel,
}

/// The operations on stored answers. A stored answer is below the route of model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredForm {
    /// Responses: the input is listed apart, and there are conversations.
    Responses,
    /// Interactions: the steps of a stored interaction begin with its input.
    Interactions,
}

/// How a service lists its models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelsForm {
    /// The path, and the parameters for a long page.
    pub(super) path: &'static str,
    pub(super) page: Option<&'static str>,
    /// The member with the list, and that with the name of a model.
    pub(super) list: &'static str,
    pub(super) name: &'static str,
    /// What names begin with that is not a part of them.
    pub(super) prefix: &'static str,
    /// The member that says where the next page begins, and the parameter that takes it.
    pub(super) next: Option<(&'static str, &'static str)>,
}

/// How a service counts the tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountForm {
    pub(super) path: &'static str,
    /// The members of a model call's body that it takes.
    pub(super) members: &'static [&'static str],
}

const OPENAI_MODELS: ModelsForm = ModelsForm {
    path: "/models",
    page: None,
    list: "data",
    name: "id",
    prefix: "",
    next: None,
};

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndMark {
    /// As the format says; if the format has a closing frame, that frame is required.
    Required,
    /// The closing `[DONE]` may be missing, as with some servers that speak Chat Completions; then
    /// every alternative must have a stop reason.
    Lenient,
}

pub(super) static OPENAI_RESPONSES: Dialect = Dialect {
    wire: Wire::OpenAiResponses,
    upstream: "openai",
    home: Some("https://api.openai.com/v1"),
    key_env: &["OPENAI_API_KEY"],
    auth: Auth::Bearer,
    headers: &[],
    route: Route::Fixed("/responses"),
    end: EndMark::Required,
    stores: StoresHistory::Optional,
    stored: Some(StoredForm::Responses),
    models: Some(OPENAI_MODELS),
    counts: Some(CountForm {
        path: "/responses/input_tokens",
        members: &[
            "input",
            "instructions",
            "model",
            "parallel_tool_calls",
            "reasoning",
            "text",
            "tool_choice",
            "tools",
            "truncation",
        ],
    }),
    reasoning: true,
};

pub(super) static OPENAI_CHAT: Dialect = Dialect {
    wire: Wire::OpenAiChat,
    route: Route::Fixed("/chat/completions"),
    stores: StoresHistory::Never,
    stored: None,
    counts: None,
    reasoning: false,
    ..OPENAI_RESPONSES
};

pub(super) static ANTHROPIC: Dialect = Dialect {
    wire: Wire::Anthropic,
    upstream: "anthropic",
    home: Some("https://api.anthropic.com"),
    key_env: &["ANTHROPIC_API_KEY"],
    auth: Auth::Header("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
    route: Route::Fixed("/v1/messages"),
    end: EndMark::Required,
    stores: StoresHistory::Never,
    stored: None,
    models: Some(ModelsForm {
        path: "/v1/models",
        page: Some("limit=1000"),
        next: Some(("last_id", "after_id")),
        ..OPENAI_MODELS
    }),
    counts: Some(CountForm {
        path: "/v1/messages/count_tokens",
        members: &[
            "cache_control",
            "context_management",
            "mcp_servers",
            "messages",
            "model",
            "output_config",
            "output_format",
            "system",
            "thinking",
            "tool_choice",
            "tools",
        ],
    }),
    reasoning: true,
};

pub(super) static GEMINI: Dialect = Dialect {
    wire: Wire::Gemini,
    upstream: "gemini",
    home: Some("https://generativelanguage.googleapis.com"),
    key_env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    // Never as a query parameter, which logs would show.
    auth: Auth::Header("x-goog-api-key"),
    headers: &[],
    route: Route::PerModel,
    end: EndMark::Required,
    stores: StoresHistory::Never,
    stored: None,
    models: Some(ModelsForm {
        path: "/v1beta/models",
        page: Some("pageSize=1000"),
        list: "models",
        name: "name",
        prefix: "models/",
        next: Some(("nextPageToken", "pageToken")),
    }),
    counts: None,
    reasoning: true,
};

pub(super) static GEMINI_INTERACTIONS: Dialect = Dialect {
    wire: Wire::GeminiInteractions,
    route: Route::Fixed("/v1beta/interactions"),
    stores: StoresHistory::Optional,
    stored: Some(StoredForm::Interactions),
    ..GEMINI
};

pub(super) static FOUNDRY: Dialect = Dialect {
    wire: Wire::Foundry,
    upstream: "foundry",
    home: None,
    key_env: &["AZURE_AI_TOKEN"],
    auth: Auth::Bearer,
    headers: &[],
    route: Route::Fixed("/responses"),
    end: EndMark::Required,
    stores: StoresHistory::Optional,
    stored: Some(StoredForm::Responses),
    // A project lists deployments, at another address.
    models: None,
    counts: None,
    reasoning: true,
};
