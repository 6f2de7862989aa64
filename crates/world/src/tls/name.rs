//! The common name of a certificate's subject.
//!
//! A certificate consists of nested records of tag, length and content (DER, X.690). Only the path
//! to the subject's name is read here; a certificate of unexpected form has no name. rustls has
//! verified it before, but its bytes come from a stranger: none of them may cause a panic.
//!
//! ```text
//! certificate { to be signed { [0] version, serial, algorithm, issuer, validity, subject { … } } }
//! subject     { set { pair { kind: 2.5.4.3, text } } … }
//! ```

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const VERSION: u8 = 0xa0;

/// 2.5.4.3: common name.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Tags of text types whose bytes are used as they are: UTF-8, printable, T.61, IA5.
const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];

/// The first common name of a certificate's subject.
pub fn common_name(certificate: &[u8]) -> Option<&[u8]> {
    let mut signed = Records(certificate).inside(SEQUENCE)?.inside(SEQUENCE)?;
    let (tag, _) = Records(signed.0).read()?;
    if tag == VERSION {
        signed.read()?;
    }
    for _ in ["serial", "algorithm", "issuer", "validity"] {
        signed.read()?;
    }
    let mut subject = signed.inside(SEQUENCE)?;
    while let Some(mut set) = subject.inside(SET) {
        while let Some(mut pair) = set.inside(SEQUENCE) {
            let kind = pair.inside(OBJECT_ID)?;
            let (tag, text) = pair.read()?;
            if kind.0 == COMMON_NAME && TEXTS.contains(&tag) {
                return Some(text);
            }
        }
    }
    None
}

/// Records one behind the other.
struct Records<'c>(&'c [u8]);

impl<'c> Records<'c> {
    /// The next record's tag and content.
    fn read(&mut self) -> Option<(u8, &'c [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // No certificate needs a length of more than four bytes.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// What the next record holds, if it has this tag.
    fn inside(&mut self, tag: u8) -> Option<Self> {
        let (found, content) = self.read()?;
        (found == tag).then_some(Self(content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record.
    fn record(tag: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        let mut bytes = vec![tag];
        match content.len() {
            short @ 0..=0x7f => bytes.push(short as u8),
            long => bytes.extend([0x82, (long >> 8) as u8, long as u8]),
        }
        bytes.extend(content);
        bytes
    }

    fn certificate(names: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
        let number = record(2, &[b"\x07"]);
        let empty = record(SEQUENCE, &[]);
        let pairs = names.iter().map(|(kind, tag, text)| {
            let (kind, text) = (record(OBJECT_ID, &[kind]), record(*tag, &[text]));
            record(SET, &[&record(SEQUENCE, &[&kind, &text])])
        });
        let subject = record(SEQUENCE, &[&pairs.collect::<Vec<_>>().concat()]);
        let version = record(VERSION, &[&record(2, &[b"\x02"])]);
        let filler = record(SEQUENCE, &[&[0; 300]]);
        let signed = [&version, &number, &empty, &filler, &empty, &subject, &filler];
        record(SEQUENCE, &[&record(SEQUENCE, &signed.map(Vec::as_slice))])
    }

    const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

    #[test]
    fn the_name_is_that_of_the_subject() {
        let one = certificate(&[(ORGANISATION, 0x0c, b"acme"), (COMMON_NAME, 0x0c, b"alice")]);
        assert_eq!(common_name(&one), Some(&b"alice"[..]));
        assert_eq!(common_name(&certificate(&[(ORGANISATION, 0x0c, b"acme")])), None);
        let wide = certificate(&[(COMMON_NAME, 0x1e, b"\0a")]);
        assert_eq!(common_name(&wide), None, "a text of another kind");
    }

    #[test]
    fn whatever_the_bytes_are_nothing_breaks() {
        let whole = certificate(&[(COMMON_NAME, 0x13, b"alice")]);
        for cut in 0..whole.len() {
            assert_eq!(common_name(&whole[..cut]), None, "{cut}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let _ = common_name(&damaged);
            }
        }
    }
}
