//! The questions of one beat of an attached writer: how many it may still ask, and what it was
//! answered.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::ToolRequest;
use crate::fault::{Code, Fault};

/// The calls of one beat, refused ones and repeated ones included.
pub const CALLS_MAX: u32 = 16;
/// The bytes of all packs of one beat.
pub const PACK_BYTES_MAX: usize = 256 << 10;

type Answered = ([u8; 32], Result<Arc<str>, Fault>);

/// The questions of one beat.
#[derive(Debug)]
pub struct Loop {
    request: Arc<str>,
    calls: u32,
    bytes: usize,
    answered: HashMap<String, Answered>,
}

impl Loop {
    /// None asked yet, in the beat of this request.
    pub fn new(request: Arc<str>) -> Self {
        Self {
            request,
            calls: 0,
            bytes: 0,
            answered: HashMap::new(),
        }
    }

    /// Reads a question and lets `answer` answer it, as JSON. The same question again gets the same
    /// bytes; another one with its id is refused. After `LOOP_LIMIT` the writer must finish.
    pub fn call(
        &mut self,
        body: &Value,
        answer: impl FnOnce(&ToolRequest) -> Result<Value, Fault>,
    ) -> Result<Arc<str>, Fault> {
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
            Some((body, pack)) if *body == request.body => pack.clone(),
            Some(_) => {
                return Err(Fault::new(
                    Code::DuplicateToolId,
                    "tool_request_id",
                    "was used for another question",
                ));
            }
            None => answer(&request).map(|pack| Arc::from(pack.to_string())),
        };
        self.answered
            .insert(request.tool_request_id, (request.body, pack.clone()));
        self.within_bytes(pack?)
    }

    fn within_bytes(&mut self, pack: Arc<str>) -> Result<Arc<str>, Fault> {
        let bytes = self.bytes.saturating_add(pack.len());
        if bytes > PACK_BYTES_MAX {
            // Nothing more may be asked either: a smaller pack would only put the end off.
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
