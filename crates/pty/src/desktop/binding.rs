//! A key combination as a person writes it: `Super+Shift+C`.
//!
//! Modifiers in any order and case, then one key. At least one modifier is required, because a bare
//! key that is taken from every program would be lost for typing. The text form is canonical:
//! parsing the displayed text gives the same binding.

use std::fmt;
use std::str::FromStr;

/// The held modifier keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modifiers(u8);

impl Modifiers {
    /// The Super key, also called Win, Logo or Mod4.
    pub const SUPER: Self = Self(1);
    /// Control.
    pub const CTRL: Self = Self(2);
    /// Alt, also called Meta or Mod1.
    pub const ALT: Self = Self(4);
    /// Shift.
    pub const SHIFT: Self = Self(8);

    const NAMES: [(Self, &'static str); 4] = [
        (Self::SUPER, "Super"),
        (Self::CTRL, "Ctrl"),
        (Self::ALT, "Alt"),
        (Self::SHIFT, "Shift"),
    ];

    /// Whether all of `other` are held.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of modifiers together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "super" | "win" | "logo" | "mod4" => Some(Self::SUPER),
            "ctrl" | "control" => Some(Self::CTRL),
            "alt" | "meta" | "mod1" => Some(Self::ALT),
            "shift" => Some(Self::SHIFT),
            _ => None,
        }
    }
}

/// The key itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A character, letters in lower case.
    Char(char),
    /// F1 to F24.
    Function(u8),
    /// A key with a name.
    Named(NamedKey),
}

/// A key that has a name instead of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamedKey {
    name: &'static str,
    keysym: u32,
    tmux: &'static str,
}

const NAMED: [NamedKey; 15] = [
    NamedKey {
        name: "Space",
        keysym: 0x20,
        tmux: "Space",
    },
    NamedKey {
        name: "Plus",
        keysym: 0x2b,
        tmux: "+",
    },
    NamedKey {
        name: "Tab",
        keysym: 0xff09,
        tmux: "Tab",
    },
    NamedKey {
        name: "Enter",
        keysym: 0xff0d,
        tmux: "Enter",
    },
    NamedKey {
        name: "Escape",
        keysym: 0xff1b,
        tmux: "Escape",
    },
    NamedKey {
        name: "Backspace",
        keysym: 0xff08,
        tmux: "BSpace",
    },
    NamedKey {
        name: "Insert",
        keysym: 0xff63,
        tmux: "IC",
    },
    NamedKey {
        name: "Delete",
        keysym: 0xffff,
        tmux: "DC",
    },
    NamedKey {
        name: "Home",
        keysym: 0xff50,
        tmux: "Home",
    },
    NamedKey {
        name: "End",
        keysym: 0xff57,
        tmux: "End",
    },
    NamedKey {
        name: "PageUp",
        keysym: 0xff55,
        tmux: "PPage",
    },
    NamedKey {
        name: "PageDown",
        keysym: 0xff56,
        tmux: "NPage",
    },
    NamedKey {
        name: "Up",
        keysym: 0xff52,
        tmux: "Up",
    },
    NamedKey {
        name: "Down",
        keysym: 0xff54,
        tmux: "Down",
    },
    NamedKey {
        name: "Print",
        keysym: 0xff61,
        tmux: "",
    },
];

impl Key {
    fn parse(word: &str) -> Option<Self> {
        let mut chars = word.chars();
        if let (Some(char), None) = (chars.next(), chars.next()) {
            // Shift is named as a modifier, so `C` and `c` are the same key.
            let lower = char.to_lowercase().next().unwrap_or(char);
            return (!char.is_control() && !char.is_whitespace()).then_some(Self::Char(lower));
        }
        if let Some(number) = word
            .strip_prefix(['f', 'F'])
            .and_then(|digits| digits.parse().ok())
        {
            return (1..=24).contains(&number).then_some(Self::Function(number));
        }
        NAMED
            .into_iter()
            .find(|key| key.name.eq_ignore_ascii_case(word))
            .map(Self::Named)
    }

