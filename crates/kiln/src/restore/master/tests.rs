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

#[test]
fn data_that_arrives_byte_by_byte_is_given_up_and_slow_data_is_not() {
    let at = |second: u64| MonotonicNanos(second * 1_000_000_000);
    let minute = 60_000_000_000;
    let mut pace = Pace { since: at(0), bytes: 0 };
    assert!(!pace.is_too_slow(0, at(10_000), minute), "it is forking");
    assert!(!pace.is_too_slow(1, at(10_001), minute));
    for second in 10_002..=10_060 {
        assert!(!pace.is_too_slow(second - 10_000, at(second), minute), "{second}");
    }
    assert!(pace.is_too_slow(61, at(10_061), minute), "a byte each second");
    let mut pace = Pace { since: at(0), bytes: 0 };
    for second in 0..1000 {
        let received = second * PROGRESS_BYTES_MIN / 59;
        assert!(!pace.is_too_slow(received, at(second), minute), "{second}");
    }
}
