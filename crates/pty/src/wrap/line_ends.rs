//! Shows output as a terminal would have, where the wrapper passes the program's bytes on
//! unchanged.
//!
//! A terminal adds a carriage return to each line feed of a program. For a file or a pipe the
//! child's terminal does not, but the observers read the bytes as a terminal does: without it each
//! line would begin where the one before ended.

/// Adds the carriage returns that a terminal would have added.
#[derive(Debug, Default)]
pub(super) struct LineEnds {
    /// Whether the byte before was a carriage return, perhaps in an earlier piece.
    has_return: bool,
}

impl LineEnds {
    /// The next piece of output, as a terminal would show it.
    pub(super) fn add_returns(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        for byte in bytes {
            if *byte == b'\n' && !self.has_return {
                shown.push(b'\r');
            }
            shown.push(*byte);
            self.has_return = *byte == b'\r';
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_feed_has_one_carriage_return() {
        let (written, expect) = (
            &b"\none\r\ntwo\r\r\n\n\x1b[1m"[..],
            &b"\r\none\r\ntwo\r\r\n\r\n\x1b[1m"[..],
        );
        for cut in 0..=written.len() {
            let mut ends = LineEnds::default();
            let (head, tail) = written.split_at(cut);
            let shown = [ends.add_returns(head), ends.add_returns(tail)].concat();
            assert_eq!(shown, expect, "cut at {cut}");
        }
    }
}
