//! Requests that `xclip` never makes: several at once, old ones, stale ones, sent by the protocol
//! itself.

use std::time::{Duration, Instant};

use turnkeep_pty::desktop::{ClipboardProvider, X11Clipboard};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ConnectionExt as _, CreateWindowAux, GetPropertyReply, PropMode,
    SelectionNotifyEvent, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::program::noise;
use crate::x_server::XServer;

/// A program that asks for the selection.
struct Requestor {
    connection: RustConnection,
    window: Window,
}

impl Requestor {
    fn new(server: &XServer) -> Self {
        let (connection, screen) = RustConnection::connect(Some(&server.display)).unwrap();
        let root = connection.setup().roots[screen].root;
        let window = connection.generate_id().unwrap();
        let (class, aux) = (WindowClass::INPUT_ONLY, CreateWindowAux::new());
        connection
            .create_window(0, window, root, 0, 0, 1, 1, 0, class, 0, &aux)
            .unwrap()
            .check()
            .unwrap();
        Self { connection, window }
    }

    fn atom(&self, name: &str) -> Atom {
        self.connection
            .intern_atom(false, name.as_bytes())
            .unwrap()
            .reply()
            .unwrap()
            .atom
    }

    /// Asks for a target into a property and waits for the answer.
    fn ask(&self, target: &str, property: Atom) -> SelectionNotifyEvent {
        let (clipboard, target) = (self.atom("CLIPBOARD"), self.atom(target));
        let asked =
            self.connection
                .convert_selection(self.window, clipboard, target, property, 0_u32);
        asked.unwrap().check().unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            if let Some(Event::SelectionNotify(event)) = self.connection.poll_for_event().unwrap() {
                return event;
            }
            assert!(Instant::now() < deadline, "the owner does not answer");
            std::thread::yield_now();
        }
    }

    /// Takes the pieces of a large content until the empty one.
    fn pieces(&self, property: Atom) -> Vec<u8> {
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut content = Vec::new();
        loop {
            let (kind, length) = (AtomEnum::ANY, 1 << 20);
            let asked = self
                .connection
                .get_property(true, self.window, property, kind, 0, length);
            match asked.unwrap().reply().unwrap() {
                reply if reply.type_ == 0 => assert!(Instant::now() < deadline, "no piece follows"),
                reply if reply.value.is_empty() => return content,
                reply => content.extend(reply.value),
            }
        }
    }

    fn property(&self, property: Atom) -> GetPropertyReply {
        let (kind, length) = (AtomEnum::ANY, 1 << 20);
        self.connection
            .get_property(false, self.window, property, kind, 0, length)
            .unwrap()
            .reply()
            .unwrap()
    }
}

#[test]
fn several_conversions_are_answered_at_once_and_the_impossible_one_is_marked() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    clipboard.write(b"several").unwrap();
    let requestor = Requestor::new(&server);
    let [pairs_at, text_at, time_at, image_at] =
        ["PAIRS", "A", "B", "C"].map(|name| requestor.atom(name));
    let [text, time, image] =
        ["UTF8_STRING", "TIMESTAMP", "image/png"].map(|name| requestor.atom(name));
    let pairs = [text, text_at, time, time_at, image, image_at];
    let (mode, kind) = (PropMode::REPLACE, requestor.atom("ATOM_PAIR"));
    requestor
        .connection
        .change_property32(mode, requestor.window, pairs_at, kind, &pairs)
        .unwrap();
    assert_eq!(requestor.ask("MULTIPLE", pairs_at).property, pairs_at);
    let answered: Vec<Atom> = requestor.property(pairs_at).value32().unwrap().collect();
    assert_eq!(answered, [text, text_at, time, time_at, image, 0]);
    assert_eq!(requestor.property(text_at).value, b"several");
    assert!(
        requestor
            .property(time_at)
            .value32()
            .unwrap()
            .next()
            .is_some_and(|time| time > 0)
    );
    assert_eq!(requestor.property(image_at).type_, 0);
}

#[test]
fn a_request_without_a_property_is_answered_into_the_target() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    clipboard.write(b"as of old").unwrap();
    let requestor = Requestor::new(&server);
    let target = requestor.atom("UTF8_STRING");
    assert_eq!(requestor.ask("UTF8_STRING", 0).property, target);
    assert_eq!(requestor.property(target).value, b"as of old");
    assert_eq!(
        requestor.ask("image/png", 0).property,
        0,
        "what there is not is refused"
    );
}

#[test]
fn a_large_content_is_announced_with_its_size() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    clipboard.write(&noise(5 << 20)).unwrap();
    let requestor = Requestor::new(&server);
    let property = requestor.atom("HERE");
    assert_eq!(requestor.ask("UTF8_STRING", property).property, property);
    let announced = requestor.property(property);
    assert_eq!(announced.type_, requestor.atom("INCR"));
    assert_eq!(announced.value32().unwrap().collect::<Vec<_>>(), [5 << 20]);
    // The requestor takes nothing; others are served all the same.
    assert_eq!(clipboard.read().unwrap().len(), 5 << 20);
}

#[test]
fn a_content_that_is_being_read_is_read_to_its_end_after_it_was_replaced() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    let content = noise(5 << 20);
    clipboard.write(&content).unwrap();
    let requestor = Requestor::new(&server);
    let property = requestor.atom("HERE");
    assert_eq!(requestor.ask("UTF8_STRING", property).property, property);
    clipboard.write(b"the next").unwrap();
    assert_eq!(clipboard.read().unwrap(), b"the next");
    let announced = requestor
        .connection
        .delete_property(requestor.window, property)
        .unwrap();
    announced.check().unwrap();
    assert!(
        requestor.pieces(property) == content,
        "all of what was begun"
    );
    assert!(clipboard.is_owner());
}
