//! Runs a property over many random cases, and prints how to replay a failing case.
//!
//! | variable | meaning |
//! |---|---|
//! | `THROUGHLINE_SEED` | the seed of the run, decimal or `0x…`; the clock picks one when it is absent |
//! | `THROUGHLINE_CASE` | run this case only, as printed by a failure |
//! | `THROUGHLINE_SCALE` | a factor on the number of cases, 1 when absent |
//!
//! There is no shrinking. Sizes grow from case to case instead, so that the first failure tends to be small.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::rng::{Rng, splitmix64};

/// The size of the largest cases; the smallest have size 1.
pub const MAX_SIZE: usize = 100;

/// Checks `check` on `cases` random cases and prints the seed and the count.
///
/// Each case gets a generator of its own and a size between 1 and [`MAX_SIZE`] that grows with the case
/// number. A case fails by returning an error or by panicking.
///
/// ```
/// use throughline_testkit::property;
///
/// property("reversing twice changes nothing", 50, |rng, size| {
///     let bytes = rng.bytes(size);
///     let twice: Vec<u8> = bytes.iter().rev().rev().copied().collect();
///     if twice == bytes { Ok(()) } else { Err(format!("{bytes:?} became {twice:?}")) }
/// });
/// ```
///
/// # Panics
///
/// When a case fails, with the variables that replay it; also when one of the variables cannot be read.
#[expect(clippy::panic, reason = "a panic is how a test says that it failed")]
#[expect(clippy::print_stdout, reason = "the test command shows this line")]
pub fn property(name: &str, cases: u64, check: impl FnMut(&mut Rng, usize) -> Result<(), String>) {
    let settings = PropertySettings::from_variables(|key| std::env::var(key).ok())
        .unwrap_or_else(|error| panic!("property {name}: {error}"));
    let started = Instant::now();
    match run(name, cases, &settings, check) {
        Ok(ran) => {
            let (seed, millis) = (settings.seed, started.elapsed().as_millis());
            println!("property {name}: seed={seed:#018x} cases={ran} ms={millis}");
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// The number of repetitions of a test: `count`, times the factor of the environment.
///
/// # Panics
///
/// When the factor cannot be read.
#[expect(clippy::panic, reason = "a panic is how a test says that it failed")]
pub fn scaled(count: u64) -> usize {
    let settings = PropertySettings::from_variables(|key| std::env::var(key).ok());
    let settings = settings.unwrap_or_else(|error| panic!("{error}"));
    ((count as f64 * settings.scale).round() as usize).max(1)
}

/// The settings of a run from the environment.
#[derive(Debug, Clone, PartialEq)]
struct PropertySettings {
    seed: u64,
    only: Option<u64>,
    scale: f64,
}

impl PropertySettings {
    fn from_variables(read: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |key: &str| {
            read(key)
                .filter(|text| !text.trim().is_empty())
                .map(|text| {
                    parse_u64(text.trim()).ok_or_else(|| format!("{key}={text} is not a number"))
                })
                .transpose()
        };
        let scale = match read("THROUGHLINE_SCALE").filter(|text| !text.trim().is_empty()) {
            None => 1.0,
            Some(text) => match text.trim().parse::<f64>() {
                Ok(scale) if scale.is_finite() && scale > 0.0 => scale,
                _ => return Err(format!("THROUGHLINE_SCALE={text} is not a positive number")),
            },
        };
        Ok(Self {
            seed: number("THROUGHLINE_SEED")?.unwrap_or_else(seed_from_clock),
            only: number("THROUGHLINE_CASE")?,
            scale,
        })
    }
}

fn parse_u64(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(&hex.replace('_', ""), 16).ok(),
        None => text.parse().ok(),
    }
}

fn seed_from_clock() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut state = since.as_nanos() as u64;
    splitmix64(&mut state)
}

/// Runs the cases; returns their number, or the message about the first failure.
fn run(
    name: &str,
    cases: u64,
    settings: &PropertySettings,
    mut check: impl FnMut(&mut Rng, usize) -> Result<(), String>,
) -> Result<u64, String> {
    let scaled = ((cases as f64 * settings.scale).round() as u64).max(1);
    let (first, end) = match settings.only {
        Some(case) => (case, case.saturating_add(1)),
        None => (0, scaled),
    };
    for case in first..end {
        let size = size_of(case, cases);
        let mut rng = Rng::new(case_seed(name, settings.seed, case));
        let outcome = catch_unwind(AssertUnwindSafe(|| check(&mut rng, size)));
        let problem = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(problem)) => problem,
            Err(payload) => format!("panicked: {}", panic_message(payload.as_ref())),
        };
        let seed = settings.seed;
        return Err(format!(
            "property {name} failed at case {case}, size {size}: {problem}\n\
             replay with THROUGHLINE_SEED={seed:#018x} THROUGHLINE_CASE={case}"
        ));
    }
    Ok(end - first)
}

