//! Looking whether everything is whole.

use crate::digest::{self, NodeFields};
use crate::{
    Checked, Damage, DamageSite, Error, ItemRef, OnProgress, Position, Progress, RemoteCall,
    Result, RunId, Tenant, rules,
};

use crate::rules::damage::DigestInput;

use super::Memory;
use super::read::Stretch;
use super::schema::{
    Node, RemoteCallRow, Row, RunRow, Stage, StoredContent, TenantTables, Timeline,
};

/// How many rows are checked between two reports of progress.
const PROGRESS_EVERY: u64 = 256;

/// Something to look at.
enum Part {
    Thread(Row),
    Timeline(Row),
    Run(RunId),
}

impl Memory {
    pub(super) fn check_all(&self, progress: OnProgress<'_>) -> Result<Checked> {
        let parts = self.parts()?;
        let total = parts.len() as u64;
        let mut checked = Checked::default();
        for (done, (tenant, part)) in (0..).zip(&parts) {
            // The lock is free in between: writers go on, and the callback may use the store.
            if let Some(tables) = self.open_for_work()?.tenants.get(tenant) {
                match part {
                    Part::Thread(row) => tables.check_thread_rows(*row, &mut checked),
                    Part::Timeline(row) => tables.check_timeline_rows(*row, &mut checked),
                    Part::Run(id) => tables.check_run_rows(*id, &mut checked),
                }
            }
            if (done + 1) % PROGRESS_EVERY == 0 {
                progress(Progress {
                    done,
                    total,
                    unit: "rows",
                });
            }
        }
        progress(Progress {
            done: total,
            total,
            unit: "rows",
        });
        Ok(checked)
    }

    /// Everything there is, in a fixed order.
    fn parts(&self) -> Result<Vec<(Tenant, Part)>> {
        let data = self.open_for_work()?;
        let mut parts = Vec::new();
        for (tenant, tables) in &data.tenants {
            let mut rows: Vec<Row> = tables.threads.keys().copied().collect();
            rows.sort_unstable();
            parts.extend(
                rows.into_iter()
                    .map(|row| (tenant.clone(), Part::Thread(row))),
            );
            let mut rows: Vec<Row> = tables.timelines.keys().copied().collect();
            rows.sort_unstable();
            parts.extend(
                rows.into_iter()
                    .map(|row| (tenant.clone(), Part::Timeline(row))),
            );
            let mut runs: Vec<_> = tables.runs.values().map(|run| (run.row, run.id)).collect();
            runs.sort_unstable();
            parts.extend(
                runs.into_iter()
                    .map(|(_, id)| (tenant.clone(), Part::Run(id))),
            );
        }
        Ok(parts)
    }
}

impl TenantTables {
    fn damaged(&self, thread: Row, site: impl Into<DamageSite>, detail: &str) -> Damage {
        let site = site.into();
        let site = match self.threads.get(&thread) {
            Some(thread) => site.in_thread(&thread.id),
            None => site,
        };
        Damage::new(Some(self.tenant.to_string()), &site, detail.to_owned())
    }

    fn damage_of(&self, thread: Row, error: Error) -> Damage {
        match error {
            Error::Corrupt { place, detail } => self.damaged(thread, *place, &detail),
            other => self.damaged(thread, "a row", &other.to_string()),
        }
    }

    fn check_thread_rows(&self, row: Row, checked: &mut Checked) {
        let Some(thread) = self.threads.get(&row) else {
            return;
        };
        if thread.stage == Stage::Deleted {
            return;
        }
        checked.threads += u64::from(thread.stage == Stage::Visible);
        if thread.head.is_some_and(|head| self.node(head).is_err()) {
            let damage = self.damaged(row, &thread.id, "its head is not there");
            checked.damage.push(damage);
        }
        let named = self.names.get(&thread.id) == Some(&row);
        let known = thread
            .aliases
            .iter()
            .all(|alias| self.aliases.get(alias) == Some(&row));
        if !named || !known {
            let damage = self.damaged(row, &thread.id, "a name of it leads elsewhere");
            checked.damage.push(damage);
        }
    }

    fn check_timeline_rows(&self, row: Row, checked: &mut Checked) {
        let Some(timeline) = self.timelines.get(&row) else {
            return;
        };
        // A node that nothing references has no parent that must be there.
        if timeline.released {
            return;
        }
        let thread = timeline.thread;
        let parent = timeline.parent.map(|parent| self.node(parent));
        let (fork, mut tokens) = match parent {
            None => (Some(0), 0),
            Some(Ok(parent)) => (Some(parent.last), parent.tokens),
            Some(Err(_)) => (None, 0),
        };
        if fork != Some(timeline.fork) {
            let place = format!("timeline {row}");
            let damage = self.damaged(thread, place, "its parent is not there");
            checked.damage.push(damage);
        }
        let mut last = timeline.fork;
        for node in &timeline.nodes {
            checked.nodes += 1;
            if node.first != last + 1 {
                let damage = self.damaged(thread, node.site(), "the node before is not there");
                checked.damage.push(damage);
            }
            last = node.last;
            let sealed = self.check_seal(row, timeline, node);
            if let Err(error) = sealed.and_then(|()| self.check_total(node, tokens)) {
                checked.damage.push(self.damage_of(thread, error));
            }
            tokens = node.tokens;
        }
    }

