//! A wrapped data key as bytes.
//!
//! ```text
//! offset 0            1            2             4       4 + n      4 + n + w
//!        | version 1  | n = name   | w = wrapped | name  | wrapped   |
//! ```

use crate::error::KeyError;
use crate::masters::Wrapped;

/// Longest name of a master key, in bytes: those of cloud services' keys are shorter than their
/// full addresses, which are not needed.
pub const NAME_BYTES_MAX: usize = 64;

/// Longest wrapped data key, in bytes: RSA of 4096 bits makes 512 of it, AWS KMS 184.
pub const WRAPPED_BYTES_MAX: usize = 512;

/// Longest envelope, in bytes.
pub const ENVELOPE_BYTES_MAX: usize = FIXED_BYTES + NAME_BYTES_MAX + WRAPPED_BYTES_MAX;

const FIXED_BYTES: usize = 4;

const VERSION: u8 = 1;

/// The envelope's bytes.
///
/// # Errors
/// Name or wrapped key are longer than is allowed, or empty: a service's mistake.
pub fn encode(wrapped: &Wrapped) -> Result<Vec<u8>, KeyError> {
    let Wrapped { name, bytes } = wrapped;
    let name_bytes = u8::try_from(name.len()).ok().filter(|_| is_name(name.as_bytes()));
    let wrapped_bytes = u16::try_from(bytes.len()).ok().filter(|_| is_wrapped(bytes));
    let (Some(name_bytes), Some(wrapped_bytes)) = (name_bytes, wrapped_bytes) else {
        let what = format!("it wrapped a data key in {} bytes as {name:?}", bytes.len());
        return Err(KeyError::Service(what));
    };
    let mut envelope = vec![VERSION, name_bytes];
    envelope.extend_from_slice(&wrapped_bytes.to_le_bytes());
    envelope.extend_from_slice(name.as_bytes());
    envelope.extend_from_slice(bytes);
    Ok(envelope)
}

/// Reads the envelope at the beginning of some bytes; its length.
///
/// # Errors
/// [`KeyError::Malformed`].
pub fn decode(bytes: &[u8]) -> Result<(Wrapped, usize), KeyError> {
    let Some((&[version, name, low, high], rest)) = bytes.split_first_chunk::<FIXED_BYTES>() else {
        return Err(KeyError::Malformed("its envelope is cut short"));
    };
    if version != VERSION {
        return Err(KeyError::Malformed("this release does not know the form of its envelope"));
    }
    let (name, wrapped) = (usize::from(name), usize::from(u16::from_le_bytes([low, high])));
    let Some((name, rest)) = rest.split_at_checked(name).filter(|(name, _)| is_name(name)) else {
        return Err(KeyError::Malformed("its envelope names no master key"));
    };
    let Some(wrapped) = rest.get(..wrapped).filter(|wrapped| is_wrapped(wrapped)) else {
        return Err(KeyError::Malformed("its envelope holds no data key"));
    };
    let bytes = FIXED_BYTES + name.len() + wrapped.len();
    // Only printable ASCII comes here.
    let name = String::from_utf8_lossy(name).into_owned();
    Ok((Wrapped { name, bytes: wrapped.to_vec() }, bytes))
}

/// Whether a master key may have this name.
pub fn is_name(name: &[u8]) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic)
}

fn is_wrapped(bytes: &[u8]) -> bool {
    (1..=WRAPPED_BYTES_MAX).contains(&bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_documented_one() {
        let wrapped = Wrapped { name: "k1".to_owned(), bytes: vec![7; 3] };
        let bytes = encode(&wrapped).expect("it is within all limits");
        assert_eq!(bytes, [1, 2, 3, 0, b'k', b'1', 7, 7, 7]);
        let behind = [&bytes[..], b"rest"].concat();
        assert_eq!(decode(&behind), Ok((wrapped, 9)));
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn the_limits_are_kept_on_both_sides() {
        let longest = Wrapped { name: "n".repeat(64), bytes: vec![1; 512] };
        let bytes = encode(&longest).expect("it is within all limits");
        assert_eq!(bytes.len(), ENVELOPE_BYTES_MAX);
        assert_eq!(decode(&bytes), Ok((longest.clone(), ENVELOPE_BYTES_MAX)));
        let cases = [
            (String::new(), vec![1]),
            ("two words".to_owned(), vec![1]),
            ("a\u{e4}".to_owned(), vec![1]),
            ("n".repeat(65), vec![1]),
            ("n".to_owned(), vec![]),
            ("n".to_owned(), vec![1; 513]),
        ];
        for (name, bytes) in cases {
            let encoded = [
                &[1, u8::try_from(name.len()).expect("short")][..],
                &u16::try_from(bytes.len()).expect("short").to_le_bytes(),
                name.as_bytes(),
                &bytes,
            ]
            .concat();
            assert!(decode(&encoded).is_err(), "{name} {}", bytes.len());
            assert!(encode(&Wrapped { name, bytes }).is_err());
        }
        let mut newer = encode(&longest).expect("it is within all limits");
        newer[0] = 2;
        assert!(decode(&newer).is_err());
    }
}
