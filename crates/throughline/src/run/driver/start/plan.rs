//! The settings of a run, and the part of them that is stored with it.

use std::sync::Arc;
use std::time::Duration;

use throughline_compact::ViewSettings;
use throughline_model::json::{self, ObjectWriter, RawJson};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{
    AnswerShape, Effort, Family, Form, Path, Settings, ToolChoice, ToolDef, Vendor, Verbosity, Wire,
};
use throughline_store::{Idempotency, Journal};

use crate::client::{ChatClient, Layer, PersistEachCall};
use crate::prompt::Compaction;
use crate::run::limits::{Calling, Limits};
use crate::run::options::{ExpectedHead, OnRepeat, RunOptions};
use crate::run::outcome::RunError;
use crate::run::setup::AgentSetup;
use crate::run::setup::check_providers;
use crate::run::{ContextProvider, LeftRuns};
use crate::thread::{HistoryPolicy, Persistence, ThreadSettings};
use crate::tool::ToolSet;

/// The settings of a run: those of its options, then of the thread, then of the agent.
pub(crate) struct Plan {
    pub(crate) client: Arc<dyn ChatClient>,
    pub(crate) instructions: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) model: Option<String>,
    pub(crate) choice: ToolChoice,
    pub(crate) limits: Limits,
    /// Whether the options name no limits.
    pub(crate) names_no_limits: bool,
    /// Whether what a failed run has used counts although the options name limits.
    pub(crate) keeps_spent: bool,
    pub(crate) calling: Calling,
    pub(crate) tools: ToolSet,
    /// Tools that the service runs.
    pub(crate) hosted: Vec<ToolDef>,
    pub(crate) providers: Vec<Arc<dyn ContextProvider>>,
    pub(crate) policy: HistoryPolicy,
    pub(crate) compaction: Compaction,
    /// Pins and undone compactions of the thread.
    pub(crate) view_settings: ViewSettings,
    /// The id that the service must have for the conversation.
    pub(crate) service_id: Option<String>,
    /// The key under which the store begins the run at most once.
    pub(crate) key: Option<Idempotency>,
    pub(crate) on_repeat: OnRepeat,
    /// What the head of the thread must be.
    pub(crate) expected_head: ExpectedHead,
    /// How to make a run again that was left on the thread.
    pub(crate) left_runs: Option<Arc<dyn LeftRuns>>,
    /// Whether it was logged that the service keeps a history that another owner keeps.
    pub(crate) warned: bool,
    /// What is stored with the run: for a worker that resumes it, and for listings.
    pub(crate) request: RawJson,
}

impl Plan {
    /// The plan of a new run.
    pub(crate) fn new(agent: &AgentSetup, options: RunOptions) -> Result<Self, RunError> {
        let request = write(agent, &options);
        let names_no_limits = options.limits.is_none();
        let limits = options.limits.unwrap_or_else(|| agent.limits.clone());
        limits.check().map_err(RunError::Limits)?;
        let tools = match options.tools.is_empty() {
            true => agent.tools.clone(),
            false => ToolSet::new(options.tools)
                .map_err(RunError::Tools)?
                .over(&agent.tools),
        };
        check_providers(&options.providers).map_err(RunError::Providers)?;
        let mut providers = agent.providers.clone();
        for provider in options.providers {
            let name = &provider.spec().name;
            let known = providers.iter().position(|one| one.spec().name == *name);
            match known {
                // It replaces the agent's, and has its state.
                Some(place) => providers[place] = provider,
                None => providers.push(provider),
            }
        }
        let mut policy = agent.policy;
        if let Some(persistence) = options.persistence {
            policy.persistence = persistence;
        }
        policy.on_busy = options.on_busy.unwrap_or(policy.on_busy);
        policy.on_interrupt = options.on_interrupt.unwrap_or(policy.on_interrupt);
        policy.on_open_calls = options.on_open_calls.unwrap_or(policy.on_open_calls);
        policy.on_park = options.on_park.unwrap_or(policy.on_park);
        Ok(Self {
            client: Arc::clone(&agent.client),
            instructions: joined([
                agent.instructions.as_deref(),
                options.instructions.as_deref(),
            ]),
            settings: options.settings.unwrap_or_else(|| agent.settings.clone()),
            model: options.model.or_else(|| agent.model.clone()),
            choice: options.choice,
            limits,
            names_no_limits,
            keeps_spent: options.keeps_spent,
            calling: options.calling.unwrap_or(agent.calling),
            tools,
            hosted: options.hosted,
            providers,
            policy,
            compaction: options
                .compaction
                .unwrap_or_else(|| agent.compaction.clone()),
            view_settings: ViewSettings::default(),
            service_id: options.service_id,
            key: options.key,
            on_repeat: options.on_repeat,
            expected_head: options.expected_head,
            left_runs: options.left_runs,
            warned: false,
            request,
        })
    }

