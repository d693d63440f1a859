//! Campaigns with processes that are killed, stopped or get wrong outcomes at fault points.
//!
//! Each is a test, of which every test run does a twentieth; `cargo xtask campaign` runs them in
//! full. A campaign that covered too little fails as void.

mod kills;
mod lies;
mod order;
mod points;
mod takeovers;
mod worker;

/// Prints the planted mistakes, for `cargo xtask planted`.
#[test]
fn the_mistakes_are_listed() {
    for mistake in throughline_store::trials::MISTAKES {
        let (kind, what) = match (mistake.reviewed, mistake.small) {
            (Some(why), _) => ("reviewed", why),
            (None, true) => ("small", mistake.what),
            (None, false) => ("large", mistake.what),
        };
        println!("mistake {kind} {} {what}", mistake.name);
    }
}
