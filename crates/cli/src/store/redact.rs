//! `throughline threads redact`.

use std::process::ExitCode;

use throughline_server::api::native::forms;

use super::{Context, IfMissing, approvals, json_form, text};
use crate::args::Redact;
use crate::failure::Failure;
use crate::output;

pub(super) async fn redact(context: &Context<'_>, args: &Redact) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let (at, opened) = context.find(&store, &args.name, 0).await?;
    let by = args.by.clone().unwrap_or_else(approvals::user);
    let threads = context.threads(&store);
    let redacted = threads.redact(at, &args.message, &by).await;
    let redacted = redacted.map_err(|error| context.failure(&error))?;
    if context.json {
        let form = json_form::object(|object| forms::redaction(object, &redacted));
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!(
        "redacted #{} of thread {}, {}",
        redacted.position,
        opened.thread.id,
        text::counted(redacted.items.len() as u64, "item"),
    ))?;
    let mut copies = redacted.vendor_copies.iter();
    copies.try_for_each(|copy| output::line(&text::vendor_copy(copy)))?;
    Ok(ExitCode::SUCCESS)
}
