//! Worlds, their people and their tokens.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

shapes! {
    /// A request that makes a world.
    #[serde(deny_unknown_fields)]
    CreateWorld {
        /// 1 to 64 letters, digits, `_`, `.` or `-`.
        #[schema(example = "payments")]
        world_id: String,
        /// NARRATIVE (clock STEP, registry OPEN) unless given, or WORKSPACE (clock WALL, registry
        /// CLOSED).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        /// WALL or STEP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clock: Option<String>,
        /// OPEN or CLOSED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        registry: Option<String>,
        /// What people see of the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operator_label: Option<String>,
        /// An IANA name; UTC unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
        /// When the world begins; now unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<String>,
        /// Whether projections show the pocket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pocket_available: Option<bool>,
        /// `silence` unless given, or `cmd: PROGRAM ARGUMENTS`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<String>,
        /// In whose names the attached writer may write; everyone's unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_persons: Option<Vec<String>>,
        /// Bounds of the attached writer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<WorldLimits>,
        /// Its people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        persons: Option<Vec<Person>>,
    }
    /// A change of a world's configuration; what is left out stays.
    #[serde(deny_unknown_fields)]
    ChangeWorld {
        /// What people see of the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operator_label: Option<String>,
        /// The zone from now on, by its IANA name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
        /// OPEN or CLOSED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        registry: Option<String>,
        /// `silence` or `cmd: PROGRAM ARGUMENTS`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<String>,
        /// In whose names the attached writer may write.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_persons: Option<Vec<String>>,
        /// Bounds of the attached writer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<WorldLimits>,
        /// Whether projections show the pocket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pocket_available: Option<bool>,
    }
    /// Bounds of a world's attached writer.
    #[serde(deny_unknown_fields)]
    WorldLimits {
        /// Its context in tokens of three bytes; at least 4096.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_tokens: Option<u64>,
        /// How long it may take for one beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_seconds: Option<u64>,
    }
    /// A world's configuration, people and clock.
    #[serde(deny_unknown_fields)]
    World {
        /// Its name.
        world_id: String,
        /// NARRATIVE or WORKSPACE.
        profile: String,
        /// What people see of the operator.
        operator_label: String,
        /// The zone in which local times are meant.
        timezone: String,
        /// WALL or STEP.
        clock: String,
        /// OPEN or CLOSED.
        registry: String,
        /// Whether projections show the pocket.
        pocket_available: bool,
        /// `silence` or `cmd: …`.
        writer: String,
        /// In whose names the attached writer may write; null: everyone's, and the world's.
        writer_persons: Option<Vec<String>>,
        /// Bounds of the attached writer.
        limits: WorldLimits,
        /// When it began.
        start: String,
        /// The persons that were added, by id.
        persons: Vec<Person>,
        /// The world whose past it shares.
        forked_from: Option<ForkedFrom>,
        /// The rehydrations of its attached writer.
        rehydrations: Rehydrations,
        /// Its time.
        world_time: WorldClock,
    }
    /// How often a world's attached writer was full and began anew.
    #[serde(deny_unknown_fields)]
    Rehydrations {
        /// How often.
        count: u64,
        /// The content of the last one.
        last: Option<Rehydrated>,
    }
    /// The content of a rehydration.
    #[serde(deny_unknown_fields)]
    Rehydrated {
        /// Entries that it quotes.
        carried_entries: u64,
        /// Entries that the writer may see and that it leaves out; each can still be found.
        dropped_entries: u64,
    }
    /// The identity of a caller in a world.
    #[serde(deny_unknown_fields)]
    Seat {
        /// The world.
        world_id: String,
        /// Whose view it reads: a person, or GEORGE.
        view: String,
        /// Whether it may write.
        write: bool,
        /// What people see of the operator.
        operator_label: String,
        /// OPEN: whoever is named is a person; CLOSED: only those who were added.
        registry: String,
        /// The persons that were added, by id.
        persons: Vec<SeatPerson>,
    }
    /// The public part of a person of a world.
    #[serde(deny_unknown_fields)]
    SeatPerson {
        /// Who.
        person_id: String,
        /// What people see.
        display_label: String,
    }
    /// Where a fork came from.
    #[serde(deny_unknown_fields)]
    ForkedFrom {
        /// The world.
        world_id: String,
    }
    /// A world's time.
    #[serde(deny_unknown_fields)]
    WorldClock {
        /// Now.
        time: String,
        /// In which zone it is shown.
        timezone: String,
        /// Whether it stands still.
        paused: bool,
    }
    /// Every world.
    #[serde(deny_unknown_fields)]
    WorldList {
        /// By name.
        worlds: Vec<World>,
    }
    /// A request that makes a world from another's past.
    #[serde(deny_unknown_fields)]
    ForkWorld {
        /// The new world's name.
        world_id: String,
        /// A time, or a cursor of the operator's; now unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    }
    /// A person who may write and be written to.
    #[serde(deny_unknown_fields)]
    Person {
        /// 1 to 64 letters, digits, `_`, `.` or `-`; unique ignoring case.
        #[schema(example = "REVIEWER")]
        person_id: String,
        /// What people see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_label: Option<String>,
        /// Other names by which texts call this person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        aliases: Option<Vec<String>>,
        /// One line about who this is.
        #[serde(default)]
        identity: Option<String>,
        /// Whether this is a human.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        human: Option<bool>,
    }
    /// The people of a world.
    #[serde(deny_unknown_fields)]
    PersonList {
        /// By id.
        persons: Vec<Person>,
    }
    /// A request for a person's token.
    #[serde(deny_unknown_fields)]
    MintToken {
        /// Whose.
        person_id: String,
        /// Whether it may write; false unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<bool>,
        /// When it ends, RFC 3339; never unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<String>,
    }
    /// A token, without its secret.
    #[serde(deny_unknown_fields)]
    Token {
        /// Its id, by which it is revoked.
        token_id: String,
        /// Its owner.
        person_id: String,
        /// Whether it may write.
        write: bool,
        /// When it was made.
        created_at: String,
        /// When it ends.
        expires_at: Option<String>,
    }
    /// A token with its secret, which is shown this once.
    #[serde(deny_unknown_fields)]
    MintedToken {
        /// Its id, by which it is revoked.
        token_id: String,
        /// Its owner.
        person_id: String,
        /// Whether it may write.
        write: bool,
        /// When it was made.
        created_at: String,
        /// When it ends.
        expires_at: Option<String>,
        /// The secret.
        token: String,
    }
    /// The tokens of a world that count.
    #[serde(deny_unknown_fields)]
    TokenList {
        /// Oldest first.
        tokens: Vec<Token>,
    }
}
