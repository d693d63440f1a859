//! Runs the campaigns at their full counts, and the same tests with mistakes planted.
//!
//! A campaign is a test whose name begins with its guarantee (`r1_…`). The test command runs each
//! at a twentieth of its count; here the count, the seed and the time are chosen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::tenants;
use crate::test::{self, FEATURES};
use crate::tool::{self, Failure};

/// The packages with campaigns, as cargo names them in its messages.
const PACKAGES: &[&str] = &[
    "/crates/testkit#",
    "/crates/store#",
    "/crates/compact#",
    "/crates/throughline#",
    "/crates/server#",
];

/// The variable that names an interpreter with the SDKs of tests.
const PYTHON: &str = "THROUGHLINE_PYTHON";

/// After this time a test with a mistake planted does not end any more.
const HANG: Duration = Duration::from_secs(120);

/// What the counts of a test run are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    /// What is owed whenever work on a layer is called done.
    C,
    /// A night.
    N,
}

impl Tier {
    const fn scale(self) -> u32 {
        match self {
            Self::C => 20,
            Self::N => 200,
        }
    }
}

struct Wanted {
    guarantees: Vec<String>,
    tier: Tier,
    minutes: Option<u64>,
    seed: Option<String>,
}

fn parse(arguments: &[String]) -> Result<Wanted, Failure> {
    let mut wanted = Wanted {
        guarantees: Vec::new(),
        tier: Tier::C,
        minutes: None,
        seed: None,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = |name: &str| {
            let value = rest.next();
            value.ok_or_else(|| Failure::new(format!("{name} wants a value")))
        };
        match argument.as_str() {
            "--tier" => {
                wanted.tier = match value("--tier")?.as_str() {
                    "C" | "c" => Tier::C,
                    "N" | "n" => Tier::N,
                    other => return Err(Failure::new(format!("there is no tier {other}: C or N"))),
                }
            }
            "--minutes" => {
                let minutes = value("--minutes")?.parse();
                let minutes =
                    minutes.map_err(|_| Failure::new("--minutes wants a whole number"))?;
                wanted.minutes = Some(minutes);
            }
            "--seed" => wanted.seed = Some(value("--seed")?.clone()),
            word => match guarantee(word) {
                Some(name) => wanted.guarantees.push(name),
                None => {
                    return Err(Failure::new(format!(
                        "campaign knows no {word}; name guarantees like R5, --tier C|N, --minutes N or --seed S"
                    )));
                }
            },
        }
    }
    Ok(wanted)
}

/// `r5` for R5.
fn guarantee(word: &str) -> Option<String> {
    let number = word.strip_prefix(['R', 'r'])?;
    let known = number
        .parse::<u32>()
        .is_ok_and(|number| (1..=25).contains(&number));
    known.then(|| format!("r{number}"))
}

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Program {
    path: PathBuf,
    layer: Layer,
}

impl Program {
    /// Its name, without what cargo adds.
    fn name(&self) -> String {
        let name = self.path.file_stem().unwrap_or_default();
        let name = name.to_string_lossy();
        name.rsplit_once('-')
            .map_or(&*name, |(name, _)| name)
            .to_owned()
    }
}

/// A test program and one of its campaigns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Campaign {
    program: Program,
    test: String,
}

impl Campaign {
    /// The module of the test executable that has it.
    fn module(&self) -> &str {
        self.test.split("::").next().unwrap_or_default()
    }

    /// The layer that it is about.
    fn layer(&self) -> Layer {
        match (self.program.layer, self.module()) {
            (Layer::Views, _) => Layer::Views,
            (_, "loopkill") => Layer::Loop,
            (_, "serverkill") => Layer::Server,
            (layer, _) => layer,
        }
    }

    /// The guarantee that it is about.
    fn guarantee(&self) -> &str {
        let name = self.test.rsplit("::").next().unwrap_or_default();
        name.split('_').next().unwrap_or_default()
    }
}

/// Builds the test programs and lists their campaigns.
fn campaigns() -> Result<Vec<Campaign>, Failure> {
    let mut found = Vec::new();
    for program in programs()? {
        let mut list = tool::command(&program.path);
        let listed = tool::output(list.args(["--list", "--format", "terse"]))?;
        for line in listed.lines() {
            let Some(test) = line.strip_suffix(": test") else {
                continue;
            };
            let campaign = Campaign {
                program: program.clone(),
                test: test.to_owned(),
            };
            if guarantee(campaign.guarantee()).is_some() {
                found.push(campaign);
            }
        }
    }
    if found.is_empty() {
        return Err(Failure::new("no test program has a campaign"));
    }
    Ok(found)
}