    /// The X11 keysym without Shift.
    pub(super) fn keysym(self) -> u32 {
        match self {
            // Latin-1 is its own keysym, everything else is its code point with a marker.
            Self::Char(char) if u32::from(char) < 0x100 => u32::from(char),
            Self::Char(char) => 0x0100_0000 | u32::from(char),
            Self::Function(number) => 0xffbd + u32::from(number),
            Self::Named(key) => key.keysym,
        }
    }
}

/// A key with at least one modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The keys to hold.
    pub modifiers: Modifiers,
    /// The key to press.
    pub key: Key,
}

/// The reason why a text is not a binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    /// No modifier.
    #[error(
        "`{0}` has no modifier: hold at least one of Super, Ctrl, Alt, Shift, as in Super+Shift+C"
    )]
    NoModifier(String),
    /// A word before the last is not a modifier.
    #[error("`{word}` in `{text}` is no modifier: expected Super, Ctrl, Alt or Shift")]
    UnknownModifier {
        /// The word.
        word: String,
        /// The whole text.
        text: String,
    },
    /// The same modifier twice.
    #[error("`{text}` names {word} twice")]
    Twice {
        /// The word.
        word: String,
        /// The whole text.
        text: String,
    },
    /// The last word is not a key.
    #[error(
        "`{word}` in `{text}` is no key: expected a character, F1 to F24, or a name such as Space, Tab, Plus"
    )]
    UnknownKey {
        /// The word.
        word: String,
        /// The whole text.
        text: String,
    },
    /// A combination that ends in a modifier.
    #[error("`{0}` ends in a modifier: name the key to press, as in Super+Shift+C")]
    NoKey(String),
}

impl FromStr for Binding {
    type Err = BindingError;

    fn from_str(text: &str) -> Result<Self, BindingError> {
        let words: Vec<&str> = text.split('+').map(str::trim).collect();
        let (last, held) = words.split_last().unwrap_or((&"", &[]));
        let whole = || text.to_owned();
        let mut modifiers = Modifiers::default();
        for word in held {
            let unknown = || BindingError::UnknownModifier {
                word: (*word).to_owned(),
                text: whole(),
            };
            let modifier = Modifiers::parse(word).ok_or_else(unknown)?;
            // A repeated modifier is most likely a typing error.
            if modifiers.contains(modifier) {
                return Err(BindingError::Twice {
                    word: (*word).to_owned(),
                    text: whole(),
                });
            }
            modifiers = modifiers.and(modifier);
        }
        // Checked before the key, so that `Super+Shift` gets the message that helps.
        if Modifiers::parse(last).is_some() {
            return Err(BindingError::NoKey(whole()));
        }
        let unknown = || BindingError::UnknownKey {
            word: (*last).to_owned(),
            text: whole(),
        };
        let key = Key::parse(last).ok_or_else(unknown)?;
        if modifiers == Modifiers::default() {
            return Err(BindingError::NoModifier(whole()));
        }
        Ok(Self { modifiers, key })
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in Modifiers::NAMES {
            if self.modifiers.contains(modifier) {
                write!(f, "{name}+")?;
            }
        }
        match self.key {
            Key::Char(char) => write!(f, "{}", char.to_uppercase()),
            Key::Function(number) => write!(f, "F{number}"),
            Key::Named(key) => f.write_str(key.name),
        }
    }
}

