//! The measured processes, and their resource usage.

use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child as Process, Command, ExitCode, Stdio};

use throughline_server::{Config, Flags, Server, Sources, serve};
use throughline_testkit::Scratch;
use tokio::runtime::Builder;

/// A process of this program.
pub(crate) struct Child {
    process: Process,
    /// Its address.
    pub(crate) at: String,
}

impl Child {
    fn start(words: &[&str]) -> Self {
        let program = std::env::current_exe().expect("a program knows where it is");
        let mut process = Command::new(program)
            .args(words)
            // As in `throughline serve`.
            .env("MIMALLOC_PURGE_DELAY", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process starts");
        let out = process.stdout.take().expect("its output is piped");
        let mut at = String::new();
        let read = BufReader::new(out).read_line(&mut at);
        assert!(read.is_ok_and(|read| read > 0), "{words:?} does not start");
        Self {
            process,
            at: at.trim().to_owned(),
        }
    }

    pub(crate) fn mock() -> Self {
        Self::start(&["mock"])
    }

    pub(crate) fn proxy(mock: &Self, scratch: &Scratch) -> Self {
        let path = scratch.path().join("raw.db");
        Self::start(&["proxy", &mock.at, &path.display().to_string()])
    }

    pub(crate) fn server(mock: &Self, scratch: &Scratch) -> Self {
        Self::server_with(mock, scratch, &[])
    }

    /// A server with settings as `VARIABLE=VALUE`.
    pub(crate) fn server_with(mock: &Self, scratch: &Scratch, settings: &[&str]) -> Self {
        let store = scratch.sqlite("store.db");
        Self::start(&[&["serve", mock.at.as_str(), &store], settings].concat())
    }

    /// Stops it, and waits for its end.
    pub(crate) fn stop(mut self) {
        drop(self.process.stdin.take());
        let ended = self.process.wait();
        assert!(ended.is_ok_and(|ended| ended.success()), "it ends well");
    }

    /// The CPU time of its threads so far, in nanoseconds.
    pub(crate) fn processor(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id()));
        let tasks = tasks.expect("the system says what threads did");
        let spent = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<f64>().ok()
        });
        spent.sum()
    }

    /// Its resident memory, in bytes.
    pub(crate) fn memory(&self) -> f64 {
        self.resident("VmRSS:")
    }

    /// Its peak resident memory, in bytes.
    pub(crate) fn peak_memory(&self) -> f64 {
        self.resident("VmHWM:")
    }

    fn resident(&self, name: &str) -> f64 {
        let path = format!("/proc/{}/status", self.process.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes
            .and_then(|text| text.trim().parse::<f64>().ok())
            .map_or(f64::NAN, |kilobytes| kilobytes * 1024.0)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // This is the process that was started here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The size of a store's files, in bytes.
pub(crate) fn stored(scratch: &Scratch) -> f64 {
    let size = |name: &str| {
        let path: &Path = scratch.path();
        std::fs::metadata(path.join(name)).map_or(0, |found| found.len())
    };
    (size("store.db") + size("store.db-wal")) as f64
}

/// A program that runs until its input ends.
pub(crate) trait Running {
    /// Stops it.
    fn end(self) -> impl Future<Output = ()>;
}

impl Running for Server {
    async fn end(self) {
        self.stop();
        self.join().await;
    }
}

impl Running for () {
    async fn end(self) {}
}

/// Runs one of the programs: prints its address, and ends with its input.
pub(crate) fn run<R: Running>(
    started: impl Future<Output = Result<(String, R), Box<dyn std::error::Error>>>,
) -> ExitCode {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let Ok((at, running)) = runtime.block_on(started) else {
        return ExitCode::FAILURE;
    };
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{at}").and_then(|()| out.flush());
    drop(out);
    // The bench writes nothing; the end of the input is the signal to stop.
    let _ = std::io::stdin().lock().lines().count();
    runtime.block_on(running.end());
    ExitCode::from(u8::from(said.is_err()))
}

/// The server, as in `throughline serve`.
pub(crate) async fn server(
    url: &str,
    store: &str,
    settings: &[&str],
) -> Result<(String, Server), Box<dyn std::error::Error>> {
    let variables = [
        ("THROUGHLINE_UPSTREAM_UP_KIND", "openai-chat".to_owned()),
        (
            "THROUGHLINE_UPSTREAM_UP_BASE_URL",
            format!("http://{url}/v1"),
        ),
    ];
    let config = Config::load(&Sources {
        environment: variables
            .into_iter()
            .chain(settings.iter().filter_map(|setting| {
                let (name, value) = setting.split_once('=')?;
                Some((name, value.to_owned()))
            }))
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        flags: Flags {
            listen: Some("127.0.0.1:0".to_owned()),
            store: Some(store.to_owned()),
        },
        ..Sources::default()
    })?;
    let server = serve(config).await?;
    Ok((server.address.to_string(), server))
}
