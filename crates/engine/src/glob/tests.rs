use super::*;

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The corpus is what KEYS of redis-server 7.0.15 found; `glob/record.py` recorded it.
#[test]
fn matches_what_redis_matches() {
    let mut lines = include_str!("redis-7.0.15.txt").lines();
    let texts: Vec<Vec<u8>> = lines.next().unwrap().split(' ').map(bytes).collect();
    let mut cases = 0;
    for line in lines {
        let (pattern, expected) = line.split_once(' ').unwrap();
        let pattern = bytes(pattern);
        for (text, expected) in texts.iter().zip(expected.bytes()) {
            let matched = matches(&pattern, text);
            let (pattern, text) = (pattern.escape_ascii(), text.escape_ascii());
            assert_eq!(matched, expected == b'1', "{pattern} on {text}");
            cases += 1;
        }
    }
    assert!(cases > 50_000);
}

#[test]
fn ignores_case_where_asked() {
    let check =
        |pattern: &str, text: &str| matches_ignoring_case(pattern.as_bytes(), text.as_bytes());
    assert!(check("MAX*", "maxmemory"));
    assert!(check("max[A-M]*", "maxMemory"));
    assert!(check("[X]", "x"));
    assert!(!check("[\\X]", "x"), "an escape in a class compares exactly");
    assert!(check("\\X", "x"));
    assert!(!check("[N-Z]axmemory", "maxmemory"));
}

#[test]
fn only_the_empty_pattern_matches_the_empty_text() {
    assert!(matches(b"", b""));
    assert!(!matches(b"*", b""));
    assert!(!matches(b"", b"a"));
}

#[test]
fn many_stars_stay_cheap() {
    let pattern = b"a*".repeat(900);
    let text = [b"a".repeat(4000), b"b".to_vec()].concat();
    assert!(!matches(&[&pattern[..], b"c"].concat(), &text));
    assert!(matches(&[&pattern[..], b"b"].concat(), &text));
}

#[test]
fn what_takes_long_is_counted_on_the_way() {
    use crate::work::{Pulse, Work};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Default)]
    struct Beats(usize);

    impl Pulse for Beats {
        fn beat(&mut self) {
            self.0 += 1;
        }
    }

    let (work, beats) = (Work::default(), Rc::new(RefCell::new(Beats::default())));
    work.set_pulse(beats.clone());
    let text = [b'a'; 6000];
    for pattern in
        [[b"*", &[b'a'; 3000][..], b"b*"].concat(), [&b"*["[..], &[b'x'; 3000], b"]*"].concat()]
    {
        *beats.borrow_mut() = Beats::default();
        assert!(!matches_counted(&pattern, &text, &work));
        // Each byte of the text begins a comparison of 3,000 bytes, but for those near its end.
        let (compared, per_pulse) = (3000 * 3000, 2 << 20);
        assert!(beats.borrow().0 >= compared / per_pulse, "{}", beats.borrow().0);
    }
    assert!(matches_counted(b"a*a", &text, &work));
}
