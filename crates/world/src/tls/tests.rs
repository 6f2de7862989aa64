#![allow(clippy::disallowed_methods, reason = "the tests are the operator")]

use super::test_authority::TestAuthority;
use super::*;

#[test]
fn the_name_in_a_real_certificate_is_found() {
    let authority = TestAuthority::new("name");
    let pair = authority.issue("alice");
    let certificate = certificates(&pair.certificate).unwrap().remove(0);
    assert_eq!(name::common_name(&certificate), Some(&b"alice"[..]));
}

#[test]
fn what_cannot_be_used_is_refused_by_name_and_changes_nothing() {
    let authority = TestAuthority::new("refused");
    let good = authority.settings("server", ClientAuth::Required);
    let tls = Tls::default();
    assert!(tls.server().is_none());
    tls.adopt(&good).unwrap();
    let before = tls.server().expect("it is set up");
    let other = authority.issue("other");
    let pair = good.key_pair.clone().unwrap();
    let empty = authority.folder.join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let encrypted = authority.folder.join("encrypted.key");
    std::fs::write(&encrypted, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n").unwrap();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls/key/version_1");
    let with_pair = |certificate: &Path, key: &Path| TlsSettings {
        key_pair: Some(KeyPair {
            certificate: certificate.into(),
            key: key.into(),
            password: None,
        }),
        ..good.clone()
    };
    let bad = [
        (
            "tls-cert-file and tls-key-file are needed",
            TlsSettings { key_pair: None, ..good.clone() },
        ),
        ("missing", with_pair(&authority.folder.join("missing"), &pair.key)),
        ("it is no regular file", with_pair(Path::new("/dev/null"), &pair.key)),
        ("there is no certificate in it", with_pair(&empty, &pair.key)),
        ("there is no private key in it", with_pair(&pair.certificate, &empty)),
        ("there is no private key in it", with_pair(&pair.certificate, &encrypted)),
        ("cannot be used", with_pair(&pair.certificate, &other.key)),
        ("X.509 version 3", with_pair(&old.with_extension("crt"), &old.with_extension("key"))),
        ("tls-ca-cert-file", TlsSettings { trusted_file: None, ..good.clone() }),
        ("TLSv1.1 is not spoken", TlsSettings { protocols: "TLSv1.1".into(), ..good.clone() }),
        ("AES128-SHA is not", TlsSettings { ciphers: "AES128-SHA".into(), ..good.clone() }),
    ];
    for (why, settings) in bad {
        let refused = tls.adopt(&settings).unwrap_err();
        assert!(refused.contains(why), "{why}: {refused}");
        assert!(Arc::ptr_eq(&before, &tls.server().unwrap()), "{why}");
    }
    tls.adopt(&TlsSettings { accepts: false, connects: false, ..good }).unwrap();
    assert!(tls.server().is_none());
}

#[test]
fn a_folder_of_certificates_is_trusted_and_what_else_lies_there_is_not() {
    let authority = TestAuthority::new("folder");
    std::fs::write(authority.folder.join("note.txt"), "nothing of ours").unwrap();
    let mut settings = authority.settings("server", ClientAuth::Required);
    settings.trusted_file = None;
    settings.trusted_folder = Some(authority.folder.clone());
    Tls::default().adopt(&settings).unwrap();
    settings.trusted_folder = Some(authority.folder.join("missing"));
    assert!(Tls::default().adopt(&settings).unwrap_err().contains("missing"));
}
