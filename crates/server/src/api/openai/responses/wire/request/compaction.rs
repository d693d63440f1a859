//! How much of a long history a model is shown, as a request says it: in OpenAI's words and in ours.

use throughline_model::Path;
use throughline_model::json::Value;

use super::read;
use crate::ApiError;

/// The smallest budget, as in OpenAI's description.
const LEAST: u64 = 1_000;

/// Larger figures mean nothing, and must not overflow anything.
const MOST: u64 = 1_000_000_000;

/// What a request says about compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionRequest {
    /// `truncation: "auto"`: the model's window is not to overflow.
    pub fits_window: bool,
    /// `context_management`
    pub context_management: ContextManagement,
    /// `throughline.compaction`
    pub compaction_override: CompactionOverride,
}

impl CompactionRequest {
    /// Whether a request asks for less to be shown.
    pub fn is_asked(&self) -> bool {
        self.fits_window
            || self.context_management != ContextManagement::Unset
            || self.compaction_override.is_on()
    }

    /// Whether the member of this name asks for it.
    pub fn names(&self, key: &str) -> bool {
        match key {
            "truncation" => self.fits_window,
            "context_management" => self.context_management != ContextManagement::Unset,
            _ => self.compaction_override.is_on(),
        }
    }
}

impl CompactionOverride {
    fn is_on(self) -> bool {
        matches!(self, Self::On { .. })
    }
}

/// What `context_management` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextManagement {
    /// The request does not have it.
    #[default]
    Unset,
    /// Compact, without a figure.
    On,
    /// Compact above so many tokens.
    Above(u64),
}

/// What `throughline.compaction` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionOverride {
    /// The request does not have it.
    #[default]
    Unset,
    /// `false` or `"off"`
    Off,
    /// `true` or an object; figures that are left out are as configured.
    On {
        /// Tokens that are sent at most.
        budget: Option<u64>,
        /// Tokens of tool history above which it is compacted.
        threshold: Option<u64>,
        /// Tool calls that stay in full.
        recent_calls: Option<u32>,
        /// Messages above which it is compacted.
        count: Option<u32>,
    },
}

impl CompactionRequest {
    pub(super) fn of(body: &Value<'_>) -> Result<Self, ApiError> {
        let root = Path::Root;
        let truncation = read::one_of(body, "truncation", &["auto", "disabled"], &root)?;
        Ok(Self {
            fits_window: truncation == Some("auto"),
            context_management: context_management(body)?,
            compaction_override: compaction_override(body)?,
        })
    }
}

fn context_management(body: &Value<'_>) -> Result<ContextManagement, ApiError> {
    let list = read::list(body, "context_management", &Path::Root)?.unwrap_or_default();
    let path = Path::Root.key("context_management");
    let mut managed = ContextManagement::Unset;
    for (index, entry) in list.iter().enumerate() {
        let path = path.index(index);
        if entry.as_object().is_none() {
            return Err(read::wrong_type(&path, "an object", entry));
        }
        if read::one_of(entry, "type", &["compaction"], &path)?.is_none() {
            return Err(read::missing(&path.key("type")));
        }
        let above = read::integer(entry, "compact_threshold", (LEAST, MOST), &path)?;
        // Of several the strictest counts.
        managed = match (managed, above) {
            (ContextManagement::Above(known), Some(above)) => {
                ContextManagement::Above(known.min(above))
            }
            (ContextManagement::Above(known), None) => ContextManagement::Above(known),
            (ContextManagement::Unset | ContextManagement::On, Some(above)) => {
                ContextManagement::Above(above)
            }
            (ContextManagement::Unset | ContextManagement::On, None) => ContextManagement::On,
        };
    }
    Ok(managed)
}

fn compaction_override(body: &Value<'_>) -> Result<CompactionOverride, ApiError> {
    let Some(ours) = read::object(body, "throughline", &Path::Root)? else {
        return Ok(CompactionOverride::Unset);
    };
    let Some(said) = read::member(ours, "compaction") else {
        return Ok(CompactionOverride::Unset);
    };
    let ours = Path::Root.key("throughline");
    let path = ours.key("compaction");
    let plain = CompactionOverride::On {
        budget: None,
        threshold: None,
        recent_calls: None,
        count: None,
    };
    match (said.as_bool(), said.as_str()) {
        (Some(true), _) => return Ok(plain),
        (Some(false), _) => return Ok(CompactionOverride::Off),
        (None, Some(word)) if word == "off" => return Ok(CompactionOverride::Off),
        (None, Some(word)) => return Err(read::wrong_value(&path, &word, &["off"])),
        (None, None) => {}
    }
    if said.as_object().is_none() {
        let expected = "a boolean, 'off' or an object";
        return Err(read::wrong_type(&path, expected, said));
    }
    let known = ["budget", "threshold", "recent_calls", "count"];
    for member in said.members() {
        let key = member.key.to_str();
        if !known.contains(&&*key) {
            return Err(unknown(&path.key(&key)));
        }
    }
    let number = |key, bounds| read::integer(said, key, bounds, &path);
    let small = |key, least| {
        let number = number(key, (least, 1_000_000))?;
        Ok::<_, ApiError>(number.and_then(|number| u32::try_from(number).ok()))
    };
    Ok(CompactionOverride::On {
        budget: number("budget", (LEAST, MOST))?,
        threshold: number("threshold", (0, MOST))?,
        recent_calls: small("recent_calls", 0)?,
        count: small("count", 1)?,
    })
}

