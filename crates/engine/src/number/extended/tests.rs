use super::*;

/// What INCRBYFLOAT would answer.
fn add(stored: &str, increment: &str) -> String {
    let parse = |text: &str| Extended::parse(text.as_bytes());
    match (parse(stored), parse(increment)) {
        (Some(stored), Some(increment)) => match stored.checked_add(increment) {
            Some(sum) => sum.to_text(),
            None => "INFINITE".to_owned(),
        },
        _ => "NOT A FLOAT".to_owned(),
    }
}

/// The corpus is what redis-server 7.0.15 answered on x86-64; `record.py` recorded it.
#[test]
fn increments_as_redis_does() {
    let corpus = include_str!("redis-7.0.15.txt");
    for line in corpus.lines() {
        let [stored, increment, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line}");
        };
        assert_eq!(add(stored, increment), expected, "{stored} + {increment}");
    }
    assert!(corpus.lines().count() > 5000);
}

#[test]
fn integers_are_exact() {
    for value in [0, 1, -1, i64::MAX, i64::MIN, 1 << 53] {
        assert_eq!(Extended::from(value).to_text(), value.to_string());
        assert_eq!(Extended::parse(value.to_string().as_bytes()), Some(Extended::from(value)));
    }
}

#[test]
fn addition_commutes_and_rounds_ties_to_even() {
    let parse = |text: &str| Extended::parse(text.as_bytes()).unwrap();
    let one = parse("1");
    for (tiny, expected) in [
        ("0x1p-64", "0x1p0"),
        ("0x1.8p-64", "0x1.0000000000000002p0"),
        ("0x1p-63", "0x1.0000000000000002p0"),
        ("0x3p-64", "0x1.0000000000000004p0"),
        ("-0x1p-65", "0x1p0"),
        ("-0x1.00001p-65", "0x0.ffffffffffffffffp0"),
        ("-0x1p-200", "0x1p0"),
    ] {
        assert_eq!(one.checked_add(parse(tiny)), Some(parse(expected)), "1 + {tiny}");
        assert_eq!(parse(tiny).checked_add(one), Some(parse(expected)), "{tiny} + 1");
    }
}
