//! How much of a long history a model is shown: what the request says, and what the configuration
//! says where the request does not.

use throughline::agent::Compaction;
use throughline::compact::Policy;

use super::wire::{CompactionOverride, CompactionRequest, ContextManagement};
use crate::config::{CompactionConfig, CompactionDefault};

/// What a request asks for, on an upstream whose windows hold so much.
///
/// - `throughline.compaction: false` wins over everything.
/// - It is on if `truncation: "auto"`, `context_management` or `throughline.compaction` asks, or if
///   the configuration says `when = "always"`.
/// - The budget is that of `throughline.compaction`, else `compact_threshold`, else the configured
///   one. `truncation: "auto"` adds the window: the smaller of both holds.
pub(super) fn compaction(
    config: &CompactionConfig,
    window: Option<u64>,
    asked: &CompactionRequest,
) -> Compaction {
    let is_asked = asked.fits_window || asked.context_management != ContextManagement::Unset;
    match asked.compaction_override {
        CompactionOverride::Off => Compaction::Off,
        CompactionOverride::Unset if !is_asked && config.when == CompactionDefault::Asked => {
            Compaction::Off
        }
        CompactionOverride::Unset | CompactionOverride::On { .. } => {
            policy(config, window, asked).into()
        }
    }
}

/// The policy that holds once it is on.
pub(super) fn policy(
    config: &CompactionConfig,
    window: Option<u64>,
    asked: &CompactionRequest,
) -> Policy {
    let (budget, threshold, recent_calls, count) = match asked.compaction_override {
        CompactionOverride::On {
            budget,
            threshold,
            recent_calls,
            count,
        } => (budget, threshold, recent_calls, count),
        CompactionOverride::Unset | CompactionOverride::Off => (None, None, None, None),
    };
    let managed = match asked.context_management {
        ContextManagement::Above(tokens) => Some(tokens),
        ContextManagement::Unset | ContextManagement::On => None,
    };
    let budget = budget.or(managed).or(config.budget);
    let windowed = Policy {
        window: Some(window.unwrap_or(config.window)),
        threshold: threshold.unwrap_or(config.threshold),
        recent_calls: recent_calls.unwrap_or(config.recent_calls),
        count,
        narrative: config.narrative,
        ..Policy::default()
    };
    let within =
        asked.fits_window || asked.context_management == ContextManagement::On && budget.is_none();
    match (within, budget) {
        (true, budget) => {
            // The stricter one, and its name in the report.
            let budget = budget.filter(|budget| Some(*budget) < windowed.effective_budget());
            Policy { budget, ..windowed }
        }
        (false, budget) => Policy {
            budget,
            window: None,
            ..windowed
        },
    }
}

#[cfg(test)]
mod tests {
    use throughline::agent::Compaction;
    use throughline::client::{HistoryForm, Markers};
    use throughline::compact::Policy;

    use super::compaction;
    use crate::api::openai::responses::wire::CreateRequest;
    use crate::config::{CompactionConfig, CompactionDefault};

    /// As it is without a file.
    fn config() -> CompactionConfig {
        CompactionConfig {
            when: CompactionDefault::Asked,
            recent_calls: 6,
            threshold: 10_000,
            budget: None,
            window: 128_000,
            narrative: None,
            strategy: HistoryForm::default(),
            markers: Markers::default(),
        }
    }

    fn of(config: &CompactionConfig, window: Option<u64>, body: &str) -> Option<Policy> {
        let request = CreateRequest::parse(body.as_bytes()).unwrap();
        match compaction(config, window, request.compaction()) {
            Compaction::Off => None,
            Compaction::On(policy) => Some(*policy),
        }
    }

    fn budget(config: &CompactionConfig, body: &str) -> Option<u64> {
        of(config, Some(32_000), body).and_then(|policy| policy.effective_budget())
    }

    #[test]
    fn it_is_off_unless_the_request_asks() {
        assert_eq!(of(&config(), None, "{}"), None);
        assert_eq!(of(&config(), None, r#"{"truncation":"disabled"}"#), None);
        let always = CompactionConfig {
            when: CompactionDefault::Always,
            ..config()
        };
        assert_eq!(of(&always, None, "{}"), Some(Policy::default()));
        let off = r#"{"truncation":"auto","throughline":{"compaction":false}}"#;
        assert_eq!(of(&always, None, off), None);
        let on = r#"{"throughline":{"compaction":true}}"#;
        assert_eq!(of(&config(), None, on), Some(Policy::default()));
    }

    #[test]
    fn the_window_is_the_upstreams_or_the_configured_one() {
        let auto = r#"{"truncation":"auto"}"#;
        let window = |window| of(&config(), window, auto).and_then(|policy| policy.window);
        assert_eq!(window(Some(32_000)), Some(32_000));
        assert_eq!(window(None), Some(128_000));
        assert_eq!(budget(&config(), auto), Some(19_200));
    }

    #[test]
    fn the_nearest_budget_counts_and_the_window_bounds_it() {
        let managed = r#"{"context_management":[{"type":"compaction","compact_threshold":9000}]}"#;
        assert_eq!(budget(&config(), managed), Some(9_000));
        let own = r#"{"throughline":{"compaction":{"budget":5000}},
            "context_management":[{"type":"compaction","compact_threshold":9000}]}"#;
        assert_eq!(budget(&config(), own), Some(5_000));
        let somehow = r#"{"context_management":[{"type":"compaction"}]}"#;
        assert_eq!(budget(&config(), somehow), Some(19_200));
        let configured = CompactionConfig {
            budget: Some(7_000),
            ..config()
        };
        assert_eq!(budget(&configured, somehow), Some(7_000));
        assert_eq!(budget(&configured, managed), Some(9_000));
        let large = r#"{"truncation":"auto","throughline":{"compaction":{"budget":500000}}}"#;
        assert_eq!(budget(&config(), large), Some(19_200));
        let small = r#"{"truncation":"auto","throughline":{"compaction":{"budget":4000}}}"#;
        assert_eq!(budget(&config(), small), Some(4_000));
    }
}