    /// Take the settings of the thread. `chosen` is the persistence of the options, which goes before
    /// that of the thread.
    pub(crate) fn apply_thread_settings(
        &mut self,
        settings: &ThreadSettings,
        chosen: Option<Persistence>,
    ) {
        self.view_settings = settings.view_settings.clone();
        if let Some(persistence) = chosen.or(settings.persistence) {
            self.policy.persistence = persistence;
        }
    }

    /// Add the layer that has each model call published, if the persistence asks for that, unless the
    /// client has one or is used without layers of this library.
    pub(crate) fn add_persistence_layer(&mut self, agent: &AgentSetup) {
        let wanted = self.policy.persistence == Persistence::PerCall;
        if wanted && !agent.as_is && !self.client.abilities().persists_each_call {
            self.client = PersistEachCall.around(Arc::clone(&self.client));
        }
    }

    /// How many tokens of history the model of this run can be shown; `None` if that is not known.
    pub(crate) fn prompt_budget(&self) -> Option<u64> {
        let budget = match &self.compaction {
            Compaction::On(policy) => policy.effective_budget(),
            Compaction::Off => None,
        };
        budget.or(self.client.abilities().window)
    }

    /// Whether nothing of the run is published, because the application's own layers were to do that
    /// and none of them does.
    pub(crate) fn is_unpublished(&self, agent: &AgentSetup) -> bool {
        self.policy.persistence == Persistence::PerCall
            && agent.as_is
            && !self.client.abilities().persists_each_call
    }

    /// The plan of a run that is resumed: the options that are stored with it, and the agent's settings
    /// for the rest.
    pub(crate) fn resumed(
        agent: &AgentSetup,
        mut options: RunOptions,
        journal: &Journal,
        settings: &ThreadSettings,
    ) -> Result<Self, RunError> {
        let names_no_limits = options.limits.is_none();
        if let Some(request) = &journal.request {
            options = read(request, options).map_err(|error| RunError::journal(&error))?;
        }
        let mut plan = Self::new(agent, options)?;
        plan.names_no_limits = names_no_limits;
        // The run has begun under the key of its request.
        plan.key = None;
        plan.apply_thread_settings(settings, Some(journal.run.mode));
        plan.add_persistence_layer(agent);
        Ok(plan)
    }
}

/// Texts with an empty line between them; none if there are none.
pub(crate) fn joined<'t>(texts: impl IntoIterator<Item = Option<&'t str>>) -> Option<String> {
    let texts: Vec<&str> = texts.into_iter().flatten().collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn calling(calling: Calling) -> &'static str {
    match calling {
        Calling::Concurrent => "concurrent",
        Calling::Serial => "serial",
    }
}

fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Off => "off",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::ExtraHigh => "xhigh",
        Effort::Max => "max",
    }
}

/// What listings of threads know a run by: `agent`, and `model` as `UPSTREAM/MODEL`.
fn write_listed(mut object: ObjectWriter<'_>, agent: &AgentSetup, options: &RunOptions) {
    let own = options.host.is_none().then_some(agent.name.as_str());
    if let Some(name) = options.listed_agent.as_deref().or(own) {
        object.str("agent", name);
    }
    let abilities = agent.client.abilities();
    let model = [&options.model, &agent.model, &abilities.model];
    let model = model.into_iter().find_map(Option::as_deref);
    let words = [
        Some(abilities.upstream.as_str()).filter(|name| !name.is_empty()),
        model,
    ];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    if !words.is_empty() {
        object.str("model", &words.join("/"));
    }
    object.end();
}

