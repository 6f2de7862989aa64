//! Rules that single text directives add to their kind. The texts are Redis's.

use std::collections::BTreeSet;

type Verdict = Result<(), &'static str>;

fn is_base_name(name: &[u8]) -> bool {
    !name.contains(&b'/') && !name.contains(&b'\\')
}

pub fn snapshot_file_name(name: &[u8]) -> Verdict {
    if is_base_name(name) { Ok(()) } else { Err("dbfilename can't be a path, just a filename") }
}

pub fn append_file_name(name: &[u8]) -> Verdict {
    if name.is_empty() {
        return Err("appendfilename can't be empty");
    }
    if is_base_name(name) { Ok(()) } else { Err("appendfilename can't be a path, just a filename") }
}

pub fn append_folder_name(name: &[u8]) -> Verdict {
    if name.is_empty() {
        return Err("appenddirname can't be empty");
    }
    if is_base_name(name) { Ok(()) } else { Err("appenddirname can't be a path, just a dirname") }
}

/// Longest host name, in bytes, plus one (RFC 1035 allows 255).
const HOST_NAME_BYTES_MAX: usize = 256;

pub fn host_name(name: &[u8]) -> Verdict {
    if name.len() >= HOST_NAME_BYTES_MAX {
        return Err("Hostnames must be less than 256 characters");
    }
    if name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
        return Ok(());
    }
    Err("Hostnames may only contain alphanumeric characters, hyphens or dots")
}

/// Others are told of it, in lines whose words are split at blanks and commas.
pub fn announced_address(address: &[u8]) -> Verdict {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && *byte != b',';
    if address.len() < HOST_NAME_BYTES_MAX && address.iter().all(is_plain) {
        return Ok(());
    }
    Err("an announced address is one word of less than 256 characters")
}

/// Longest name of a shard, in bytes. A guess: it is typed by people.
const MASTER_NAME_BYTES_MAX: usize = 64;

/// As a Sentinel takes it; it stands in messages whose words are split at blanks.
pub fn master_name(name: &[u8]) -> Verdict {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
    if (1..=MASTER_NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(is_plain) {
        return Ok(());
    }
    Err("sentinel-master-name is 1 to 64 letters, digits, dots, hyphens or underscores")
}

/// As `tier` takes it: a path, or nothing.
pub fn tier(place: &[u8]) -> Verdict {
    match place.strip_prefix(b"file:") {
        Some(path) if !path.is_empty() && !path.contains(&0) => Ok(()),
        None if place.is_empty() => Ok(()),
        _ => Err(
            "argument must be file:PATH, where PATH is a directory or a block device, or empty for \
             no tier",
        ),
    }
}

/// As `slow-memory-nodes` takes them.
pub fn nodes(list: &[u8]) -> Verdict {
    const REFUSAL: &str =
        "argument must be auto, or numbers of memory nodes with commas between them";
    if list == b"auto" {
        return Ok(());
    }
    let mut numbers = BTreeSet::new();
    for word in list.split(|byte| matches!(byte, b',' | b' ')) {
        let word = std::str::from_utf8(word).map_err(|_| REFUSAL)?;
        let is_number = word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        let number: u16 = word.parse().ok().filter(|_| is_number).ok_or(REFUSAL)?;
        if !numbers.insert(number) {
            return Err("argument names a memory node twice");
        }
    }
    if numbers.len() > base::slow_memory::NODES_MAX {
        return Err("argument names more than four memory nodes");
    }
    Ok(())
}

/// The variables that a title may hold.
const TITLE_VARIABLES: [&str; 7] =
    ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];

pub fn title_template(template: &[u8]) -> Verdict {
    const REFUSAL: &str = "template format is invalid or contains unknown variables";
    let text = std::str::from_utf8(template).map_err(|_| REFUSAL)?;
    if text.trim().is_empty() {
        return Err(REFUSAL);
    }
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').ok_or(REFUSAL)?;
        if !TITLE_VARIABLES.contains(&&rest[open + 1..open + close]) {
            return Err(REFUSAL);
        }
        rest = &rest[open + close + 1..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_hold_letters_digits_hyphens_and_dots() {
        assert_eq!(host_name(b"db-1.example"), Ok(()));
        assert!(host_name(b"db_1").is_err());
        assert!(host_name(&[b'a'; 256]).is_err());
    }

    #[test]
    fn announced_addresses_are_one_word() {
        for address in [&b""[..], b"10.0.0.1", b"::1%eth0", b"db_1.example"] {
            assert_eq!(announced_address(address), Ok(()));
        }
        for address in [&b"a b"[..], b"a\nb", b"a,b", b"\xff", &[b'a'; 256]] {
            assert!(announced_address(address).is_err());
        }
    }

    #[test]
    fn names_of_masters_are_one_plain_word() {
        assert_eq!(master_name(b"my.master-1_a"), Ok(()));
        for name in [&b""[..], b"two words", b"new\nline", &[b'a'; 65]] {
            assert!(master_name(name).is_err());
        }
    }

    #[test]
    fn a_tier_lies_in_a_directory_or_nowhere() {
        for place in [&b""[..], b"file:/nvme/kiln", b"file:tier"] {
            assert_eq!(tier(place), Ok(()));
        }
        for place in [&b"file:"[..], b"/nvme", b"s3://bucket/tier", b"File:/nvme", b"file:a\0b"] {
            assert!(tier(place).expect_err("it is no directory").contains("file:PATH"));
        }
    }

    #[test]
    fn titles_take_known_variables_only() {
        assert_eq!(title_template(b"{title} on {port}"), Ok(()));
        assert!(title_template(b"{x}").is_err());
        assert!(title_template(b"{title").is_err());
        assert!(title_template(b"").is_err());
    }
}
