use super::*;

const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Not random: what it fills is the same each time.
fn counting(bytes: &mut [u8]) {
    bytes.iter_mut().zip(0..).for_each(|(byte, n)| *byte = n);
}

fn ring(text: &str) -> Keyring {
    Keyring::parse(text.as_bytes()).expect("the keys are right")
}

#[test]
fn a_wrapped_key_is_opened_by_the_key_of_its_name_however_it_is_written() {
    let data_key = [9; 32];
    let one = ring(&format!("# kept in the safe\n\n old {HEX}\n"));
    let wrapped = one.wrap(&data_key, &counting).expect("it is local");
    assert_eq!((&*wrapped.name, wrapped.bytes.len()), ("old", 60));
    let other = "ff".repeat(32);
    for same in [BASE64.to_owned(), BASE64.trim_end_matches('=').to_owned(), HEX.to_uppercase()] {
        let rotated = ring(&format!("new {other}\r\nold\t{same}\r\n"));
        assert_eq!(rotated.current(), "new");
        assert_eq!(rotated.unwrap(&wrapped), Ok(data_key), "{same}");
    }
    let needed = "old".to_owned();
    assert_eq!(ring(&format!("new {other}")).unwrap(&wrapped), Err(KeyError::Unknown { needed }));
    let wrong = Err(KeyError::Wrong { name: "old".to_owned() });
    assert_eq!(ring(&format!("old {other}")).unwrap(&wrapped), wrong);
    let renamed = Wrapped { name: "new".to_owned(), ..wrapped.clone() };
    assert!(ring(&format!("new {HEX}")).unwrap(&renamed).is_err(), "it is bound to the name");
    for at in 0..wrapped.bytes.len() {
        let mut changed = wrapped.clone();
        changed.bytes[at] ^= 1;
        assert_eq!(one.unwrap(&changed), wrong, "{at}");
        changed.bytes.truncate(at);
        assert_eq!(one.unwrap(&changed), wrong, "{at}");
    }
}

#[test]
fn the_wrapped_form_is_the_documented_one() {
    let wrapped = ring(&format!("k1 {HEX}")).wrap(&[9; 32], &counting).expect("it is local");
    let golden: String = wrapped.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(golden, include_str!("golden-wrapped.hex").trim_end());
}

#[test]
fn what_is_wrong_is_named_by_its_line_and_not_shown() {
    let secret = "S3cr3t".repeat(8);
    let many = (0..=KEYS_MAX).map(|n| format!("k{n} {HEX}\n")).collect();
    let cases: [(String, &str); 9] = [
        (String::new(), "it holds no key"),
        ("# only words\n".to_owned(), "it holds no key"),
        (format!("\n{secret}"), "line 2: a name and a key"),
        (format!("a b {secret}"), "line 1: a name and a key"),
        (format!("a {secret}"), "line 1: a key is 32 bytes"),
        (format!("a {}", &HEX[1..]), "line 1: a key is 32 bytes"),
        (format!("a {}B", &BASE64[..42]), "line 1: a key is 32 bytes"),
        (format!("a {HEX}\na {HEX}"), "line 2: a key of this name stands before it"),
        (many, "line 257: there are more than 256 keys"),
    ];
    for (text, said) in cases {
        let why = Keyring::parse(text.as_bytes()).expect_err("it is wrong");
        assert!(why.starts_with(said), "{why}");
        assert!(!why.contains("S3cr3t"), "{why}");
    }
    assert!(Keyring::parse(format!("{} {HEX}", "n".repeat(65)).as_bytes()).is_err());
    assert!(Keyring::parse(&[0xff, b' ', b'0']).is_err());
    assert_eq!(format!("{:?}", ring(&format!("a {HEX}\nb {BASE64}"))), r#"["a", "b"]"#);
}
