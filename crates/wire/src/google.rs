//! What both Gemini formats share: error bodies, tool families, media types and the little things
//! of Google's JSON.

use std::borrow::Cow;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value, push_compact};
use throughline_model::{
    Arguments, Content, Effort, Family, Media, MediaKind, MediaSource, Path, VendorError, Wire,
};

use crate::compose::body_builder::BodyBuilder;
use crate::media::{DataUrl, encode_base64};
use crate::message_writer::array;
use crate::read::{member, text_of};
use crate::{LossKind, Losses, foreign};

/// The member under its camelCase or its snake_case name: the first that is neither absent nor
/// null. The service writes the first and accepts both.
pub(crate) fn either_member<'v, 'a>(
    object: &'v Value<'a>,
    names: (&'static str, &'static str),
) -> Option<(&'static str, &'v Value<'a>)> {
    [names.0, names.1]
        .into_iter()
        .find_map(|name| member(object, name).map(|value| (name, value)))
}

/// A string under either of its names.
pub(crate) fn either_string(
    object: &Value<'_>,
    names: (&'static str, &'static str),
) -> Option<String> {
    either_member(object, names).and_then(|(_, value)| value.as_str().map(Cow::into_owned))
}

/// An object with the members of a newer one in its order, and behind them what only the older one
/// has. `member` may give another value for a member.
pub(crate) fn merge_objects(
    old: Option<&RawJson>,
    new: &Value<'_>,
    member: impl Fn(&str, Option<&Value<'_>>, &Value<'_>) -> Option<String>,
) -> RawJson {
    let old = old.map(RawJson::value);
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    for found in new.members() {
        let key = found.key.to_str();
        let before = old.as_ref().and_then(|old| old.get(&key));
        match member(&key, before, &found.value) {
            Some(text) => object.key_token(&found.key).push_str(&text),
            None => push_compact(object.key_token(&found.key), &found.value),
        }
    }
    for found in old.as_ref().map(Value::members).unwrap_or_default() {
        if new.get(&found.key.to_str()).is_none() {
            push_compact(object.key_token(&found.key), &found.value);
        }
    }
    object.end();
    RawJson::new(&out).unwrap_or_else(|_| RawJson::of(new))
}

/// Read `{"error": {…}}`, also as the one element of an array.
pub(crate) fn decode_error(wire: &Wire, body: &Value<'_>) -> Option<VendorError> {
    let inner = match body.as_array() {
        Some([only]) => only,
        Some(_) => return None,
        None => body,
    };
    let error = member(inner, "error")?;
    error.as_object()?;
    let mut found = decode_error_object(wire, error);
    found.body = Some(RawJson::of(body));
    Some(found)
}

/// Read the object with `code`, `message`, `status` and `details`.
pub(crate) fn decode_error_object(wire: &Wire, error: &Value<'_>) -> VendorError {
    let code = member(error, "code").map(|code| match code.as_str() {
        Some(word) => word.into_owned(),
        None => code.raw().to_owned(),
    });
    VendorError {
        wire: wire.clone(),
        message: text_of(error, "message").unwrap_or_default(),
        kind: text_of(error, "status"),
        code,
        param: None,
        retry_after_ms: retry_delay(error),
        body: Some(RawJson::of(error)),
    }
}

/// The wait that a detail of type `google.rpc.RetryInfo` asks for.
fn retry_delay(error: &Value<'_>) -> Option<u64> {
    let details = error.get("details").and_then(Value::as_array)?;
    details.iter().find_map(|detail| {
        let kind = text_of(detail, "@type")?;
        if !kind.ends_with("google.rpc.RetryInfo") {
            return None;
        }
        milliseconds(&either_string(detail, ("retryDelay", "retry_delay"))?)
    })
}

/// A duration such as `34.4s`, rounded up: trying too early costs another refusal.
fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('s')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let seconds: u64 = whole.parse().ok()?;
    let mut millis = 0;
    for place in 0..3 {
        let digit = fraction.as_bytes().get(place).map_or(0, |byte| byte - b'0');
        millis = millis * 10 + u64::from(digit);
    }
    let rest = fraction.as_bytes().iter().skip(3).any(|byte| *byte != b'0');
    seconds
        .checked_mul(1_000)?
        .checked_add(millis + u64::from(rest))
}

/// Write `{"error": {…}}`.
pub(crate) fn encode_error(wire: &Wire, error: &VendorError) -> String {
    if error.wire == *wire
        && let Some(body) = &error.body
    {
        let value = body.value();
        return match value.as_array().is_some() || member(&value, "error").is_some() {
            true => body.get().to_owned(),
            false => format!("{{\"error\":{}}}", body.get()),
        };
    }
    let (code, status) = match (&error.kind, error.wire == *wire) {
        (Some(kind), true) => (code_of(kind), kind.as_str()),
        (kind, _) => status_of(kind.as_deref().unwrap_or_default()),
    };
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let mut inner = ObjectWriter::new(object.key("error"));
    inner
        .number("code", code)
        .str("message", &error.message)
        .str("status", status);
    if let Some(wait) = error.retry_after_ms {
        let mut details = ArrayWriter::new(inner.key("details"));
        let mut detail = ObjectWriter::new(details.slot());
        detail
            .str("@type", "type.googleapis.com/google.rpc.RetryInfo")
            .str(
                "retryDelay",
                &format!("{}.{:03}s", wait / 1_000, wait % 1_000),
            );
        detail.end();
        details.end();
    }
    inner.end();
    object.end();
    out
}