fn programs() -> Result<Vec<Program>, Failure> {
    let mut cargo = tool::cargo();
    // What a test run is built with, so that nothing is built twice.
    cargo.args(["test", "--no-run", "--workspace", "--locked"]);
    cargo.args(["--features", FEATURES, "--message-format=json"]);
    let output = tool::output(cargo.stderr(Stdio::inherit()))?;
    let mut programs: Vec<Program> = output.lines().filter_map(program).collect();
    programs.sort();
    Ok(programs)
}

/// The program of a test target, in a message of cargo.
fn program(message: &str) -> Option<Program> {
    // Test targets alone: what is compiled for them is named too.
    let is_test = message.contains("\"kind\":[\"test\"]") || message.contains("\"kind\":[\"lib\"]");
    let is_ours = PACKAGES.iter().any(|package| message.contains(package));
    let (_, rest) = message.split_once("\"executable\":\"")?;
    let (path, _) = rest.split_once('"')?;
    (is_test && is_ours).then(|| Program {
        path: PathBuf::from(path),
        layer: Layer::tested(message),
    })
}

/// The interpreter for campaigns with an MCP server: the one that is named, else that of the test
/// command. Without one they say that they were skipped.
fn python() -> Option<PathBuf> {
    match std::env::var_os(PYTHON).filter(|place| !place.is_empty()) {
        Some(place) => Some(PathBuf::from(place)),
        None => match test::models() {
            Ok(place) => Some(place),
            Err(failure) => {
                println!("the SDKs cannot be installed: {failure}");
                None
            }
        },
    }
}

/// `cargo xtask campaign`
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode, Failure> {
    let wanted = parse(arguments)?;
    let mut chosen = campaigns()?;
    if !wanted.guarantees.is_empty() {
        let named = |campaign: &Campaign| {
            wanted
                .guarantees
                .iter()
                .any(|name| name == campaign.guarantee())
        };
        chosen.retain(named);
    }
    if chosen.is_empty() {
        return Err(Failure::new("there is no campaign for what was named"));
    }
    let python = python();
    let started = Instant::now();
    let limit = wanted
        .minutes
        .map(|minutes| Duration::from_secs(minutes * 60));
    let (mut green, mut red, mut left) = (0, 0, 0);
    for campaign in &chosen {
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            println!("left out for time: {}", campaign.test);
            left += 1;
            continue;
        }
        println!("== {} ({})", campaign.test, campaign.guarantee());
        let scale = wanted.tier.scale().to_string();
        let mut command = run(campaign);
        command.envs(python.as_ref().map(|place| (PYTHON, place)));
        command.env("THROUGHLINE_SCALE", &scale);
        if let Some(seed) = &wanted.seed {
            command.env("THROUGHLINE_SEED", seed);
        }
        let begun = Instant::now();
        let (holds, text) = captured(&mut command)?;
        show(&text, holds);
        if text.lines().any(|line| line.starts_with("skipped ")) {
            left += 1;
            continue;
        }
        println!(
            "{} in {:.0} s",
            if holds { "holds" } else { "DOES NOT HOLD" },
            begun.elapsed().as_secs_f64()
        );
        if holds {
            green += 1;
        } else {
            red += 1;
        }
    }
    println!(
        "campaigns: {green} hold, {red} do not, {left} left out; tier {:?}, {:.0} s in all",
        wanted.tier,
        started.elapsed().as_secs_f64()
    );
    Ok(if red == 0 && left == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run(campaign: &Campaign) -> Command {
    let mut command = tool::command(&campaign.program.path);
    command.args(["--exact", "--nocapture", "--test-threads=1", &campaign.test]);
    command
}

fn captured(command: &mut Command) -> Result<(bool, String), Failure> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::new(format!("a test program does not start: {error}")))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), text))
}

/// Of a campaign that holds, what it counted; of another one, what it says.
fn show(text: &str, holds: bool) {
    let counted = |line: &&str| {
        let starts = ["campaign ", "table ", "property ", "replay ", "skipped "];
        starts.iter().any(|start| line.starts_with(start)) || line.contains(" failed at case ")
    };
    let lines: Vec<&str> = text.lines().filter(counted).collect();
    lines.iter().for_each(|line| println!("{line}"));
    if !holds && lines.is_empty() {
        text.lines()
            .take(30)
            .for_each(|line| println!("    {line}"));
    }
}

