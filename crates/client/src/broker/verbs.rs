//! The verbs that both connections have: each a request and the one kind of reply that answers it.

/// Defines one verb per line on a connection that has `call`; `$($await)*` is nothing or `.await`.
macro_rules! verbs {
    ($connection:ty, [$($kind:tt)*], [$($await:tt)*]) => {
        impl $connection {
            /// Announces the wrapper's session.
            pub $($kind)* fn register(&mut self, register: Register) -> Result<(), Error> {
                self.done(Request::Register(register))$($await)*
            }

            /// Hands over a completed turn; gives its id.
            pub $($kind)* fn turn_completed(&mut self, turn: CompletedTurn) -> Result<String, Error> {
                match self.call(&Request::TurnCompleted(Box::new(turn)))$($await)*? {
                    Reply::Kept { turn_id } => Ok(turn_id),
                    _ => Err(Error::Unexpected),
                }
            }

            /// Says what the agent does now.
            pub $($kind)* fn state(&mut self, change: StateChange) -> Result<(), Error> {
                self.done(Request::State(change))$($await)*
            }

            /// Hands over what the wrapper's terminal shows.
            pub $($kind)* fn screen(&mut self, shown: Shown) -> Result<(), Error> {
                self.done(Request::Screen(shown))$($await)*
            }

            /// Begins to watch a shared session; what it shows comes unasked.
            pub $($kind)* fn watch(&mut self, session: &str) -> Result<(), Error> {
                self.done(Request::Watch { session: session.to_owned() })$($await)*
            }

            /// Ends the wrapper's session.
            pub $($kind)* fn deregister(&mut self, session: &str) -> Result<(), Error> {
                self.done(Request::Deregister { session: session.to_owned() })$($await)*
            }

            /// The sessions; with `gone` also those that ended and whose turns are still kept.
            pub $($kind)* fn sessions(&mut self, gone: bool) -> Result<Vec<SessionInfo>, Error> {
                self.list_sessions(ListSessions { gone, ..ListSessions::default() })$($await)*
            }

            /// The sessions, with what else is asked for.
            pub $($kind)* fn list_sessions(&mut self, list: ListSessions) -> Result<Vec<SessionInfo>, Error> {
                match self.call(&Request::ListSessions(list))$($await)*? {
                    Reply::Sessions(sessions) => Ok(sessions),
                    _ => Err(Error::Unexpected),
                }
            }

            /// A session's turns, newest first.
            pub $($kind)* fn turns(&mut self, session: &str, limit: Option<u32>) -> Result<Vec<TurnInfo>, Error> {
                let session = session.to_owned();
                self.list_turns(ListTurns { session, limit, ..ListTurns::default() })$($await)*
            }

            /// A session's turns, newest first, with what else is asked for.
            pub $($kind)* fn list_turns(&mut self, list: ListTurns) -> Result<Vec<TurnInfo>, Error> {
                match self.call(&Request::ListTurns(list))$($await)*? {
                    Reply::Turns(turns) => Ok(turns),
                    _ => Err(Error::Unexpected),
                }
            }

            /// A turn with its content.
            pub $($kind)* fn turn(&mut self, get: GetTurn) -> Result<FoundTurn, Error> {
                let turn_id = get.turn_id.clone();
                match self.call(&Request::GetTurn(get))$($await)*? {
                    Reply::Turn(mut turn) => {
                        turn.info.turn_id = turn_id;
                        Ok(*turn)
                    }
                    _ => Err(Error::Unexpected),
                }
            }

            /// Takes a session's latest turn into the relay buffer; gives its id and size.
            pub $($kind)* fn capture(&mut self, session: &str) -> Result<(String, u64), Error> {
                let request = Request::Capture { session: session.to_owned() };
                self.captured(request)$($await)*
            }

            /// Takes a turn into the relay buffer; gives its id and size.
            pub $($kind)* fn capture_by_id(&mut self, turn_id: &str) -> Result<(String, u64), Error> {
                let request = Request::CaptureById { turn_id: turn_id.to_owned() };
                self.captured(request)$($await)*
            }

            /// Injects the relay buffer into a session.
            pub $($kind)* fn paste(&mut self, paste: Paste) -> Result<(), Error> {
                self.done(Request::Paste(paste))$($await)*
            }

            /// Hands the relay buffer to a sink. The store says where the turn is.
            pub $($kind)* fn deliver(&mut self, deliver: Deliver) -> Result<Option<Stored>, Error> {
                match self.call(&Request::Deliver(deliver))$($await)*? {
                    Reply::Done => Ok(None),
                    Reply::Stored(stored) => Ok(Some(stored)),
                    _ => Err(Error::Unexpected),
                }
            }

            $($kind)* fn captured(&mut self, request: Request) -> Result<(String, u64), Error> {
                match self.call(&request)$($await)*? {
                    Reply::Captured { turn_id, size } => Ok((turn_id, size)),
                    _ => Err(Error::Unexpected),
                }
            }

            $($kind)* fn done(&mut self, request: Request) -> Result<(), Error> {
                match self.call(&request)$($await)*? {
                    Reply::Done => Ok(()),
                    _ => Err(Error::Unexpected),
                }
            }
        }
    };
}

pub(super) use verbs;
