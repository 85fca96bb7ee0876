//! Search over what a reader may see.

/// An audience class: entries that the same readers may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

/// An entry as search sees it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Its class.
    pub class: ClassId,
    /// Its author's id.
    pub author: &'a str,
    /// What the author is called.
    pub label: &'a str,
    /// Its words.
    pub text: &'a str,
    /// When, in unix milliseconds.
    pub time: i64,
    /// Its date in words.
    pub date: &'a str,
}

/// The index.
#[derive(Debug, Default)]
pub struct Index {}

impl Index {
    /// Adds the next entry.
    pub fn push(&mut self, _document: &Document<'_>) {}
}
