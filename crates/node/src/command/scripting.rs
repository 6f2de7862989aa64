//! Scripts and functions: as much of them as there is without running any.
//!
//! SCRIPT keeps bodies by their hash, as Redis does, in memory alone: a restart forgets them, and
//! clients load them again. Nothing compiles them yet, so a body that is no Lua is kept as well.
//! There are no functions to load, so there is only the command that removes them all: Redis's own
//! test suite begins every file with it.

use super::{SessionFn, session};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;
use engine::sha1::sha1;
use std::collections::BTreeMap;

pub const COMMANDS: &[Command<SessionFn>] = &[
    session("FUNCTION FLUSH [ASYNC | SYNC]", function_flush)
        .allowed_in_scripts()
        .needs_data()
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Deletes all libraries and functions.")
        .group(Group::Scripting)
        .since("7.0.0")
        .cost("O(N) where N is the number of functions deleted")
        .with(Flags::WRITE.union(Flags::NOSCRIPT)),
    script("SCRIPT EXISTS sha1 [sha1 ...]", exists)
        .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
        .doc("Determines whether scripts are kept.")
        .cost(
            "O(N) with N being the number of scripts to check (so checking a single script is an \
             O(1) operation).",
        ),
    script("SCRIPT FLUSH [ASYNC | SYNC]", flush)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("Forgets all scripts.")
        .cost("O(N) with N being the number of scripts in cache"),
    script("SCRIPT LOAD script", load)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("Keeps a script and returns the hash that names it.")
        .cost("O(N) with N being the length in bytes of the script body.")
        .with(Flags::STALE),
];

/// Declares a subcommand of SCRIPT.
const fn script(usage: &'static str, function: SessionFn) -> Command<SessionFn> {
    session(usage, function).needs_data().group(Group::Scripting).since("2.6.0")
}

/// Bytes of all bodies that are kept, with what it takes to keep them. Applications have some tens
/// of scripts, of some KiB; what is generated without end must not fill the memory. A guess.
const SCRIPTS_BYTES_MAX: usize = 64 << 20;

/// Bytes of a script beside its body: its hash and its place in the tree. About.
const SCRIPT_OVERHEAD_BYTES: usize = 64;

/// The bodies of scripts by their SHA-1.
#[derive(Default)]
pub struct Scripts {
    bodies: BTreeMap<[u8; 20], Vec<u8>>,
    bytes: usize,
}

impl Scripts {
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Bytes that the scripts occupy, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a body; its hash.
    ///
    /// # Errors
    /// There is no room for it.
    fn load(&mut self, body: &[u8]) -> Result<[u8; 20], Refusal> {
        let hash = sha1(body);
        if self.bodies.contains_key(&hash) {
            return Ok(hash);
        }
        let bytes = self.bytes + body.len() + SCRIPT_OVERHEAD_BYTES;
        if bytes > SCRIPTS_BYTES_MAX {
            return Err(Refusal::of("ERR the scripts that are kept take too much memory"));
        }
        self.bytes = bytes;
        self.bodies.insert(hash, body.to_vec());
        Ok(hash)
    }

    /// Whether a script is kept under this hash, in hexadecimal of either case.
    fn contains(&self, text: &[u8]) -> bool {
        parse_hash(text).is_some_and(|hash| self.bodies.contains_key(&hash))
    }
}

fn parse_hash(text: &[u8]) -> Option<[u8; 20]> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut hash = [0; 20];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != hash.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(hash)
}

fn load(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let hash = server.scripts.load(args.at(2))?;
    let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    server.core.clients.reply(client).bulk(text);
    Ok(())
}

fn exists(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.clients.reply(client).array(args.len() - 2);
    server.core.work().reply_each(
        args.from(2),
        server.core.clients.reply(client),
        |text, reply| {
            reply.integer(i64::from(server.scripts.contains(text)));
        },
    );
    Ok(())
}

fn flush(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    check_mode(args, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")?;
    let scripts = std::mem::take(&mut server.scripts);
    server.core.discard(vec![Box::new(scripts)]);
    server.core.clients.reply(client).ok();
    Ok(())
}

fn function_flush(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    check_mode(args, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")?;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Both ways of flushing are one: what is big is freed on a thread of its own.
fn check_mode(args: Args<'_>, refusal: &'static str) -> Outcome {
    let is_mode = args.is(2, "SYNC") || args.is(2, "ASYNC");
    if args.len() > 3 || args.len() == 3 && !is_mode {
        return Err(Refusal::of(refusal));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_by_its_hash_in_either_case() {
        let mut scripts = Scripts::default();
        let hash = scripts.load(b"return 1").expect("there is room");
        let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert!(scripts.contains(text.as_bytes()));
        assert!(scripts.contains(text.to_ascii_uppercase().as_bytes()));
        assert!(!scripts.contains(b"e0e1f9fabfc9d4800c877a703b823ac0578ff8d"));
        assert!(!scripts.contains(b"g0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
    }

    #[test]
    fn scripts_stay_within_their_room() {
        let mut scripts = Scripts::default();
        let body = vec![b'x'; SCRIPTS_BYTES_MAX / 2];
        scripts.load(&body).expect("there is room");
        scripts.load(&body).expect("it is kept already");
        assert_eq!(scripts.len(), 1);
        assert!(scripts.load(&body[1..]).is_err());
        assert!(scripts.bytes() <= SCRIPTS_BYTES_MAX);
    }
}
