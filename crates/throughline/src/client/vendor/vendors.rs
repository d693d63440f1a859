//! The constructors of vendor clients.

use throughline_model::json::RawJson;
use throughline_wire::compose::TokenLimit;

use super::builder::ClientBuilder;
use super::dialect;
use super::url;

/// OpenAI, and servers that speak its formats.
///
/// ```
/// use throughline::OpenAi;
///
/// let client = OpenAi::responses("gpt-5").api_key("sk-1").build()?;
/// // A local server needs no key.
/// let local = OpenAi::chat("qwen3").base_url("http://127.0.0.1:11434/v1").build()?;
/// # Ok::<(), throughline::client::ClientError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpenAi;

impl OpenAi {
    /// The Responses API. Set the key with [`ClientBuilder::api_key`], or read `OPENAI_API_KEY`
    /// with [`ClientBuilder::api_key_from_env`].
    pub fn responses(model: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&dialect::OPENAI_RESPONSES).model(model)
    }

    /// Chat Completions, at OpenAI or at another server.
    ///
    /// At other servers the token limit is sent as `max_tokens`, the older name; see
    /// [`ClientBuilder::token_limit`].
    pub fn chat(model: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&dialect::OPENAI_CHAT)
            .model(model)
            .token_limit_elsewhere(TokenLimit::MaxTokens)
    }
}

/// Anthropic's Messages API.
///
/// ```no_run
/// use throughline::Anthropic;
///
/// let client = Anthropic::new("claude-sonnet-4-5").api_key_from_env()?.build()?;
/// # Ok::<(), throughline::client::ClientError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Anthropic;

impl Anthropic {
    /// A model. Set the key with [`ClientBuilder::api_key`], or read `ANTHROPIC_API_KEY` with
    /// [`ClientBuilder::api_key_from_env`].
    #[expect(
        clippy::new_ret_no_self,
        reason = "a name for a builder, the same for every vendor"
    )]
    pub fn new(model: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&dialect::ANTHROPIC).model(model)
    }
}

/// Google's Gemini.
///
/// ```
/// use throughline::Gemini;
///
/// let client = Gemini::new("gemini-3-pro").api_key("AIza-1").build()?;
/// # Ok::<(), throughline::client::ClientError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

impl Gemini {
    /// A model of the `generateContent` API. Set the key with [`ClientBuilder::api_key`], or read
    /// `GEMINI_API_KEY` or `GOOGLE_API_KEY` with [`ClientBuilder::api_key_from_env`].
    #[expect(
        clippy::new_ret_no_self,
        reason = "a name for a builder, the same for every vendor"
    )]
    pub fn new(model: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&dialect::GEMINI).model(model)
    }

    /// A model of the Interactions API.
    pub fn interactions(model: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&dialect::GEMINI_INTERACTIONS).model(model)
    }
}

/// Azure Foundry: models and agents of a project.
///
/// The project is named by its endpoint,
/// `https://RESOURCE.services.ai.azure.com/api/projects/PROJECT`. Requests are signed with tokens
/// for `https://ai.azure.com/.default`, from [`ClientBuilder::token_provider`]; see
/// [`CommandTokens`](crate::client::CommandTokens).
#[derive(Clone, Copy, Debug)]
pub struct Foundry;

impl Foundry {
    /// A model of a project, by the name of its deployment.
    #[expect(
        clippy::new_ret_no_self,
        reason = "a name for a builder, the same for every vendor"
    )]
    pub fn new(project: impl AsRef<str>, deployment: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&dialect::FOUNDRY)
            .below(project.as_ref(), "/openai/v1")
            .model(deployment)
    }

    /// An agent of a project, by reference; the latest version unless one is given. The agent has
    /// its own model.
    pub fn agent(
        project: impl AsRef<str>,
        name: impl AsRef<str>,
        version: Option<&str>,
    ) -> ClientBuilder {
        let reference = RawJson::object(|object| {
            object.str("type", "agent_reference");
            object.str("name", name.as_ref());
            if let Some(version) = version {
                object.str("version", version);
            }
        });
        ClientBuilder::new(&dialect::FOUNDRY)
            .below(project.as_ref(), "/openai/v1")
            .member("agent_reference", reference.get().to_owned())
    }

    /// An agent of a project with its own endpoint.
    pub fn agent_endpoint(project: impl AsRef<str>, name: impl AsRef<str>) -> ClientBuilder {
        let mut path = "/agents/".to_owned();
        url::push_encoded(&mut path, name.as_ref());
        path.push_str("/endpoint/protocols/openai");
        ClientBuilder::new(&dialect::FOUNDRY)
            .below(project.as_ref(), &path)
            .parameter("api-version=v1")
            .without_model()
    }
}
