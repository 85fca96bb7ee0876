//! The face that all machines share, and what each of them can do.

use crate::event::Action;
use crate::field::keep_end;
use crate::request::{Request, RequestError};

/// A protocol of agent programs, in the state of one running program.
///
/// The caller feeds one machine from one program. It carries out the returned actions in order.
pub trait AgentProtocol: Send {
    /// What the program can do. Some programs say so only after they have started.
    fn features(&self) -> Features;

    /// Takes a request of the caller. A rejected request changes nothing.
    fn request(&mut self, request: Request) -> Result<Vec<Action>, RequestError>;

    /// Takes a line of the program's standard output, with or without its line break.
    fn receive_line(&mut self, line: &[u8]) -> Vec<Action>;

    /// Takes the end of the program. It ends an open turn.
    fn receive_end(&mut self, exit: &Exit) -> Vec<Action>;
}

/// What a program can do, so that clients hide the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are independent abilities"
)]
pub struct Features {
    /// A later process can go on with a named session.
    pub resume: bool,
    /// A running turn takes more input.
    pub steer: bool,
    /// The program asks before it uses a tool.
    pub approvals: bool,
    /// An approval can change the arguments of the tool.
    pub edit_args: bool,
    /// The reason of a denial reaches the model.
    pub deny_reason: bool,
    pub usage: bool,
    pub cost: bool,
    /// The program calls tools over MCP. The others print them as lines ([`crate::tool_line`]).
    pub mcp: bool,
    /// The program has a mode in which it writes nothing.
    pub plan_mode: bool,
    /// The program exits at the end of each turn, so that the caller starts it for every prompt.
    pub one_turn_per_process: bool,
    /// The program begins a new session without being started again.
    pub resets_in_process: bool,
}

/// How much of the error output a failure quotes. It quotes the end, because programs say there why
/// they give up.
const QUOTED_CHARACTERS_MAX: usize = 2000;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    /// The exit status; absent if a signal ended it.
    pub code: Option<i32>,
    /// The last lines of its error output.
    pub last_errors: String,
}

impl Exit {
    /// Whether the program says that all went well.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// The exit in words for a person.
    pub fn describe(&self) -> String {
        let how = match self.code {
            Some(code) => format!("the program exited with status {code}"),
            None => "the program was killed".to_owned(),
        };
        match self.last_errors.trim() {
            "" => how,
            errors => format!("{how}: {}", keep_end(errors, QUOTED_CHARACTERS_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_output_is_quoted_from_its_end() {
        let exit = |last_errors: &str| Exit {
            code: Some(1),
            last_errors: last_errors.to_owned(),
        };
        let short = "the program exited with status 1: no licence";
        assert_eq!(exit("no licence\n").describe(), short);
        let long = format!("{}\nno licence", "ä".repeat(3000));
        let described = exit(&long).describe();
        assert!(described.starts_with("the program exited with status 1: …ä"));
        assert!(described.ends_with("ä\nno licence"));
        assert!(described.chars().count() < 2100);
    }
}
