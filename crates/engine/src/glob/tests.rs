use super::*;
use crate::work::{Pulse, Work};
use std::cell::RefCell;
use std::rc::Rc;

/// Where nobody counts.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    super::matches(pattern, text, &Work::default())
}

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
    let check = |pattern: &str, text: &str| {
        matches_ignoring_case(pattern.as_bytes(), text.as_bytes(), &Work::default())
    };
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

#[derive(Default)]
struct Beats(usize);

impl Pulse for Beats {
    fn beat(&mut self) {
        self.0 += 1;
    }
}

#[test]
fn what_takes_long_is_counted_on_the_way() {
    let (work, beats) = (Work::default(), Rc::new(RefCell::new(Beats::default())));
    work.set_pulse(beats.clone());
    let text = [b'a'; 6000];
    // Each byte of the text begins a comparison of 3,000 bytes, but for those near its end.
    let (compared, per_pulse) = (3000 * 3000, 2 << 20);
    for pattern in [
        [b"*", &[b'a'; 3000][..], b"b*"].concat(),
        [&b"*["[..], &[b'x'; 3000], b"]*"].concat(),
        [&b"*["[..], &[b'x'; 3000]].concat(),
    ] {
        for matches in [super::matches, matches_ignoring_case] {
            *beats.borrow_mut() = Beats::default();
            assert!(!matches(&pattern, &text, &work));
            assert!(beats.borrow().0 >= compared / per_pulse, "{}", beats.borrow().0);
        }
    }
    assert!(super::matches(b"a*a", &text, &work));
}

#[test]
fn one_long_class_and_one_long_run_of_stars_are_counted_on_the_way() {
    // The steps taken when the pulse comes: it comes amid one match, not behind it.
    struct Amid(Work, Vec<usize>);
    impl Pulse for Amid {
        fn beat(&mut self) {
            self.1.push(self.0.taken());
        }
    }
    const STEPS: usize = 100;
    for (first, filler) in [(b'[', b'x'), (b'*', b'*')] {
        let work = Work::default();
        let amid = Rc::new(RefCell::new(Amid(work.clone(), Vec::new())));
        work.set_steps_per_pulse(10);
        work.set_pulse(amid.clone());
        let pattern = [&[first][..], &vec![filler; STEPS * BYTES_PER_STEP]].concat();
        super::matches(&pattern, b"a", &work);
        let expected: Vec<usize> = (1..=STEPS / 10).map(|pulse| pulse * 10).collect();
        assert_eq!(amid.borrow().1, expected);
        assert!(work.taken() <= STEPS + 2, "{}", work.taken());
    }
}

#[test]
fn a_closed_class_is_not_counted_to_the_end_of_the_pattern() {
    let work = Work::default();
    let pattern = [&b"[a]"[..], &[b'b'; 100 * BYTES_PER_STEP]].concat();
    assert!(!super::matches(&pattern, b"ac", &work));
    assert_eq!(work.taken(), 1);
}
