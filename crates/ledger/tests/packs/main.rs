//! The packs that readers get: evidence, capsules, anchors and rehydrations of worlds that are made
//! up here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod anchors;
mod canaries;
mod capsules;
mod evidence;
mod hidden_beats;
mod rehydrations;
mod requests;
mod story;
mod twins;
