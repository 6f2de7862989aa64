//! Which values of directives are secret, so that they are not shown: passwords, and the
//! credentials in URLs.
//!
//! | shown by | what decides |
//! |---|---|
//! | errors about a configuration file, `ps` | `hide_directive`, `mask_directive` |
//! | MONITOR and SLOWLOG of a CONFIG SET | [`may_hold_secret`] |
//! | CONFIG GET, warnings and errors | [`hide_credentials`] of a URL |
//!
//! A secret is known by the directive before it. Behind a name that is none here, as another
//! server's or a mistyped one, everything is secret if the name sounds like it.

use crate::directive::Kind;
use crate::table::{DIRECTIVES, find};
use engine::command::secrets::REDACTED;
use std::ops::Range;

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
            None if sounds_secret(directive) => Self::All,
            _ => Self::None,
        }
    }
}

/// Words in the names of directives whose values are secret.
const SECRET_WORDS: [&str; 5] = ["auth", "pass", "user", "secret", "token"];

/// Bytes of a name that are looked at.
const NAME_BYTES_MAX: usize = 256;

/// Whether a directive's name contains one of [`SECRET_WORDS`]. Of a longer name than any directive
/// has, only the first [`NAME_BYTES_MAX`] bytes are searched.
fn sounds_secret(name: &[u8]) -> bool {
    let name = name.get(..NAME_BYTES_MAX).unwrap_or(name).to_ascii_lowercase();
    let has = |word: &&str| name.windows(word.len()).any(|part| part == word.as_bytes());
    SECRET_WORDS.iter().any(has)
}

/// A line of a configuration file without its secrets: the directive's name, quoted or not, and its
/// value.
pub(crate) fn hide_directive(line: &str) -> String {
    let Some((name, _)) = line.split_once(char::is_whitespace) else { return line.to_owned() };
    let name_alone = name.trim_matches(['"', '\'']).as_bytes();
    match Secrecy::of(name_alone) {
        // One that is no directive may be meant for one, or be an option of a command's.
        Secrecy::None if find(name_alone).is_none() => hide_credentials(line),
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

/// Whether something in the value of this directive may be a secret.
pub fn may_hold_secret(directive: &[u8]) -> bool {
    Secrecy::of(directive) != Secrecy::None
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

/// What stands between the first `://` and the last `@`; where there is none, between a scheme with
/// too few slashes and that: a password that was mistyped is one all the same.
fn user(text: &[u8]) -> Option<Range<usize>> {
    let whole = text.windows(3).position(|bytes| bytes == b"://").map(|at| at + 3);
    let begin = whole.or_else(|| behind_scheme(text))?;
    let length = text[begin..].iter().rposition(|byte| *byte == b'@')?;
    Some(begin..begin + length)
}

/// Where the rest of a URL begins whose scheme has a colon and at most one slash. Paths are none.
fn behind_scheme(text: &[u8]) -> Option<usize> {
    const PATHS: [&[u8]; 2] = [b"file", b"file-object"];
    let colon = text.iter().position(|byte| *byte == b':')?;
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let length = text[..colon].iter().rev().take_while(|byte| is_of_scheme(byte)).count();
    let scheme = &text[colon - length..colon];
    let is_url = !scheme.is_empty() && !PATHS.contains(&scheme);
    let slashes = usize::from(text.get(colon + 1) == Some(&b'/'));
    is_url.then_some(colon + 1 + slashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_directive_with_a_secret_is_forgotten() {
        const WITHOUT: [&str; 4] = [
            "lazyfree-lazy-user-del",
            "lazyfree-lazy-user-flush",
            "tls-auth-clients",
            "tls-auth-clients-user",
        ];
        let names = DIRECTIVES.iter().flat_map(|directive| [directive.name, directive.alias]);
        let shown = names.filter(|name| {
            SECRET_WORDS.iter().any(|word| name.contains(word))
                && Secrecy::of(name.as_bytes()) == Secrecy::None
        });
        assert_eq!(shown.collect::<Vec<_>>(), WITHOUT, "is one of them a secret?");
        for name in ["User", "primaryauth", "PrimaryUser", "requirepasss", "masterauth2"] {
            assert_eq!(Secrecy::of(name.as_bytes()), Secrecy::All, "{name}");
        }
        assert_eq!(Secrecy::of(b"maxmemry"), Secrecy::None);
        assert_eq!(Secrecy::of(b"transaction-log"), Secrecy::Credentials);
    }

    #[test]
    fn lines_of_a_configuration_are_shown_without_secrets() {
        for (line, expected) in [
            ("port x", "port x"),
            ("into \"nats://u:p@a/x\"", "into \"nats://(redacted)@a/x\""),
            ("requirepass", "requirepass"),
            ("requirepass a b", "requirepass (redacted)"),
            ("\"MasterAuth\" p", "\"MasterAuth\" (redacted)"),
            ("user u >p", "user (redacted)"),
            ("transaction-log etcd://u:p@a/x y", "transaction-log etcd://(redacted)@a/x y"),
            ("transaction-log etcd:/u:p@a/x", "transaction-log etcd:/(redacted)@a/x"),
        ] {
            assert_eq!(hide_directive(line), expected);
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
            ("file:/some@where/log", "file:/some@where/log"),
            ("nats://u:p@a/x", "nats://(redacted)@a/x"),
            ("jetstream:/u:p@a/x", "jetstream:/(redacted)@a/x"),
            ("jetstream:u:p@a/x", "jetstream:(redacted)@a/x"),
            ("jetstream:/a:1/x", "jetstream:/a:1/x"),
            ("s3://b/p?endpoint=https:/u:p@h&region=r", "s3://(redacted)@h&region=r"),
        ] {
            assert_eq!(hide_credentials(url), expected);
        }
    }
}
