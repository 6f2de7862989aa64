//! Finds passwords and other secrets in requests and in rules of users, so that they are not shown.
//! This file alone decides what a secret is there; [`config::secrets`] decides it for directives.
//!
//! | shown by | what decides |
//! |---|---|
//! | MONITOR, SLOWLOG | [`secret_arguments`] of a request |
//! | errors about a user | [`shown_rule`] |
//!
//! Where a HELLO or a rule of a user makes no sense, what may be a password counts as one. But a
//! secret is known by the command, the option or the directive before it: behind a mistyped name
//! of one of those it is shown.

use crate::command::migrate;
use crate::registry::Registry;
use config::secrets::{REDACTED, may_hold_secret};
use engine::command::Args;

/// Where the secrets of a command's arguments are.
enum Secrets {
    /// At the places that the function finds, in order: passwords, and the users they belong to.
    Among(fn(Args<'_>) -> Vec<usize>),
    /// From this argument on stands another request, with its secrets.
    InRequest(usize),
}

/// Every command that may be given a secret, by its own name.
const COMMANDS: &[(&str, Secrets)] = &[
    ("acl|dryrun", Secrets::InRequest(3)),
    ("acl|setuser", Secrets::Among(|args| (2..args.len()).collect())),
    ("auth", Secrets::Among(|args| (1..args.len()).collect())),
    ("command|getkeys", Secrets::InRequest(2)),
    ("command|getkeysandflags", Secrets::InRequest(2)),
    ("config|set", Secrets::Among(config_set)),
    ("hello", Secrets::Among(hello)),
    ("migrate", Secrets::Among(migrate::secret_arguments)),
];

/// The places of a request's arguments that are secrets or the users they belong to, in order.
pub(crate) fn secret_arguments(registry: &Registry, mut args: Args<'_>) -> Vec<usize> {
    let mut first = 0;
    // A loop, since requests may be nested as deeply as one may be long.
    while let Some(name) = args.get(0)
        && let Some(command) = registry.find(name, args.get(1))
        && let Some((_, secrets)) = COMMANDS.iter().find(|(name, _)| *name == command.name())
    {
        match secrets {
            Secrets::Among(places) => {
                return places(args).into_iter().map(|at| first + at).collect();
            }
            &Secrets::InRequest(at) if at < args.len() => {
                first += at;
                args = args.tail(at);
            }
            Secrets::InRequest(_) => break,
        }
    }
    Vec::new()
}

/// Whatever stands behind the name of a directive that may hold a secret.
fn config_set(args: Args<'_>) -> Vec<usize> {
    let is_secret = |at: &usize| may_hold_secret(args.at(at - 1));
    (3..args.len()).filter(is_secret).collect()
}

/// Behind each AUTH of a HELLO, as often as it is given, and all that is no option.
fn hello(args: Args<'_>) -> Vec<usize> {
    let mut secrets = Vec::new();
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "AUTH") {
            secrets.extend((at + 1..args.len()).take(2));
            at += 3;
        } else if args.is(at, "SETNAME") {
            at += 2;
        } else {
            secrets.extend(at..args.len());
            break;
        }
    }
    secrets
}

