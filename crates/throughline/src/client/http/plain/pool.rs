//! Connections that wait for the next request.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Id};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::target::Target;
use crate::client::http::KEEP;

/// What is known of each host and port, by the runtime that connections are in: only that hears of
/// what comes on them, and without it they are of no use to anybody.
#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<Id, Hosts>>);

struct Hosts {
    by_authority: HashMap<String, Host>,
    /// Whoever closes what is not used. It goes with its runtime.
    watcher: AbortHandle,
}

/// A host and port that was reached before.
#[derive(Default)]
struct Host {
    /// The connections that wait, the newest last.
    waiting: Vec<(Instant, TcpStream)>,
    /// One that is on its way for whoever comes next.
    coming: Option<(Instant, TcpStream)>,
    /// Where it was when it was last looked up, and when that was. A name may be another's tomorrow.
    address: Option<(Instant, SocketAddr)>,
}

impl Host {
    /// Close what nobody used for long; whether something is left.
    fn prune(&mut self) -> bool {
        self.address.take_if(|(since, _)| since.elapsed() >= KEEP);
        self.waiting.retain_mut(is_open);
        self.coming.take_if(|(since, _)| since.elapsed() >= COMING);
        !self.waiting.is_empty() || self.coming.is_some() || self.address.is_some()
    }
}

/// How long a connection that was begun may wait for somebody, and how often the pool is looked at.
const COMING: Duration = Duration::from_secs(10);

impl Pool {
    /// A connection that is still open.
    pub(super) fn take(&self, target: &Target) -> Option<TcpStream> {
        self.known(target, |host| {
            while host.waiting.pop_if(|one| !is_open(one)).is_some() {}
            host.waiting.pop().map(|(_, stream)| stream)
        })?
    }

    /// A connection that is on its way.
    pub(super) fn take_coming(&self, target: &Target) -> Option<TcpStream> {
        self.known(target, |host| {
            let (since, stream) = host.coming.take()?;
            (since.elapsed() < COMING).then_some(stream)
        })?
    }

    /// Have a connection made for whoever comes next, unless there is one.
    pub(super) fn get_ready(
        &self,
        target: &Target,
        begin: impl FnOnce(SocketAddr) -> io::Result<TcpStream>,
    ) {
        self.known(target, |host| {
            host.coming.take_if(|(since, _)| since.elapsed() >= COMING);
            while host.waiting.pop_if(|one| !is_open(one)).is_some() {}
            host.address.take_if(|(since, _)| since.elapsed() >= KEEP);
            if let (true, None, Some((_, address))) =
                (host.waiting.is_empty(), &host.coming, host.address)
            {
                host.coming = begin(address).ok().map(|stream| (Instant::now(), stream));
            }
        });
    }

    /// A host was looked up and reached.
    pub(super) fn reached(self: &Arc<Self>, target: &Target, stream: &TcpStream) {
        let address = stream.peer_addr().ok();
        self.change(target, |host| {
            host.address = address.map(|address| (Instant::now(), address));
        });
    }

    /// A host is not where it was.
    pub(super) fn lost(&self, target: &Target) {
        self.known(target, |host| {
            host.address = None;
        });
    }

    /// Keep a connection whose answer has been read.
    pub(super) fn keep(self: &Arc<Self>, target: &Target, stream: TcpStream) {
        self.change(target, |host| host.waiting.push((Instant::now(), stream)));
    }

    /// Do something with a host that is known in this runtime.
    fn known<T>(&self, target: &Target, act: impl FnOnce(&mut Host) -> T) -> Option<T> {
        let runtime = Handle::try_current().ok()?;
        let mut runtimes = self.runtimes();
        let hosts = runtimes.get_mut(&runtime.id())?;
        Some(act(hosts.by_authority.get_mut(&target.authority)?))
    }

    /// Change what is known of a host, known or not. Without a runtime nobody could use it.
    fn change(self: &Arc<Self>, target: &Target, change: impl FnOnce(&mut Host)) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut runtimes = self.runtimes();
        let hosts = match runtimes.get_mut(&runtime.id()) {
            Some(hosts) => hosts,
            None => {
                // What was in runtimes that are gone is closed here.
                runtimes.retain(|_, hosts| !hosts.watcher.is_finished());
                let watcher = runtime.spawn(watch(Arc::downgrade(self), runtime.id()));
                runtimes.entry(runtime.id()).or_insert_with(|| Hosts {
                    by_authority: HashMap::new(),
                    watcher: watcher.abort_handle(),
                })
            }
        };
        match hosts.by_authority.get_mut(&target.authority) {
            Some(host) => change(host),
            None => {
                let mut host = Host::default();
                change(&mut host);
                hosts.by_authority.insert(target.authority.clone(), host);
            }
        }
    }

    fn runtimes(&self) -> MutexGuard<'_, HashMap<Id, Hosts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection that waits can still be used.
fn is_open((since, stream): &mut (Instant, TcpStream)) -> bool {
    since.elapsed() < KEEP && is_quiet(stream)
}

/// Whether a connection has neither ended nor anything to say that nobody asked for. The system is
/// asked, because the runtime may not have heard of it yet.
pub(super) fn is_quiet(stream: &TcpStream) -> bool {
    let peeked = SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
    matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Close connections of a runtime that nobody uses, until there are none.
async fn watch(pool: std::sync::Weak<Pool>, runtime: Id) {
    loop {
        tokio::time::sleep(COMING).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut runtimes = pool.runtimes();
        let Some(hosts) = runtimes.get_mut(&runtime) else {
            return;
        };
        hosts.by_authority.retain(|_, host| host.prune());
        if hosts.by_authority.is_empty() {
            runtimes.remove(&runtime);
            return;
        }
    }
}
