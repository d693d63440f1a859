//! Connections.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};

use super::target::Target;
use crate::client::http::KEEP;
use crate::client::http::transport::{TransportError, TransportFault};

/// How long one address of a host has before the next is tried beside it.
const HEAD_START: Duration = Duration::from_millis(300);

/// How long to wait for an answer to a look whether the peer is there, and how often to look.
const PROBE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;
/// How long what was sent may go unconfirmed.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNANSWERED: Duration = Duration::from_secs(30);

/// A new connection.
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

/// Begin to connect, without waiting for it.
pub(super) fn begin(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    prepare(&socket);
    // That it cannot be there at once is said as an error. Whether it comes is seen when it is used.
    let _ = socket.connect(&address.into());
    TcpStream::from_std(socket.into())
}

/// A connection that was begun, if it comes to be soon.
pub(super) async fn finish(stream: TcpStream, wait: Option<Duration>) -> io::Result<TcpStream> {
    let wait = wait.map_or(HEAD_START, |wait| wait.min(HEAD_START));
    timeout(wait, stream.writable()).await??;
    match stream.take_error()? {
        Some(error) => return Err(error),
        None => stream.peer_addr()?,
    };
    Ok(stream)
}

/// Send at once, and have the system notice a peer that is gone without a word. What it does not
/// know, it leaves out.
fn prepare(socket: &Socket) {
    let _ = socket.set_tcp_nodelay(true);
    let alive = TcpKeepalive::new().with_time(KEEP).with_interval(PROBE);
    #[cfg(not(any(target_os = "openbsd", target_os = "redox", target_os = "solaris")))]
    let alive = alive.with_retries(PROBES);
    let _ = socket.set_tcp_keepalive(&alive);
    #[cfg(any(target_os = "android", target_os = "linux"))]
    let _ = socket.set_tcp_user_timeout(Some(UNANSWERED));
}

/// The first address of a host that answers. One that says nothing does not hold up the others.
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