/// The size follows from the case number and the unscaled count alone, so a replay needs no scale.
fn size_of(case: u64, cases: u64) -> usize {
    let cases = cases.max(1);
    1 + ((case % cases) as u128 * MAX_SIZE as u128 / u128::from(cases)) as usize
}

/// Two properties with the same seed see different cases, and neighbouring cases are unrelated.
fn case_seed(name: &str, seed: u64, case: u64) -> u64 {
    // FNV-1a; the hasher of the standard library may change between releases.
    let name_hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut state = seed ^ name_hash;
    let mut state = splitmix64(&mut state).wrapping_add(case);
    splitmix64(&mut state)
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("with a value that is not text")
}

#[cfg(test)]
mod tests {
    use super::{MAX_SIZE, PropertySettings, run};

    fn settings(seed: u64, only: Option<u64>, scale: f64) -> PropertySettings {
        PropertySettings { seed, only, scale }
    }

    #[test]
    fn a_failure_names_the_variables_that_replay_it() {
        let fails_when_large = |_: &mut crate::Rng, size: usize| {
            if size > 40 {
                Err(format!("too large: {size}"))
            } else {
                Ok(())
            }
        };
        let failure = run("small", 100, &settings(0xabc, None, 1.0), fails_when_large).unwrap_err();
        assert_eq!(
            failure,
            "property small failed at case 40, size 41: too large: 41\n\
             replay with THROUGHLINE_SEED=0x0000000000000abc THROUGHLINE_CASE=40"
        );
        let again = run(
            "small",
            100,
            &settings(0xabc, Some(40), 9.0),
            fails_when_large,
        )
        .unwrap_err();
        assert_eq!(again, failure);
    }

    #[test]
    fn a_replayed_case_draws_what_it_drew_before() {
        let mut drawn = Vec::new();
        run("draws", 20, &settings(5, None, 1.0), |rng, size| {
            drawn.push((size, rng.next_u64()));
            Ok(())
        })
        .unwrap();
        let mut again = Vec::new();
        run("draws", 20, &settings(5, Some(13), 1.0), |rng, size| {
            again.push((size, rng.next_u64()));
            Ok(())
        })
        .unwrap();
        assert_eq!(again, [drawn[13]]);
    }

    #[test]
    fn a_panic_in_a_case_is_a_failure_of_that_case() {
        let failure = run("panics", 3, &settings(1, None, 1.0), |_, size| {
            assert!(size < 2, "planted at {size}");
            Ok(())
        })
        .unwrap_err();
        assert!(
            failure
                .starts_with("property panics failed at case 1, size 34: panicked: planted at 34")
        );
    }

    #[test]
    fn sizes_grow_and_the_scale_multiplies_the_cases() {
        let mut sizes = Vec::new();
        let ran = run("sizes", 200, &settings(1, None, 1.5), |_, size| {
            sizes.push(size);
            Ok(())
        });
        assert_eq!(ran, Ok(300));
        assert_eq!((sizes[0], sizes[199], sizes[200]), (1, MAX_SIZE, 1));
        assert!(sizes[..200].is_sorted());
        assert_eq!(
            run("few", 10, &settings(1, None, 0.001), |_, _| Ok(())),
            Ok(1)
        );
    }

    #[test]
    fn variables_are_read_in_both_bases_and_nonsense_is_refused() {
        let with = |seed: &'static str| {
            PropertySettings::from_variables(move |key| {
                (key == "THROUGHLINE_SEED").then(|| seed.to_owned())
            })
        };
        assert_eq!(with("12"), Ok(settings(12, None, 1.0)));
        assert_eq!(with("0xFf"), Ok(settings(255, None, 1.0)));
        assert_eq!(
            with("soon"),
            Err("THROUGHLINE_SEED=soon is not a number".to_owned())
        );
        let scaled = PropertySettings::from_variables(|key| {
            (key == "THROUGHLINE_SCALE").then(|| "-1".to_owned())
        });
        assert_eq!(
            scaled,
            Err("THROUGHLINE_SCALE=-1 is not a positive number".to_owned())
        );
    }
}
