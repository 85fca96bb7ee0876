//! What readers are told: evidence, capsules, anchors and rehydrations of worlds that are made up here.

mod anchors;
mod capsules;
mod evidence;
mod rehydrations;
mod requests;
mod story;
mod twins;
