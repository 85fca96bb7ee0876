//! The owner of the CLIPBOARD selection: claims it, answers requests, and goes when it is lost.
//!
//! The bytes are offered as text in all its X11 names, exactly as they are; `STRING` means Latin-1
//! and is offered only for ASCII. Contents above [`INLINE_BYTES_MAX`] go piece by piece (INCR).
//! Transfers that were begun are finished even after the selection is lost. A requestor that is
//! gone shows as an error event, which concerns nobody else.

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

use super::link::Link;
use super::transfer::{Step, Transfers};
use super::{Atoms, connect, hidden_window, wait_readable};
use crate::desktop::error::{ClipboardError, DesktopError};

/// Larger contents would hold up the server, or be refused by it.
const INLINE_BYTES_MAX: usize = 128 << 10;
/// Conversions that one MULTIPLE request may ask for.
const MULTIPLE_MAX: usize = 32;
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(5);

/// Whoever owns the selection.
#[derive(Debug)]
pub(super) struct Owner {
    connection: Link,
    window: Window,
    atoms: Atoms,
    since: Timestamp,
    content: Vec<u8>,
    transfers: Transfers,
    lost: bool,
}

impl Owner {
    /// Becomes the owner, or says that another program did.
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
            self.answer_all()?;
            self.transfers.drop_stale(Instant::now());
            if self.lost && self.transfers.is_empty() {
                // The server may drop what it has not read yet of a connection that is closed.
                return Ok(self.connection.sync()?);
            }
            let connection = self.connection.stream().as_fd();
            wait_readable(&[connection, stop.as_fd()], self.transfers.deadline())?;
            if wait_readable(&[stop.as_fd()], Some(Instant::now()))? {
                return Ok(());
            }
        }
    }

    /// Answers what came until nothing is left to be read or sent: sending may read what comes
    /// meanwhile.
    fn answer_all(&mut self) -> Result<(), DesktopError> {
        while let Some(event) = self.connection.poll_for_event()? {
            self.on(&event)?;
            while let Some(event) = self.connection.poll_for_event()? {
                self.on(&event)?;
            }
            self.connection.flush()?;
        }
        Ok(())
    }

    fn on(&mut self, event: &Event) -> Result<(), DesktopError> {
        match event {
            Event::SelectionRequest(request) => self.on_request(request),
            Event::PropertyNotify(event) => self.on_property(event),
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

    fn on_request(&mut self, request: &SelectionRequestEvent) -> Result<(), DesktopError> {
        // Old programs name no property and mean the target.
        let property = if request.property == 0 {
            request.target
        } else {
            request.property
        };
        let is_ours = request.owner == self.window && request.selection == self.atoms.CLIPBOARD;
        let done = match request.target {
            _ if !is_ours => false,
            target if target == self.atoms.MULTIPLE => {
                self.answer_multiple(request.requestor, property)?
            }
            target => self.answer(request.requestor, property, target)?,
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

    /// Puts one conversion into a property; whether there is such a conversion.
    fn answer(&mut self, to: Window, property: Atom, target: Atom) -> Result<bool, DesktopError> {
        let mode = PropMode::REPLACE;
        if target == self.atoms.TARGETS {
            let targets = self.targets();
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
        } else if self.texts().contains(&target) {
            // TEXT asks the owner to choose the encoding.
            let kind = if target == self.atoms.TEXT {
                self.atoms.UTF8_STRING
            } else {
                target
            };
            return self.answer_text(to, property, kind);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn answer_text(
        &mut self,
        to: Window,
        property: Atom,
        kind: Atom,
    ) -> Result<bool, DesktopError> {
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
        // We must hear of the deletion of the announcement, so listen before making it.
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

    /// Several conversions in one request: pairs of target and property, a failed one's property is
    /// cleared.
    fn answer_multiple(&mut self, to: Window, property: Atom) -> Result<bool, DesktopError> {
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
        for pair in pairs.chunks_exact_mut(2) {
            if let [target, at] = pair
                && (*target == self.atoms.MULTIPLE || *at == 0 || !self.answer(to, *at, *target)?)
            {
                *at = 0;
            }
        }
        self.connection
            .change_property32(PropMode::REPLACE, to, property, reply.type_, &pairs)?;
        Ok(true)
    }

    fn texts(&self) -> Vec<Atom> {
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

    fn targets(&self) -> Vec<Atom> {
        let mut targets = vec![
            self.atoms.TARGETS,
            self.atoms.TIMESTAMP,
            self.atoms.MULTIPLE,
        ];
        targets.extend(self.texts());
        targets
    }

    /// The requestor took the last piece: the next one.
    fn on_property(&mut self, event: &PropertyNotifyEvent) -> Result<(), DesktopError> {
        if event.state != Property::DELETE {
            return Ok(());
        }
        let Some(step) =
            self.transfers
                .step(event.window, event.atom, self.content.len(), Instant::now())
        else {
            return Ok(());
        };
        let Step {
            kind,
            range,
            is_last,
        } = step;
        let piece = self.content.get(range).unwrap_or_default();
        let (to, property) = (event.window, event.atom);
        self.connection
            .change_property8(PropMode::REPLACE, to, property, kind, piece)?;
        if is_last && !self.transfers.concerns(to) {
            let ignore = x11rb::protocol::xproto::ChangeWindowAttributesAux::new()
                .event_mask(EventMask::NO_EVENT);
            self.connection.change_window_attributes(to, &ignore)?;
        }
        Ok(())
    }
}

/// The server's time now, which a claim must carry: taken from a change of our own window.
fn server_time(
    connection: &Link,
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
