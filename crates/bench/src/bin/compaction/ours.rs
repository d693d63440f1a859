//! Our compaction, as an agent uses it.

use std::sync::Arc;

use throughline_compact::tokens::Calibration;
use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::Message;

use crate::count::Counter;
use crate::replay::{Strategy, View};

/// A history with a budget, calibrated by bills.
pub(crate) struct Ours {
    history: ToolHistory,
    calibration: Calibration,
}

impl Ours {
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            history: ToolHistory::new(Policy::with_budget(budget)),
            calibration: Calibration::default(),
        }
    }
}

impl Strategy for Ours {
    fn push(&mut self, place: usize, message: &Arc<Message>) {
        self.history.push(place as u64, Arc::clone(message));
    }

    fn view(&mut self, _: &mut Counter) -> View {
        let call = Call::estimated(&self.calibration, self.history.units(), 0);
        if let Ok(Planned::Epoch(epoch, _)) = self.history.plan(&call) {
            self.history.install(epoch);
        }
        View {
            messages: self.history.view().to_vec(),
            epoch: self.history.epoch().map_or(0, |epoch| epoch.no),
        }
    }

    fn billed(&mut self, tokens: u64) {
        self.calibration.observe(self.history.units(), tokens);
    }
}