    fn check_run_rows(&self, id: RunId, checked: &mut Checked) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        for (no, slot) in (1..).zip(&run.items) {
            let Some(item) = slot else { continue };
            checked.items += 1;
            checked.redacted += u64::from(matches!(item.what, StoredContent::Redacted(..)));
            if let Err(error) = self.check_item(run, no) {
                let error = match self.position_of(run, no) {
                    Some(position) => error.at_position(position),
                    None => error,
                };
                checked.damage.push(self.damage_of(run.thread, error));
            }
        }
        if let Err(error) = self.remote_call(run) {
            checked.damage.push(self.damage_of(run.thread, error));
        }
        for node in &run.nodes {
            let stored = self.node(node.at);
            if !stored.is_ok_and(|stored| stored.id.run == id && stored.id.step == node.step) {
                let place = format!("step {} of {id}", node.step);
                let damage = self.damaged(run.thread, place, "its node is not there");
                checked.damage.push(damage);
            }
        }
    }
}

impl Node {
    /// Where it is, for those who find it damaged.
    fn site(&self) -> DamageSite {
        DamageSite::from(self.id).at_position(self.first)
    }
}

impl TenantTables {
    /// The position of an item, if it is in a node.
    fn position_of(&self, run: &RunRow, no: u32) -> Option<Position> {
        let holds =
            |node: &&super::schema::RunNode| (node.first_item..=node.last_item).contains(&no);
        let node = run.nodes.iter().find(holds)?;
        Some(node.at.first + u64::from(no - node.first_item))
    }

    /// Compare a node's digests when it is read for the first time.
    pub(super) fn check_node_once(&self, stretch: &Stretch<'_>, node: &Node) -> Result<()> {
        if !node.checked.get() {
            self.check_node(stretch.row, stretch.timeline, node)?;
            node.checked.set(true);
        }
        Ok(())
    }

    /// Compare all digests of a node: those of its items, and its own.
    pub(super) fn check_node(&self, row: Row, timeline: &Timeline, node: &Node) -> Result<()> {
        let run = self.run_of(node)?;
        for (no, position) in (node.first_item..).zip(node.first..=node.last) {
            let checked = self.check_item(run, no);
            checked.map_err(|damage| damage.at_position(position))?;
        }
        self.check_seal(row, timeline, node)
    }

    /// Compare a node's own digest, and that of its state, taking those of its items as they are.
    pub(super) fn check_seal(&self, row: Row, timeline: &Timeline, node: &Node) -> Result<()> {
        let damaged = |detail: &str| Error::corrupt(node.site(), detail);
        let run = self.run_of(node)?;
        let mut digests = Vec::new();
        for (no, position) in (node.first_item..).zip(node.first..=node.last) {
            let at = ItemRef { run: run.id, no };
            let missing = || Error::corrupt(at, "it is not there").at_position(position);
            let item = run.item(no).ok_or_else(missing)?;
            digests.push(item.digest);
        }
        if let Some(state) = &node.state {
            let (run, step) = (state.at.run, state.at.step);
            if digest::state(&self.tenant, run, step, &state.state.to_json())
                != state.left.unwrap_or(state.digest)
            {
                return Err(damaged("its state is not what was stored"));
            }
        }
        let parent = timeline.parent_of(row, node.first);
        let parent = parent.map(|at| self.node(at)).transpose()?;
        let fields = NodeFields {
            id: node.id,
            first: node.first,
            last: node.last,
            first_item: node.first_item,
            flags: u8::from(node.open),
            tokens: node.tokens,
        };
        let state = node.state.as_ref().map(|state| &state.digest);
        let before = parent.map(|parent| &parent.digest);
        if digest::node(&self.tenant, before, &fields, state, digests) != node.digest {
            return Err(damaged("it is not what was stored"));
        }
        Ok(())
    }

    /// Check that the total of a node is that of the node before and what its items count as.
    fn check_total(&self, node: &Node, before: u64) -> Result<()> {
        let run = self.run_of(node)?;
        let items = (node.first_item..).zip(node.first..=node.last);
        let tokens = items.filter_map(|(no, _)| run.item(no).map(|item| self.tokens(item)));
        let sum = before + tokens.map(u64::from).sum::<u64>();
        rules::damage::total(node.site(), node.tokens, sum)
    }

    /// The remote call of a run that is under way, compared with its digest.
    pub(super) fn remote_call(&self, run: &RunRow) -> Result<Option<RemoteCall>> {
        let Some(RemoteCallRow { call, digest }) = &run.remote else {
            return Ok(None);
        };
        let content = (call.step, call.handle.get());
        rules::damage::remote_call(&self.tenant, run.id, content, *digest)?;
        Ok(rules::remote_call::current(call.clone(), run.next_step))
    }

    /// Compare an item with its digest.
    pub(super) fn check_item(&self, run: &RunRow, no: u32) -> Result<()> {
        let at = ItemRef { run: run.id, no };
        let missing = |detail| Error::corrupt(at, detail);
        let item = run.item(no).ok_or_else(|| missing("it is not there"))?;
        let content = match &item.what {
            StoredContent::Present(said) => DigestInput::Content(said),
            StoredContent::Repeat(of) => {
                let first = self.runs.get(&of.run);
                let first = first.ok_or_else(|| missing("what it says again is not there"))?;
                // What is said again says nothing again itself, so this goes one level deep.
                match first.item(of.no).map(|item| &item.what) {
                    Some(StoredContent::Present(_)) => self.check_item(first, of.no)?,
                    Some(StoredContent::Redacted(..)) => {}
                    Some(StoredContent::Repeat(_) | StoredContent::Gap) | None => {
                        return Err(missing("what it says again is not there"));
                    }
                }
                DigestInput::Repeat(*of)
            }
            StoredContent::Gap => DigestInput::Gap,
            StoredContent::Redacted(..) => return Ok(()),
        };
        rules::damage::item(&self.tenant, at, &content, item.digest)
    }
}
