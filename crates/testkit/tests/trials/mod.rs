//! Campaigns with processes that are killed, stopped and lied to at named points of the real code.
//!
//! Each is a test, so that every run of the tests does a twentieth of it; `cargo xtask campaign`
//! runs them in full. A campaign that did too little to say anything fails as void.

mod kills;
mod lies;
mod order;
mod points;
mod takeovers;
mod worker;

/// What can be planted, for `cargo xtask planted`.
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
