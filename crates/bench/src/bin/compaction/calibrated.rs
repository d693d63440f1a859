//! The error of token estimates relative to the vendors' bills.

use throughline_compact::tokens::{Calibration, units};
use throughline_testkit::bench::{Limit, Report, Row};
use throughline_testkit::trajectory::{Session, billed};

/// The number of calls after which estimates have limits.
const LEARNT: usize = 3;

/// The errors of a session's estimates, as shares of the billed tokens.
fn errors(session: &Session) -> Vec<f64> {
    let mut calibration = Calibration::default();
    let mut found = Vec::new();
    for (number, bill) in billed(session).iter().enumerate() {
        let sent = bill
            .sent
            .iter()
            .map(|message| u64::from(units(message)))
            .sum();
        let estimated = calibration.estimate(sent).tokens;
        if number >= LEARNT {
            found.push(estimated.abs_diff(bill.tokens) as f64 / (bill.tokens as f64).max(1.0));
        }
        calibration.observe(sent, bill.tokens);
    }
    found.sort_by(f64::total_cmp);
    found
}

fn quantile(sorted: &[f64], percent: usize) -> Option<f64> {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied()
}

/// Shows the errors of sessions with bills, and compares those of the recorded ones with their limits.
pub(crate) fn compare<'a>(sessions: impl Iterator<Item = &'a Session>, is_limited: bool) -> bool {
    let mut report = Report::new("estimates against bills, after three calls");
    let mut all = Vec::new();
    let mut row = |name: &str, ratio: Option<f64>, limit| {
        report.push(Row {
            name: name.to_owned(),
            figure: ratio.map_or("–".to_owned(), |ratio| format!("{:.2} %", ratio * 100.0)),
            ratio,
            limit,
        });
    };
    for session in sessions {
        let errors = errors(session);
        if !errors.is_empty() {
            let name = format!("{}: p95 of {} calls", session.name, errors.len());
            row(&name, quantile(&errors, 95), None);
            all.extend(errors);
        }
    }
    if all.is_empty() {
        return true;
    }
    all.sort_by(f64::total_cmp);
    let most = |most| is_limited.then_some(Limit::AtMost(most));
    let name = |what| format!("{what} of {} calls", all.len());
    row(&name("median"), quantile(&all, 50), most(0.03));
    row(&name("p95"), quantile(&all, 95), most(0.1));
    let _ = report.finish();
    report.holds()
}
