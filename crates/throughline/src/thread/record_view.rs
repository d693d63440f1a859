//! What a model is shown of a record, worked out without a run.

use std::sync::Arc;

use throughline_compact::tokens::{Calibrations, recent_mix};
use throughline_compact::{
    Call, Policy, Scale, StoredEpoch, ToolHistory, ViewSettings, number_count,
};
use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::State;

/// The tool history of a record with the compaction that holds for it.
#[derive(Debug)]
pub struct RecordView {
    /// The record, the epoch that holds, and the view that follows from both.
    pub history: ToolHistory,
    bills: Calibrations,
    record: Vec<Arc<Message>>,
}

impl RecordView {
    /// The view of a record, with the state at its end and the settings of its thread.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use throughline::compact::Policy;
    /// use throughline::model::Message;
    /// use throughline::store::State;
    /// use throughline::thread::RecordView;
    ///
    /// let record = [Arc::new(Message::user("When is high water?"))];
    /// let view = RecordView::of(Policy::default(), &record, &State::default(), None);
    /// assert_eq!(view.history.view().len(), 1);
    /// ```
    pub fn of(
        policy: Policy,
        record: &[Arc<Message>],
        state: &State,
        settings: Option<&RawJson>,
    ) -> Self {
        let mut history = ToolHistory::new(policy);
        let mut next = 1;
        for message in record {
            history.push(next, Arc::clone(message));
            next += number_count(message);
        }
        let stored = state.compaction();
        let stored = stored.and_then(|stored| StoredEpoch::from_json(stored.get()));
        let mut bills = Calibrations::default();
        if let Some(stored) = stored {
            history.restore(&stored);
            bills = stored.bills;
        }
        history.apply_settings(&ViewSettings::of(settings));
        Self {
            history,
            bills,
            record: record.to_vec(),
        }
    }

    /// A call of a model, for planning: how its tokens are counted. Both names may be empty.
    pub fn call(&mut self, upstream: &str, model: &str) -> Call {
        let mix = recent_mix(self.record.iter().map(Arc::as_ref));
        self.bills.guess(upstream, model, &mix);
        let bills = self.bills.of(upstream, model);
        Call {
            overhead: bills.overhead(),
            scale: Scale::per_mille(bills.per_mille()),
            open: Vec::new(),
        }
    }

    /// What a state keeps of it.
    pub(super) fn to_stored(&self) -> Option<RawJson> {
        StoredEpoch::of(&self.history, &self.bills).map(|stored| stored.to_json())
    }
}
