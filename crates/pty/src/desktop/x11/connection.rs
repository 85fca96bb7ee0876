//! The connection to an X server, with a limit on every wait.
//!
//! x11rb waits for the server in one place, its stream's `poll`, and the limit is there. A server
//! that accepts a connection and stays silent, or stops answering (a forward whose other end is
//! gone), fails with a time-out instead of blocking its caller forever.

use std::io::{self, IoSlice};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use x11rb::errors::{ConnectError, DisplayParsingError};
use x11rb::reexports::x11rb_protocol::parse_display::{
    ConnectAddress, ParsedDisplay, parse_display,
};
use x11rb::reexports::x11rb_protocol::xauth::{Family, get_auth};
use x11rb::rust_connection::{DefaultStream, PollMode, RustConnection, Stream};
use x11rb::utils::RawFdContainer;

/// A connection whose waits time out.
pub(super) type XConnection = RustConnection<TimeoutStream>;

/// How long the server may take for any answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);

/// Connects; returns the connection and the number of the display's screen.
pub(super) fn open(display: &str) -> Result<(XConnection, usize), ConnectError> {
    open_within(display, ANSWER_WAIT_MAX)
}

fn open_within(display: &str, limit: Duration) -> Result<(XConnection, usize), ConnectError> {
    let parsed = parse_display(Some(display))?;
    let screen = usize::from(parsed.screen);
    let mut failed = None;
    for address in parsed.connect_instruction() {
        match connect_address(&address) {
            Ok((stream, peer)) => {
                return Ok((
                    authenticate(TimeoutStream { stream, limit }, &peer, &parsed)?,
                    screen,
                ));
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.map_or(
        ConnectError::DisplayParsingError(DisplayParsingError::Unknown),
        ConnectError::IoError,
    ))
}

/// Sends the authentication that the server's address requires, if any is known.
fn authenticate(
    stream: TimeoutStream,
    (family, address): &(Family, Vec<u8>),
    display: &ParsedDisplay,
) -> Result<XConnection, ConnectError> {
    let known = get_auth(*family, address, display.display).unwrap_or_default();
    let (name, data) = known.unwrap_or_default();
    RustConnection::connect_to_stream_with_auth_info(stream, display.screen.into(), name, data)
}

fn connect_address(address: &ConnectAddress<'_>) -> io::Result<(DefaultStream, (Family, Vec<u8>))> {
    match address {
        ConnectAddress::Hostname(host, port) => {
            DefaultStream::from_tcp_stream(connect_tcp((*host, *port))?)
        }
        ConnectAddress::Socket(path) => DefaultStream::from_unix_stream(connect_unix(path)?),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no such kind of address is known",
        )),
    }
}

fn connect_tcp(host: (&str, u16)) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, ANSWER_WAIT_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Connects to the socket of this path, or to the abstract one of the same name, which a container
/// shares with its host where it shares no directory. The path comes first, because its directory
/// protects it.
fn connect_unix(path: &str) -> io::Result<UnixStream> {
    let at_path = connect_socket(&SocketAddrUnix::new(path)?);
    at_path.or_else(|error| {
        connect_socket(&SocketAddrUnix::new_abstract_name(path.as_bytes())?).map_err(|_| error)
    })
}

/// Connects without blocking: a server that accepts no more connections fails at once.
fn connect_socket(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, address)?;
    Ok(UnixStream::from(socket))
}

/// A stream whose waits time out.
#[derive(Debug)]
pub(super) struct TimeoutStream {
    stream: DefaultStream,
    limit: Duration,
}

impl AsFd for TimeoutStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        AsFd::as_fd(&self.stream)
    }
}

impl Stream for TimeoutStream {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        wait_ready(AsFd::as_fd(&self.stream), flags, self.limit)
    }

    fn read(&self, buffer: &mut [u8], descriptors: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.stream.read(buffer, descriptors)
    }

    fn write(&self, buffer: &[u8], descriptors: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.stream.write(buffer, descriptors)
    }

    fn write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        descriptors: &mut Vec<RawFdContainer>,
    ) -> io::Result<usize> {
        self.stream.write_vectored(buffers, descriptors)
    }
}

fn wait_ready(fd: BorrowedFd<'_>, flags: PollFlags, limit: Duration) -> io::Result<()> {
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&left)) {
            Ok(0) => {
                let what = format!("no answer within {limit:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    #[test]
    fn a_server_is_reached_at_its_path_or_at_its_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("X7");
        let name = path.to_str().unwrap();
        assert_eq!(
            connect_unix(name).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        let unnamed = <SocketAddr as SocketAddrExt>::from_abstract_name(name).unwrap();
        let hidden = UnixListener::bind_addr(&unnamed).unwrap();
        connect_unix(name).unwrap();
        hidden.accept().unwrap();
        let shown = UnixListener::bind(&path).unwrap();
        connect_unix(name).unwrap();
        shown.accept().unwrap();
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up() {
        // Displays on TCP are ports from 6000 on.
        let (listener, display) = (6100..6200)
            .find_map(|port| {
                let listener = TcpListener::bind(("127.0.0.1", port)).ok()?;
                Some((listener, format!("127.0.0.1:{}", port - 6000)))
            })
            .expect("a free port");
        let message = open_within(&display, Duration::from_millis(50))
            .unwrap_err()
            .to_string();
        assert!(message.contains("no answer within 50ms"), "{message}");
        drop(listener);
        assert!(open(&display).is_err());
        assert!(open("no display").is_err());
    }
}
