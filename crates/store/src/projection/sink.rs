//! Builds JSON text in one pass.
//!
//! Each entry of an open object is `"key":value,`; closing the object drops the last comma. If a
//! key occurs again, the last value wins: the earlier entry's bytes are marked dead and removed
//! once, at the end. Example: after `{"a":0,"b":1,"a":2,` the range of `"a":0,` is dead, and the
//! result is `{"b":1,"a":2}`. This takes linear time and no tree. The last entry of an object is
//! never dead.

use std::collections::HashMap;
use std::ops::Range;

/// Up to this many entries are compared one by one. A longer object gets a hash index.
const SCAN_MAX: usize = 16;
/// What an entry of an index takes besides its key, about.
const INDEX_ENTRY_BYTES: usize = 48;

/// JSON text under construction.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) out: String,
    /// The entries of all open objects, the outermost first.
    entries: Vec<Entry>,
    dead: Vec<Range<usize>>,
    /// What the indexes of all open objects take, about.
    index_bytes: usize,
}

/// An entry of an open object. It ends where the next one of the same object starts.
#[derive(Debug)]
struct Entry {
    start: usize,
    key_end: usize,
}

/// An open object.
#[derive(Debug)]
pub(crate) struct Object {
    /// Where its entries begin.
    base: usize,
    /// Its keys, once there are many.
    index: HashMap<Box<str>, usize>,
    /// What the index takes, about.
    index_bytes: usize,
}

impl Sink {
    /// Opens an object.
    pub(crate) fn open(&mut self) -> Object {
        self.out.push('{');
        Object {
            base: self.entries.len(),
            index: HashMap::new(),
            index_bytes: 0,
        }
    }

    /// About how much memory the text and everything beside it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.out.len()
            + self.entries.len() * size_of::<Entry>()
            + self.dead.len() * size_of::<Range<usize>>()
            + self.index_bytes
    }

    /// Ends the key that was written from `start` on. Returns whether the object has it already.
    pub(crate) fn end_key(&mut self, object: &mut Object, start: usize) -> bool {
        let count = self.entries.len() - object.base;
        let twin = if count < SCAN_MAX {
            self.scan_entries(object, start)
        } else {
            self.look_up_in_index(object, start)
        };
        self.entries.push(Entry {
            start,
            key_end: self.out.len(),
        });
        // The earlier entry ends where the entry after it starts.
        let Some(twin) = twin else { return false };
        let end = self.entries.get(twin + 1).map_or(start, |next| next.start);
        self.dead
            .extend(self.entries.get(twin).map(|entry| entry.start..end));
        true
    }

    fn key(&self, entry: &Entry) -> &str {
        self.out.get(entry.start..entry.key_end).unwrap_or_default()
    }

    /// Finds the newest entry with the key that was just written.
    fn scan_entries(&self, object: &Object, start: usize) -> Option<usize> {
        let written = self.out.get(start..)?;
        let open = self.entries.get(object.base..)?;
        open.iter()
            .rposition(|entry| self.key(entry) == written)
            .map(|at| object.base + at)
    }

    fn look_up_in_index(&mut self, object: &mut Object, start: usize) -> Option<usize> {
        // Most objects have few keys and never need an index. This one has just grown too long for
        // comparing each key, so all its keys so far go into the index now.
        if object.index.is_empty() {
            let open = self.entries.iter().enumerate().skip(object.base);
            object
                .index
                .extend(open.map(|(at, entry)| (self.key(entry).into(), at)));
        }
        let key = self.out.get(start..)?;
        let twin = object.index.insert(key.into(), self.entries.len());
        if twin.is_none() {
            let bytes = key.len() + INDEX_ENTRY_BYTES;
            object.index_bytes += bytes;
            self.index_bytes += bytes;
        }
        twin
    }

    /// Ends an entry after its value.
    pub(crate) fn end_entry(&mut self) {
        self.out.push(',');
    }

    /// Closes an object.
    pub(crate) fn close(&mut self, object: &Object) {
        self.entries.truncate(object.base);
        self.index_bytes -= object.index_bytes;
        self.close_with('}');
    }

    /// Drops the comma after the last entry and appends the bracket.
    pub(crate) fn close_with(&mut self, bracket: char) {
        if self.out.ends_with(',') {
            self.out.pop();
        }
        self.out.push(bracket);
    }

    /// Returns the text without the dead ranges.
    pub(crate) fn finish(mut self) -> String {
        if self.dead.is_empty() {
            return self.out;
        }
        // Nested objects mark their ranges before the object around them does.
        self.dead.sort_by_key(|range| range.start);
        let mut alive = String::with_capacity(self.out.len());
        let mut from = 0;
        for range in &self.dead {
            // A range inside an earlier dead range starts before `from`: nothing to copy.
            alive.push_str(self.out.get(from..range.start).unwrap_or_default());
            from = from.max(range.end);
        }
        alive.push_str(self.out.get(from..).unwrap_or_default());
        alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(keys: &[&str]) -> String {
        let mut sink = Sink::default();
        let mut object = sink.open();
        for (value, key) in keys.iter().enumerate() {
            let start = sink.out.len();
            sink.out.extend(["\"", *key, "\":"]);
            sink.end_key(&mut object, start);
            sink.out.push_str(&value.to_string());
            sink.end_entry();
        }
        sink.close(&object);
        sink.finish()
    }

    #[test]
    fn the_last_value_of_a_key_wins() {
        assert_eq!(written(&[]), "{}");
        assert_eq!(written(&["a"]), r#"{"a":0}"#);
        assert_eq!(written(&["a", "b", "a"]), r#"{"b":1,"a":2}"#);
        assert_eq!(written(&["a", "a", "a", "b", "b"]), r#"{"a":2,"b":4}"#);
    }

    #[test]
    fn many_keys_are_compared_by_the_index_alike() {
        let names: Vec<String> = (0..100)
            .chain(0..100)
            .chain(50..60)
            .map(|n| n.to_string())
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let value: serde_json::Value = serde_json::from_str(&written(&names)).unwrap();
        assert_eq!(value.as_object().unwrap().len(), 100);
        assert_eq!(value["7"], 107);
        assert_eq!(value["55"], 205);
    }

    #[test]
    fn a_dead_entry_inside_a_dead_entry_is_removed_once() {
        let mut sink = Sink::default();
        let mut outer = sink.open();
        for _ in 0..2 {
            let start = sink.out.len();
            sink.out.push_str("\"o\":");
            sink.end_key(&mut outer, start);
            let mut inner = sink.open();
            for value in ["1", "2"] {
                let start = sink.out.len();
                sink.out.push_str("\"i\":");
                sink.end_key(&mut inner, start);
                sink.out.push_str(value);
                sink.end_entry();
            }
            sink.close(&inner);
            sink.end_entry();
        }
        sink.close(&outer);
        assert_eq!(sink.finish(), r#"{"o":{"i":2}}"#);
    }
}
