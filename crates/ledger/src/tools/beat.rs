//! The tool requests of one beat of an attached writer: limits, and answers to repeated requests.
//!
//! Both limits end the loop for good: the writer gets `LOOP_LIMIT` and must finish without further
//! calls.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::ToolRequest;
use crate::fault::{Code, Fault};

/// Calls per beat; rejected and repeated ones count.
pub const CALLS_MAX: u32 = 16;
/// Bytes of all packs per beat.
pub const PACK_BYTES_MAX: usize = 256 << 10;

/// An answered tool request.
#[derive(Debug)]
struct AnsweredRequest {
    /// The fingerprint of the request.
    body: [u8; 32],
    answer: Result<Arc<str>, Fault>,
}

/// The tool requests of one beat.
#[derive(Debug)]
pub struct ToolLoop {
    request: Arc<str>,
    calls: u32,
    bytes: usize,
    answered: HashMap<String, AnsweredRequest>,
}

impl ToolLoop {
    /// Starts the loop of a beat.
    pub fn new(request: Arc<str>) -> Self {
        Self {
            request,
            calls: 0,
            bytes: 0,
            answered: HashMap::new(),
        }
    }

    /// Reads a tool request and lets `answer` answer it. A repeated request gets the same bytes;
    /// another request with the same id is rejected. After `LOOP_LIMIT` the writer must finish.
    pub fn call(
        &mut self,
        body: &Value,
        answer: impl FnOnce(&ToolRequest) -> Result<Value, Fault>,
    ) -> Result<Arc<str>, Fault> {
        // Counted before parsing, so that malformed requests cannot loop for ever.
        self.calls = self.calls.saturating_add(1);
        if self.calls > CALLS_MAX {
            return Err(Fault::new(
                Code::LoopLimit,
                "",
                "a beat may ask 16 times: finish now",
            ));
        }
        let request = ToolRequest::parse(body)?;
        if request.request_id != *self.request {
            return Err(Fault::new(
                Code::RequestMismatch,
                "request_id",
                "is not the beat's",
            ));
        }
        let pack = match self.answered.get(&request.tool_request_id) {
            Some(earlier) if earlier.body == request.body => earlier.answer.clone(),
            Some(_) => {
                return Err(Fault::new(
                    Code::DuplicateToolId,
                    "tool_request_id",
                    "was used for another question",
                ));
            }
            None => answer(&request).map(|pack| Arc::from(pack.to_string())),
        };
        let answered = AnsweredRequest {
            body: request.body,
            answer: pack.clone(),
        };
        self.answered.insert(request.tool_request_id, answered);
        self.count_bytes(pack?)
    }

    fn count_bytes(&mut self, pack: Arc<str>) -> Result<Arc<str>, Fault> {
        let bytes = self.bytes.saturating_add(pack.len());
        if bytes > PACK_BYTES_MAX {
            // No further call is allowed: a smaller pack would only delay the end.
            self.calls = CALLS_MAX;
            return Err(Fault::new(
                Code::LoopLimit,
                "",
                "a beat may get 256 KiB: finish now",
            ));
        }
        self.bytes = bytes;
        Ok(pack)
    }
}
