//! A connection to a server.

use std::error::Error;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use tokio::process::Command;

use super::{McpError, McpServer, Reach};

pub(super) type Client = RunningService<RoleClient, Listener>;

type Failure = Box<dyn Error + Send + Sync>;

/// The environment variables that a server process inherits.
const INHERITED_VARIABLES: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    ]
} else {
    &[
        "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    ]
};

/// Receives notifications of a server.
pub(super) struct Listener {
    /// Set when the server reports that its tools have changed.
    pub(super) changed: Arc<AtomicBool>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new("throughline", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), ours)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Release);
    }
}

/// Starts or connects to a server, within its timeout.
pub(super) async fn connect(
    server: &McpServer,
    changed: Arc<AtomicBool>,
) -> Result<Client, McpError> {
    let listener = Listener { changed };
    let connecting = async {
        match &server.reach {
            Reach::Process { .. } => Ok(listener.serve(process(&server.reach)?).await?),
            Reach::Http { url, bearer } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                if let Some(token) = bearer {
                    config = config.auth_header(token.0.as_str());
                }
                let http = http_client(server, url)?;
                let transport = StreamableHttpClientTransport::with_client(http, config);
                Ok::<_, Failure>(listener.serve(transport).await?)
            }
        }
    };
    let after = server.connect_timeout;
    match tokio::time::timeout(after, connecting).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(source)) => Err(McpError::Connect {
            label: server.label.clone(),
            source,
        }),
        Err(_) => Err(McpError::Timeout {
            label: server.label.clone(),
            after,
        }),
    }
}

fn process(reach: &Reach) -> Result<TokioChildProcess, Failure> {
    let Reach::Process {
        command,
        arguments,
        environment,
        show_errors,
    } = reach
    else {
        return Err("the server is not a process".into());
    };
    let mut process = Command::new(command);
    process.args(arguments).env_clear();
    for name in INHERITED_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            process.env(name, value);
        }
    }
    for (name, value) in environment {
        process.env(name, &value.0);
    }
    // Ends the process also when the runtime is dropped.
    process.kill_on_drop(true);
    let errors = if *show_errors {
        Stdio::inherit()
    } else {
        Stdio::null()
    };
    let (transport, _) = TokioChildProcess::builder(process).stderr(errors).spawn()?;
    Ok(transport)
}

fn http_client(server: &McpServer, url: &str) -> Result<reqwest::Client, Failure> {
    let host = reqwest::Url::parse(url)?;
    let host = host.host_str().unwrap_or_default().to_owned();
    let builder = reqwest::Client::builder()
        .connect_timeout(server.connect_timeout)
        // A redirect could send the token elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        // A pooled connection stalls when the previous response was not read to its end.
        .pool_max_idle_per_host(0);
    let local = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
    let builder = if local { builder.no_proxy() } else { builder };
    Ok(builder.build()?)
}
