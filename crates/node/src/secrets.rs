//! Finds passwords and other secrets in a request's arguments and in URLs, so that they are not
//! shown. Used by MONITOR and SLOWLOG for requests, by CONFIG GET and messages for URLs.
//!
//! MONITOR and SLOWLOG show requests; CONFIG GET, warnings and errors show URLs. Where it is not
//! certain what a word is, because the request makes no sense, it counts as a secret: whoever
//! mistypes a password is not to find it in the slow log.

use crate::command::migrate;
use crate::config::change::is_sensitive;
use engine::command::Args;

/// What stands for a secret. Redis's word.
pub const REDACTED: &str = "(redacted)";

/// The places of a request's arguments that are secrets or the users they belong to, in order.
/// `command` is the command's own name, whatever it was renamed to.
pub(crate) fn secret_arguments(command: &str, args: Args<'_>) -> Vec<usize> {
    match command {
        "auth" => (1..args.len()).collect(),
        "acl|setuser" => (2..args.len()).collect(),
        "hello" => hello(args),
        "config|set" => (3..args.len()).filter(|at| is_sensitive(args.at(at - 1))).collect(),
        "migrate" => migrate::secret_arguments(args),
        _ => Vec::new(),
    }
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

/// A URL without the credentials in it: those before the `@` of a host, also in options whose value
/// is a URL (`endpoint=https://user:password@…`). Of an ill-formed one, all that may be a password
/// is hidden.
pub fn hide_credentials(url: &str) -> String {
    let (place, options) = match url.split_once('?') {
        // Else the `?` stands in a password, for all that is known.
        Some((place, options)) if place.contains('@') || options.split('&').all(is_option) => {
            (place, Some(options))
        }
        _ => (url, None),
    };
    let mut shown = hide_user(place);
    for (index, option) in options.into_iter().flat_map(|all| all.split('&')).enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        shown.push_str(&hide_user(option));
    }
    shown
}

/// Whether an `@` in what stands behind a `?` belongs to a URL of its own, or there is none.
fn is_option(text: &str) -> bool {
    text.split_once('@').is_none_or(|(before, _)| before.contains("://"))
}

/// What stands between `://` and the last `@` is hidden.
fn hide_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{REDACTED}@{host}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    /// Each argument of a request as it is shown.
    fn shown(request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for word in &words {
            ranges.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word);
        }
        let args = Args::new(&bytes, &ranges);
        let command = Registry::standard().find(args.at(0), args.get(1)).expect("a command");
        let secrets = secret_arguments(command.name(), args);
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
        ] {
            assert_eq!(shown(request), expected);
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
