//! The JSON shapes of the HTTP gateway.
