//! The methods of both connections. Each sends one request and accepts one kind of reply.

/// Defines the methods on a connection that has `call`. `$($await)*` is empty or `.await`.
macro_rules! verbs {
    ($connection:ty, [$($kind:tt)*], [$($await:tt)*]) => {
        impl $connection {
            /// Announces the wrapper's session.
            pub $($kind)* fn register(&mut self, register: Register) -> Result<(), BrokerError> {
                self.call_done(Request::Register(register))$($await)*
            }

            /// Sends a completed turn and returns its id.
            pub $($kind)* fn turn_completed(&mut self, turn: CompletedTurn) -> Result<String, BrokerError> {
                match self.call(&Request::TurnCompleted(Box::new(turn)))$($await)*? {
                    Reply::Kept { turn_id } => Ok(turn_id),
                    _ => Err(BrokerError::Unexpected),
                }
            }

            /// Reports the agent's state.
            pub $($kind)* fn state(&mut self, change: StateChange) -> Result<(), BrokerError> {
                self.call_done(Request::State(change))$($await)*
            }

            /// Sends the content of the wrapper's terminal.
            pub $($kind)* fn screen(&mut self, shown: Shown) -> Result<(), BrokerError> {
                self.call_done(Request::Screen(shown))$($await)*
            }

            /// Starts watching a shared session. Its screen arrives as notifications.
            pub $($kind)* fn watch(&mut self, session: &str) -> Result<(), BrokerError> {
                self.call_done(Request::Watch { session: session.to_owned() })$($await)*
            }

            /// Ends the wrapper's session.
            pub $($kind)* fn deregister(&mut self, session: &str) -> Result<(), BrokerError> {
                self.call_done(Request::Deregister { session: session.to_owned() })$($await)*
            }

            /// Lists the sessions; with `gone` also ended ones whose turns are still kept.
            pub $($kind)* fn sessions(&mut self, gone: bool) -> Result<Vec<SessionInfo>, BrokerError> {
                self.list_sessions(ListSessions { gone, ..ListSessions::default() })$($await)*
            }

            /// Lists the sessions with the requested extras.
            pub $($kind)* fn list_sessions(&mut self, list: ListSessions) -> Result<Vec<SessionInfo>, BrokerError> {
                match self.call(&Request::ListSessions(list))$($await)*? {
                    Reply::Sessions(sessions) => Ok(sessions),
                    _ => Err(BrokerError::Unexpected),
                }
            }

            /// Lists a session's turns, newest first.
            pub $($kind)* fn turns(&mut self, session: &str, limit: Option<u32>) -> Result<Vec<TurnInfo>, BrokerError> {
                let session = session.to_owned();
                self.list_turns(ListTurns { session, limit, ..ListTurns::default() })$($await)*
            }

            /// Lists a session's turns, newest first, with the requested extras.
            pub $($kind)* fn list_turns(&mut self, list: ListTurns) -> Result<Vec<TurnInfo>, BrokerError> {
                match self.call(&Request::ListTurns(list))$($await)*? {
                    Reply::Turns(turns) => Ok(turns),
                    _ => Err(BrokerError::Unexpected),
                }
            }

            /// A turn with its content.
            pub $($kind)* fn turn(&mut self, get: GetTurn) -> Result<FoundTurn, BrokerError> {
                let turn_id = get.turn_id.clone();
                match self.call(&Request::GetTurn(get))$($await)*? {
                    Reply::Turn(mut turn) => {
                        turn.info.turn_id = turn_id;
                        Ok(*turn)
                    }
                    _ => Err(BrokerError::Unexpected),
                }
            }

            /// Captures a session's latest turn into the relay buffer and returns its id and size.
            pub $($kind)* fn capture(&mut self, session: &str) -> Result<(String, u64), BrokerError> {
                let request = Request::Capture { session: session.to_owned() };
                self.call_capture(request)$($await)*
            }

            /// Captures a turn into the relay buffer and returns its id and size.
            pub $($kind)* fn capture_by_id(&mut self, turn_id: &str) -> Result<(String, u64), BrokerError> {
                let request = Request::CaptureById { turn_id: turn_id.to_owned() };
                self.call_capture(request)$($await)*
            }

            /// Injects the relay buffer into a session.
            pub $($kind)* fn paste(&mut self, paste: Paste) -> Result<(), BrokerError> {
                self.call_done(Request::Paste(paste))$($await)*
            }

            /// Delivers the relay buffer to a sink. The store sink returns the turn's place.
            pub $($kind)* fn deliver(&mut self, deliver: Deliver) -> Result<Option<Stored>, BrokerError> {
                match self.call(&Request::Deliver(deliver))$($await)*? {
                    Reply::Done => Ok(None),
                    Reply::Stored(stored) => Ok(Some(stored)),
                    _ => Err(BrokerError::Unexpected),
                }
            }

            $($kind)* fn call_capture(&mut self, request: Request) -> Result<(String, u64), BrokerError> {
                match self.call(&request)$($await)*? {
                    Reply::Captured { turn_id, size } => Ok((turn_id, size)),
                    _ => Err(BrokerError::Unexpected),
                }
            }

            $($kind)* fn call_done(&mut self, request: Request) -> Result<(), BrokerError> {
                match self.call(&request)$($await)*? {
                    Reply::Done => Ok(()),
                    _ => Err(BrokerError::Unexpected),
                }
            }
        }
    };
}

pub(super) use verbs;
