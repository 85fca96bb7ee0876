//! An ordered map whose clones share memory.
//!
//! Entries are in chunks of at most `CHUNK_MAX`, in key order; no chunk is empty. A clone copies
//! one pointer. A change after a clone copies the list of chunks and one chunk, so a new bundle
//! does not copy a registry with many names.

use std::borrow::Borrow;
use std::sync::Arc;

/// Entries of one chunk.
const CHUNK_MAX: usize = 128;

/// The map.
#[derive(Debug, Clone)]
pub(super) struct SharedMap<K, V> {
    chunks: Arc<Vec<Chunk<K, V>>>,
    len: usize,
}

type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// The position of a key, or where it would be inserted.
struct EntryPosition {
    chunk: usize,
    at: Result<usize, usize>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self {
            chunks: Arc::default(),
            len: 0,
        }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let EntryPosition { chunk, at } = self.find_position(key);
        self.chunks
            .get(chunk)?
            .get(at.ok()?)
            .map(|(_, value)| value)
    }

    /// The value of a key, for changing it.
    pub(super) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let EntryPosition { chunk, at } = self.find_position(key);
        let chunk = Arc::make_mut(&mut self.chunks).get_mut(chunk)?;
        Arc::make_mut(chunk)
            .get_mut(at.ok()?)
            .map(|(_, value)| value)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        let EntryPosition { chunk, at } = self.find_position(&key);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(entries) = chunks.get_mut(chunk) else {
            // Only an empty map has no chunk for a key.
            chunks.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return;
        };
        let entries = Arc::make_mut(entries);
        match at {
            Ok(at) => entries[at].1 = value,
            Err(at) => {
                entries.insert(at, (key, value));
                self.len += 1;
            }
        }
        // Halves, so that keys that arrive in any order fill chunks at least half.
        if entries.len() > CHUNK_MAX {
            let upper = entries.split_off(CHUNK_MAX / 2);
            chunks.insert(chunk + 1, Arc::new(upper));
        }
    }

    /// All entries, by key ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks
            .iter()
            .flat_map(|chunk| chunk.iter())
            .map(|(key, value)| (key, value))
    }

    /// The entry with the greatest key.
    pub(super) fn last(&self) -> Option<(&K, &V)> {
        self.chunks.last()?.last().map(|(key, value)| (key, value))
    }

    fn find_position<Q: Ord + ?Sized>(&self, key: &Q) -> EntryPosition
    where
        K: Borrow<Q>,
    {
        let begins_at_or_before = |chunk: &Chunk<K, V>| {
            chunk
                .first()
                .is_some_and(|(first, _)| first.borrow() <= key)
        };
        let chunk = self
            .chunks
            .partition_point(begins_at_or_before)
            .saturating_sub(1);
        let entries = self
            .chunks
            .get(chunk)
            .map_or(&[][..], |entries| entries.as_slice());
        EntryPosition {
            chunk,
            at: entries.binary_search_by(|(probe, _)| probe.borrow().cmp(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Numbers in an order that has nothing to do with their size.
    fn scattered(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)
    }

    #[test]
    fn it_does_what_an_ordered_map_does() {
        for keys in [
            (0..5000).collect::<Vec<_>>(),
            (0..5000).rev().collect(),
            scattered(5000).collect(),
        ] {
            let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
            for (value, key) in keys.iter().chain(&keys[..100]).enumerate() {
                map.insert(*key, value);
                model.insert(*key, value);
            }
            *map.get_mut(&keys[7]).unwrap() = 0;
            *model.get_mut(&keys[7]).unwrap() = 0;
            assert!(map.iter().eq(&model));
            assert_eq!(
                (map.len(), map.last()),
                (model.len(), model.last_key_value())
            );
            assert!((0..6000).all(|key| map.get(&key) == model.get(&key)));
            assert_eq!(map.get_mut(&u64::MAX), None);
            assert!(
                map.chunks
                    .iter()
                    .all(|chunk| (1..=CHUNK_MAX).contains(&chunk.len()))
            );
        }
    }

    #[test]
    fn a_change_copies_one_chunk_and_leaves_clones_as_they_were() {
        let mut map = SharedMap::default();
        scattered(100_000).for_each(|key| map.insert(key, 0));
        let before = map.clone();
        let key = *map.iter().nth(50_000).unwrap().0;
        *map.get_mut(&key).unwrap() = 1;
        map.insert(u64::MAX, 1);
        let shared = map
            .chunks
            .iter()
            .filter(|chunk| before.chunks.iter().any(|old| Arc::ptr_eq(old, chunk)));
        assert!(shared.count() + 3 >= map.chunks.len());
        assert_eq!((before.get(&key), before.get(&u64::MAX)), (Some(&0), None));
        assert_eq!((map.get(&key), map.get(&u64::MAX)), (Some(&1), Some(&1)));
    }

    #[test]
    fn an_empty_map_has_nothing() {
        let mut map = SharedMap::<u64, u64>::default();
        assert_eq!(
            (map.len(), map.get(&1), map.last(), map.iter().next()),
            (0, None, None, None)
        );
        assert_eq!(map.get_mut(&1), None);
    }
}
