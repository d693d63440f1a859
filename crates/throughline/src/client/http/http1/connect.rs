//! New TCP connections.

use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};

use super::target::Target;
use crate::client::http::IDLE_TIMEOUT;
use crate::client::http::transport::{TransportError, TransportFault};

/// How long to wait for one address of a host before the next one is tried concurrently.
const HEAD_START: Duration = Duration::from_millis(300);

/// The interval and the number of keep-alive probes.
const PROBE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;
/// How long sent bytes may stay unacknowledged.
#[cfg(any(target_os = "android", target_os = "linux"))]
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a connection.
pub(super) async fn connect(
    target: &Target,
    wait: Option<Duration>,
) -> Result<TcpStream, TransportError> {
    let connected = match wait {
        None => reach(target).await,
        Some(wait) => timeout(wait, reach(target))
            .await
            .map_err(|late| TransportError::new(TransportFault::ConnectTimeout, late))?,
    };
    let stream = connected.map_err(|error| TransportError::new(TransportFault::Connect, error))?;
    prepare(&SockRef::from(&stream));
    Ok(stream)
}

/// Disables Nagle's algorithm and enables keep-alive probes. Options that the system does not have
/// are skipped.
fn prepare(socket: &SockRef<'_>) {
    let _ = socket.set_tcp_nodelay(true);
    let alive = TcpKeepalive::new()
        .with_time(IDLE_TIMEOUT)
        .with_interval(PROBE);
    #[cfg(not(any(target_os = "openbsd", target_os = "redox", target_os = "solaris")))]
    let alive = alive.with_retries(PROBES);
    let _ = socket.set_tcp_keepalive(&alive);
    #[cfg(any(target_os = "android", target_os = "linux"))]
    let _ = socket.set_tcp_user_timeout(Some(USER_TIMEOUT));
}

/// Connects to the first address of a host that accepts. An unresponsive address delays the others
/// by [`HEAD_START`] at most.
async fn reach(target: &Target) -> io::Result<TcpStream> {
    let mut addresses = lookup_host((&*target.host, target.port)).await?;
    let mut tries = FuturesUnordered::new();
    let mut failed = None;
    loop {
        let next = addresses.next();
        let is_last = next.is_none();
        tries.extend(next.map(TcpStream::connect));
        tokio::select! {
            tried = tries.next() => match tried {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => failed = Some(error),
                None => {
                    let nowhere = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                    return Err(failed.unwrap_or_else(nowhere));
                }
            },
            () = sleep(HEAD_START), if !is_last => {}
        }
    }
}
