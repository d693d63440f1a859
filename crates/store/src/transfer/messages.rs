//! Taking over a plain list of messages.

use throughline_model::{Message, Source};

use super::Imported;
use crate::{
    Error, Import, ImportItem, ImportNode, ItemContent, Millis, Mode, NewThread, NodeId, Result,
    RunKind, RunState, Store, TenantScope,
};

/// Make a thread of messages: one run of kind `append`. Messages that do not say who asserted
/// them are marked as imported.
pub async fn import_messages(
    store: &Store,
    scope: &TenantScope,
    thread: NewThread,
    messages: &[Message],
    now: Millis,
) -> Result<Imported> {
    let mut items = Vec::with_capacity(messages.len());
    for message in messages {
        match message.source {
            Some(_) => items.extend(ItemContent::of(message)),
            None => {
                let mut message = message.clone();
                message.source = Some(Source::Import);
                items.extend(ItemContent::of(&message));
            }
        }
    }
    if items.is_empty() {
        return Err(Error::Invalid {
            what: "messages",
            why: "there are none".into(),
        });
    }
    let imported = Imported {
        thread: thread.id.clone(),
        nodes: 1,
        items: items.len() as u64,
        tokens: items.iter().map(|item| u64::from(item.tokens)).sum(),
        aliases_left_out: 0,
    };
    let node = NodeId {
        run: store.ids().run(),
        step: 0,
    };
    let id = thread.id.clone();
    let open = Import::Open {
        thread,
        created: now,
    };
    store.import(scope, &open).await?;
    let add = Import::Node {
        thread: id.clone(),
        node: Box::new(ImportNode {
            node,
            parent: None,
            items: items.into_iter().map(ImportItem::Content).collect(),
            open: false,
            state: None,
            created: now,
            kind: RunKind::Append,
            mode: Mode::PerRun,
            ended: RunState::Committed,
            begun: now,
            note: None,
            hidden: false,
        }),
    };
    let finish = Import::Finish {
        thread: id.clone(),
        head: Some(node),
        touched: now,
    };
    for step in [add, finish] {
        if let Err(error) = store.import(scope, &step).await {
            // If this fails too, the sweep finds it.
            let _ = store.import(scope, &Import::Abort { thread: id }).await;
            return Err(error);
        }
    }
    Ok(imported)
}