fn unknown(path: &Path<'_>) -> ApiError {
    let name: String = path.to_string().chars().take(128).collect();
    ApiError::invalid(format!("Unknown parameter: '{name}'."))
        .code("unknown_parameter")
        .param(name)
}

#[cfg(test)]
mod tests {
    use super::{CompactionOverride, CompactionRequest, ContextManagement};
    use crate::api::openai::responses::wire::CreateRequest;

    fn asked(body: &str) -> CompactionRequest {
        *CreateRequest::parse(body.as_bytes()).unwrap().compaction()
    }

    #[test]
    fn three_ways_to_ask_are_read() {
        assert_eq!(asked("{}"), CompactionRequest::default());
        assert_eq!(
            asked(r#"{"truncation":"disabled"}"#),
            CompactionRequest::default()
        );
        assert!(asked(r#"{"truncation":"auto"}"#).fits_window);
        for (entries, managed) in [
            ("[]", ContextManagement::Unset),
            (r#"[{"type":"compaction"}]"#, ContextManagement::On),
            (
                r#"[{"type":"compaction","compact_threshold":1000}]"#,
                ContextManagement::Above(1_000),
            ),
            (
                r#"[{"type":"compaction","compact_threshold":9000},{"type":"compaction","compact_threshold":null},
                    {"type":"compaction","compact_threshold":4000}]"#,
                ContextManagement::Above(4_000),
            ),
        ] {
            let body = format!(r#"{{"context_management":{entries}}}"#);
            assert_eq!(asked(&body).context_management, managed, "{entries}");
        }
        let on = |budget, threshold, recent_calls, count| CompactionOverride::On {
            budget,
            threshold,
            recent_calls,
            count,
        };
        for (said, wished) in [
            ("null", CompactionOverride::Unset),
            ("false", CompactionOverride::Off),
            ("\"off\"", CompactionOverride::Off),
            ("true", on(None, None, None, None)),
            ("{}", on(None, None, None, None)),
            (
                r#"{"budget":8000,"threshold":0,"recent_calls":2,"count":30}"#,
                on(Some(8_000), Some(0), Some(2), Some(30)),
            ),
        ] {
            let body = format!(r#"{{"throughline":{{"compaction":{said}}}}}"#);
            assert_eq!(asked(&body).compaction_override, wished, "{said}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        for (body, code, param) in [
            (r#"{"truncation":"some"}"#, "invalid_value", "truncation"),
            (
                r#"{"context_management":{}}"#,
                "invalid_type",
                "context_management",
            ),
            (
                r#"{"context_management":[1]}"#,
                "invalid_type",
                "context_management[0]",
            ),
            (
                r#"{"context_management":[{}]}"#,
                "missing_required_parameter",
                "context_management[0].type",
            ),
            (
                r#"{"context_management":[{"type":"x"}]}"#,
                "invalid_value",
                "context_management[0].type",
            ),
            (
                r#"{"context_management":[{"type":"compaction","compact_threshold":999}]}"#,
                "integer_below_min_value",
                "context_management[0].compact_threshold",
            ),
            (
                r#"{"throughline":{"compaction":3}}"#,
                "invalid_type",
                "throughline.compaction",
            ),
            (
                r#"{"throughline":{"compaction":"on"}}"#,
                "invalid_value",
                "throughline.compaction",
            ),
            (
                r#"{"throughline":{"compaction":{"budget":10}}}"#,
                "integer_below_min_value",
                "throughline.compaction.budget",
            ),
            (
                r#"{"throughline":{"compaction":{"recent_calls":1.5}}}"#,
                "invalid_type",
                "throughline.compaction.recent_calls",
            ),
            (
                r#"{"throughline":{"compaction":{"buget":8000}}}"#,
                "unknown_parameter",
                "throughline.compaction.buget",
            ),
        ] {
            let error = CreateRequest::parse(body.as_bytes()).unwrap_err();
            let seen = (error.status, error.code.as_deref(), error.param.as_deref());
            assert_eq!(seen, (400, Some(code), Some(param)), "{body}");
        }
    }

    #[test]
    fn a_resumed_run_knows_what_was_asked() {
        let body = r#"{"model":"m","input":"x","truncation":"auto",
            "throughline":{"on_open_calls":"close","compaction":{"budget":8000}}}"#;
        let request = CreateRequest::parse(body.as_bytes()).unwrap();
        let kept = request.stored_body();
        assert_eq!(
            kept.get(),
            r#"{"model":"m","throughline":{"compaction":{"budget":8000}},"truncation":"auto"}"#
        );
        let again = CreateRequest::from_stored(&kept).unwrap();
        assert_eq!(again.compaction(), request.compaction());
        assert_eq!(again.stored_body(), kept);
    }
}
