//! Our compaction, as an agent uses it.

use std::sync::Arc;

use throughline_compact::tokens::Calibration;
use throughline_compact::{Call, Planned, Policy, Scale, ToolHistory};
use throughline_model::Message;

use crate::count::Counter;
use crate::replay::{Strategy, View};

/// The safety margin of estimates under a budget, in thousandths.
const CAUTION: u64 = 50;

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

    fn call(&self) -> Call {
        let units = self.history.units().max(1);
        let estimate = self.calibration.estimate(units);
        let caution = (estimate.p95_error * 1_000.0).ceil() as u64;
        let tokens = estimate.tokens * (1_000 + caution.min(CAUTION)) / 1_000;
        let scale = (tokens * 1_000).div_ceil(units);
        Call {
            scale: Scale::per_mille(u32::try_from(scale).unwrap_or(u32::MAX)),
            ..Call::default()
        }
    }
}

impl Strategy for Ours {
    fn push(&mut self, place: usize, message: &Arc<Message>) {
        self.history.push(place as u64, Arc::clone(message));
    }

    fn view(&mut self, _: &mut Counter) -> View {
        let call = self.call();
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