/// Google's status for another vendor's kind of error.
fn status_of(kind: &str) -> (u64, &'static str) {
    let status = match kind {
        "invalid_request_error" | "invalid_request" => "INVALID_ARGUMENT",
        "authentication_error" => "UNAUTHENTICATED",
        "permission_error" | "billing_error" => "PERMISSION_DENIED",
        "not_found_error" => "NOT_FOUND",
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "requests"
        | "tokens"
        | "insufficient_quota" => "RESOURCE_EXHAUSTED",
        "overloaded_error" => "UNAVAILABLE",
        "timeout_error" => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    };
    (code_of(status), status)
}

fn code_of(status: &str) -> u64 {
    match status {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => 400,
        "UNAUTHENTICATED" => 401,
        "PERMISSION_DENIED" => 403,
        "NOT_FOUND" => 404,
        "ABORTED" | "ALREADY_EXISTS" => 409,
        "RESOURCE_EXHAUSTED" => 429,
        "CANCELLED" => 499,
        "UNIMPLEMENTED" => 501,
        "UNAVAILABLE" => 503,
        "DEADLINE_EXCEEDED" => 504,
        _ => 500,
    }
}

/// What becomes of system text among the messages; neither format has a role for it.
#[derive(Debug)]
pub(crate) enum SystemText {
    /// There is no place for it.
    Lost,
    /// It goes to the system instruction of the request.
    Lifted(Vec<String>),
}

impl SystemText {
    /// Whether nothing was lifted.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Lost => true,
            Self::Lifted(texts) => texts.is_empty(),
        }
    }

    /// Take one content of a system or developer message.
    pub(crate) fn take(&mut self, content: &Content, path: &Path<'_>, losses: &mut Losses) {
        match (self, content.as_text()) {
            (Self::Lifted(_), Some("")) => {}
            (Self::Lifted(texts), Some(text)) => texts.push(text.to_owned()),
            (Self::Lifted(_), None) => {
                losses.note(path, LossKind::SystemText, "only text fits here");
            }
            (Self::Lost, _) => losses.note(
                path,
                LossKind::SystemText,
                "there is no place for system text here",
            ),
        }
    }
}

/// The input of a request body that came in either format, as JSON text for its place, and the system
/// text that `encode` lifted from it. There is no text if the place keeps a bare string, or stays absent.
pub(crate) fn native_input(
    place: Option<&Value<'_>>,
    bare: Option<&str>,
    encode: impl FnOnce(SystemText) -> (Vec<String>, SystemText),
) -> (Option<String>, SystemText) {
    let lifted = SystemText::Lifted(Vec::new());
    if bare.is_some() && place.is_some_and(|place| place.as_text().is_some()) {
        return (None, lifted);
    }
    let (items, lifted) = encode(lifted);
    let alone = place.is_some_and(|place| place.as_object().is_some());
    let text = match (items.as_slice(), alone) {
        ([only], true) => only.clone(),
        _ => array(&items),
    };
    // A body without input, such as one that continues a response, stays without while there is none.
    let absent = place.is_none_or(Value::is_null);
    ((!absent || !items.is_empty()).then_some(text), lifted)
}

/// The family of a tool on offer, by its key or type in either format.
pub(crate) fn tool_family(name: &str) -> Family {
    match name {
        "function" => Family::FUNCTION,
        "googleSearch"
        | "google_search"
        | "googleSearchRetrieval"
        | "google_search_retrieval"
        | "enterpriseWebSearch"
        | "enterprise_web_search" => Family::WEB_SEARCH,
        "codeExecution" | "code_execution" => Family::CODE_EXECUTION,
        "urlContext" | "url_context" => Family::of("url-context"),
        "fileSearch" | "file_search" => Family::FILE_SEARCH,
        "computerUse" | "computer_use" => Family::COMPUTER,
        "googleMaps" | "google_maps" => Family::of("maps"),
        "mcpServers" | "mcp_servers" | "mcp_server" => Family::MCP,
        "retrieval" => Family::of("retrieval"),
        other => Family::named(other),
    }
}

/// The arguments of another vendor's call as the JSON object that both formats want. What is no
/// object goes whole into its one member, `input`, which is noted; no text at all is no arguments.
pub(crate) fn arguments_object(
    arguments: &Arguments,
    path: &Path<'_>,
    losses: &mut Losses,
) -> String {
    let (object, wrapped) = wrapped_arguments(arguments);
    if wrapped {
        let detail = "arguments must be an object; these became its member input";
        losses.note(path, LossKind::Arguments, detail);
    }
    match RawJson::new(&object) {
        Ok(json) if object.contains("\\u") => {
            foreign::without_lone_surrogates(&json, path, losses).into_owned()
        }
        _ => object,
    }
}

