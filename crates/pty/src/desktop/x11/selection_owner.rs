//! The owner of the CLIPBOARD selection: claims it, answers requests, and ends when it is lost.
//!
//! The bytes are offered unchanged as text under all its X11 names; `STRING` means Latin-1 and is
//! offered only for ASCII. Contents above [`INLINE_BYTES_MAX`] are sent in pieces (INCR). Transfers
//! that were begun are finished even after the selection is lost. A requestor that is gone causes
//! only an error event.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ConnectionExt as _, EventMask, PropMode, Property, PropertyNotifyEvent,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Timestamp, Window,
};
use x11rb::wrapper::ConnectionExt as _;

use super::connection::XConnection;
use super::transfer::{TransferPiece, Transfers};
use super::{Atoms, connect, hidden_window, wait_readable};
use crate::desktop::error::{ClipboardError, DesktopError};

/// The largest content that is sent at once; a larger one would block the server, or be refused by
/// it.
const INLINE_BYTES_MAX: usize = 128 << 10;
/// How many conversions one MULTIPLE request may contain.
const MULTIPLE_MAX: usize = 32;
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(5);

/// The owner of the selection.
#[derive(Debug)]
pub(super) struct SelectionOwner {
    connection: XConnection,
    window: Window,
    atoms: Atoms,
    since: Timestamp,
    content: Vec<u8>,
    transfers: Transfers,
    lost: bool,
}

impl SelectionOwner {
    /// Becomes the owner, or fails when another program did.
    pub(super) fn claim(display: &str, content: Vec<u8>) -> Result<Self, ClipboardError> {
        let (connection, root) = connect(display)?;
        let window = hidden_window(&connection, root)?;
        let atoms = Atoms::new(&connection)
            .map_err(DesktopError::from)?
            .reply()
            .map_err(DesktopError::from)?;
        let since = server_time(&connection, window, &atoms)?;
        let claimed = (|| {
            connection
                .set_selection_owner(window, atoms.CLIPBOARD, since)?
                .check()?;
            Ok::<_, DesktopError>(
                connection
                    .get_selection_owner(atoms.CLIPBOARD)?
                    .reply()?
                    .owner,
            )
        })()?;
        // Another program may have claimed it with a later time.
        if claimed != window {
            return Err(ClipboardError::NotOwner);
        }
        let transfers = Transfers::default();
        Ok(Self {
            connection,
            window,
            atoms,
            since,
            content,
            transfers,
            lost: false,
        })
    }

    /// Answers until the selection is lost and the last transfer is over, or until `stop` is
    /// closed.
    pub(super) fn serve(mut self, stop: &PipeReader) -> Result<(), DesktopError> {
        loop {
            self.handle_events()?;
            self.transfers.drop_stale(Instant::now());
            if self.lost && self.transfers.is_empty() {
                // The server may drop unread requests of a connection that is closed.
                return Ok(self.connection.sync()?);
            }
            let connection = self.connection.stream().as_fd();
            wait_readable(&[connection, stop.as_fd()], self.transfers.deadline())?;
            if wait_readable(&[stop.as_fd()], Some(Instant::now()))? {
                return Ok(());
            }
        }
    }

    /// Handles events until nothing is left to read or send: sending may read further events.
    fn handle_events(&mut self) -> Result<(), DesktopError> {
        while let Some(event) = self.connection.poll_for_event()? {
            self.handle_event(&event)?;
            while let Some(event) = self.connection.poll_for_event()? {
                self.handle_event(&event)?;
            }
            self.connection.flush()?;
        }
        Ok(())
    }

