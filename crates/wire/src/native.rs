//! What came from the format that it is written in: it goes back as it came.

use throughline_model::json::RawJson;
use throughline_model::{Content, Form, Vendor, Wire};

/// The vendor's form of a content that came from this format.
pub(crate) fn vendor<'c>(content: &'c Content, wire: &Wire) -> Option<&'c Vendor> {
    let vendor = content.vendor.as_deref()?;
    (vendor.wire == *wire).then_some(vendor)
}

/// The part that a content came as, if it came from this format.
pub(crate) fn part<'c>(content: &'c Content, wire: &Wire) -> Option<&'c RawJson> {
    match &vendor(content, wire)?.form {
        Form::Part(part) => Some(part),
        Form::Item(_) | Form::Bare | Form::Within => None,
    }
}

/// The body of a request or response that came in this format, as a template.
pub(crate) fn body<'v>(vendor: Option<&'v Vendor>, wire: &Wire) -> Option<&'v RawJson> {
    let vendor = vendor.filter(|vendor| vendor.wire == *wire)?;
    match &vendor.form {
        Form::Item(body) => Some(body),
        Form::Part(_) | Form::Bare | Form::Within => None,
    }
}