/// The options as they are stored with a run. Tools and providers are code, and come from the agent.
fn write(agent: &AgentSetup, options: &RunOptions) -> RawJson {
    let RunOptions {
        tools: _,
        providers: _,
        hosted,
        choice,
        settings,
        model,
        limits,
        keeps_spent: _,
        calling: how,
        instructions,
        persistence: _,
        on_busy: _,
        on_interrupt: _,
        on_open_calls: _,
        on_park: _,
        compaction: _,
        service_id: _,
        key: _,
        on_repeat: _,
        expected_head: _,
        run: _,
        host,
        listed_agent: _,
        left_runs: _,
    } = options;
    RawJson::object(|object| {
        object.number("v", 1);
        write_listed(ObjectWriter::new(object.key("listed")), agent, options);
        if let Some(host) = host {
            object.raw("host", host.get());
            return;
        }
        match choice {
            ToolChoice::Auto => {}
            ToolChoice::None => drop(object.str("choice", "none")),
            ToolChoice::Required => drop(object.str("choice", "required")),
            ToolChoice::Named(name) => drop(object.str("choice_of", name)),
        }
        if let Some(model) = model {
            object.str("model", model);
        }
        if let Some(instructions) = instructions {
            object.str("instructions", instructions);
        }
        if let Some(how) = how {
            object.str("calling", calling(*how));
        }
        if let Some(limits) = limits {
            write_limits(ObjectWriter::new(object.key("limits")), limits);
        }
        if !hosted.is_empty() {
            let mut list = json::ArrayWriter::new(object.key("hosted"));
            for tool in hosted {
                write_hosted(ObjectWriter::new(list.slot()), tool);
            }
            list.end();
        }
        if let Some(settings) = settings {
            write_settings(ObjectWriter::new(object.key("settings")), settings);
        }
    })
}

fn write_hosted(mut object: ObjectWriter<'_>, tool: &ToolDef) {
    object.str("family", tool.family.as_str());
    object.str("name", &tool.name);
    if let Some(vendor) = &tool.vendor
        && let Form::Item(item) = &vendor.form
    {
        object.str("wire", vendor.wire.as_str());
        object.raw("item", item.get());
    }
    object.end();
}

