//! Finds passwords and other secrets in requests, in directives of the configuration, in rules of
//! users and in URLs, so that they are not shown. This file alone decides what a secret is.
//!
//! | shown by | what decides |
//! |---|---|
//! | MONITOR, SLOWLOG | [`secret_arguments`] of a request |
//! | errors about a configuration file, `ps` | [`hide_directive`], [`mask_directive`] |
//! | errors about a user | [`shown_rule`] |
//! | CONFIG GET, warnings and errors | [`hide_credentials`] of a URL |
//!
//! Where a HELLO or a rule of a user makes no sense, what may be a password counts as one. But a
//! secret is known by the command, the option or the directive before it: behind a mistyped name
//! of one of those it is shown.

use crate::command::migrate;
use crate::config::directive::Kind;
use crate::config::table::{DIRECTIVES, find};
use crate::registry::Registry;
use engine::command::Args;
use std::ops::Range;

/// What stands for a secret. Redis's word.
pub const REDACTED: &str = "(redacted)";

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
    let is_secret = |at: &usize| !matches!(Secrecy::of(args.at(at - 1)), Secrecy::None);
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

/// What is secret in the value of a directive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Secrecy {
    None,
    /// The credentials in it: it may be a URL.
    Credentials,
    All,
}

impl Secrecy {
    /// By the name of a directive, or of `user`, which is none in the table.
    fn of(directive: &[u8]) -> Self {
        match find(directive).map(|(row, _)| &DIRECTIVES[row]) {
            Some(row) if row.sensitive => Self::All,
            Some(row) if matches!(row.kind, Kind::Location { .. }) => Self::Credentials,
            None if directive.eq_ignore_ascii_case(b"user") => Self::All,
            _ => Self::None,
        }
    }
}

/// A line of a configuration file without its secrets: the directive's name, quoted or not, and its
/// value.
pub(crate) fn hide_directive(line: &str) -> String {
    let Some((name, _)) = line.split_once(char::is_whitespace) else { return line.to_owned() };
    match Secrecy::of(name.trim_matches(['"', '\'']).as_bytes()) {
        Secrecy::None => line.to_owned(),
        Secrecy::Credentials => hide_credentials(line),
        Secrecy::All => format!("{name} {REDACTED}"),
    }
}

/// Puts asterisks in the place of what is secret in a directive's value, which keeps its length.
pub(crate) fn mask_directive(name: &[u8], value: &mut [u8]) {
    match Secrecy::of(name) {
        Secrecy::None => {}
        Secrecy::Credentials => {
            for place in credentials(value) {
                value[place].fill(b'*');
            }
        }
        Secrecy::All => value.fill(b'*'),
    }
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

/// A URL without the credentials in it.
pub fn hide_credentials(url: &str) -> String {
    let mut shown = String::new();
    let mut from = 0;
    for place in credentials(url.as_bytes()) {
        shown.push_str(&url[from..place.start]);
        shown.push_str(REDACTED);
        from = place.end;
    }
    shown.push_str(&url[from..]);
    shown
}

/// Where the credentials of a URL are: before the `@` of a host, also in options whose value is a
/// URL (`endpoint=https://user:password@…`). Of an ill-formed one, all that may be a password.
fn credentials(url: &[u8]) -> Vec<Range<usize>> {
    let options = url.iter().position(|byte| *byte == b'?').filter(|&at| {
        // Else the `?` stands in a password, for all that is known.
        url[..at].contains(&b'@') || url[at + 1..].split(|byte| *byte == b'&').all(is_option)
    });
    let mut found: Vec<Range<usize>> =
        user(&url[..options.unwrap_or(url.len())]).into_iter().collect();
    let mut from = options.map_or(url.len(), |at| at + 1);
    for option in url[from..].split(|byte| *byte == b'&') {
        found.extend(user(option).map(|place| from + place.start..from + place.end));
        from += option.len() + 1;
    }
    found
}

/// Whether an `@` in what stands behind a `?` belongs to a URL of its own, or there is none.
fn is_option(text: &[u8]) -> bool {
    let at = text.iter().position(|byte| *byte == b'@');
    at.is_none_or(|at| text[..at].windows(3).any(|bytes| bytes == b"://"))
}

/// What stands between the first `://` and the last `@`.
fn user(text: &[u8]) -> Option<Range<usize>> {
    let begin = text.windows(3).position(|bytes| bytes == b"://")? + 3;
    let length = text[begin..].iter().rposition(|byte| *byte == b'@')?;
    Some(begin..begin + length)
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
    fn no_directive_with_a_secret_is_forgotten() {
        const WITHOUT: [&str; 3] =
            ["lazyfree-lazy-user-del", "lazyfree-lazy-user-flush", "tls-auth-clients"];
        let words = ["auth", "pass", "user", "secret", "token"];
        let names = DIRECTIVES.iter().flat_map(|directive| [directive.name, directive.alias]);
        let shown = names.filter(|name| {
            words.iter().any(|word| name.contains(word))
                && Secrecy::of(name.as_bytes()) == Secrecy::None
        });
        assert_eq!(shown.collect::<Vec<_>>(), WITHOUT, "is one of them a secret?");
        assert_eq!(Secrecy::of(b"User"), Secrecy::All);
        assert_eq!(Secrecy::of(b"transaction-log"), Secrecy::Credentials);
    }

    #[test]
    fn lines_of_a_configuration_are_shown_without_secrets() {
        for (line, expected) in [
            ("port x", "port x"),
            ("requirepass", "requirepass"),
            ("requirepass a b", "requirepass (redacted)"),
            ("\"MasterAuth\" p", "\"MasterAuth\" (redacted)"),
            ("user u >p", "user (redacted)"),
            ("transaction-log etcd://u:p@a/x y", "transaction-log etcd://(redacted)@a/x y"),
        ] {
            assert_eq!(hide_directive(line), expected);
        }
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

    #[test]
    fn urls_are_shown_without_credentials() {
        for (url, expected) in [
            ("jetstream://a:1,b:2/x?tls=true", "jetstream://a:1,b:2/x?tls=true"),
            ("jetstream://u:p@a:1/x?tls=true", "jetstream://(redacted)@a:1/x?tls=true"),
            ("jetstream://token@a/x", "jetstream://(redacted)@a/x"),
            ("etcd://u:p@ss/w@a/x", "etcd://(redacted)@a/x"),
            ("etcd://u:p?ss@a/x?ca=/c", "etcd://(redacted)@a/x?ca=/c"),
            ("etcd://u:p?s=s@a/x", "etcd://(redacted)@a/x"),
            ("etcd://u:p@a/x?creds=/home/me@here/c", "etcd://(redacted)@a/x?creds=/home/me@here/c"),
            (
                "s3://b/p?endpoint=https://u:p@h&region=r",
                "s3://b/p?endpoint=https://(redacted)@h&region=r",
            ),
            ("file-object:/some@where/log", "file-object:/some@where/log"),
        ] {
            assert_eq!(hide_credentials(url), expected);
        }
    }
}
