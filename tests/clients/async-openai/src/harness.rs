//! What the scenarios share: checks, the vendor behind the server, and the command line. The same
//! as `../server-python/harness.py`, which says more.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::TcpStream;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use serde_json::{Value, json};

pub(crate) type Failure = Box<dyn std::error::Error>;

/// Where a scenario takes place, and what it has found.
pub(crate) struct World {
    pub(crate) client: Client<OpenAIConfig>,
    pub(crate) model: String,
    pub(crate) scenario: &'static str,
    upstream: Option<String>,
    control: String,
    only: Option<String>,
    passed: usize,
    failed: usize,
}

impl World {
    pub(crate) fn from_arguments() -> Result<Self, Failure> {
        let mut arguments = std::env::args().skip(1);
        let (mut base_url, mut control, mut model) = (None, None, None);
        let (mut upstream, mut only) = (None, None);
        while let Some(name) = arguments.next() {
            let value = arguments.next();
            match name.as_str() {
                "--base-url" => base_url = value,
                "--control" => control = value,
                "--model" => model = value,
                "--upstream" => upstream = value,
                "--only" => only = value,
                other => return Err(format!("there is no argument {other}").into()),
            }
        }
        let config = OpenAIConfig::new()
            .with_api_base(base_url.ok_or("--base-url is missing")?)
            .with_api_key("not-needed-on-loopback");
        Ok(Self {
            client: Client::with_config(config),
            model: model.ok_or("--model is missing")?,
            control: control.ok_or("--control is missing")?,
            upstream,
            only,
            scenario: "",
            passed: 0,
            failed: 0,
        })
    }

    /// Whether the built-in model answers, which has no vendor behind it.
    pub(crate) fn is_demo(&self) -> bool {
        self.upstream.is_none()
    }

    pub(crate) fn is_wanted(&self, scenario: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == scenario)
    }

    pub(crate) fn equal<T: PartialEq<U> + Debug, U: Debug>(
        &mut self,
        what: &str,
        found: T,
        wanted: U,
    ) {
        let good = found == wanted;
        self.check(what, good, &format!("{found:?}, wanted {wanted:?}"));
    }

    pub(crate) fn check(&mut self, what: &str, good: bool, seen: &str) {
        let mut line = json!({"scenario": self.scenario, "check": what, "ok": good});
        if good {
            self.passed += 1;
        } else {
            self.failed += 1;
            line["seen"] = json!(seen.chars().take(2_000).collect::<String>());
        }
        println!("{line}");
    }

    /// Something of the vendor.
    pub(crate) fn ask(&self, words: &str) -> Result<Value, Failure> {
        let upstream = self.upstream.as_deref().ok_or("demo has no vendor")?;
        let order = format!("{upstream} {words}");
        let mut stream = TcpStream::connect(&self.control)?;
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{order}",
            self.control,
            order.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("no body")?;
        Ok(serde_json::from_str(body)?)
    }

    pub(crate) fn count(&self) -> Result<u64, Failure> {
        Ok(self.ask("counts")?["requests"].as_u64().unwrap_or_default())
    }

    /// The last request has exactly these calls, results and texts, each as what it is.
    pub(crate) fn received_exactly(&mut self, what: &str, wanted: &[&str]) -> Result<(), Failure> {
        let heard = self.ask("heard")?;
        self.equal(what, heard["lines"].clone(), json!(wanted));
        Ok(())
    }

    /// The last request gives the vendor its reasoning back. Chat Completions has no place for it.
    pub(crate) fn thoughts_returned(&mut self, what: &str, wanted: u64) -> Result<(), Failure> {
        let chat = self.upstream.as_deref() == Some("openai-chat");
        let found = self.ask("thoughts")?;
        self.equal(what, found, json!(if chat { 0 } else { wanted }));
        Ok(())
    }

    /// Prints the sum, and gives whether everything held.
    pub(crate) fn end(&self, sdk: &str) -> bool {
        let (passed, failed) = (self.passed, self.failed);
        println!(
            "{}",
            json!({"sdk": sdk, "passed": passed, "failed": failed})
        );
        failed == 0 && passed > 0
    }
}
