//! The progress of long work: one line on a terminal, otherwise nothing.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use throughline_store::Progress;

/// Drawing more often only costs time.
const PAUSE: Duration = Duration::from_millis(100);

/// A line that is drawn again as the work goes on.
pub(crate) struct Line {
    what: &'static str,
    /// When it was last drawn; `None` if there is no terminal.
    drawn: Option<Instant>,
    shown: bool,
}

impl Line {
    /// A line that starts with a word.
    pub(crate) fn new(what: &'static str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            what,
            drawn: terminal.then(Instant::now),
            shown: false,
        }
    }

    /// Draw the line, unless it was drawn just now.
    pub(crate) fn show(&mut self, progress: Progress) {
        let Some(drawn) = &mut self.drawn else {
            return;
        };
        if drawn.elapsed() < PAUSE {
            return;
        }
        *drawn = Instant::now();
        self.shown = true;
        // A terminal that went away is no reason to stop.
        let _ = write!(
            std::io::stderr().lock(),
            "\r\x1b[K{}",
            text(self.what, progress)
        );
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn text(what: &str, progress: Progress) -> String {
    let Progress { done, total, unit } = progress;
    match (done.min(total) * 100).checked_div(total) {
        Some(percent) => format!("{what}: {done} of {total} {unit} ({percent} %)"),
        None => format!("{what}: {done} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use throughline_store::Progress;

    #[test]
    fn a_part_of_the_whole_is_shown_if_the_whole_is_known() {
        let progress = |done, total| Progress {
            done,
            total,
            unit: "items",
        };
        assert_eq!(
            text("exporting", progress(5, 20)),
            "exporting: 5 of 20 items (25 %)"
        );
        assert_eq!(text("exporting", progress(5, 0)), "exporting: 5 items");
    }
}
