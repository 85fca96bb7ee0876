//! Who may talk to the server: the token, and the rules about Host, Origin and cookies.
//!
//! [`Gate::decide`] is a pure function of the request's head. Its invariant has two parts. A page
//! of a foreign origin gets nothing, whatever the browser attaches to its requests. A host name that
//! foreign DNS points at this server (DNS rebinding) is rejected.
//!
//! The port in Host is not compared: rebinding forges names, and a forwarded port is still the same
//! server. Origin is compared completely.

use std::fmt;
use std::net::IpAddr;

use crate::config::ServerConfig;

/// Who may talk to the server.
#[derive(Debug, Clone)]
pub enum Auth {
    /// A request without a token is the owner's. A token that is sent is still checked: against
    /// the owner's, if it is given here, and against the persons'. For development and tests on
    /// loopback.
    Off(Option<Token>),
    /// Every request needs the owner's token or a person's.
    Token(Token),
}

impl Auth {
    /// Whether requests need no token.
    pub fn is_off(&self) -> bool {
        matches!(self, Self::Off(_))
    }

    /// Whether `given` is the owner's token.
    pub fn is_owner(&self, given: &[u8]) -> bool {
        match self {
            Self::Off(owner) => owner.as_ref().is_some_and(|owner| owner.matches(given)),
            Self::Token(owner) => owner.matches(given),
        }
    }
}

/// A secret. It is compared in constant time and never printed.
#[derive(Clone)]
pub struct Token {
    text: String,
    hash: blake3::Hash,
    cookie: String,
    cookie_hash: blake3::Hash,
}

impl Token {
    /// A token with this text.
    pub fn new(text: &str) -> Self {
        let cookie = hex::encode(blake3::derive_key(
            "turnkeep 2026 browser cookie",
            text.as_bytes(),
        ));
        let cookie_hash = blake3::hash(cookie.as_bytes());
        Self {
            text: text.to_owned(),
            hash: blake3::hash(text.as_bytes()),
            cookie,
            cookie_hash,
        }
    }

    /// Whether `given` is the token. Compares hashes, in a time that says nothing about the text.
    pub fn matches(&self, given: &[u8]) -> bool {
        blake3::hash(given) == self.hash
    }

    /// The token itself, for the link that its owner is shown.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    fn matches_cookie(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == self.cookie_hash
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The kinds of request that the rules distinguish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Reads: GET and HEAD.
    #[default]
    Read,
    /// Changes something: every other method.
    Change,
    /// Switches to another protocol, such as WebSocket.
    Upgrade,
    /// The request that a browser sends before a cross-origin request.
    Preflight,
}

/// The parts of a request that decide whether it is served.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestHead<'a> {
    /// Whether the route needs no token.
    pub(crate) open: bool,
    pub(crate) kind: RequestKind,
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) fetch_site: Option<&'a str>,
    pub(crate) bearer: Option<&'a str>,
    /// Whether the bearer token is a valid token of a person or of a node.
    pub(crate) person: bool,
    pub(crate) cookie: Option<&'a str>,
}

/// How an admitted request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The handler answers it.
    Serve(CallerKind),
    /// The gate answers it with the methods and headers that its origin may use.
    Preflight,
}

/// The credential of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerKind {
    /// None: the route needs no token.
    Anonymous,
    /// The owner's token or cookie, or nothing where no token is needed.
    Owner,
    /// A person's token, or a node's.
    Person,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("the request names no host")]
    NoHost,
    #[error("`{0}` is not a name of this server: start it with --allow-host to accept it")]
    Host(String),
    #[error("pages of `{0}` may not call this server: start it with --allow-origin to let them")]
    Origin(String),
    #[error("the request comes from another site ({0}) and says not from which")]
    CrossSite(String),
    #[error("a cookie alone may only read: send an Origin header or the token")]
    CookieAlone,
    #[error(
        "a token is needed: send `Authorization: Bearer TOKEN`, or open the link that `turnkeep up` prints"
    )]
    NoCredentials,
    #[error("the token is wrong")]
    WrongCredentials,
}

impl Denied {
    /// Whether the request's origin, if it named one, is one that may call.
    pub(crate) fn is_for_known_origin(&self) -> bool {
        match self {
            Self::NoHost | Self::Host(_) | Self::Origin(_) | Self::CrossSite(_) => false,
            Self::CookieAlone | Self::NoCredentials | Self::WrongCredentials => true,
        }
    }
}

/// The rules of one server.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    auth: Auth,
    scheme: &'static str,
    listen_ip: IpAddr,
    allow_hosts: Vec<String>,
    allow_origins: Vec<String>,
    cookie_name: String,
}

impl Gate {
    /// The rules for a server that listens with `config` on `port`.
    pub(crate) fn new(config: &ServerConfig, port: u16) -> Self {
        let lower = |list: &[String]| list.iter().map(|text| text.to_ascii_lowercase()).collect();
        Self {
            auth: config.auth.clone(),
            scheme: if config.tls.is_some() {
                "https"
            } else {
                "http"
            },
            listen_ip: config.http_addr.ip(),
            allow_hosts: lower(&config.allow_hosts),
            allow_origins: lower(&config.allow_origins),
            cookie_name: format!("turnkeep-{port}"),
        }
    }

