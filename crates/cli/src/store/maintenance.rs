//! `throughline fsck|backup|restore|migrate|doctor`.

use std::process::ExitCode;

use throughline_model::json::ObjectWriter;
use throughline_store::{Setting, sqlite};

use super::{Context, IfMissing, json_form, text};
use crate::args;
use crate::failure::Failure;
use crate::output;
use crate::progress;

pub(super) async fn fsck(context: &Context<'_>) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let mut line = progress::Line::new("checking");
    let checked = store.check(&mut |progress| line.show(progress)).await;
    drop(line);
    let checked = checked.map_err(|error| context.failure(&error))?;
    let sound = checked.damage.is_empty();
    if context.json {
        let form = json_form::object(|object| {
            object
                .bool("ok", sound)
                .number("threads", checked.threads)
                .number("nodes", checked.nodes)
                .number("items", checked.items)
                .number("redacted", checked.redacted);
            json_form::array(object.key("damage"), &checked.damage, |out, damage| {
                let mut object = ObjectWriter::new(out);
                for (key, name) in [("tenant", &damage.tenant), ("thread", &damage.thread)] {
                    match name {
                        Some(name) => object.str(key, name),
                        None => object.raw(key, "null"),
                    };
                }
                json_form::opt_number(&mut object, "position", damage.position);
                match &damage.item {
                    Some(item) => {
                        let mut inner = ObjectWriter::new(object.key("item"));
                        inner.str("run", &item.run.to_string());
                        inner.number("no", u64::from(item.no));
                        inner.end();
                    }
                    None => {
                        object.raw("item", "null");
                    }
                }
                object
                    .str("place", &damage.place)
                    .str("detail", &damage.detail);
                object.end();
            });
        });
        output::document(&form, false)?;
        return Ok(ExitCode::from(u8::from(!sound)));
    }
    for damage in &checked.damage {
        let mut place = String::new();
        for (word, name) in [("tenant", &damage.tenant), ("thread", &damage.thread)] {
            // The place of a thread is its name.
            if let Some(name) = name
                && damage.place != format!("{word} {name}")
            {
                place.push_str(&format!("{word} {}, ", text::plain(name)));
            }
        }
        if let Some(position) = damage.position {
            place.push_str(&format!("position {position}, "));
        }
        output::line(&format!(
            "damaged: {place}{}: {}",
            text::plain(&damage.place),
            text::plain(&damage.detail)
        ))?;
    }
    let mut line = format!(
        "checked {}, {}, {}",
        text::counted(checked.threads, "thread"),
        text::counted(checked.nodes, "node"),
        text::counted(checked.items, "item"),
    );
    if checked.redacted > 0 {
        line.push_str(&format!(" ({} redacted)", checked.redacted));
    }
    line.push_str(match sound {
        true => ": sound",
        false => ": damaged; restore a backup, or export what can still be read",
    });
    output::line(&line)?;
    Ok(ExitCode::from(u8::from(!sound)))
}

pub(super) async fn backup(
    context: &Context<'_>,
    args: &args::Backup,
) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let Some(backups) = store.backups() else {
        return Err(Failure::usage(format!(
            "{} cannot be backed up; its engine has no files",
            context.url
        )));
    };
    let file = &args.file;
    if file.exists() {
        return Err(Failure::other(format!(
            "{} exists already; name another file",
            file.display()
        )));
    }
    let mut line = progress::Line::new("backing up");
    let done = backups
        .backup(file, &mut |progress| line.show(progress))
        .await;
    drop(line);
    done.map_err(|error| context.failure(&error))?;
    let to = file.display().to_string();
    if context.json {
        let form = json_form::object(|object| {
            object.str("from", context.url).str("to", &to);
        });
        output::document(&form, false)?;
    } else {
        output::line(&format!("backed up {} to {to}", context.url))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn restore(context: &Context<'_>, args: &args::Restore) -> Result<ExitCode, Failure> {
    let Some(to) = context.file() else {
        return Err(Failure::usage(format!(
            "{} cannot be restored to; name a file with --store sqlite://PATH",
            context.url
        )));
    };
    if to.exists() {
        return Err(Failure::other(format!(
            "the store {} exists already; restore to a new file with --store sqlite://PATH",
            to.display()
        )));
    }
    if !args.file.exists() {
        return Err(Failure::other(format!(
            "there is no file {}",
            args.file.display()
        )));
    }
    let restored = sqlite::restore(&args.file, &to)
        .map_err(|error| Failure::other(format!("{}: {error}", args.file.display())))?;
    let from = args.file.display().to_string();
    if context.json {
        let form = json_form::object(|object| {
            object
                .str("from", &from)
                .str("to", context.url)
                .number("held", restored.held);
        });
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut line = format!("restored {from} to {}", context.url);
    if restored.held > 0 {
        line.push_str(&format!(
            "; {} held, settle them with 'throughline runs publish' or 'discard'",
            text::counted(restored.held, "run")
        ));
    }
    output::line(&line)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn migrate(context: &Context<'_>) -> Result<ExitCode, Failure> {
    let Some(file) = context.file() else {
        return Err(Failure::usage(format!(
            "{} needs no migration; its engine has no files",
            context.url
        )));
    };
    if !file.exists() {
        return Err(Failure::other(format!(
            "there is no store {}; name one with --store sqlite://PATH",
            file.display()
        )));
    }
    let mut line = progress::Line::new("migrating");
    let done = sqlite::migrate(&file, &mut |progress| line.show(progress));
    drop(line);
    let schema = done.map_err(|error| context.failure(&error))?;
    if context.json {
        let form = json_form::object(|object| {
            object.number("schema", u64::from(schema));
        });
        output::document(&form, false)?;
    } else {
        output::line(&format!("{} has schema {schema}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn doctor(context: &Context<'_>) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let profile = store
        .profile()
        .await
        .map_err(|error| context.failure(&error))?;
    let right = profile.settings.iter().all(Setting::is_right);
    if context.json {
        let form = json_form::object(|object| {
            object
                .bool("ok", right)
                .str("store", context.url)
                .str("engine", profile.engine)
                .str("durability", profile.durability.as_str())
                .number("schema", u64::from(profile.schema));
            json_form::array(object.key("settings"), &profile.settings, |out, setting| {
                let mut object = ObjectWriter::new(out);
                object
                    .str("name", setting.name)
                    .str("value", &setting.value);
                match setting.wanted {
                    Some(wanted) => object.str("wanted", wanted),
                    None => object.raw("wanted", "null"),
                };
                object.bool("ok", setting.is_right());
                object.end();
            });
        });
        output::document(&form, false)?;
        return Ok(ExitCode::from(u8::from(!right)));
    }
    output::line(&format!(
        "{}: {}, {}, schema {}",
        context.url,
        profile.engine,
        profile.durability.as_str(),
        profile.schema
    ))?;
    for setting in &profile.settings {
        let verdict = match (setting.wanted, setting.is_right()) {
            (Some(_), true) => "ok".to_owned(),
            (Some(wanted), false) => format!("NOT OK, must be {wanted}"),
            (None, _) => "as it is".to_owned(),
        };
        let Setting { name, value, .. } = setting;
        output::line(&format!("  {name} = {value}  {verdict}"))?;
    }
    Ok(ExitCode::from(u8::from(!right)))
}