/// The same, saying whether they had to be wrapped.
pub(crate) fn wrapped_arguments(arguments: &Arguments) -> (String, bool) {
    let text = foreign::arguments_text(arguments);
    if text.trim().is_empty() {
        return ("{}".to_owned(), false);
    }
    match throughline_model::json::parse(&text) {
        Ok(value) if value.as_object().is_some() => (RawJson::of(&value).get().to_owned(), false),
        _ => {
            let free = Arguments::Free(text.into_owned());
            (foreign::arguments_text(&free).into_owned(), true)
        }
    }
}

/// How many stop sequences a request may have.
pub(crate) const MAX_STOP_SEQUENCES: usize = 5;

/// Note the tools that ask for arguments that match their schema: Gemini does not enforce that.
pub(crate) fn note_strict_tools(builder: &mut BodyBuilder<'_>) {
    let root = Path::Root.key("tools");
    for foreign::FunctionTool { index, tool } in foreign::function_tools(builder.prompt.tools) {
        if tool.strict == Some(true) {
            let path = root.index(index);
            let detail = "arguments are not held to their schema";
            builder
                .losses
                .note(&path.key("strict"), LossKind::ToolDefinition, detail);
        }
    }
}

/// Note that parallel calls were forbidden: Gemini cannot forbid them.
pub(crate) fn note_parallel_calls(builder: &mut BodyBuilder<'_>) {
    if builder.prompt.settings.parallel_calls == Some(false) {
        builder.note_loss("parallel_calls", "parallel calls cannot be switched off");
    }
}

/// How much to think, as a word of Google's.
pub(crate) fn thinking_level(builder: &mut BodyBuilder<'_>, effort: Effort) -> &'static str {
    match effort {
        Effort::Off => {
            let detail = "thinking cannot be switched off, only made short";
            builder.note_replaced("effort", detail, "\"minimal\"");
            "minimal"
        }
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::ExtraHigh | Effort::Max => {
            builder.note_replaced("effort", "high is the most, and was sent", "\"high\"");
            "high"
        }
    }
}

/// What a media type is of.
pub(crate) fn media_kind(media_type: &str) -> MediaKind {
    match media_type.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some("video") => MediaKind::Video,
        _ => MediaKind::File,
    }
}

/// Where the bytes of media of another vendor go.
pub(crate) enum MediaData<'m> {
    /// MediaData in base 64, and their media type if it is known.
    Inline(Cow<'m, str>, Option<&'m str>),
    /// An address, and the media type if it is known.
    Address(&'m str, Option<&'m str>),
    /// A file that another vendor keeps.
    Elsewhere,
}

/// Read media of another vendor: `data:` addresses are taken apart, since both formats want the
/// bytes and their type in members of their own.
pub(crate) fn media_data(media: &Media) -> MediaData<'_> {
    let known = media.media_type.as_deref();
    match &media.source {
        MediaSource::Data(data) => MediaData::Inline(Cow::Borrowed(data), known),
        MediaSource::File(_) => MediaData::Elsewhere,
        MediaSource::Uri(uri) => match DataUrl::parse(uri) {
            None => MediaData::Address(uri, known),
            Some(url) if url.is_base64 => {
                MediaData::Inline(Cow::Borrowed(url.data), url.media_type.or(known))
            }
            Some(url) => {
                let media_type = url.media_type.or(known).or(Some("text/plain"));
                let data = encode_base64(&percent_decoded(url.data));
                MediaData::Inline(Cow::Owned(data), media_type)
            }
        },
    }
}

/// The media type to name where none is known.
pub(crate) fn default_media_type(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image/png",
        MediaKind::Audio => "audio/wav",
        MediaKind::Video => "video/mp4",
        MediaKind::File => "application/octet-stream",
    }
}

/// Undo the percent signs of an address; a broken one stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digit = |place: usize| {
            let byte = bytes.get(place)?;
            (*byte as char).to_digit(16).map(|digit| digit as u8)
        };
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high * 16 + low);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{milliseconds, percent_decoded};

    #[test]
    fn durations_become_milliseconds_rounded_up() {
        assert_eq!(milliseconds("34.4s"), Some(34_400));
        assert_eq!(milliseconds("0.0001s"), Some(1));
        assert_eq!(milliseconds("7s"), Some(7_000));
        assert_eq!(milliseconds("34.074824224s"), Some(34_075));
        for odd in ["", "s", ".5s", "-1s", "1", "1.x s", "99999999999999999999s"] {
            assert_eq!(milliseconds(odd), None, "{odd}");
        }
    }

    #[test]
    fn percent_signs_of_an_address_are_undone() {
        assert_eq!(percent_decoded("a%20b%2"), b"a b%2");
    }
}
