//! Sessions that were recorded, where they are there.

use throughline_compact::{Policy, ToolHistory};
use throughline_testkit::trajectory::{FactKind, Session, facts, folded, message_texts, recorded};

use crate::invariants::chained::{Looked, play};
use crate::invariants::check;

/// As much of each session as is looked at.
const LONGEST: usize = 400;

/// From this budget on there is room for what users asked for, at least in short.
const ROOMY: u64 = 32_000;

/// What users asked for and a view does not show.
fn unsaid(session: &Session, history: &ToolHistory) -> (usize, Vec<String>) {
    let texts: Vec<String> = history
        .view()
        .iter()
        .flat_map(|one| message_texts(one))
        .collect();
    let text = folded(&texts.join("\n"));
    let mut asked = facts(session);
    asked.retain(|fact| fact.kind == FactKind::Request);
    let count = asked.len();
    asked.retain(|fact| !text.contains(&fact.text));
    (count, asked.into_iter().map(|fact| fact.text).collect())
}

#[test]
fn r20_recorded_sessions_keep_every_invariant_at_every_budget() {
    let Some(sessions) = recorded().unwrap() else {
        println!(
            "recorded sessions: 0, the folder is not there; generated ones are checked elsewhere"
        );
        return;
    };
    let mut looked = Looked::default();
    let mut requests = 0;
    let count = sessions.len();
    for mut session in sessions {
        session.messages.truncate(LONGEST);
        let thresholds = [Policy::default()].into_iter();
        let budgets = [8_000, 16_000, ROOMY, 64_000].map(Policy::with_budget);
        for policy in thresholds.chain(budgets) {
            let told = &session.messages;
            let history = play(told, ToolHistory::new(policy), &mut looked, |_| false)
                .unwrap_or_else(|problem| unreachable!("{}: {problem}", session.name));
            check::pinned(history.view(), told).unwrap();
            if history.policy().budget.is_none_or(|budget| budget >= ROOMY) {
                let (asked, unsaid) = unsaid(&session, &history);
                assert_eq!(unsaid, [""; 0], "{}", session.name);
                requests += asked;
            }
        }
    }
    let Looked {
        views,
        epochs,
        asked,
    } = looked;
    println!(
        "campaign r20 recorded: sessions={count} views={views} epochs={epochs} asked={asked} refused=0 split=0 requests={requests} unsaid=0"
    );
}
