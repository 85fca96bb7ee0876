//! The keyboard mapping of the X server: which key carries a symbol, and which bit is a modifier.
//! It is a snapshot; the caller reads it again when the mapping changes.

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, ModMask};

use super::connection::XConnection;
use crate::desktop::DesktopError;
use crate::desktop::binding::{Binding, Modifiers};

const NUM_LOCK: u32 = 0xff7f;
const ALT: [u32; 2] = [0xffe9, 0xffea];
const SUPER: [u32; 2] = [0xffeb, 0xffec];

/// A snapshot of the keyboard's mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keyboard {
    first_code: u8,
    symbols_per_code: usize,
    symbols: Vec<u32>,
    super_bit: u16,
    alt_bit: u16,
    num_lock_bit: u16,
}

/// A key and the modifier bits to hold, as the server names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chord {
    pub(super) code: u8,
    pub(super) bits: u16,
}

impl Keyboard {
    /// Reads the mapping from the server.
    pub(super) fn read(connection: &XConnection) -> Result<Self, DesktopError> {
        let (first_code, last_code) = (
            connection.setup().min_keycode,
            connection.setup().max_keycode,
        );
        let count = last_code.saturating_sub(first_code).saturating_add(1);
        let symbols = connection
            .get_keyboard_mapping(first_code, count)?
            .reply()?;
        let modifiers = connection.get_modifier_mapping()?.reply()?;
        let mut keyboard = Self {
            first_code,
            symbols_per_code: usize::from(symbols.keysyms_per_keycode).max(1),
            symbols: symbols.keysyms,
            super_bit: 0,
            alt_bit: 0,
            num_lock_bit: 0,
        };
        keyboard.find_modifiers(&modifiers.keycodes);
        Ok(keyboard)
    }

    /// Finds the modifier bits in eight rows of key codes, one row per bit.
    fn find_modifiers(&mut self, codes: &[u8]) {
        let find = |symbols: &[u32]| {
            let rows = codes.chunks((codes.len() / 8).max(1)).take(8).enumerate();
            let mut with =
                rows.filter(|(_, row)| row.iter().any(|code| self.has_symbol(*code, symbols)));
            with.next().map(|(bit, _)| 1 << bit)
        };
        let (super_bit, alt_bit, num_lock_bit) = (find(&SUPER), find(&ALT), find(&[NUM_LOCK]));
        // The usual bits, for a keyboard that maps no such key.
        self.super_bit = super_bit.unwrap_or(u16::from(ModMask::M4));
        self.alt_bit = alt_bit.unwrap_or(u16::from(ModMask::M1));
        self.num_lock_bit = num_lock_bit.unwrap_or(0);
    }

    fn has_symbol(&self, code: u8, symbols: &[u32]) -> bool {
        let row = code.checked_sub(self.first_code).map(usize::from);
        let row = row.and_then(|row| self.symbols.chunks(self.symbols_per_code).nth(row));
        row.is_some_and(|row| row.iter().any(|symbol| symbols.contains(symbol)))
    }

    /// The chord of a binding; `None` when no key carries its symbol. The first column, what a key
    /// types alone, is searched before the others (further layouts).
    pub(super) fn chord_for(&self, binding: &Binding) -> Option<Chord> {
        let symbol = binding.key.keysym();
        let rows = || self.symbols.chunks(self.symbols_per_code);
        let plain = rows().position(|row| row.first() == Some(&symbol));
        let row = plain.or_else(|| rows().position(|row| row.contains(&symbol)))?;
        let code = u8::try_from(row).ok()?.checked_add(self.first_code)?;
        Some(Chord {
            code,
            bits: self.modifier_bits(binding.modifiers),
        })
    }

    fn modifier_bits(&self, held: Modifiers) -> u16 {
        [
            (Modifiers::SUPER, self.super_bit),
            (Modifiers::ALT, self.alt_bit),
            (Modifiers::CTRL, u16::from(ModMask::CONTROL)),
            (Modifiers::SHIFT, u16::from(ModMask::SHIFT)),
        ]
        .into_iter()
        .filter(|(modifier, _)| held.contains(*modifier))
        .fold(0, |bits, (_, bit)| bits | bit)
    }

    /// Every state of the locks, because a grab is for one exact set of bits.
    pub(super) fn lock_states(&self) -> Vec<u16> {
        let caps = u16::from(ModMask::LOCK);
        let mut states = vec![0, caps, self.num_lock_bit, caps | self.num_lock_bit];
        states.sort_unstable();
        states.dedup();
        states
    }

    /// The bits of an event without the locks.
    pub(super) fn without_locks(&self, state: u16) -> u16 {
        // Beyond the eight modifiers are mouse buttons and the layout.
        state & 0xff & !(u16::from(ModMask::LOCK) | self.num_lock_bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes 8… carry: c C, v V, Super, Alt, `NumLock`, and Cyrillic with c in the second layout.
    fn keyboard() -> Keyboard {
        let rows = [
            [0x63, 0x43],
            [0x76, 0x56],
            [0xffeb, 0],
            [0xffe9, 0],
            [NUM_LOCK, 0],
            [0x06d3, 0x78],
        ];
        let mut keyboard = Keyboard {
            first_code: 8,
            symbols_per_code: 2,
            symbols: rows.concat(),
            super_bit: 0,
            alt_bit: 0,
            num_lock_bit: 0,
        };
        keyboard.find_modifiers(&[0, 0, 0, 11, 12, 0, 10, 0]);
        keyboard
    }

    #[test]
    fn a_binding_becomes_the_key_and_bits_of_this_keyboard() {
        for (binding, expect) in [
            (
                "Super+Shift+C",
                Some(Chord {
                    code: 8,
                    bits: 0x41,
                }),
            ),
            (
                "Ctrl+Alt+V",
                Some(Chord {
                    code: 9,
                    bits: 0x0c,
                }),
            ),
            (
                "Alt+X",
                Some(Chord {
                    code: 13,
                    bits: 0x08,
                }),
            ),
            ("Alt+Q", None),
        ] {
            assert_eq!(
                keyboard().chord_for(&binding.parse().unwrap()),
                expect,
                "{binding}"
            );
        }
    }

    #[test]
    fn the_locks_make_no_difference() {
        let keyboard = keyboard();
        assert_eq!(keyboard.lock_states(), [0x00, 0x02, 0x10, 0x12]);
        for state in keyboard.lock_states() {
            assert_eq!(keyboard.without_locks(0x41 | state | 0x2100), 0x41);
        }
    }
}
