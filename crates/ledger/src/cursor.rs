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

/// The parts of a cursor's text, `WORLD/READER/PLACE`.
struct CursorParts<'t> {
    world: &'t str,
    viewer: &'t str,
    place: u64,
}

fn decode(view: &View<'_>, cursor: &str) -> Option<u64> {
    if cursor.len() > CURSOR_BYTES_MAX {
        return None;
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let parts = split_parts(&text)?;
    if parts.viewer != view.viewer.as_str() {
        return None;
    }
    let is_own = parts.world == view.world.config.world.as_str();
    (is_own || is_shared_place(view, &parts)).then_some(parts.place)
}

fn split_parts(text: &str) -> Option<CursorParts<'_>> {
    let mut parts = text.split('/');
    let (world, viewer, place) = (parts.next()?, parts.next()?, parts.next()?);
    // A place has one spelling only, so that equal cursors are equal bytes. `parse` alone would
    // also take `+5` and `007`.
    let has_leading_zero = place.starts_with('0') && place != "0";
    let is_number = place.bytes().all(|byte| byte.is_ascii_digit());
    if parts.next().is_some() || has_leading_zero || !is_number {
        return None;
    }
    let place = place.parse().ok()?;
    Some(CursorParts {
        world,
        viewer,
        place,
    })
}

/// Whether a cursor of the world's origin lies in the past that the fork shares with it, so that
/// readers keep their place.
fn is_shared_place(view: &View<'_>, parts: &CursorParts<'_>) -> bool {
    let Some(fork) = &view.world.forked else {
        return false;
    };
    fork.from.as_str() == parts.world && parts.place <= view.count_before(fork.position)
}
