//! A proxy that can cut the connection between a client and a server at any byte.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// What a client sees of a cut. The server sees a reset in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A reset.
    Reset,
    /// Status 500, as from a gateway.
    Status500,
}

/// Forwards bytes between clients and one server, until it cuts.
pub struct Cutter {
    address: SocketAddr,
    shared: Arc<CutControl>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

struct CutControl {
    server: SocketAddr,
    /// The number of cuts, and the kind of the last one.
    cuts: watch::Sender<(u64, Cut)>,
    /// How many more bytes of responses pass.
    left: Mutex<Option<usize>>,
    up: AtomicU64,
    down: AtomicU64,
}

impl Cutter {
    /// Starts a proxy of a server.
    ///
    /// # Panics
    ///
    /// If there is no free port on loopback, or no thread can be started.
    pub fn start(server: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound port has an address");
        let shared = Arc::new(CutControl {
            server,
            cuts: watch::Sender::new((0, Cut::Reset)),
            left: Mutex::new(None),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("cutter".into())
            .spawn(move || {
                tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .build()?
                    .block_on(run(listener, theirs, stopped))
            })
            .expect("a thread can be started");
        Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every connection that waits for a response or is in the middle of one.
    pub fn cut(&self, how: Cut) {
        self.shared.cuts.send_modify(|(count, last)| {
            *count += 1;
            *last = how;
        });
    }

    /// Lets a number of response bytes pass, then resets the connection that carried the last of
    /// them.
    pub fn cut_after(&self, bytes: usize) {
        *self.shared.left() = Some(bytes);
    }

    /// How many bytes clients and server have sent.
    pub fn bytes(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::SeqCst);
        (load(&self.shared.up), load(&self.shared.down))
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A proxy that panicked has failed its test already.
            let _ = thread.join();
        }
    }
}

impl CutControl {
    fn left(&self) -> std::sync::MutexGuard<'_, Option<usize>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many of these response bytes pass, and whether the connection ends after them.
    fn passing(&self, bytes: usize) -> (usize, bool) {
        let mut left = self.left();
        match *left {
            None => (bytes, false),
            Some(rest) if rest > bytes => {
                *left = Some(rest - bytes);
                (bytes, false)
            }
            Some(rest) => {
                *left = None;
                (rest, true)
            }
        }
    }
}

async fn run(
    listener: std::net::TcpListener,
    shared: Arc<CutControl>,
    mut stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return Ok(()),
            accepted = listener.accept() => {
                let (client, _) = accepted?;
                connections.spawn(pass(client, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass(mut client: TcpStream, shared: Arc<CutControl>) -> io::Result<()> {
    let mut server = TcpStream::connect(shared.server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut cuts = shared.cuts.subscribe();
    let (mut asked, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
    // The last bytes were a request: the client waits.
    let mut waits = false;
    let mut streams = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let bytes = asked.get(..read?).unwrap_or_default();
                if bytes.is_empty() {
                    // The server must see the end of the request, too.
                    server.shutdown().await?;
                    return Ok(());
                }
                shared.up.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                (waits, streams) = (true, false);
                server.write_all(bytes).await?;
            }
            read = server.read(&mut answered) => {
                let bytes = answered.get(..read?).unwrap_or_default();
                if bytes.is_empty() {
                    return Ok(());
                }
                waits = false;
                streams |= is_stream(bytes);
                let (pass, ends) = shared.passing(bytes.len());
                let bytes = bytes.get(..pass).unwrap_or_default();
                shared.down.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                client.write_all(bytes).await?;
                if ends {
                    client.set_zero_linger()?;
                    server.set_zero_linger()?;
                    return Ok(());
                }
            }
            changed = cuts.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                let (_, how) = *cuts.borrow_and_update();
                if !waits && !streams {
                    continue;
                }
                server.set_zero_linger()?;
                match how {
                    Cut::Status500 if waits => client.write_all(FAILED).await?,
                    Cut::Reset | Cut::Status500 => client.set_zero_linger()?,
                }
                return Ok(());
            }
        }
    }
}

const FAILED: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\n\
    content-length: 15\r\nconnection: close\r\n\r\nsomething broke";

/// Whether an event stream begins here.
fn is_stream(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(2048)).unwrap_or_default();
    String::from_utf8_lossy(head).contains("text/event-stream")
}
