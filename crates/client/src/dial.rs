//! Makes a connection: TCP, TLS when configured, HELLO. All of it within one time-out.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use turnkeep_wire::message::{Hello, ItemForm};
use turnkeep_wire::{Request, Response, Text};

use crate::connection::{ConnectionLimits, Permits, ServerConnection, Waiter};
use crate::error::Error;
use crate::options::{Options, Tls};
use crate::tls::client_config;

/// The protocol's version that this client speaks.
const VERSION: u16 = 1;
/// The longest tag: the server only logs it.
const TAG_BYTES_MAX: usize = 256;

/// The address, TLS setup and HELLO of new connections.
pub(crate) struct Dialer {
    addr: String,
    hello: Request,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    options: Options,
}

impl Dialer {
    pub(crate) fn new(addr: &str, options: Options) -> Result<Self, Error> {
        let tls = options
            .tls
            .as_ref()
            .map(|tls| tls_connector(addr, tls))
            .transpose()?;
        let meta = match &options.token {
            Some(token) => serde_json::json!({ "token": token }).to_string(),
            None => "{}".to_owned(),
        };
        // A character has at most four bytes.
        let tag: String = options.tag.chars().take(TAG_BYTES_MAX / 4).collect();
        let hello = Hello {
            version: VERSION,
            tag: Text::from(tag),
            meta: Bytes::from(meta),
        };
        Ok(Self {
            addr: addr.to_owned(),
            hello: Request::Hello(Some(hello)),
            tls,
            options,
        })
    }

    /// Dials once, within the time-out.
    pub(crate) async fn dial(&self) -> Result<ServerConnection, Error> {
        let dialled =
            tokio::time::timeout(self.options.timeouts.connect, self.connect_and_greet()).await;
        dialled.unwrap_or_else(|_| Err(self.connect_error(io::ErrorKind::TimedOut.into())))
    }

    async fn connect_and_greet(&self) -> Result<ServerConnection, Error> {
        let stream = TcpStream::connect(&self.addr)
            .await
            .map_err(|error| self.connect_error(error))?;
        // The client combines writes itself; delaying small ones would only add latency.
        stream
            .set_nodelay(true)
            .map_err(|error| self.connect_error(error))?;
        let limits = ConnectionLimits {
            request_bytes_max: self.options.request_bytes_max,
            frame_bytes_max: self.options.frame_bytes_max,
            answer_timeout: self.options.timeouts.answer,
        };
        let connection = match &self.tls {
            None => ServerConnection::start(stream, limits),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                ServerConnection::start(stream.map_err(|error| self.connect_error(error))?, limits)
            }
        };
        self.say_hello(&connection).await?;
        Ok(connection)
    }

    /// Sends HELLO and waits for the server to accept it.
    async fn say_hello(&self, connection: &ServerConnection) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        // Without permits: a full client must still be able to reconnect.
        connection.send_request(Waiter::Reply(reply, Permits::default()), &self.hello)?;
        let frame = answer
            .await
            .map_err(|_| Error::Lost(crate::Lost::Closed))??;
        match Response::decode(frame, ItemForm::Plain)? {
            Response::Hello(_) => Ok(()),
            Response::Error(failure) => Err(Error::Server((&failure).into())),
            other => Err(Error::WrongAnswer(other.msg_type().to_wire())),
        }
    }

    fn connect_error(&self, error: io::Error) -> Error {
        Error::Connect {
            addr: self.addr.clone(),
            source: Arc::new(error),
        }
    }
}

fn tls_connector(addr: &str, tls: &Tls) -> Result<(TlsConnector, ServerName<'static>), Error> {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    // An IPv6 address stands in brackets, but a certificate names it without them.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = tls.server_name.clone().unwrap_or_else(|| host.to_owned());
    let name = ServerName::try_from(name).map_err(|error| Error::Tls(error.to_string()))?;
    Ok((
        TlsConnector::from(Arc::new(client_config(&tls.ca_file)?)),
        name,
    ))
}
