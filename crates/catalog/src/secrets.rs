//! Finds passwords and other secrets in requests and in rules of users, so that they are not shown.
//! What a command's secrets are, its row says.
//!
//! | shown by | what decides |
//! |---|---|
//! | MONITOR, SLOWLOG | [`secret_arguments`] of a request |
//! | errors about a user | [`shown_rule`] |
//!
//! Where a HELLO or a rule of a user makes no sense, what may be a password counts as one. But a
//! secret is known by the command or the option before it: behind a mistyped name of one of those
//! it is shown.

use crate::commands::Catalog;
use engine::command::secrets::REDACTED;
use engine::command::{Args, Secrets};

/// The places of a request's arguments that are secrets or the users they belong to, in order.
pub fn secret_arguments(catalog: &Catalog, mut args: Args<'_>) -> Vec<usize> {
    let mut first = 0;
    // A loop, since requests may be nested as deeply as one may be long.
    while let Some(name) = args.get(0)
        && let Some(command) = catalog.find(name, args.get(1))
    {
        match command.row.secrets {
            Secrets::Among(places) => {
                return places(args).into_iter().map(|at| first + at).collect();
            }
            Secrets::InRequest(at) if at < args.len() => {
                first += at;
                args = args.tail(at);
            }
            Secrets::InRequest(_) | Secrets::None => break,
        }
    }
    Vec::new()
}

/// A rule of a user as an error shows it, a selector being several. What begins like a rule about
/// keys, channels or commands is none about passwords; each word else may be a password.
pub fn shown_rule(rule: &[u8]) -> Vec<u8> {
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
