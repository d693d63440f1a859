//! Reading only some of a branch's messages.
//!
//! A filter is applied to what an engine read, in this process: values are compared, never put
//! into a query, and no engine has to know of it.

use throughline_model::{Body, Content, Family, Role, Source};

use crate::{At, Entry, Error, NodeRef, Page, Result, RunId, Span, Store, TenantScope};

/// Messages that are read at once while those that fit are looked for.
const SCAN: usize = 256;

/// Which messages of a branch to read; what is not set lets all of them through.
///
/// ```
/// use throughline_store::MessageFilter;
///
/// let filter = MessageFilter::parse(&[("role", "tool"), ("tool", "get_tide")])?;
/// assert_eq!(filter.tool.as_deref(), Some("get_tide"));
/// assert!(MessageFilter::parse(&[("colour", "red")]).is_err());
/// # Ok::<(), throughline_store::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MessageFilter {
    /// Only what was said in this role.
    pub role: Option<Role>,
    /// Only what this source asserted.
    pub source: Option<Source>,
    /// Only what this run added.
    pub run: Option<RunId>,
    /// Only messages that call this tool, or bring a result that names it.
    pub tool: Option<String>,
}

impl MessageFilter {
    /// The keys of [`MessageFilter::parse`].
    pub const KEYS: [&str; 4] = ["role", "source", "run", "tool"];

    /// Read a filter from keys and values. A key that is not known, one that is given twice and a
    /// run that is no run id are [`Invalid`](Error::Invalid); any other value matches itself.
    pub fn parse(pairs: &[(&str, &str)]) -> Result<Self> {
        let mut filter = Self::default();
        for (place, (key, value)) in pairs.iter().enumerate() {
            if pairs[..place].iter().any(|(before, _)| before == key) {
                return Err(invalid(format!("{key:?} is given twice")));
            }
            match *key {
                "role" => filter.role = Some(Role::named(value)),
                "source" => filter.source = Some(Source::named(value)),
                "run" => {
                    let run = value.parse().map_err(|error| invalid(format!("{error}")))?;
                    filter.run = Some(run);
                }
                "tool" => filter.tool = Some((*value).to_owned()),
                _ => {
                    let key: String = key.chars().take(48).collect();
                    let known = Self::KEYS.join(", ");
                    return Err(invalid(format!("{key:?} is no key; use {known}")));
                }
            }
        }
        Ok(filter)
    }

    /// Whether a message fits.
    pub fn matches(&self, entry: &Entry) -> bool {
        let Self {
            role,
            source,
            run,
            tool,
        } = self;
        let message = &entry.message;
        role.as_ref().is_none_or(|role| message.role == *role)
            && source
                .as_ref()
                .is_none_or(|source| message.source.as_ref() == Some(source))
            && run.is_none_or(|run| entry.at.run == run)
            && tool
                .as_ref()
                .is_none_or(|tool| message.contents.iter().any(|content| names(content, tool)))
    }
}

/// Whether a content is about a tool.
fn names(content: &Content, tool: &str) -> bool {
    // Where there is no name the family is one, unless it is that of all functions.
    let family = |family: &Family| *family != Family::FUNCTION && family.as_str() == tool;
    match &content.body {
        Body::ToolCall(call) if call.name.is_empty() => family(&call.family),
        Body::ToolCall(call) => call.name == tool,
        Body::ToolResult(result) => match &result.name {
            Some(name) => name == tool,
            None => family(&result.family),
        },
        Body::Text(_)
        | Body::Refusal(_)
        | Body::Reasoning(_)
        | Body::Media(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => false,
    }
}

fn invalid(why: String) -> Error {
    Error::Invalid {
        what: "message filter",
        why,
    }
}

impl Store {
    /// Read messages of a branch that fit a filter, in the direction of the span.
    ///
    /// The page counts messages that fit; their positions are those of the branch, and
    /// [`Page::more`] says whether others fit further on. All pages that this takes are of the
    /// branch as it is at the first one. Costs as much as reading everything up to the last
    /// message that fits.
    pub async fn read_matching(
        &self,
        scope: &TenantScope,
        at: &At,
        filter: &MessageFilter,
        span: Span,
        limit: usize,
    ) -> Result<Page> {
        let mut page = self.read(scope, at, span, SCAN).await?;
        let (node, last) = (page.node, page.last);
        // In the direction of reading.
        let mut found: Vec<Entry> = Vec::new();
        loop {
            let fits = |entry: &Entry| filter.matches(entry);
            let entries = page.entries.into_iter();
            let next = match span {
                Span::After(_) => {
                    let next = entries.as_slice().last().map(|last| Span::After(last.last));
                    found.extend(entries.filter(fits));
                    next
                }
                Span::Tail | Span::Before(_) => {
                    let next = entries
                        .as_slice()
                        .first()
                        .map(|first| Span::Before(first.first));
                    found.extend(entries.rev().filter(fits));
                    next
                }
            };
            // One more than asked for tells whether there are more.
            let Some(next) = next.filter(|_| page.more && found.len() <= limit) else {
                break;
            };
            page = self.read(scope, at, next, SCAN).await?;
            // The head has moved: stay where the reading began. Not by the node's name from the
            // start, for a head of a hidden run has none.
            if let Some(node) = node.filter(|_| page.node != node) {
                let pinned = At::Node(NodeRef::Node(node));
                page = self.read(scope, &pinned, next, SCAN).await?;
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        if !matches!(span, Span::After(_)) {
            found.reverse();
        }
        Ok(Page {
            entries: found,
            more,
            node,
            last,
        })
    }
}
