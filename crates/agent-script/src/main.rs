//! The program `turnkeep-agent-script`. Everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    turnkeep_agent_script::run_program(std::env::args().skip(1).collect())
}
