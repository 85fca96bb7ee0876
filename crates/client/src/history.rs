//! A context's whole history, newest first, read a page at a time.

use std::vec;

use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::message::{GetBefore, Item, ReadOptions};

use crate::client::Client;
use crate::error::Error;

const PAGE_TURNS: u32 = 256;

/// Turns from a head back to the root. The first page fixes the path, so appends meanwhile do not
/// disturb it.
pub struct History {
    client: Client,
    context: ContextId,
    options: ReadOptions,
    page: vec::IntoIter<Item>,
    next: Next,
}

/// Where the next page starts.
#[derive(Debug, Clone, Copy)]
enum Next {
    Head,
    Before(TurnId),
    Done,
}

impl History {
    pub(crate) fn new(client: Client, context: ContextId, options: ReadOptions) -> Self {
        Self {
            client,
            context,
            options,
            page: Vec::new().into_iter(),
            next: Next::Head,
        }
    }

    /// The next older turn; none after the root.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        if let Some(item) = self.page.next_back() {
            return Ok(Some(item));
        }
        let before = match self.next {
            Next::Done => return Ok(None),
            Next::Head => None,
            Next::Before(turn) => Some(turn),
        };
        let get = GetBefore {
            context: self.context,
            before,
            limit: PAGE_TURNS,
            options: self.options,
        };
        let items = self.client.before(get).await?;
        self.next = match items.first() {
            Some(oldest) => leads_back(before, oldest)?,
            None => Next::Done,
        };
        self.page = items.into_iter();
        Ok(self.page.next_back())
    }
}

/// Where the page before the one that begins with `oldest` starts. Parents are older than their
/// children.
fn leads_back(before: Option<TurnId>, oldest: &Item) -> Result<Next, Error> {
    if let Some(before) = before.filter(|before| oldest.turn >= *before) {
        return Err(Error::OutOfOrder {
            what: "older turn",
            number: oldest.turn.get(),
            after: before.get(),
        });
    }
    Ok(if oldest.parent.is_some() {
        Next::Before(oldest.turn)
    } else {
        Next::Done
    })
}
