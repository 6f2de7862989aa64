//! Functions. There are none to load yet, so there is only the command that removes them all:
//! Redis's own test suite begins every file with it.

use super::{SessionFn, plain};
use crate::server::Server;
use crate::session::Session;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<SessionFn>] =
    &[plain("FUNCTION FLUSH [ASYNC | SYNC]", function_flush)
        .doc("Deletes all libraries and functions.")
        .group(Group::Scripting)
        .since("7.0.0")
        .cost("O(N) where N is the number of functions deleted")
        .with(Flags::WRITE.union(Flags::NOSCRIPT))];

fn function_flush(_: &mut Server, session: &mut Session, args: Args<'_>) -> Outcome {
    let is_mode = args.is(2, "SYNC") || args.is(2, "ASYNC");
    if args.len() > 3 || args.len() == 3 && !is_mode {
        return Err(Refusal::of("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    session.reply().ok();
    Ok(())
}
