//! MIGRATE (Redis documentation, MIGRATE): what the request says. [`crate::migrate`] does it.

use super::{NodeFn, node};
use crate::migrate::{Login, Order, Target};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, KeySpec, KeyUse, Outcome, Secrets};
use engine::refusal::Refusal;
use resp::integer::parse_i64;
use std::ops::Range;

pub const COMMANDS: &[Command<NodeFn>] = &[node(
    "MIGRATE host port key|\"\" destination-db timeout [COPY] [REPLACE] \
     [AUTH password | AUTH2 username password] [KEYS key [key ...]]",
    migrate,
)
.allowed_in_scripts()
.needs_data()
.key_specs(&["@3,0/1/0,RW+access+delete", "KEYS:-2,-1/1/0,RW+access+delete+incomplete"])
.tips(&["nondeterministic_output"])
.doc("Atomically transfers a key from one Redis instance to another.")
.since("2.6.0")
.cost(
    "This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the \
     target instance. See the pages of these commands for time complexity. Also an O(N) data \
     transfer between the two instances is performed.",
)
.with(Flags::WRITE.union(Flags::KEYSPACE).union(Flags::DANGEROUS).union(Flags::MOVABLEKEYS))
// In Redis everything waits for the other server; here its client does.
.with(Flags::AWAITS_SERVER)
.arity(-6)
.find_keys(|args, each| key_arguments(args).for_each(|index| each(index, KeyUse::MOVE)))
.secrets(Secrets::Among(secret_arguments))
.keys(&[KeySpec::Range { first: 3, last: 3, step: 1 }])];

/// The first argument that is an option.
const OPTIONS: usize = 6;

/// Time without progress after which a migration fails if the request names none, in milliseconds.
/// As Redis.
const TIMEOUT_MILLIS: i64 = 1000;

/// A word among the options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Copy,
    Replace,
    /// A password follows.
    Auth,
    /// A user and a password follow.
    Auth2,
    /// Everything that follows is a key.
    Keys,
    Unknown,
}

impl Word {
    fn of(word: &[u8]) -> Self {
        match word {
            _ if word.eq_ignore_ascii_case(b"copy") => Self::Copy,
            _ if word.eq_ignore_ascii_case(b"replace") => Self::Replace,
            _ if word.eq_ignore_ascii_case(b"auth") => Self::Auth,
            _ if word.eq_ignore_ascii_case(b"auth2") => Self::Auth2,
            _ if word.eq_ignore_ascii_case(b"keys") => Self::Keys,
            _ => Self::Unknown,
        }
    }

    fn operands(self) -> usize {
        match self {
            Self::Auth => 1,
            Self::Auth2 => 2,
            _ => 0,
        }
    }
}

/// The words among the options of a request, each with its place, up to KEYS. An operand is none,
/// whatever it says.
fn words(args: Args<'_>) -> impl Iterator<Item = (usize, Word)> {
    let mut at = OPTIONS;
    std::iter::from_fn(move || {
        let (place, word) = (at, Word::of(args.get(at)?));
        at = if word == Word::Keys { args.len() } else { at + 1 + word.operands() };
        Some((place, word))
    })
}

/// The arguments that are keys; none if KEYS is given and another key too, which is refused later.
fn key_arguments(args: Args<'_>) -> Range<usize> {
    match words(args).find(|(_, word)| *word == Word::Keys) {
        Some(_) if !args.at(3).is_empty() => 0..0,
        Some((at, _)) => at + 1..args.len(),
        None => 3..4,
    }
}

/// The arguments that are users or passwords, which nobody else is to read, in order.
fn secret_arguments(args: Args<'_>) -> Vec<usize> {
    words(args).flat_map(|(at, word)| (at + 1..args.len()).take(word.operands())).collect()
}

const KEY_TWICE: Refusal = Refusal::of(
    "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
);

/// In a transaction, or from a master. Redis lets everything wait for the other server; here
/// nothing waits for it within a unit, which is all or nothing.
const NOT_ALONE: Refusal = Refusal::of("ERR Command not allowed inside a transaction");

