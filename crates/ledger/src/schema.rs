//! JSON Schemas (draft 2020-12) of the shapes.
