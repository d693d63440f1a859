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
use super::stored::{ChainLink, Storage};
use super::vendor;
use super::window::{Prompts, Window};

/// Builds a server; see [`Upstream::of`].
pub struct Setup {
    profile: Profile,
    origins: Origins,
    script: Script,
    fault: Option<(Fault, Extent)>,
    window: Option<u64>,
    storage: Storage,
    numbered_after: usize,
}

impl Setup {
    /// Sets the answers.
    #[must_use]
    pub fn script(mut self, script: impl Into<Script>) -> Self {
        self.script = script.into();
        self
    }

    /// Changes which histories are accepted. The profile's wire must be the server's.
    #[must_use]
    pub fn profile(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.profile);
        self
    }

    /// Sets which ids and seals are accepted.
    #[must_use]
    pub fn origins(mut self, origins: Origins) -> Self {
        self.origins = origins;
        self
    }

    /// Sets an initial fault.
    #[must_use]
    pub fn fault(mut self, fault: Fault, extent: Extent) -> Self {
        self.fault = Some((fault, extent));
        self
    }

    /// Sets a context window. Requests are counted, billed and compared with the previous one; of
    /// long conversations only the last bodies are recorded.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Lists the input of a stored answer with everything before it, as some services do.
    #[must_use]
    pub fn lists_inherited_input(mut self) -> Self {
        self.storage.lists_inherited = true;
        self
    }

    /// Sets how many items of a list a page has at most.
    #[must_use]
    pub fn page(mut self, items: usize) -> Self {
        self.storage.page = items.max(1);
        self
    }

    /// Makes a service that deletes nothing.
    #[must_use]
    pub fn without_deletion(mut self) -> Self {
        self.storage.deletes = false;
        self
    }

    /// Counts requests from the one after this, so that ids differ from those of other servers.
    #[must_use]
    pub fn numbered_after(mut self, number: usize) -> Self {
        self.numbered_after = number;
        self
    }

    /// Starts to listen.
    ///
    /// # Panics
    ///
    /// If there is no free port on loopback, or no thread can be started.
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
                storage: self.storage,
                numbered_after: self.numbered_after,
            }),
            seen: watch::Sender::new(0),
        });
        let (orders, waiting) = mpsc::channel(4);
        let theirs = Arc::clone(&shared);
        // A runtime of its own, because a test may pause the time of its own runtime.
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

/// A server that behaves like a vendor: it accepts and refuses what the vendor does, and answers by
/// script. It stops when it is dropped.
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
    /// Builds a server for a vendor's format.
    pub fn of(wire: Wire) -> Setup {
        Setup {
            profile: Profile::newest(wire),
            origins: Origins::default(),
            script: Script::default(),
            fault: None,
            window: None,
            storage: Storage::default(),
            numbered_after: 0,
        }
    }

    /// Starts a strict server for a vendor's format with these answers.
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

    /// The base URL of a client of the vendor.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin(), vendor::base_path(&self.wire))
    }

    /// The endpoint of a Foundry project.
    pub fn project(&self) -> String {
        format!("{}/api/projects/harbour", self.origin())
    }

    /// Creates an empty conversation at the service; returns its id.
    pub fn conversation(&self) -> String {
        self.shared.state().memory.conversation()
    }

    /// The ids of the answers and conversations that the service stores.
    pub fn stored(&self) -> Vec<String> {
        self.shared.state().memory.stored.ids()
    }

    /// The conversation that a stored answer ends, oldest first; none if the service does not have all
    /// of it.
    pub fn chain(&self, id: &str) -> Option<Vec<ChainLink>> {
        self.shared.state().memory.stored.chain(id)
    }

    /// Every received request, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().recorded.clone()
    }

    /// The counts.
    pub fn counts(&self) -> Counts {
        self.shared.state().counts
    }

    /// The counts of prompts, if there is a context window.
    pub fn prompts(&self) -> Option<Prompts> {
        self.shared.state().window.as_ref().map(|one| one.prompts)
    }

    /// The number of answers that are left in the script.
    pub fn left(&self) -> usize {
        self.shared.state().script.left()
    }

    /// Appends an answer to the script.
    pub fn push(&self, reply: Reply) {
        self.shared.state().script.push(reply);
    }

    /// Waits until this many requests have arrived.
    pub async fn received(&self, requests: usize) {
        let mut seen = self.shared.seen.subscribe();
        // The sender lives as long as this server.
        let _ = seen.wait_for(|count| *count >= requests).await;
    }

    /// Starts a fault. [`Fault::Refused`] lasts until [`Upstream::heal`], whatever its extent,
    /// because there are no connections on which requests could be counted.
    pub async fn inflict(&self, fault: Fault, extent: Extent) {
        self.shared.state().fault = Some((fault, extent));
        self.order(match fault {
            Fault::Refused => Order::Close,
            _ => Order::Open,
        })
        .await;
    }

    /// Ends all faults.
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
            // A server that panicked has failed its test already.
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

/// Serves one connection until either side closes it.
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
