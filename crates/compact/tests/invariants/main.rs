//! What holds for every view, whatever was said.

mod chained;
mod check;
mod cuts;
mod hostile;
mod recorded;
