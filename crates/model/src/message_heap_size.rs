//! Messages and what they hold.

use crate::heap_size::{HeapSize, allocation, heap_size_of_fields};
use crate::json::RawJson;
use crate::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, Citation, Content, Extra, Fault, Form,
    IdField, IdFields, Media, MediaSource, Message, MessageId, Opaque, Output, Reasoning, Role,
    Source, Status, Text, ToolCall, Usage, Vendor, Wire,
};

heap_size_of_fields!(Message { id, role, contents, author, source, status, usage, meta, extra; created });
heap_size_of_fields!(Content { body, vendor, extra; });
heap_size_of_fields!(Text { text, citations; });
heap_size_of_fields!(Citation { url, title, file, extra; start, end });
heap_size_of_fields!(Reasoning { summary, text; sealed });
heap_size_of_fields!(Media { media_type, source, name, transcript; kind });
heap_size_of_fields!(ToolCall { call, family, name, arguments, status; runner });
heap_size_of_fields!(ApprovalRequest { request, name, arguments, server; });
heap_size_of_fields!(ApprovalResponse { request, reason; approved });
heap_size_of_fields!(Fault { message, code; });
heap_size_of_fields!(Opaque { tag; });
heap_size_of_fields!(Vendor { wire, id_fields, envelope, form, extra; });
heap_size_of_fields!(IdFields { id, call; });
heap_size_of_fields!(Usage { vendor, extra; input, output, total, cache_read, cache_write, reasoning });

impl HeapSize for Body {
    fn heap_size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Refusal(text) => text.heap_size(),
            Self::Reasoning(reasoning) => reasoning.heap_size(),
            Self::Media(media) => media.heap_size(),
            Self::ToolCall(call) => call.heap_size(),
            Self::ToolResult(result) => result.heap_size(),
            Self::ApprovalRequest(request) => request.heap_size(),
            Self::ApprovalResponse(response) => response.heap_size(),
            Self::Error(error) => error.heap_size(),
            Self::Opaque(item) => item.heap_size(),
            Self::Unknown(json) => json.heap_size(),
        }
    }
}

impl HeapSize for MediaSource {
    fn heap_size(&self) -> usize {
        match self {
            Self::Uri(text) | Self::Data(text) | Self::File(text) => text.heap_size(),
        }
    }
}

impl HeapSize for Arguments {
    fn heap_size(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Text(text) | Self::Free(text) => text.heap_size(),
            Self::Json(json) => json.heap_size(),
        }
    }
}

impl HeapSize for Output {
    fn heap_size(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Text(text) => text.heap_size(),
            Self::Json(json) => json.heap_size(),
            Self::Parts(parts) => parts.heap_size(),
        }
    }
}

impl HeapSize for Form {
    fn heap_size(&self) -> usize {
        match self {
            Self::Item(json) | Self::Part(json) => json.heap_size(),
            Self::Bare | Self::Within => 0,
        }
    }
}

impl HeapSize for RawJson {
    fn heap_size(&self) -> usize {
        allocation(self.get().len())
    }
}

impl HeapSize for Extra {
    fn heap_size(&self) -> usize {
        self.as_json().map_or(0, RawJson::heap_size)
    }
}

impl HeapSize for MessageId {
    fn heap_size(&self) -> usize {
        allocation(self.as_str().len())
    }
}

impl HeapSize for IdField {
    fn heap_size(&self) -> usize {
        match self {
            Self::NoField | Self::Missing | Self::Null => 0,
            Self::Set(id) => id.heap_size(),
        }
    }
}

/// Implements the trait for an enum of words in which only `Other` owns its text.
macro_rules! heap_size_of_other {
    ($($type:ident),*) => {
        $(impl HeapSize for $type {
            fn heap_size(&self) -> usize {
                match self {
                    Self::Other(word) => word.heap_size(),
                    _ => 0,
                }
            }
        })*
    };
}

heap_size_of_other!(Role, Source, Status, Wire);
