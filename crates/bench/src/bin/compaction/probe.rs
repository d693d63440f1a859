//! What a view must show at each model call, and whether it does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use throughline_model::Message;
use throughline_testkit::trajectory::{
    BoundNeed, Need, Origin, Session, ValueKind, all_owners, bound_needs, editable_text, edits,
    failures, folded, mentions, message_texts, rare_values, stands_in,
};

/// A kind of what later calls use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Metric {
    /// A name that a call uses.
    Need(Origin),
    /// A name from a result, with its file or command.
    Bound,
    /// The text that an edit replaces.
    Edit,
    /// The first error line of a failure that is not resolved.
    ErrorLine,
    /// A rare number or word that a call uses.
    Value(ValueKind),
    /// A name that the model writes about.
    Prose,
}

impl Metric {
    /// In the order of the table.
    pub(crate) const ALL: [Self; 8] = [
        Self::Need(Origin::Result),
        Self::Need(Origin::User),
        Self::Bound,
        Self::Edit,
        Self::ErrorLine,
        Self::Value(ValueKind::Number),
        Self::Value(ValueKind::Word),
        Self::Prose,
    ];

    /// The head of its column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Need(Origin::Result) => "needs",
            Self::Need(Origin::User) => "user",
            Self::Bound => "bound",
            Self::Edit => "ready",
            Self::ErrorLine => "errors",
            Self::Value(ValueKind::Number) => "numbers",
            Self::Value(ValueKind::Word) => "words",
            Self::Prose => "prose",
        }
    }
}

/// How to find something in a message.
#[derive(Debug)]
enum Test {
    /// A name or a value, not inside of a longer one.
    Name(String),
    /// A line, with white space folded.
    Line(String),
    /// The exact text, without line numbers.
    Exact(String),
    Bound(BoundNeed),
}

/// Something that must be shown.
#[derive(Debug)]
struct Needle {
    metric: Metric,
    test: Test,
}

/// What the views of a session must show.
pub(crate) struct Probes {
    needles: Vec<Needle>,
    /// The needles of each model call, by the index of its message.
    due: BTreeMap<usize, Vec<usize>>,
    owners: BTreeSet<String>,
}

impl Probes {
    pub(crate) fn of(session: &Session, needs: &[Need]) -> Self {
        let mut probes = Self {
            needles: Vec::new(),
            due: BTreeMap::new(),
            owners: all_owners(session),
        };
        for need in needs {
            let test = Test::Name(need.atom.clone());
            probes.add([need.at], Metric::Need(need.origin), test);
        }
        for bound in bound_needs(session, needs) {
            probes.add([bound.at], Metric::Bound, Test::Bound(bound));
        }
        for edit in edits(session) {
            probes.add([edit.at], Metric::Edit, Test::Exact(edit.old));
        }
        let calls: Vec<usize> = session.model_calls().collect();
        let mut lines: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for failure in failures(session) {
            let open = calls.iter().copied().filter(|at| failure.is_open_at(*at));
            lines.entry(failure.line.clone()).or_default().extend(open);
        }
        for (line, open) in lines {
            probes.add(open, Metric::ErrorLine, Test::Line(line));
        }
        for value in rare_values(session) {
            probes.add(
                [value.at],
                Metric::Value(value.kind),
                Test::Name(value.text),
            );
        }
        for mention in mentions(session) {
            probes.add([mention.at], Metric::Prose, Test::Name(mention.atom));
        }
        probes
    }

    fn add(&mut self, at: impl IntoIterator<Item = usize>, metric: Metric, test: Test) {
        let place = self.needles.len();
        self.needles.push(Needle { metric, test });
        for at in at {
            self.due.entry(at).or_default().push(place);
        }
    }
}

/// Looks at views. Messages that several views show are searched once.
pub(crate) struct Prober<'a> {
    probes: &'a Probes,
    /// By address; the message is kept so that its address is not reused.
    messages: HashMap<*const Message, Searched>,
}

/// What a check found.
pub(crate) struct Checked {
    pub(crate) metric: Metric,
    pub(crate) is_shown: bool,
    /// What was not shown, for people.
    pub(crate) missed: Option<String>,
}

impl<'a> Prober<'a> {
    pub(crate) fn new(probes: &'a Probes) -> Self {
        Self {
            probes,
            messages: HashMap::new(),
        }
    }

    /// Checks the view of the model call whose message has this index.
    pub(crate) fn check(&mut self, at: usize, view: &[Arc<Message>]) -> Vec<Checked> {
        let probes = self.probes;
        let Some(due) = probes.due.get(&at) else {
            return Vec::new();
        };
        let checked = due.iter().map(|place| {
            let needle = &probes.needles[*place];
            // What is needed is mostly recent.
            let is_shown = view.iter().rev().any(|message| {
                let searched = self
                    .messages
                    .entry(Arc::as_ptr(message))
                    .or_insert_with(|| Searched::new(message, probes.needles.len()));
                searched.shows(*place, &needle.test, &probes.owners)
            });
            Checked {
                metric: needle.metric,
                is_shown,
                missed: (!is_shown).then(|| format!("{:?}", needle.test)),
            }
        });
        checked.collect()
    }
}

/// A message, and what was found in it.
struct Searched {
    message: Arc<Message>,
    text: String,
    folded: Option<String>,
    editable: Option<String>,
    found: Vec<Option<bool>>,
}

impl Searched {
    fn new(message: &Arc<Message>, needles: usize) -> Self {
        Self {
            message: Arc::clone(message),
            text: message_texts(message).join("\n"),
            folded: None,
            editable: None,
            found: vec![None; needles],
        }
    }

    fn shows(&mut self, place: usize, test: &Test, owners: &BTreeSet<String>) -> bool {
        if let Some(known) = self.found[place] {
            return known;
        }
        let found = match test {
            Test::Name(name) => stands_in(&self.text, name),
            Test::Line(line) => {
                let folded = self.folded.get_or_insert_with(|| folded(&self.text));
                folded.contains(line.as_str())
            }
            Test::Exact(old) => {
                let text = || editable_text(&self.message);
                self.editable
                    .get_or_insert_with(text)
                    .contains(old.as_str())
            }
            Test::Bound(bound) => {
                stands_in(&self.text, &bound.atom) && bound.is_shown_by(&self.message, owners)
            }
        };
        self.found[place] = Some(found);
        found
    }
}