/// A rule of a user as an error shows it, a selector being several. What begins like a rule about
/// keys, channels or commands is none about passwords; each word else may be a password.
pub(crate) fn shown_rule(rule: &[u8]) -> Vec<u8> {
    let shown = |word: &[u8]| match word.strip_prefix(b"(").unwrap_or(word).first() {
        Some(b'~' | b'%' | b'&' | b'+' | b'-') => word.to_vec(),
        _ => REDACTED.as_bytes().to_vec(),
    };
    let words = rule.split(|byte| byte.is_ascii_whitespace() || *byte == 0x0b);
    words.map(shown).collect::<Vec<_>>().join(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Each argument of a request as it is shown.
    fn shown(request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for word in &words {
            ranges.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word);
        }
        let args = Args::new(&bytes, &ranges);
        let secrets = secret_arguments(Registry::standard(), args);
        let shown = |(at, word): (usize, &&[u8])| match secrets.binary_search(&at) {
            Ok(_) => "*".to_owned(),
            Err(_) => String::from_utf8_lossy(word).into_owned(),
        };
        words.iter().enumerate().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_pair_of_a_hello_is_hidden() {
        for (request, expected) in [
            ("hello 2 auth u p AUTH u q", "hello 2 auth * * AUTH * *"),
            ("hello 3 setname auth auth u p", "hello 3 setname auth auth * *"),
            ("hello 3 auth auth setname setname x", "hello 3 auth * * setname x"),
            ("hello 3 auth u", "hello 3 auth *"),
            ("hello 3 u p", "hello 3 * *"),
            ("hello 3 setname x p", "hello 3 setname x *"),
            ("hello 3", "hello 3"),
        ] {
            assert_eq!(shown(request), expected);
        }
    }

    #[test]
    fn what_gives_or_proves_a_password_is_hidden() {
        for (request, expected) in [
            ("auth p", "auth *"),
            ("auth u p", "auth * *"),
            ("acl setuser u on >p", "acl setuser * * *"),
            ("config set hz 10 requirepass p", "config set hz 10 requirepass *"),
            ("config set MasterAuth p hz 10", "config set MasterAuth * hz 10"),
            ("config set x tls-key-file-pass p", "config set x tls-key-file-pass *"),
            ("config set tls-client-key-file-pass p", "config set tls-client-key-file-pass *"),
            ("config set transaction-log u", "config set transaction-log *"),
            ("migrate h 1 k 0 5 copy auth2 u p auth q", "migrate h 1 k 0 5 copy auth2 * * auth *"),
            ("migrate h 1 k 0 5 auht p", "migrate h 1 k 0 5 auht p"),
            ("get auth", "get auth"),
            ("nosuchcommand p", "nosuchcommand p"),
            ("acl dryrun u auth p", "acl dryrun u auth *"),
            ("acl dryrun u", "acl dryrun u"),
            (
                "command getkeys migrate h 1 k 0 5 auth p",
                "command getkeys migrate h 1 k 0 5 auth *",
            ),
            (
                "command getkeysandflags acl dryrun u config set masterauth p",
                "command getkeysandflags acl dryrun u config set masterauth *",
            ),
        ] {
            assert_eq!(shown(request), expected);
        }
    }

    /// Whether a text speaks of what may be a secret.
    fn names_a_secret(text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let words = ["auth", "pass", "secret", "credential", "token", "[rule"];
        // What gives other things their values, and what holds a request, may hold any of them.
        let any = ["parameter value", "command [arg"];
        words.iter().chain(&any).any(|word| text.contains(word))
    }

    /// Commands whose declaration speaks of such things and that are given none: one takes a
    /// number, one is for tests of the server.
    const WITHOUT: [&str; 2] = ["acl|genpass", "debug"];

    #[test]
    fn no_command_with_a_secret_is_forgotten() {
        let (mut found, mut forgotten) = (BTreeSet::new(), Vec::new());
        for command in Registry::standard().iter() {
            let literals = command.name().split('|').count();
            let takes_operands = command.row.usage.split(' ').count() > literals;
            let speaks = names_a_secret(command.row.usage) || names_a_secret(command.row.summary);
            let is_listed = COMMANDS.iter().any(|(name, _)| *name == command.name());
            let is_excepted = WITHOUT.contains(&command.name());
            if takes_operands && speaks && is_listed == is_excepted {
                forgotten.push(command.row.usage);
            }
            if is_listed {
                found.insert(command.name());
            }
        }
        assert_eq!(forgotten, [""; 0], "has one of them a secret?");
        assert_eq!(found.len(), COMMANDS.len(), "each of them is a command: {found:?}");
    }

    #[test]
    fn rules_of_users_are_shown_without_passwords() {
        for (rule, expected) in [
            ("~a", "~a"),
            ("%R~a", "%R~a"),
            (">p", "(redacted)"),
            ("p", "(redacted)"),
            ("(+get ~a &b)", "(+get ~a &b)"),
            ("(~*", "(~*"),
            ("(~* >p", "(~* (redacted)"),
            ("(~*\t>p\u{b}p)", "(~* (redacted) (redacted)"),
            ("(>p -get)", "(redacted) -get)"),
            ("(~a \">p q\")", "(~a (redacted) (redacted)"),
            ("+nosuch >p", "+nosuch (redacted)"),
        ] {
            assert_eq!(String::from_utf8_lossy(&shown_rule(rule.as_bytes())), expected);
        }
    }
}