impl Binding {
    /// The name of the combination in tmux, or what a terminal lacks for it.
    pub(super) fn tmux_name(&self) -> Result<String, &'static str> {
        // A terminal sends no byte for Super.
        if self.modifiers.contains(Modifiers::SUPER) {
            return Err("Super");
        }
        let mut name = String::new();
        let ctrl = self.modifiers.contains(Modifiers::CTRL);
        let shift = self.modifiers.contains(Modifiers::SHIFT);
        if ctrl {
            name.push_str("C-");
        }
        if self.modifiers.contains(Modifiers::ALT) {
            name.push_str("M-");
        }
        match self.key {
            // A terminal sends Shift with a letter as the capital, unless Ctrl folds the case.
            Key::Char(char) if shift && !ctrl && char.is_alphabetic() => {
                name.extend(char.to_uppercase());
            }
            Key::Char(char) if shift => name.extend(['S', '-', char]),
            Key::Char(char) => name.push(char),
            Key::Function(number) if number > 12 => return Err("key beyond F12"),
            Key::Function(number) => {
                name.push_str(if shift { "S-F" } else { "F" });
                name.push_str(&number.to_string());
            }
            Key::Named(key) if key.tmux.is_empty() => return Err("such key"),
            Key::Named(key) => {
                name.push_str(if shift { "S-" } else { "" });
                name.push_str(key.tmux);
            }
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_reads_as_it_is_shown() {
        for (text, shown, keysym) in [
            ("Super+Shift+C", "Super+Shift+C", 0x63),
            ("shift + super+c", "Super+Shift+C", 0x63),
            ("win+v", "Super+V", 0x76),
            ("Control+Alt+F5", "Ctrl+Alt+F5", 0xffc2),
            ("ctrl+plus", "Ctrl+Plus", 0x2b),
            ("Meta+pageup", "Alt+PageUp", 0xff55),
            ("Alt+ж", "Alt+Ж", 0x0100_0436),
            ("Alt+1", "Alt+1", 0x31),
        ] {
            let binding: Binding = text.parse().unwrap();
            assert_eq!(
                (binding.to_string().as_str(), binding.key.keysym()),
                (shown, keysym),
                "{text}"
            );
            assert_eq!(shown.parse(), Ok(binding));
        }
    }

    #[test]
    fn what_is_wrong_with_a_binding_is_said() {
        for (text, expect) in [
            (
                "C",
                "`C` has no modifier: hold at least one of Super, Ctrl, Alt, Shift, as in Super+Shift+C",
            ),
            (
                "Hyper+C",
                "`Hyper` in `Hyper+C` is no modifier: expected Super, Ctrl, Alt or Shift",
            ),
            ("Alt+alt+C", "`Alt+alt+C` names alt twice"),
            (
                "Super+Shift",
                "`Super+Shift` ends in a modifier: name the key to press, as in Super+Shift+C",
            ),
            (
                "Super+Foo",
                "`Foo` in `Super+Foo` is no key: expected a character, F1 to F24, or a name such as Space, Tab, Plus",
            ),
            (
                "Super+F25",
                "`F25` in `Super+F25` is no key: expected a character, F1 to F24, or a name such as Space, Tab, Plus",
            ),
            (
                "",
                "`` in `` is no key: expected a character, F1 to F24, or a name such as Space, Tab, Plus",
            ),
        ] {
            assert_eq!(
                text.parse::<Binding>().unwrap_err().to_string(),
                expect,
                "{text}"
            );
        }
    }

    #[test]
    fn tmux_has_its_own_names() {
        for (text, expect) in [
            ("Alt+Shift+C", Ok("M-C")),
            ("Alt+c", Ok("M-c")),
            ("Ctrl+Alt+v", Ok("C-M-v")),
            ("Ctrl+Shift+v", Ok("C-S-v")),
            ("Shift+F3", Ok("S-F3")),
            ("Alt+Delete", Ok("M-DC")),
            ("Super+Shift+C", Err("Super")),
            ("Alt+F13", Err("key beyond F12")),
            ("Alt+Print", Err("such key")),
        ] {
            let name = text.parse::<Binding>().unwrap().tmux_name();
            assert_eq!(name.as_deref().map_err(|lacks| *lacks), expect, "{text}");
        }
    }
}
