//! Fingerprints of writes: a write that is sent again is known by the same one. Bodies go in by
//! digest, so that nothing of them stays.

use std::fmt::{Debug, Write};

use crate::digest::{self, Digest};
use crate::{
    Append, Begin, CallResult, End, Flush, ImportItem, ImportNode, ItemNo, ItemRef, NewItem,
    Publish, RunId, Step, Tenant,
};

struct Print<'a> {
    hasher: blake3::Hasher,
    tenant: &'a Tenant,
    run: RunId,
}

impl Write for Print<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.hasher.update(text.as_bytes());
        Ok(())
    }
}

impl<'a> Print<'a> {
    fn new(tenant: &'a Tenant, run: RunId, what: &str) -> Self {
        let mut print = Self {
            hasher: blake3::Hasher::new(),
            tenant,
            run,
        };
        print.words(what);
        print
    }

    /// Small fields as they are shown to developers: complete, and plain enough to tell apart.
    fn words(&mut self, fields: impl Debug) {
        // Writing into a hasher cannot fail.
        let _ = write!(self, "{fields:?};");
    }

    fn item(&mut self, no: ItemNo, item: &NewItem) {
        let at = ItemRef { run: self.run, no };
        let digest = match item {
            NewItem::Said(said) => digest::item(self.tenant, at, said),
            NewItem::Again(of) => digest::again(self.tenant, at, *of),
        };
        self.hasher.update(&digest);
    }

    fn items(&mut self, items: &[NewItem]) {
        self.words(items.len());
        for (no, item) in (1..).zip(items) {
            self.item(no, item);
        }
    }

    fn results(&mut self, results: &[CallResult]) {
        self.words(results.len());
        for result in results {
            self.words((result.step, result.position, result.ends));
            self.item(0, &result.item);
        }
    }

    fn events(&mut self, events: Option<&Flush>) {
        self.words(events.map(|events| (events.first, events.count, events.payload.len())));
        if let Some(events) = events {
            self.hasher.update(&events.payload);
        }
    }

    fn end(&self) -> Digest {
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.hasher.finalize().as_bytes()[..16]);
        digest
    }
}

pub(super) fn begin(tenant: &Tenant, begin: &Begin) -> Digest {
    let mut print = Print::new(tenant, begin.run, "begin");
    print.words((&begin.at, begin.mode, &begin.request, &begin.key));
    print.words((&begin.dequeue, &begin.takes));
    print.items(&begin.input);
    print.events(begin.events.as_ref());
    print.end()
}

pub(super) fn append(tenant: &Tenant, append: &Append) -> Digest {
    let mut print = Print::new(tenant, append.run, "append");
    print.words((&append.thread, append.expected, &append.state, &append.key));
    print.items(&append.items);
    print.end()
}

pub(super) fn step(tenant: &Tenant, run: RunId, step: &Step) -> Digest {
    let mut print = Print::new(tenant, run, "step");
    print.words((
        step.no,
        &step.calls,
        &step.approvals,
        &step.note,
        &step.node,
        &step.dequeue,
    ));
    print.items(&step.items);
    print.events(step.events.as_ref());
    print.end()
}

pub(super) fn publish(tenant: &Tenant, run: RunId, publish: &Publish) -> Digest {
    let mut print = Print::new(tenant, run, "publish");
    print.words((publish.step, publish.through, publish.ending));
    print.words((&publish.state, &publish.note, &publish.dequeue));
    print.results(&publish.results);
    print.items(&publish.items);
    print.events(publish.events.as_ref());
    print.end()
}

pub(super) fn end(tenant: &Tenant, run: RunId, end: &End) -> Digest {
    let mut print = Print::new(tenant, run, "end");
    print.words((end.how, &end.note));
    print.events(end.events.as_ref());
    print.end()
}

pub(super) fn park(tenant: &Tenant, run: RunId, events: Option<&Flush>) -> Digest {
    let mut print = Print::new(tenant, run, "park");
    print.events(events);
    print.end()
}

pub(super) fn import(tenant: &Tenant, node: &ImportNode) -> Digest {
    let mut print = Print::new(tenant, node.node.run, "import");
    print.words((node.node, node.parent, node.open, &node.state, node.created));
    print.words((
        node.kind,
        node.mode,
        node.ended,
        node.begun,
        &node.note,
        node.hidden,
    ));
    for (no, item) in (1..).zip(&node.items) {
        match item {
            ImportItem::Said(item) => print.item(no, item),
            ImportItem::Redacted(left, redaction) => {
                print.words(redaction);
                print.item(no, &NewItem::Said(left.clone()));
            }
            ImportItem::Gap => print.words("gap"),
        }
    }
    print.end()
}
