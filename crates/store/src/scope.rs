//! Who may touch what: every access goes through a tenant's scope.

use std::fmt;
use std::sync::Arc;

/// The name of a tenant.
///
/// Invariant: 1 to 64 characters of `[A-Za-z0-9_.-]`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

/// A text that cannot name a tenant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tenant's name has 1 to 64 characters of A-Z a-z 0-9 _ . -, not {0:?}")]
pub struct InvalidTenant(pub String);

impl Tenant {
    /// Take over a name.
    pub fn new(name: &str) -> Result<Self, InvalidTenant> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
            return Ok(Self(name.into()));
        }
        Err(InvalidTenant(name.chars().take(80).collect()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to read and write the data of one tenant, and of no other.
///
/// There are two ways to one: [`TenantScope::local`] for a process that works on its own data,
/// and an [`Authority`] for code that has checked who is asking.
///
/// ```
/// use throughline_store::TenantScope;
///
/// assert_eq!(TenantScope::local().tenant().as_str(), "local");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TenantScope(Tenant);

impl TenantScope {
    /// The scope of a process that has the store to itself: tenant `local`.
    pub fn local() -> Self {
        Self(Tenant("local".into()))
    }

    /// Whose data it is.
    pub fn tenant(&self) -> &Tenant {
        &self.0
    }
}

impl fmt::Debug for TenantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantScope({})", self.0)
    }
}

/// What an authenticator holds: the right to hand out scopes.
///
/// A process makes one when it starts and gives it to the one place that knows who is asking (the
/// server's authenticator, the command line of a user who owns the file). Nothing else should
/// be able to name it.
#[derive(Debug)]
pub struct Authority(());

impl Authority {
    /// Claim it. Call this where it is decided who may see what, and nowhere else.
    pub fn assume() -> Self {
        Self(())
    }

    /// The scope of a tenant that was authenticated.
    pub fn scope(&self, tenant: Tenant) -> TenantScope {
        TenantScope(tenant)
    }
}
