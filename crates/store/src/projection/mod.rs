//! Projection: a payload's msgpack and a descriptor become JSON that people and browsers can read.