    /// The name of the cookie. Browsers share cookies between ports, so the port is in the name.
    pub(crate) fn cookie_name(&self) -> &str {
        &self.cookie_name
    }

    /// The cookie for a caller with the owner's token; none if the token is wrong or not needed.
    pub(crate) fn cookie_for(&self, token: &str) -> Option<String> {
        let Auth::Token(owner) = &self.auth else {
            return None;
        };
        let secure = if self.scheme == "https" {
            "; Secure"
        } else {
            ""
        };
        owner.matches(token.as_bytes()).then(|| {
            format!(
                "{}={}; Path=/; HttpOnly; SameSite=Strict{secure}",
                self.cookie_name, owner.cookie
            )
        })
    }

    /// Whether requests need no token.
    pub(crate) fn is_off(&self) -> bool {
        self.auth.is_off()
    }

    /// Decides about a request that arrived at the local address `local`.
    pub(crate) fn decide(
        &self,
        head: &RequestHead<'_>,
        local: IpAddr,
    ) -> Result<Admission, Denied> {
        // Host first: after DNS rebinding a foreign page has our address, and its origin equals its
        // host. Only the name in Host gives it away.
        let host = head.host.ok_or(Denied::NoHost)?;
        if !self.is_our_host(host, local) {
            return Err(Denied::Host(host.to_owned()));
        }
        if let Some(origin) = head.origin.filter(|origin| !self.may_call(origin, host)) {
            return Err(Denied::Origin(origin.to_owned()));
        }
        if head.kind == RequestKind::Preflight {
            return Ok(Admission::Preflight);
        }
        let caller = if head.open {
            CallerKind::Anonymous
        } else {
            self.authenticate(head)?
        };
        Ok(Admission::Serve(caller))
    }

    fn authenticate(&self, head: &RequestHead<'_>) -> Result<CallerKind, Denied> {
        match (head.bearer, &self.auth) {
            (Some(bearer), auth) if auth.is_owner(bearer.as_bytes()) => Ok(CallerKind::Owner),
            (Some(_), _) if head.person => Ok(CallerKind::Person),
            // A wrong token is refused even where none is needed: its sender expects a check.
            (Some(_), _) => Err(Denied::WrongCredentials),
            (None, Auth::Off(_)) => same_site(head).map(|()| CallerKind::Owner),
            (None, Auth::Token(owner)) => by_cookie(owner, head).map(|()| CallerKind::Owner),
        }
    }

    fn is_our_host(&self, host: &str, local: IpAddr) -> bool {
        let host = host.to_ascii_lowercase();
        let Some(name) = host_name(&host) else {
            return false;
        };
        if name == "localhost"
            || self
                .allow_hosts
                .iter()
                .any(|ours| *ours == host || ours == name)
        {
            return true;
        }
        let literal = name
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(name);
        // A server that listens on all addresses is reached under each of them, so the address of this
        // connection counts too. `::ffff:127.0.0.1` and `127.0.0.1` are the same.
        let ip = literal.parse::<IpAddr>().map(|ip| ip.to_canonical());
        ip.is_ok_and(|ip| ip == self.listen_ip.to_canonical() || ip == local.to_canonical())
    }

    fn may_call(&self, origin: &str, host: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let ours = origin
            .strip_prefix(self.scheme)
            .and_then(|rest| rest.strip_prefix("://"));
        ours.is_some_and(|ours| ours.eq_ignore_ascii_case(host))
            || self.allow_origins.contains(&origin)
    }
}

/// Where no token is needed, a request must not come from a page of another site.
fn same_site(head: &RequestHead<'_>) -> Result<(), Denied> {
    match head.fetch_site {
        Some(site) if head.origin.is_none() && !matches!(site, "same-origin" | "none") => {
            Err(Denied::CrossSite(site.to_owned()))
        }
        _ => Ok(()),
    }
}

fn by_cookie(owner: &Token, head: &RequestHead<'_>) -> Result<(), Denied> {
    match head.cookie {
        Some(cookie) if !owner.matches_cookie(cookie) => Err(Denied::WrongCredentials),
        Some(_) if head.origin.is_none() && head.kind != RequestKind::Read => {
            Err(Denied::CookieAlone)
        }
        Some(_) => Ok(()),
        None => Err(Denied::NoCredentials),
    }
}

/// The name in `name`, `name:port`, `[ipv6]` or `[ipv6]:port`.
fn host_name(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') {
        host.find(']')? + 1
    } else {
        host.find(':').unwrap_or(host.len())
    };
    let (name, port) = host.split_at_checked(end)?;
    let port = port.strip_prefix(':').unwrap_or(port);
    (!name.is_empty() && port.bytes().all(|b| b.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests;
