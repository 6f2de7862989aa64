//! Every reason to refuse a request, in the order in which Redis looks at them (server.c,
//! processCommand). Refusing comes before execution, never after.

use crate::registry::{Function, Registered};
use crate::server::Server;
use crate::session::Session;
use engine::command::{Args, Flags};
use engine::refusal::Refusal;
use resp::Protocol;
use txlog::Gate;

/// What to do with a request.
pub enum Verdict {
    Run,
    Refuse(Refusal),
    /// Not now: the session's input stays where it is and is looked at again next turn.
    Later,
}

/// Longest excerpt of arguments in the error for an unknown command, in bytes (Redis 7.0).
const EXCERPT_BYTES_MAX: usize = 128;

impl Server {
    /// Judges a request. `command` is `None` if its name is unknown.
    pub(crate) fn judge(
        &mut self,
        session: &Session,
        command: Option<&Registered>,
        args: Args<'_>,
    ) -> Verdict {
        let Some(command) = command else { return Verdict::Refuse(unknown_command(args)) };
        if matches!(command.row.function, Function::Container) {
            return Verdict::Refuse(match args.get(1) {
                Some(subcommand) => unknown_subcommand(command.name(), subcommand),
                None => Refusal::arity(command.name()),
            });
        }
        if !command.admits(args.len()) {
            return Verdict::Refuse(Refusal::arity(command.name()));
        }
        let is_stranger = !session.is_authenticated && !self.password().is_empty();
        if is_stranger && !command.flags.contains(Flags::NO_AUTH) {
            return Verdict::Refuse(Refusal::of("NOAUTH Authentication required."));
        }
        if command.flags.contains(Flags::PROTECTED)
            && !self.settings.enable_debug_command.permits(session.is_local)
        {
            return Verdict::Refuse(Refusal::of(DEBUG_REFUSED));
        }
        if session.is_subscriber()
            && session.output.reply.protocol() == Protocol::Resp2
            && let Some(refusal) = subscriber_refusal(command)
        {
            return Verdict::Refuse(refusal);
        }
        if self.persistence.is_loading && !command.flags.contains(Flags::LOADING) {
            return Verdict::Refuse(Refusal::of("LOADING Redis is loading the dataset in memory"));
        }
        if session.transaction.is_some() && command.flags.contains(Flags::NO_MULTI) {
            return Verdict::Refuse(Refusal::of("ERR Command not allowed inside a transaction"));
        }
        self.judge_write(session, command)
    }

    fn judge_write(&mut self, session: &Session, command: &Registered) -> Verdict {
        let is_exec = command.name() == "exec" && session.transaction.is_some();
        let is_any_queued = |holds: fn(&Registered) -> bool| {
            is_exec
                && session.transaction.as_ref().is_some_and(|transaction| {
                    transaction
                        .queued
                        .iter()
                        .any(|request| holds(self.registry.command(request.command)))
                })
        };
        let needs_room: fn(&Registered) -> bool = |row| row.flags.contains(Flags::DENYOOM);
        let denyoom = needs_room(command) || is_any_queued(needs_room);
        let writes = command.may_write() || is_any_queued(Registered::may_write);
        if !self.make_room() && denyoom {
            return Verdict::Refuse(Refusal::of(
                "OOM command not allowed when used memory > 'maxmemory'.",
            ));
        }
        if writes {
            if self.is_snapshot_behind() {
                return Verdict::Later;
            }
            match self.shard.gate() {
                Gate::Open => {}
                Gate::Wait => return Verdict::Later,
                Gate::Refuse(why) => {
                    return Verdict::Refuse(Refusal::new(format!(
                        "MISCONF Errors writing to the transaction log: {why}"
                    )));
                }
            }
        }
        Verdict::Run
    }
}

const DEBUG_REFUSED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is \
                             set to \"local\", you can run it from a local connection, otherwise \
                             you need to set this option in the configuration file, and then \
                             restart the server.";

fn subscriber_refusal(command: &Registered) -> Option<Refusal> {
    const ALLOWED: [&str; 9] = [
        "ping",
        "quit",
        "reset",
        "subscribe",
        "unsubscribe",
        "psubscribe",
        "punsubscribe",
        "ssubscribe",
        "sunsubscribe",
    ];
    if ALLOWED.contains(&command.name()) {
        return None;
    }
    Some(Refusal::new(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context",
        command.name()
    )))
}

fn unknown_command(args: Args<'_>) -> Refusal {
    let printable = |bytes: &[u8], limit: usize| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]);
        text.replace(['\r', '\n'], " ")
    };
    let mut excerpt = String::new();
    for argument in args.from(1) {
        if excerpt.len() >= EXCERPT_BYTES_MAX {
            break;
        }
        let room = EXCERPT_BYTES_MAX - excerpt.len();
        excerpt.push_str(&format!("'{}' ", printable(argument, room)));
    }
    Refusal::new(format!(
        "ERR unknown command '{}', with args beginning with: {excerpt}",
        printable(args.at(0), EXCERPT_BYTES_MAX)
    ))
}

pub(crate) fn unknown_subcommand(container: &str, subcommand: &[u8]) -> Refusal {
    Refusal::new(format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        String::from_utf8_lossy(&subcommand[..subcommand.len().min(EXCERPT_BYTES_MAX)]),
        container.to_ascii_uppercase()
    ))
}
