//! The connection to an X server, with a limit on every wait.
//!
//! x11rb waits for the server in one place, its stream's `poll`: there the limit is. A server that
//! accepts a connection and says nothing, or stops answering in mid-request (a forward whose other
//! end is gone), fails with a time-out instead of holding its caller for ever.

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

/// A connection whose waits end.
pub(super) type Link = RustConnection<Patient>;

/// How long the server may take for anything it owes us.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);

/// Connects; the connection and the number of the display's screen.
pub(super) fn open(display: &str) -> Result<(Link, usize), ConnectError> {
    open_within(display, ANSWER_WAIT_MAX)
}

fn open_within(display: &str, limit: Duration) -> Result<(Link, usize), ConnectError> {
    let parsed = parse_display(Some(display))?;
    let screen = usize::from(parsed.screen);
    let mut failed = None;
    for address in parsed.connect_instruction() {
        match reach(&address) {
            Ok((stream, peer)) => {
                return Ok((
                    introduced(Patient { stream, limit }, &peer, &parsed)?,
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

/// Shows the server what it wants to see; one that wants nothing is told nothing.
fn introduced(
    stream: Patient,
    (family, address): &(Family, Vec<u8>),
    display: &ParsedDisplay,
) -> Result<Link, ConnectError> {
    let known = get_auth(*family, address, display.display).unwrap_or_default();
    let (name, data) = known.unwrap_or_default();
    RustConnection::connect_to_stream_with_auth_info(stream, display.screen.into(), name, data)
}

fn reach(address: &ConnectAddress<'_>) -> io::Result<(DefaultStream, (Family, Vec<u8>))> {
    match address {
        ConnectAddress::Hostname(host, port) => {
            DefaultStream::from_tcp_stream(call((*host, *port))?)
        }
        ConnectAddress::Socket(path) => DefaultStream::from_unix_stream(knock(path)?),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no such kind of address is known",
        )),
    }
}

fn call(host: (&str, u16)) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, ANSWER_WAIT_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Reaches the socket of this path, or the abstract one of the same name, which a container shares
/// with its host where it shares no directory. Whoever may write to the directory is trusted more:
/// it comes first.
fn knock(path: &str) -> io::Result<UnixStream> {
    let at_path = dial(&SocketAddrUnix::new(path)?);
    at_path.or_else(|error| {
        dial(&SocketAddrUnix::new_abstract_name(path.as_bytes())?).map_err(|_| error)
    })
}

/// A socket whose server takes no more connections refuses at once instead of waiting for a place.
fn dial(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, address)?;
    Ok(UnixStream::from(socket))
}

/// A stream that is waited for only so long.
#[derive(Debug)]
pub(super) struct Patient {
    stream: DefaultStream,
    limit: Duration,
}

impl AsFd for Patient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        AsFd::as_fd(&self.stream)
    }
}

impl Stream for Patient {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        wait(AsFd::as_fd(&self.stream), flags, self.limit)
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

fn wait(fd: BorrowedFd<'_>, flags: PollFlags, limit: Duration) -> io::Result<()> {
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
        assert_eq!(knock(name).unwrap_err().kind(), io::ErrorKind::NotFound);
        let unnamed = <SocketAddr as SocketAddrExt>::from_abstract_name(name).unwrap();
        let hidden = UnixListener::bind_addr(&unnamed).unwrap();
        knock(name).unwrap();
        hidden.accept().unwrap();
        let shown = UnixListener::bind(&path).unwrap();
        knock(name).unwrap();
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
        let said = open_within(&display, Duration::from_millis(50))
            .unwrap_err()
            .to_string();
        assert!(said.contains("no answer within 50ms"), "{said}");
        drop(listener);
        assert!(open(&display).is_err());
        assert!(open("no display").is_err());
    }
}
