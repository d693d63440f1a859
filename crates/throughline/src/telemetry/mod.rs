//! What can be watched of runs: spans and metrics. Content only when asked for.
