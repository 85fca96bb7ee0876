//! Desktop adapters behind three small interfaces: which session has focus, hotkeys, clipboard.