    fn handle_event(&mut self, event: &Event) -> Result<(), DesktopError> {
        match event {
            Event::SelectionRequest(request) => self.handle_request(request),
            Event::PropertyNotify(event) => self.handle_property_change(event),
            Event::DestroyNotify(event) => {
                self.transfers.drop_window(event.window);
                Ok(())
            }
            Event::SelectionClear(event) => {
                self.lost |= event.selection == self.atoms.CLIPBOARD;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn handle_request(&mut self, request: &SelectionRequestEvent) -> Result<(), DesktopError> {
        // Old programs name no property and mean the target.
        let property = if request.property == 0 {
            request.target
        } else {
            request.property
        };
        // A request for another selection, or for an owner before us, must fail.
        let is_ours = request.owner == self.window && request.selection == self.atoms.CLIPBOARD;
        let done = match request.target {
            _ if !is_ours => false,
            target if target == self.atoms.MULTIPLE => {
                self.write_multiple(request.requestor, property)?
            }
            target => self.write_conversion(request.requestor, property, target)?,
        };
        let notify = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property: if done { property } else { 0 },
        };
        self.connection
            .send_event(false, request.requestor, EventMask::NO_EVENT, notify)?;
        Ok(())
    }

    /// Writes one conversion into a property; returns whether it is supported.
    fn write_conversion(
        &mut self,
        to: Window,
        property: Atom,
        target: Atom,
    ) -> Result<bool, DesktopError> {
        let mode = PropMode::REPLACE;
        if target == self.atoms.TARGETS {
            let targets = self.all_targets();
            self.connection
                .change_property32(mode, to, property, AtomEnum::ATOM, &targets)?;
        } else if target == self.atoms.TIMESTAMP {
            self.connection.change_property32(
                mode,
                to,
                property,
                AtomEnum::INTEGER,
                &[self.since],
            )?;
        } else if self.text_targets().contains(&target) {
            // TEXT asks the owner to choose the encoding.
            let kind = if target == self.atoms.TEXT {
                self.atoms.UTF8_STRING
            } else {
                target
            };
            return self.write_text(to, property, kind);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn write_text(&mut self, to: Window, property: Atom, kind: Atom) -> Result<bool, DesktopError> {
        if self.content.len() <= INLINE_BYTES_MAX {
            self.connection.change_property8(
                PropMode::REPLACE,
                to,
                property,
                kind,
                &self.content,
            )?;
            return Ok(true);
        }
        if !self.transfers.begin(to, property, kind, Instant::now()) {
            return Ok(false);
        }
        // The requestor deletes the announcement to start, so we must listen before we make it.
        let listen = x11rb::protocol::xproto::ChangeWindowAttributesAux::new()
            .event_mask(EventMask::PROPERTY_CHANGE | EventMask::STRUCTURE_NOTIFY);
        self.connection.change_window_attributes(to, &listen)?;
        let size = u32::try_from(self.content.len()).unwrap_or(u32::MAX);
        self.connection.change_property32(
            PropMode::REPLACE,
            to,
            property,
            self.atoms.INCR,
            &[size],
        )?;
        Ok(true)
    }

    /// Writes several conversions of one request: pairs of target and property; the property of a
    /// failed one is cleared.
    fn write_multiple(&mut self, to: Window, property: Atom) -> Result<bool, DesktopError> {
        let length = u32::try_from(MULTIPLE_MAX * 2).unwrap_or(u32::MAX);
        let asked = self
            .connection
            .get_property(false, to, property, AtomEnum::ANY, 0, length)?;
        let Ok(reply) = asked.reply() else {
            return Ok(false);
        };
        let Some(values) = reply.value32() else {
            return Ok(false);
        };
        let mut pairs: Vec<Atom> = values.collect();
        // A target may not be MULTIPLE again: the requests could nest for ever.
        for pair in pairs.chunks_exact_mut(2) {
            if let [target, at] = pair
                && (*target == self.atoms.MULTIPLE
                    || *at == 0
                    || !self.write_conversion(to, *at, *target)?)
            {
                *at = 0;
            }
        }
        self.connection
            .change_property32(PropMode::REPLACE, to, property, reply.type_, &pairs)?;
        Ok(true)
    }

    fn text_targets(&self) -> Vec<Atom> {
        let atoms = &self.atoms;
        let mut texts = vec![
            atoms.UTF8_STRING,
            atoms.TEXT_PLAIN_UTF8,
            atoms.TEXT_PLAIN,
            atoms.TEXT,
            atoms.OCTETS,
        ];
        if self.content.is_ascii() {
            texts.push(AtomEnum::STRING.into());
        }
        texts
    }

    fn all_targets(&self) -> Vec<Atom> {
        let mut targets = vec![
            self.atoms.TARGETS,
            self.atoms.TIMESTAMP,
            self.atoms.MULTIPLE,
        ];
        targets.extend(self.text_targets());
        targets
    }

    /// Sends the next piece after the requestor has taken the last one.
    fn handle_property_change(&mut self, event: &PropertyNotifyEvent) -> Result<(), DesktopError> {
        if event.state != Property::DELETE {
            return Ok(());
        }
        let Some(next) =
            self.transfers
                .next_piece(event.window, event.atom, self.content.len(), Instant::now())
        else {
            return Ok(());
        };
        let TransferPiece {
            kind,
            range,
            is_last,
        } = next;
        let piece = self.content.get(range).unwrap_or_default();
        let (to, property) = (event.window, event.atom);
        self.connection
            .change_property8(PropMode::REPLACE, to, property, kind, piece)?;
        // Another transfer to the same window still needs its events.
        if is_last && !self.transfers.has_window(to) {
            let ignore = x11rb::protocol::xproto::ChangeWindowAttributesAux::new()
                .event_mask(EventMask::NO_EVENT);
            self.connection.change_window_attributes(to, &ignore)?;
        }
        Ok(())
    }
}

/// The server's current time, which a claim must carry, read from a change of our own window.
fn server_time(
    connection: &XConnection,
    window: Window,
    atoms: &Atoms,
) -> Result<Timestamp, DesktopError> {
    let property = atoms.TURNKEEP_TRANSFER;
    connection
        .change_property8(PropMode::APPEND, window, property, AtomEnum::STRING, b"")?
        .check()?;
    let deadline = Instant::now() + CLAIM_WAIT_MAX;
    loop {
        if let Some(Event::PropertyNotify(event)) = connection.poll_for_event()? {
            return Ok(event.time);
        }
        if !wait_readable(&[connection.stream().as_fd()], Some(deadline))? {
            // A claim without a time is legal, only easier to lose in a race.
            return Ok(x11rb::CURRENT_TIME);
        }
    }
}
