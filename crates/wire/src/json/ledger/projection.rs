//! Projections: the content of a reader's screen.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

shapes! {
    /// An entry as a stream shows it.
    #[serde(deny_unknown_fields)]
    StreamEntry {
        /// Its id.
        entry_id: String,
        /// When, in the world.
        created_at_world: String,
        /// USER, VOICE or PEOPLE.
        channel: String,
        /// Null for USER and VOICE.
        author_label: Option<String>,
        /// The text, unchanged.
        text: String,
        /// The audience, if the request has `audience=1`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        visibility: Option<super::Visibility>,
    }
    /// A page of a stream.
    #[serde(deny_unknown_fields)]
    Stream {
        /// As it was given.
        cursor_before: Option<String>,
        /// Where the next page begins; null if nothing was ever visible.
        cursor_after: Option<String>,
        /// In order.
        entries: Vec<StreamEntry>,
    }
    /// The pocket's clock.
    #[serde(deny_unknown_fields)]
    PocketClock {
        /// The world's time.
        world_time: Option<String>,
        /// Its zone.
        timezone: Option<String>,
    }
    /// A calendar item.
    #[serde(deny_unknown_fields)]
    CalendarItem {
        /// Its id.
        item_id: String,
        /// Its source.
        entry_id: String,
        /// A part of the source's text.
        title: Option<String>,
        /// When it is.
        time: Option<String>,
        /// A part of the source's text.
        location: Option<String>,
        /// A part of the source's text.
        notes: Option<String>,
    }
    /// A message.
    #[serde(deny_unknown_fields)]
    MessageItem {
        /// Its id.
        item_id: String,
        /// Its source.
        entry_id: String,
        /// The author's label.
        from: Option<String>,
        /// A part of the source's text, or all of it.
        text: String,
        /// When it was written.
        time: String,
    }
    /// Calendar items.
    #[serde(deny_unknown_fields)]
    Calendar {
        /// Those that stand.
        items: Vec<CalendarItem>,
    }
    /// Messages.
    #[serde(deny_unknown_fields)]
    Messages {
        /// Those that stand.
        items: Vec<MessageItem>,
    }
    /// The pocket.
    #[serde(deny_unknown_fields)]
    Pocket {
        /// Whether it is shown.
        is_available: bool,
        /// The world's clock.
        clock: PocketClock,
        /// What is planned.
        calendar: Calendar,
        /// The messages between persons.
        messages: Messages,
    }
    /// What this beat wrote that the viewer may see.
    #[serde(deny_unknown_fields)]
    Debug {
        /// Whether it wrote.
        wrote: bool,
        /// The bundle.
        bundle_id: Option<String>,
    }
    /// What a screen shows.
    #[serde(deny_unknown_fields)]
    ProjectionOutput {
        /// From the request.
        request_id: String,
        /// The stream.
        stream: Stream,
        /// The pocket.
        pocket: Pocket,
        /// What this beat wrote.
        debug: Debug,
    }
}
