//! Cursors: places in a reader's stream, made of the world, the reader and a count of visible
//! entries.
//!
//! A cursor contains nothing that its holder does not know, so it is not signed. Reading rejects a
//! cursor of another world or reader. A fork accepts the cursors of its origin up to the fork.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::fault::{Code, Fault};
use crate::view::View;

const CURSOR_BYTES_MAX: usize = 512;

/// Makes the cursor of a place in a view.
pub fn write(view: &View<'_>, place: u64) -> String {
    let text = format!(
        "{}/{}/{place}",
        view.world.config.world,
        view.viewer.as_str()
    );
    BASE64_URL_SAFE_NO_PAD.encode(text)
}

/// Returns the place of a cursor in a view, or a `BAD_CURSOR` fault.
pub fn read(view: &View<'_>, cursor: &str, path: &str) -> Result<u64, Fault> {
    let bad = || {
        Fault::new(
            Code::BadCursor,
            path,
            "is no cursor of this world and view: leave it out to start anew",
        )
    };
    let place = decode(view, cursor).ok_or_else(bad)?;
    if place <= view.count() {
        Ok(place)
    } else {
        Err(bad())
    }
}

fn decode(view: &View<'_>, cursor: &str) -> Option<u64> {
    let bytes = (cursor.len() <= CURSOR_BYTES_MAX)
        .then(|| BASE64_URL_SAFE_NO_PAD.decode(cursor).ok())
        .flatten()?;
    let text = String::from_utf8(bytes).ok()?;
    let mut parts = text.split('/');
    let (world, viewer, place) = (parts.next()?, parts.next()?, parts.next()?);
    // A place has one spelling only, so that equal cursors are equal bytes.
    let canonical = parts.next().is_none() && (place == "0" || !place.starts_with('0'));
    let place = place
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| place.parse().ok())
        .flatten()?;
    let ours = world == view.world.config.world.as_str();
    // A fork shares the past of its origin, so readers keep their place in it.
    let shared = || {
        let fork = view
            .world
            .forked
            .as_ref()
            .filter(|fork| fork.from.as_str() == world);
        fork.is_some_and(|fork| place <= view.count_before(fork.position))
    };
    (canonical && viewer == view.viewer.as_str() && (ours || shared())).then_some(place)
}
