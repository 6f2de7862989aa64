//! Rows of all commands: what nobody is shown of their requests.

use crate::command::standard;
use catalog::secrets::secret_arguments;
use engine::command::{Args, Secrets};

/// Each argument of a request as it is shown.
fn shown(request: &str) -> String {
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
    for word in &words {
        ranges.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    let args = Args::new(&bytes, &ranges);
    let secrets = secret_arguments(standard().0, args);
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
        ("command getkeys migrate h 1 k 0 5 auth p", "command getkeys migrate h 1 k 0 5 auth *"),
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
    let mut forgotten = Vec::new();
    for command in standard().0.iter() {
        let literals = command.name().split('|').count();
        let takes_operands = command.row.usage.split(' ').count() > literals;
        let speaks = names_a_secret(command.row.usage) || names_a_secret(command.row.summary);
        let is_listed = !matches!(command.row.secrets, Secrets::None);
        let is_excepted = WITHOUT.contains(&command.name());
        if takes_operands && speaks && is_listed == is_excepted {
            forgotten.push(command.row.usage);
        }
    }
    assert_eq!(forgotten, [""; 0], "has one of them a secret?");
}
