//! The ids of everything in a run: UUIDs, drawn from a seed that the edge passes in.
//!
//! The text form is the usual one, in lower case: `8-4-4-4-12` hex digits. Parsing also accepts
//! upper case. The same seed gives the same ids, so a decision can be repeated in a test.

use std::fmt;
use std::str::FromStr;

/// The text is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a UUID")]
pub struct ParseUuidError(pub String);

/// The lengths of the groups of hex digits in a UUID.
const GROUP_DIGITS: [usize; 5] = [8, 4, 4, 4, 12];

fn write_uuid(number: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let digits = format!("{number:032x}");
    let mut rest = digits.as_str();
    for (place, length) in GROUP_DIGITS.into_iter().enumerate() {
        let (group, behind) = rest.split_at(length);
        if place > 0 {
            f.write_str("-")?;
        }
        f.write_str(group)?;
        rest = behind;
    }
    Ok(())
}

fn read_uuid(text: &str) -> Option<u128> {
    let mut groups = text.split('-');
    let mut number = 0u128;
    for length in GROUP_DIGITS {
        let group = groups.next()?;
        // `from_str_radix` also accepts a sign.
        if group.len() != length || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        number = (number << (4 * length)) | u128::from_str_radix(group, 16).ok()?;
    }
    groups.next().is_none().then_some(number)
}

/// An id that is a UUID.
pub trait Uuid: Copy {
    /// The id with these 128 bits.
    fn from_bits(bits: u128) -> Self;
    /// The id's 128 bits.
    fn bits(self) -> u128;
}

macro_rules! uuid_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl Uuid for $name {
            fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            fn bits(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_uuid(self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseUuidError;

            fn from_str(text: &str) -> Result<Self, ParseUuidError> {
                read_uuid(text).map(Self).ok_or_else(|| ParseUuidError(text.to_owned()))
            }
        }
    };
}

uuid_type! {
    /// A run.
    RunId
}
uuid_type! {
    /// A node: one agent in a run.
    NodeId
}
uuid_type! {
    /// An edge between two nodes.
    EdgeId
}
uuid_type! {
    /// An envelope: what one node hands to another.
    EnvelopeId
}
uuid_type! {
    /// A verification of the whole run.
    VerificationId
}
uuid_type! {
    /// A message to a node from a person or from the server.
    MessageId
}
uuid_type! {
    /// One turn of an agent. Turns of the store have numbers instead.
    AgentTurnId
}
uuid_type! {
    /// A call of a tool.
    ToolId
}
uuid_type! {
    /// A request for a person's decision.
    ApprovalId
}
uuid_type! {
    /// A rule that answers approvals.
    RuleId
}
uuid_type! {
    /// A file that a run made: a diff, a prompt, a log.
    ArtifactId
}
uuid_type! {
    /// An event of a run.
    EventId
}

/// A source of random ids. The same seed gives the same ids.
pub struct IdSource(blake3::OutputReader);

impl IdSource {
    /// Makes a source from 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(blake3::Hasher::new_keyed(seed).finalize_xof())
    }

    /// Makes a source of its own for another task.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let mut seed = [0; 32];
        self.0.fill(&mut seed);
        Self::from_seed(&seed)
    }

    /// Draws a new id, a UUID of version 4.
    pub fn draw<T: Uuid>(&mut self) -> T {
        const VERSION_BITS: u128 = 0xf << 76;
        const VARIANT_BITS: u128 = 0x3 << 62;
        let mut bytes = [0; 16];
        self.0.fill(&mut bytes);
        let random = u128::from_le_bytes(bytes);
        let cleared = random & !VERSION_BITS & !VARIANT_BITS;
        T::from_bits(cleared | (0x4 << 76) | (0x2 << 62))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_id_reads_back_as_it_prints_and_is_of_version_4() {
        let mut ids = IdSource::from_seed(&[7; 32]);
        for _ in 0..100 {
            let id: NodeId = ids.draw();
            let text = id.to_string();
            assert_eq!(text.parse::<NodeId>().unwrap(), id);
            assert_eq!(text.to_uppercase().parse::<NodeId>().unwrap(), id);
            assert_eq!(&text[14..15], "4", "{text}");
            assert!("89ab".contains(&text[19..20]), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        let good = "0b5f1c9e-8a3d-4c55-9a67-0123456789ab";
        assert!(good.parse::<RunId>().is_ok());
        for bad in [
            "",
            "0b5f1c9e8a3d4c559a670123456789ab",
            "+b5f1c9e-8a3d-4c55-9a67-0123456789ab",
            "0b5f1c9e-8a3d-4c55-9a67-0123456789abc",
            "0b5f1c9e-8a3d-4c55-9a67-0123456789ab-",
            "0b5f1c9e-8a3d-4c55-9a67-0123456789ag",
        ] {
            assert!(bad.parse::<RunId>().is_err(), "{bad:?}");
        }
    }
}
