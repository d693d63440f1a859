//! What the program is asked to do.

use std::path::PathBuf;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
usage: cargo xtask bench compaction [OPTIONS]

  --sessions=DIR    replay the sessions in DIR/*.json and nothing else
  --quick           one budget, 32k, and no measurement of speed
  --alone           our compaction without the strategies it is compared with
  --each            a line for each session
  --missed          list what views did not show
  --json            print JSON instead of tables
  --model=URL       ask a model about compacted parts; URL is the base of an endpoint with
                    /chat/completions, such as http://127.0.0.1:8080/v1
  --model-name=NAME the model to ask for; `default` if it is left out
  --questions=N     questions for each session, 5 if it is left out; each is asked three times
  --help            this text

The key for --model is read from the environment variable THROUGHLINE_BENCH_KEY.

A session is a file of JSON:

  { \"format\": \"throughline.trajectory/1\", \"id\": \"…\",
    \"messages\": [ { \"seq\": 0, \"role\": \"system|user|assistant|tool\", \"text\": \"…\",
                    \"tool_calls\"?: [ { \"id\": \"…\", \"name\": \"…\", \"arguments\": {} } ],
                    \"tool_call_id\"?: \"…\", \"tool_name\"?: \"…\", \"is_error\"?: true,
                    \"kind\"?: \"meta\" | \"compaction_summary\",
                    \"usage\"?: { \"input\", \"cache_read\", \"cache_write\", \"output\" } } ] }

Each message of the role assistant was one model call; `usage` is what it was billed.
The exit code is not zero when something is over its limit; the last lines name it.";

/// The options, after they were checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct BenchOptions {
    pub(crate) sessions: Option<PathBuf>,
    pub(crate) quick: bool,
    pub(crate) alone: bool,
    pub(crate) each: bool,
    pub(crate) missed: bool,
    pub(crate) json: bool,
    pub(crate) help: bool,
    pub(crate) model: Option<ModelOptions>,
}

/// The model that is asked.
#[derive(Clone, Debug)]
pub(crate) struct ModelOptions {
    pub(crate) url: String,
    pub(crate) name: String,
    pub(crate) questions: usize,
}

impl BenchOptions {
    /// Reads the arguments; the error names the one that is not understood.
    pub(crate) fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut url = None;
        let (mut name, mut questions) = ("default".to_owned(), 5);
        for argument in arguments {
            let (word, value) = match argument.split_once('=') {
                Some((word, value)) => (word, Some(value)),
                None => (argument.as_str(), None),
            };
            match (word, value) {
                ("--sessions", Some(folder)) => options.sessions = Some(folder.into()),
                ("--quick", None) => options.quick = true,
                ("--alone", None) => options.alone = true,
                ("--each", None) => options.each = true,
                ("--missed", None) => options.missed = true,
                ("--json", None) => options.json = true,
                ("--help", None) => options.help = true,
                ("--model", Some(value)) => url = Some(value.to_owned()),
                ("--model-name", Some(value)) => value.clone_into(&mut name),
                ("--questions", Some(value)) => {
                    let wrong = |_| format!("--questions takes a number, and was given {value}");
                    questions = value.parse().map_err(wrong)?;
                }
                _ => return Err(format!("{argument} is no option; see --help")),
            }
        }
        options.model = url.map(|url| ModelOptions {
            url,
            name,
            questions,
        });
        Ok(options)
    }
}
