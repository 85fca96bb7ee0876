//! Search over what a reader may see.