fn read_hosted(value: &json::Value<'_>, path: &Path<'_>) -> Result<ToolDef, StoredError> {
    let mut fields = Fields::of(value, path)?;
    let item = fields.raw("item");
    let wire = fields.str("wire")?.map(|wire| Wire::named(&wire));
    Ok(ToolDef {
        family: Family::named(&fields.required_str("family")?),
        name: fields.required_str("name")?,
        vendor: wire.zip(item).map(|(wire, item)| Vendor::item(wire, item)),
        ..ToolDef::default()
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn write_limits(mut object: ObjectWriter<'_>, limits: &Limits) {
    object.number("rounds", u64::from(limits.rounds));
    object.number("failed_rounds", u64::from(limits.failed_rounds));
    let mut count = |key: &str, number: Option<u64>| {
        if let Some(number) = number {
            object.number(key, number);
        }
    };
    count("calls", limits.calls.map(u64::from));
    count("tokens", limits.tokens);
    count("ms", limits.time.map(millis));
    count("tool_ms", limits.tool_time.map(millis));
    object.end();
}

fn write_settings(mut object: ObjectWriter<'_>, settings: &Settings) {
    if let Some(most) = settings.max_output_tokens {
        object.number("max_output_tokens", most);
    }
    for (key, number) in [
        ("temperature", settings.temperature),
        ("top_p", settings.top_p),
        ("presence_penalty", settings.presence_penalty),
        ("frequency_penalty", settings.frequency_penalty),
    ] {
        if let Some(number) = number.filter(|number| number.is_finite()) {
            object.raw(key, &number.to_string());
        }
    }
    for (key, texts) in [("stop", &settings.stop), ("betas", &settings.betas)] {
        if !texts.is_empty() {
            let mut list = json::ArrayWriter::new(object.key(key));
            for text in texts {
                json::push_string(list.slot(), text);
            }
            list.end();
        }
    }
    if let Some(thinking) = settings.effort {
        object.str("effort", effort(thinking));
    }
    if let Some(parallel) = settings.parallel_calls {
        object.bool("parallel_calls", parallel);
    }
    if settings.summary {
        object.bool("summary", true);
    }
    for (key, word) in [
        ("verbosity", settings.verbosity.map(Verbosity::as_str)),
        ("user", settings.user.as_deref()),
        ("service_tier", settings.service_tier.as_deref()),
        ("cache_key", settings.cache_key.as_deref()),
        ("cache_retention", settings.cache_retention.as_deref()),
    ] {
        if let Some(word) = word {
            object.str(key, word);
        }
    }
    if let Some(shape) = &settings.answer {
        let mut answer = ObjectWriter::new(object.key("answer"));
        answer.str("name", &shape.name);
        if let Some(description) = &shape.description {
            answer.str("description", description);
        }
        if let Some(schema) = &shape.schema {
            answer.raw("schema", schema.get());
        }
        if let Some(strict) = shape.strict {
            answer.bool("strict", strict);
        }
        answer.end();
    }
    if let Some(extra) = &settings.extra {
        object.raw("extra", extra.get());
    }
    object.end();
}

fn read(request: &RawJson, mut options: RunOptions) -> Result<RunOptions, StoredError> {
    let value = json::parse(request.get())?;
    let root = Path::Root;
    let mut fields = Fields::of(&value, &root)?;
    if let Some(version) = fields.number("v")?.filter(|version| *version > 1) {
        return Err(StoredError::Newer {
            path: "request".into(),
            version,
        });
    }
    if fields.get("host").is_some() {
        // The host has made the options from what it stored.
        return Ok(options);
    }
    options.choice = match (fields.str("choice")?.as_deref(), fields.str("choice_of")?) {
        (_, Some(name)) => ToolChoice::Named(name),
        (Some("none"), None) => ToolChoice::None,
        (Some("required"), None) => ToolChoice::Required,
        _ => ToolChoice::Auto,
    };
    options.model = fields.str("model")?.or(options.model);
    options.instructions = fields.str("instructions")?.or(options.instructions);
    options.calling = match fields.str("calling")?.as_deref() {
        Some("serial") => Some(Calling::Serial),
        Some(_) => Some(Calling::Concurrent),
        None => options.calling,
    };
    // Limits of the options that resume a run replace those that it began with.
    if let Some(value) = fields.get("limits").filter(|_| options.limits.is_none()) {
        options.limits = Some(read_limits(value, &root.key("limits"))?);
    }
    options.hosted = fields.list("hosted", read_hosted)?;
    if let Some(value) = fields.get("settings") {
        options.settings = Some(read_settings(value, &root.key("settings"))?);
    }
    Ok(options)
}

fn read_limits(value: &json::Value<'_>, path: &Path<'_>) -> Result<Limits, StoredError> {
    let mut fields = Fields::of(value, path)?;
    let small = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let known = Limits::default();
    Ok(Limits {
        rounds: small(fields.number("rounds")?).unwrap_or(known.rounds),
        failed_rounds: small(fields.number("failed_rounds")?).unwrap_or(known.failed_rounds),
        calls: small(fields.number("calls")?),
        tokens: fields.number("tokens")?,
        time: fields.number("ms")?.map(Duration::from_millis),
        tool_time: fields.number("tool_ms")?.map(Duration::from_millis),
    })
}

fn read_text(value: &json::Value<'_>, path: &Path<'_>) -> Result<String, StoredError> {
    let text = value.as_str().map(std::borrow::Cow::into_owned);
    text.ok_or_else(|| StoredError::Corrupt {
        path: path.to_string(),
        expected: "a text",
        found: RawJson::of(value).get().to_owned(),
    })
}

fn read_settings(value: &json::Value<'_>, path: &Path<'_>) -> Result<Settings, StoredError> {
    let mut fields = Fields::of(value, path)?;
    let mut float = |key: &str| {
        let raw = fields.raw(key)?;
        raw.get().parse::<f64>().ok()
    };
    let (temperature, top_p) = (float("temperature"), float("top_p"));
    let presence_penalty = float("presence_penalty");
    let frequency_penalty = float("frequency_penalty");
    let word = fields.str("effort")?;
    Ok(Settings {
        max_output_tokens: fields.number("max_output_tokens")?,
        temperature,
        top_p,
        stop: fields.list("stop", read_text)?,
        betas: fields.list("betas", read_text)?,
        effort: Effort::ALL
            .into_iter()
            .find(|one| Some(effort(*one)) == word.as_deref()),
        summary: fields.raw("summary").is_some_and(|raw| raw.get() == "true"),
        verbosity: {
            let word = fields.str("verbosity")?;
            let mut known = Verbosity::ALL.into_iter();
            known.find(|one| Some(one.as_str()) == word.as_deref())
        },
        presence_penalty,
        frequency_penalty,
        user: fields.str("user")?,
        service_tier: fields.str("service_tier")?,
        cache_key: fields.str("cache_key")?,
        cache_retention: fields.str("cache_retention")?,
        parallel_calls: fields.raw("parallel_calls").map(|raw| raw.get() == "true"),
        answer: match fields.get("answer") {
            None => None,
            Some(value) => {
                let path = path.key("answer");
                let mut fields = Fields::of(value, &path)?;
                Some(AnswerShape {
                    name: fields.required_str("name")?,
                    description: fields.str("description")?,
                    schema: fields.raw("schema"),
                    strict: fields.raw("strict").map(|raw| raw.get() == "true"),
                })
            }
        },
        extra: fields.raw("extra"),
    })
}