impl Order {
    /// What a request asks for.
    ///
    /// # Errors
    /// It makes no sense.
    fn parse(args: Args<'_>) -> Result<Self, Refusal> {
        let (mut copies, mut replaces, mut login) = (false, false, None);
        for (at, word) in words(args) {
            let operand = |nth: usize| args.get(at + nth).ok_or(Refusal::SYNTAX);
            match word {
                Word::Copy => copies = true,
                Word::Replace => replaces = true,
                Word::Auth => login = Some(Login { user: None, password: operand(1)?.to_vec() }),
                Word::Auth2 => {
                    let (user, password) = (operand(1)?, operand(2)?);
                    let user = Some(user.to_vec());
                    login = Some(Login { user, password: password.to_vec() });
                }
                Word::Keys if !args.at(3).is_empty() => return Err(KEY_TWICE),
                Word::Keys => {}
                Word::Unknown => return Err(Refusal::SYNTAX),
            }
        }
        let timeout = parse_i64(args.at(5)).ok_or(Refusal::NOT_AN_INTEGER)?;
        let into = parse_i64(args.at(4)).ok_or(Refusal::NOT_AN_INTEGER)?;
        let millis = if timeout <= 0 { TIMEOUT_MILLIS } else { timeout };
        Ok(Self {
            // Where there is no such host or port, none is reached: an error of that sort.
            target: Target {
                host: String::from_utf8_lossy(args.at(1)).into_owned(),
                port: parse_i64(args.at(2)).and_then(|port| u16::try_from(port).ok()),
                login,
            },
            into,
            timeout_nanos: millis.unsigned_abs().saturating_mul(1_000_000),
            copies,
            replaces,
        })
    }
}

fn migrate(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let order = Order::parse(args)?;
    if server.core.clients.at(client).is_in_exec || server.core.clients.at(client).is_master() {
        return Err(NOT_ALONE);
    }
    let context = server.core.context(&server.core.asker(client));
    let named = key_arguments(args);
    let shard = &mut server.core.shard;
    let keys: Vec<Vec<u8>> =
        shard.engine.look(context, &mut shard.unit, &mut server.core.interest, |view| {
            let there = args.range(named).filter(|key| view.find(key).is_some());
            there.map(<[u8]>::to_vec).collect()
        });
    if keys.is_empty() {
        server.core.clients.reply(client).simple("NOKEY");
    } else {
        server.migrations.begin(&mut server.core, client, order, keys);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_args<T>(line: &str, take: impl FnOnce(Args<'_>) -> T) -> T {
        let mut bytes = Vec::new();
        let mut ranges = Vec::new();
        for word in line.split(' ') {
            let word = if word == "\"\"" { "" } else { word };
            ranges.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word.as_bytes());
        }
        take(Args::new(&bytes, &ranges))
    }

    fn refusal(line: &str) -> String {
        with_args(line, Order::parse).err().map_or_else(String::new, |refusal| refusal.0.into())
    }

    #[test]
    fn options_are_judged_in_the_order_in_which_redis_judges_them() {
        for (line, expected) in [
            ("migrate h 1 k 0 5 copy REPLACE auth x", ""),
            ("migrate h 1 k 0 5 copy x", "ERR syntax error"),
            ("migrate h 1 k x 5 auth", "ERR syntax error"),
            ("migrate h 1 k 0 5 auth2 user", "ERR syntax error"),
            ("migrate h 1 k x 5", "ERR value is not an integer or out of range"),
            ("migrate h 1 k 0 5.", "ERR value is not an integer or out of range"),
            ("migrate h 1 k x 5 keys k", KEY_TWICE.0.as_ref()),
            ("migrate h 1 \"\" 0 5 keys copy nonsense", ""),
        ] {
            assert_eq!(refusal(line), expected, "{line}");
        }
        let order = with_args("migrate h 70000 k 3 0 auth2 u p auth q", Order::parse);
        let order = order.expect("it makes sense");
        assert_eq!((order.target.port, order.into), (None, 3));
        assert_eq!(order.timeout_nanos, 1_000_000_000);
        let last = Login { user: None, password: b"q".to_vec() };
        assert!(order.target.login == Some(last), "the last one counts");
    }

    #[test]
    fn what_stands_behind_auth_is_secret_and_nothing_else() {
        let secrets = |line: &str| with_args(line, secret_arguments);
        assert_eq!(secrets("migrate auth 1 auth 0 5 auth x copy"), [7]);
        assert_eq!(secrets("migrate h 1 k 0 5 copy auth2 auth x auth y"), [8, 9, 11]);
        assert_eq!(secrets("migrate h 1 \"\" 0 5 keys auth x"), [0_usize; 0]);
        assert_eq!(secrets("migrate h 1 k 0 5 auth2 x"), [7]);
    }

    #[test]
    fn keys_stand_behind_the_last_option() {
        let keys = |line: &str| with_args(line, key_arguments);
        assert_eq!(keys("migrate h 1 k 0 5 copy"), 3..4);
        assert_eq!(keys("migrate h 1 \"\" 0 5 auth keys keys a b"), 9..11);
        assert_eq!(keys("migrate h 1 k 0 5 keys a"), 0..0);
        assert_eq!(keys("migrate h 1 \"\" 0 5 keys"), 7..7);
    }
}