/// `cargo xtask planted`
pub(crate) fn planted(arguments: &[String]) -> Result<ExitCode, Failure> {
    let code = |all_found: bool| match all_found {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    };
    // Mutants that no list has: conditions that keep tenants apart.
    let (tenants, names): (Vec<_>, Vec<_>) = arguments
        .iter()
        .cloned()
        .partition(|word| word == "tenants");
    if !tenants.is_empty() && names.is_empty() {
        return tenants::planted(None).map(code);
    }
    let programs = programs()?;
    let mistakes = listed_mistakes(&programs, &names)?;
    let mut all_found = find(&programs, &mistakes)?;
    if !tenants.is_empty() || arguments.is_empty() {
        let suite = programs.iter().find(|program| program.name() == "store");
        all_found &= tenants::planted(suite.map(|program| program.path.clone()))?;
    }
    Ok(code(all_found))
}

/// The mistakes that are named, or all of them.
fn listed_mistakes(programs: &[Program], arguments: &[String]) -> Result<Vec<Mistake>, Failure> {
    let mut mistakes = listed(programs)?;
    for word in arguments {
        if !mistakes.iter().any(|mistake| mistake.is_meant(word)) {
            return Err(Failure::new(format!(
                "there is no mistake {word}; --small or --large choose a kind, `loop-*` those of a layer, \
                 `tenants` the conditions that keep tenants apart"
            )));
        }
    }
    mistakes.retain(|mistake| {
        arguments.is_empty() || arguments.iter().any(|word| mistake.is_meant(word))
    });
    Ok(mistakes)
}

/// Plants mistakes one after the other; whether all were found that must be.
fn find(programs: &[Program], mistakes: &[Mistake]) -> Result<bool, Failure> {
    let all = campaigns()?;
    let python = python();
    let suites: Vec<Suite> = suites(programs, &all);
    let mut unfound = Vec::new();
    let mut found_by: BTreeMap<String, usize> = BTreeMap::new();
    let mut reviewed = 0;
    for mistake in mistakes {
        let began = Instant::now();
        // Mistakes of a layer are looked for in its own campaigns first. Views know nothing of the
        // other layers, nor those of them.
        let layer = Layer::of(&mistake.name);
        let mut nearest: Vec<&Suite> = suites.iter().collect();
        nearest.retain(|suite| (suite.layer == Layer::Views) == (layer == Layer::Views));
        nearest.sort_by_key(|suite| suite.layer != layer);
        let finder = nearest
            .iter()
            .filter(|suite| {
                if mistake.kind == MistakeKind::Large {
                    suite.is_campaign
                } else {
                    suite.is_quick
                }
            })
            .find_map(|suite| suite.finds(&mistake.name, python.as_deref()));
        let seconds = began.elapsed().as_secs_f64();
        match finder {
            Some(finder) => {
                println!(
                    "table planted {:<20} found by {finder} in {seconds:.1} s",
                    mistake.name
                );
                *found_by.entry(finder).or_default() += 1;
            }
            None if mistake.kind == MistakeKind::Reviewed => {
                println!(
                    "table planted {:<20} not found, reviewed: {}",
                    mistake.name, mistake.what
                );
                reviewed += 1;
            }
            None => {
                println!(
                    "table planted {:<20} NOT FOUND in {seconds:.1} s: {}",
                    mistake.name, mistake.what
                );
                unfound.push(&mistake.name);
            }
        }
    }
    let (count, missed) = (mistakes.len(), unfound.len());
    for (finder, count) in &found_by {
        println!("table planted: {count} found by {finder}");
    }
    let found = count - missed - reviewed;
    println!("planted: {found} of {count} mistakes found, {reviewed} reviewed, {missed} not found");
    Ok(unfound.is_empty())
}

struct Mistake {
    name: String,
    what: String,
    kind: MistakeKind,
}

