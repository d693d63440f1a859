use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use throughline_model::Wire;
use throughline_wire::validate::Profile;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::fault::{Extent, Fault};
use super::http::{After, Connection};
use super::memory::{Memory, Origins};
use super::recorded::Recorded;
use super::reply::{Reply, Script};
use super::state::{Counts, ServerState};
use super::vendor;
use super::window::{Prompts, Window};

/// A server that is being set up; see [`Upstream::of`].
pub struct Setup {
    profile: Profile,
    origins: Origins,
    script: Script,
    fault: Option<(Fault, Extent)>,
    window: Option<u64>,
}

impl Setup {
    /// With these answers.
    #[must_use]
    pub fn script(mut self, script: impl Into<Script>) -> Self {
        self.script = script.into();
        self
    }

    /// With another idea of which histories to take. Its wire must be the server's.
    #[must_use]
    pub fn profile(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.profile);
        self
    }

    /// With another idea of where ids and seals may come from.
    #[must_use]
    pub fn origins(mut self, origins: Origins) -> Self {
        self.origins = origins;
        self
    }

    /// With something that goes wrong from the beginning.
    #[must_use]
    pub fn fault(mut self, fault: Fault, extent: Extent) -> Self {
        self.fault = Some((fault, extent));
        self
    }

    /// With a window that holds so many tokens. Requests are counted, billed and held against the one
    /// before; of long conversations only the last bodies are kept.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Begin to listen.
    ///
    /// # Panics
    ///
    /// If the machine has no port on loopback or no thread to give.
    pub async fn start(self) -> Upstream {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound port has an address");
        let refuses = matches!(self.fault, Some((Fault::Refused, _)));
        let shared = Arc::new(SharedServer {
            state: Mutex::new(ServerState {
                memory: Memory::new(self.origins),
                profile: self.profile.clone(),
                script: self.script,
                fault: self.fault,
                recorded: Vec::new(),
                counts: Counts::default(),
                origin: format!("http://{address}"),
                window: self.window.map(Window::new),
            }),
            seen: watch::Sender::new(0),
        });
        let (orders, waiting) = mpsc::channel(4);
        let theirs = Arc::clone(&shared);
        // Its own runtime: a test may pause the time of its own.
        let thread = std::thread::Builder::new()
            .name("upstream".into())
            .spawn(move || {
                tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .build()
                    .expect("a runtime can be made")
                    .block_on(run(listener, theirs, waiting))
            })
            .expect("a thread can be started");
        let upstream = Upstream {
            wire: self.profile.wire,
            address,
            shared,
            orders: Some(orders),
            thread: Some(thread),
        };
        if refuses {
            upstream.order(Order::Close).await;
        }
        upstream
    }
}

/// A server that behaves like a vendor: it takes what the vendor takes, refuses the rest in the
/// vendor's words, and answers by script. It stops when it is dropped.
pub struct Upstream {
    wire: Wire,
    address: SocketAddr,
    shared: Arc<SharedServer>,
    orders: Option<mpsc::Sender<(Order, oneshot::Sender<()>)>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

struct SharedServer {
    state: Mutex<ServerState>,
    seen: watch::Sender<usize>,
}

impl SharedServer {
    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upstream {
    /// A server for a vendor's format, to be set up.
    pub fn of(wire: Wire) -> Setup {
        Setup {
            profile: Profile::newest(wire),
            origins: Origins::default(),
            script: Script::default(),
            fault: None,
            window: None,
        }
    }

    /// A strict server for a vendor's format with these answers.
    pub async fn start(wire: Wire, script: impl Into<Script>) -> Self {
        Self::of(wire).script(script).start().await
    }

    /// The format.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The server's address.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a client of the vendor is given as its address.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin(), vendor::base_path(&self.wire))
    }

    /// The endpoint of a Foundry project.
    pub fn project(&self) -> String {
        format!("{}/api/projects/harbour", self.origin())
    }

    /// A new conversation at the service, without anything in it; its id.
    pub fn conversation(&self) -> String {
        self.shared.state().memory.conversation()
    }

    /// Every request that came, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().recorded.clone()
    }

    /// How often what happened.
    pub fn counts(&self) -> Counts {
        self.shared.state().counts
    }

    /// What became of prompts, if there is a window for them.
    pub fn prompts(&self) -> Option<Prompts> {
        self.shared.state().window.as_ref().map(|one| one.prompts)
    }

    /// How many answers of the script are left.
    pub fn left(&self) -> usize {
        self.shared.state().script.left()
    }

    /// One more answer at the end of the script.
    pub fn push(&self, reply: Reply) {
        self.shared.state().script.push(reply);
    }

    /// Wait until so many requests have come.
    pub async fn received(&self, requests: usize) {
        let mut seen = self.shared.seen.subscribe();
        // The sender lives as long as this server.
        let _ = seen.wait_for(|count| *count >= requests).await;
    }

    /// From now on something goes wrong. [`Fault::Refused`] lasts until [`Upstream::heal`],
    /// whatever its extent: no connection is there to count requests.
    pub async fn inflict(&self, fault: Fault, extent: Extent) {
        self.shared.state().fault = Some((fault, extent));
        self.order(match fault {
            Fault::Refused => Order::Close,
            _ => Order::Open,
        })
        .await;
    }

    /// From now on nothing goes wrong.
    pub async fn heal(&self) {
        self.shared.state().fault = None;
        self.order(Order::Open).await;
    }

    async fn order(&self, order: Order) {
        let (done, finished) = oneshot::channel();
        if let Some(orders) = &self.orders
            && orders.send((order, done)).await.is_ok()
        {
            let _ = finished.await;
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A server that failed has failed its test already.
            let _ = thread.join();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Open,
    Close,
}

async fn run(
    listener: std::net::TcpListener,
    shared: Arc<SharedServer>,
    mut orders: mpsc::Receiver<(Order, oneshot::Sender<()>)>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let mut listener = Some(TcpListener::from_std(listener)?);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some((order, done)) = order else {
                    return Ok(());
                };
                match order {
                    Order::Close => {
                        listener = None;
                        connections.shutdown().await;
                    }
                    Order::Open if listener.is_none() => {
                        listener = Some(TcpListener::bind(address).await?);
                    }
                    Order::Open => {}
                }
                let _ = done.send(());
            }
            accepted = accept(listener.as_ref()) => {
                let (stream, _) = accepted?;
                let number = {
                    let mut state = shared.state();
                    state.counts.connections += 1;
                    state.counts.connections
                };
                connections.spawn(serve(stream, number, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// One connection, request by request, until one side has enough of it.
async fn serve(stream: TcpStream, number: usize, shared: Arc<SharedServer>) {
    let mut connection = Connection::new(stream);
    while let Ok(Some(request)) = connection.request().await {
        let (acts, count) = {
            let mut state = shared.state();
            let acts = state.answer(&request, number);
            (acts, state.counts.requests)
        };
        shared.seen.send_replace(count);
        match connection.perform(acts).await {
            Ok(After::Keep) => {}
            Ok(After::Gone) | Err(_) => return,
        }
    }
}
