//! Requests about stored answers.

use throughline_model::Wire;

use super::super::http::Incoming;
use super::super::vendor;

/// What a request is about, by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Subject {
    Answer(String),
    Conversation(String),
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Page {
    pub(super) limit: Option<usize>,
    pub(super) after: Option<String>,
    pub(super) descending: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Operation {
    Show(Subject),
    List(Subject, Page),
    Delete(Subject),
}

impl Operation {
    /// The operation of a request; none if it is not about what is stored.
    pub(in super::super) fn of(wire: &Wire, request: &Incoming) -> Option<Self> {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let rest = path.strip_prefix(vendor::base_path(wire))?;
        let answers = match wire {
            Wire::OpenAiResponses | Wire::Foundry => "/responses/",
            Wire::GeminiInteractions => "/v1beta/interactions/",
            Wire::OpenAiChat | Wire::Anthropic | Wire::Gemini | Wire::Other(_) => return None,
        };
        let (subject, list): (fn(String) -> Subject, _) = match rest.strip_prefix(answers) {
            Some(rest) => (Subject::Answer, (rest, "input_items")),
            None if *wire == Wire::GeminiInteractions => return None,
            None => {
                let rest = rest.strip_prefix("/conversations/")?;
                (Subject::Conversation, (rest, "items"))
            }
        };
        let (rest, list) = list;
        let (id, below) = rest.split_once('/').unwrap_or((rest, ""));
        let subject = subject(id.to_owned());
        match (request.method.as_str(), below) {
            ("GET", "") => Some(Self::Show(subject)),
            ("DELETE", "") => Some(Self::Delete(subject)),
            ("GET", below) if below == list && *wire != Wire::GeminiInteractions => {
                Some(Self::List(subject, page(query)))
            }
            _ => None,
        }
    }

    pub(in super::super) fn subject(&self) -> &Subject {
        match self {
            Self::Show(subject) | Self::List(subject, _) | Self::Delete(subject) => subject,
        }
    }
}

fn page(query: &str) -> Page {
    let mut page = Page {
        // As with the vendors, the newest comes first unless a request says otherwise.
        descending: true,
        ..Page::default()
    };
    for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match key {
            "limit" => page.limit = value.parse().ok(),
            "after" => page.after = Some(value.to_owned()),
            "order" => page.descending = value != "asc",
            _ => {}
        }
    }
    page
}