impl Mistake {
    /// Whether a word of the command line means it: its name, the start of its name, its kind.
    fn is_meant(&self, word: &str) -> bool {
        match (word, word.strip_suffix('*')) {
            ("--large", _) => self.kind == MistakeKind::Large,
            ("--small", _) => self.kind != MistakeKind::Large,
            (_, Some(start)) => self.name.starts_with(start),
            (_, None) => self.name == word,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MistakeKind {
    /// For the campaigns.
    Large,
    /// For any test.
    Small,
    /// Small, and other guards make up for it: nothing has to find it.
    Reviewed,
}

/// The mistakes that the test programs know, as one of them lists them.
fn listed(programs: &[Program]) -> Result<Vec<Mistake>, Failure> {
    for program in programs {
        let mut command = tool::command(&program.path);
        command.args(["--exact", "--nocapture", "trials::the_mistakes_are_listed"]);
        let (_, text) = captured(&mut command)?;
        let mistakes: Vec<Mistake> = text.lines().filter_map(mistake).collect();
        if !mistakes.is_empty() {
            return Ok(mistakes);
        }
    }
    Err(Failure::new("no test program lists mistakes"))
}

fn mistake(line: &str) -> Option<Mistake> {
    let rest = line.strip_prefix("mistake ")?;
    let mut words = rest.splitn(3, ' ');
    Some(Mistake {
        kind: match words.next()? {
            "large" => MistakeKind::Large,
            "small" => MistakeKind::Small,
            "reviewed" => MistakeKind::Reviewed,
            _ => return None,
        },
        name: words.next()?.to_owned(),
        what: words.next()?.to_owned(),
    })
}

/// Tests that are run together against a mistake.
struct Suite {
    name: String,
    program: PathBuf,
    tests: Tests,
    is_campaign: bool,
    /// Whether it is fit for looking for many mistakes.
    is_quick: bool,
    layer: Layer,
}

/// Which tests of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tests {
    All,
    /// Those with this in their names.
    With(&'static str),
    One(String),
}

/// What a suite or a mistake is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Store,
    Loop,
    Server,
    /// What a model is shown of a long history.
    Views,
}

impl Layer {
    /// The layer of a mistake, by its name.
    fn of(mistake: &str) -> Self {
        // The store has mistakes about approvals too; this one is seen over HTTP.
        if mistake == "approval-by-id" {
            return Self::Server;
        }
        match mistake.split('-').next() {
            Some("loop") => Self::Loop,
            Some("server") => Self::Server,
            Some("compact") => Self::Views,
            _ => Self::Store,
        }
    }

    /// The layer that a test program is about, by what cargo says of it. Modules of the campaigns
    /// have layers of their own, see [`Campaign::layer`].
    fn tested(message: &str) -> Self {
        if message.contains("/crates/compact#") {
            Self::Views
        } else {
            Self::Store
        }
    }
}

impl Suite {
    /// Its name, if it fails with a mistake planted.
    fn finds(&self, mistake: &str, python: Option<&Path>) -> Option<String> {
        let mut command = tool::command(&self.program);
        command
            .envs(python.map(|place| (PYTHON, place)))
            .env("THROUGHLINE_PLANTED", mistake)
            .env("RUST_BACKTRACE", "0");
        match &self.tests {
            Tests::One(test) => command.args(["--exact", test]),
            Tests::With(part) => command.args([part, "--test-threads=2"]),
            Tests::All => command.args(["--test-threads=2"]),
        };
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let began = Instant::now();
        loop {
            match child.try_wait().ok()? {
                Some(status) => return (!status.success()).then(|| self.name.clone()),
                None if began.elapsed() > HANG => {
                    // It is the one that was started here, and it has not been waited for.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Some(format!("{} (it hangs)", self.name));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// Quick ones first: the suites of the store, then one campaign after the other.
fn suites(programs: &[Program], campaigns: &[Campaign]) -> Vec<Suite> {
    let mut suites = Vec::new();
    for program in programs {
        let name = program.name();
        let parts = match &*name {
            "throughline_store" => vec![(Tests::All, Layer::Store)],
            "store" => vec![(Tests::With("sqlite::"), Layer::Store)],
            "compact" => vec![(Tests::With("behaviours::"), Layer::Views)],
            "library" => vec![
                // What the loop does, line by line.
                (Tests::With("behaviours::"), Layer::Loop),
                // How views are kept with threads.
                (Tests::With("threads::compaction::"), Layer::Views),
                (Tests::With("threads::discards::"), Layer::Loop),
                (Tests::With("threads::failures::"), Layer::Loop),
                (Tests::With("threads::approvals::equal_ids::"), Layer::Loop),
                (Tests::With("threads::same_run::"), Layer::Loop),
                // How runs and workers meet on a thread.
                (Tests::With("b23"), Layer::Loop),
            ],
            "server" => vec![
                (Tests::With("http::sweep::"), Layer::Server),
                (Tests::With("http::keys::"), Layer::Server),
            ],
            _ => continue,
        };
        suites.extend(parts.into_iter().map(|(tests, layer)| Suite {
            name: match &tests {
                Tests::With(part) => format!("{name} {part}"),
                Tests::All | Tests::One(_) => name.clone(),
            },
            program: program.path.clone(),
            tests,
            is_campaign: false,
            is_quick: true,
            layer,
        }));
    }
    suites.extend(campaigns.iter().map(|campaign| Suite {
        name: campaign.test.clone(),
        program: campaign.program.path.clone(),
        tests: Tests::One(campaign.test.clone()),
        is_campaign: true,
        // Those with processes, and walks by cursor; the others are about the disk and what lies on it.
        is_quick: campaign.module() == "trials" || campaign.guarantee() == "r12",
        layer: campaign.layer(),
    }));
    suites
}

#[cfg(test)]
mod tests {
    use super::{Campaign, Layer, MistakeKind, Tier, guarantee, mistake, parse, program};

    #[test]
    fn guarantees_are_named_by_their_numbers() {
        assert_eq!(guarantee("R5").as_deref(), Some("r5"));
        assert_eq!(guarantee("r19").as_deref(), Some("r19"));
        for nonsense in ["R0", "R26", "5", "Rx", ""] {
            assert_eq!(guarantee(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn options_are_read_and_nonsense_is_not() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let wanted = parse(&words("R1 R5 --tier N --minutes 3 --seed 0x7")).expect("it is right");
        assert_eq!(wanted.guarantees, ["r1", "r5"]);
        assert_eq!((wanted.tier, wanted.minutes), (Tier::N, Some(3)));
        assert_eq!(wanted.seed.as_deref(), Some("0x7"));
        for nonsense in ["--tier X", "--minutes", "--minutes soon", "R99", "--loud"] {
            assert!(parse(&words(nonsense)).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn test_programs_are_told_from_others() {
        let of = |package: &str, kind: &str, path: &str| {
            format!(
                r#"{{"package_id":"path+file:///p/crates/{package}#0.1.0","target":{{"kind":["{kind}"]}},"executable":{path}}}"#
            )
        };
        let test = of("testkit", "test", "\"/t/campaigns-1\"");
        let found = program(&test).expect("it is one");
        assert_eq!(
            (&found.path, found.layer),
            (&"/t/campaigns-1".into(), Layer::Store)
        );
        for (test, layer) in [
            ("trials::kills::r1_a", Layer::Store),
            ("loopkill::kills::r3_a", Layer::Loop),
            ("serverkill::kills::r1_a", Layer::Server),
        ] {
            let campaign = Campaign {
                program: found.clone(),
                test: test.to_owned(),
            };
            assert_eq!(campaign.layer(), layer, "{test}");
        }
        let views = program(&of("compact", "test", "\"/t/compact-1\""));
        assert_eq!(views.expect("it is one").layer, Layer::Views);
        for other in [
            of("testkit", "bin", "\"/t/a\""),
            of("testkit", "test", "null"),
            of("cli", "test", "\"/t/cli-1\""),
        ] {
            assert_eq!(program(&other), None, "{other}");
        }
    }

    #[test]
    fn mistakes_are_looked_for_in_the_layer_that_their_name_begins_with() {
        for (name, layer) in [
            ("approval-by-id", Layer::Server),
            ("approval-late", Layer::Store),
            ("server-retry-anew", Layer::Server),
            ("loop-no-intent", Layer::Loop),
            ("compact-epoch-unkept", Layer::Views),
            ("publish-twice", Layer::Store),
        ] {
            assert_eq!(Layer::of(name), layer, "{name}");
        }
    }

    #[test]
    fn mistakes_are_read() {
        let found = mistake("mistake small run-version the statement says so").expect("it is one");
        assert_eq!(found.kind, MistakeKind::Small);
        assert_eq!(
            (&*found.name, &*found.what),
            ("run-version", "the statement says so")
        );
        for word in ["run-version", "run-*", "--small"] {
            assert!(found.is_meant(word), "{word}");
        }
        for word in ["--large", "run-", "server-*", "run-version-2"] {
            assert!(!found.is_meant(word), "{word}");
        }
        assert!(mistake("running 1 test").is_none());
    }
}
