//! Describes who may see an entry, for a reader who may see it.
//!
//! The text names the author and the addressees, whom every reader of the entry may know. Labels
//! come from the list of persons, which is the same for all readers.

use crate::audience::{Audience, Viewer};
use crate::entry::Entry;
use crate::ids::{Name, OPERATOR};
use crate::known_persons::id_with_label;
use crate::view::View;

/// The text names readers up to this many bytes and counts the others.
const NAMES_BYTES_MAX: usize = 400;

/// Who may see an entry that the view shows: `everyone`, `only you`, or `only you and BOB (Bob)`.
pub fn audience_text(view: &View<'_>, entry: &Entry) -> String {
    let Audience::Readers(readers) = Audience::of_entry(entry) else {
        return "everyone".to_owned();
    };
    let is_own = |name: &Name| view.viewer == Viewer::Reader(name.clone());
    let own = readers.iter().any(is_own).then(|| "you".to_owned());
    let others = readers
        .iter()
        .filter(|name| !is_own(name))
        .map(|name| in_words(view, name));
    let mut names: Vec<String> = own.into_iter().chain(others).collect();
    let fit = count_that_fit(&names);
    if fit < names.len() {
        let rest = names.split_off(fit).len();
        names.push(format!("{rest} more"));
    }
    let last = names.pop().unwrap_or_default();
    if names.is_empty() {
        format!("only {last}")
    } else {
        format!("only {} and {last}", names.join(", "))
    }
}

/// How many of the names the text spells out.
fn count_that_fit(names: &[String]) -> usize {
    let mut bytes = 0;
    let fits = |name: &&String| {
        bytes += name.len();
        bytes <= NAMES_BYTES_MAX
    };
    names.iter().take_while(fits).count()
}

fn in_words(view: &View<'_>, name: &Name) -> String {
    let world = view.world;
    let label = match name.as_str() {
        OPERATOR => world.config.operator_label.as_str(),
        id => world.people.get(id).map_or(id, |person| &person.label),
    };
    id_with_label(name.as_str(), label)
}
