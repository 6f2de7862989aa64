//! URLs of servers.

use super::*;

#[test]
fn urls_name_a_server_and_who_asks() {
    let parse = |text: &str| Address::parse(text).expect(text);
    let plain = parse("redis://host");
    assert_eq!((plain.host.as_str(), plain.port, plain.is_encrypted), ("host", 6379, false));
    assert!(plain.user.is_empty() && plain.password.is_empty());
    let full = parse("rediss://me:p%40ss%3a%25@10.0.0.1:7000/");
    assert_eq!((full.host.as_str(), full.port, full.is_encrypted), ("10.0.0.1", 7000, true));
    assert_eq!((&full.user[..], &full.password[..]), (&b"me"[..], &b"p@ss:%"[..]));
    for alone in ["redis://secret@[::1]:1", "redis://:secret@[::1]:1"] {
        let address = parse(alone);
        assert_eq!((&address.user[..], &address.password[..]), (&b""[..], &b"secret"[..]));
        assert_eq!(address.to_string(), "redis://[::1]:1");
        assert_eq!(format!("{address:?}"), "Address(redis://[::1]:1)");
    }
}

#[test]
fn what_is_no_url_is_refused_and_not_shown() {
    for text in [
        "",
        "secret",
        "host:6379",
        "http://u:secret@host",
        "redis://",
        "redis://u:secret@",
        "redis://u:secret@host/3",
        "redis://u:secret@host?db=3",
        "redis://u:secret@host#x",
        "redis://u:secret@host:99999",
        "redis://u:secret@ho st",
        "redis:secret",
    ] {
        let why = Address::parse(text).expect_err(text);
        assert!(why.starts_with("--from takes redis://") && !why.contains("secret"), "{why}");
    }
}
