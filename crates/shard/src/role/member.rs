//! Who takes part in a shard: a process's name and where its clients find it, as `Lead` and `Yield`
//! carry them (docs/formats/record.md).

use base::Epoch;
use std::fmt;

/// Bytes of a host's name, at most (RFC 1035).
const HOST_BYTES_MAX: usize = 255;

/// The layout that [`Member::encode`] writes.
const VERSION: u8 = 1;

/// Names a process for its life, as `run_id` in INFO does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MemberId(pub [u8; 20]);

impl MemberId {
    /// Its 40 hexadecimal digits, as CLUSTER NODES and INFO show it.
    pub fn parse(digits: &str) -> Option<Self> {
        let mut id = [0; 20];
        if digits.len() != 40 || !digits.is_ascii() {
            return None;
        }
        for (byte, pair) in id.iter_mut().zip(digits.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A process and its address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Member {
    pub id: MemberId,
    /// An address or a name; empty: unknown.
    pub host: String,
    pub port: u16,
}

impl Member {
    /// The bytes behind a `Lead`'s lease.
    pub fn encode(&self) -> Vec<u8> {
        let host = &self.host.as_bytes()[..self.host.len().min(HOST_BYTES_MAX)];
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.id.0);
        bytes.extend_from_slice(&self.port.to_le_bytes());
        bytes.push(host.len() as u8);
        bytes.extend_from_slice(host);
        bytes
    }

    /// What [`Self::encode`] wrote. `None` for the bytes of an older or a newer release: its leader
    /// is then known to lead, and not where.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_first_chunk::<20>()?;
        let (port, rest) = rest.split_first_chunk::<2>()?;
        let (&length, rest) = rest.split_first()?;
        let host = rest.get(..usize::from(length))?;
        if version != VERSION {
            return None;
        }
        Self::checked(MemberId(*id), host, u16::from_le_bytes(*port))
    }

    /// A member whose name can be shown in a line of INFO and in a redirection; else `None`.
    pub fn checked(id: MemberId, host: &[u8], port: u16) -> Option<Self> {
        let is_plain = host.len() <= HOST_BYTES_MAX
            && host.iter().all(|byte| (b'!'..=b'~').contains(byte) && !matches!(byte, b'"' | b','));
        let host = std::str::from_utf8(host).ok().filter(|_| is_plain)?;
        Some(Self { id, host: host.to_owned(), port })
    }
}

/// Who leads, as far as the log was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    pub epoch: Epoch,
    pub member: Member,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let member =
            Member { id: MemberId([7; 20]), host: "node-3.example".to_owned(), port: 6380 };
        assert_eq!(Member::decode(&member.encode()), Some(member.clone()));
        assert_eq!(MemberId::parse(&member.id.to_string()), Some(member.id));
    }

    #[test]
    fn foreign_bytes_name_nobody() {
        let whole = Member { host: "h".to_owned(), ..Member::default() }.encode();
        for length in 0..whole.len() {
            assert_eq!(Member::decode(&whole[..length]), None);
        }
        let mut newer = whole.clone();
        newer[0] = 2;
        assert_eq!(Member::decode(&newer), None);
        let mut noisy = whole;
        *noisy.last_mut().expect("not empty") = b'\n';
        assert_eq!(Member::decode(&noisy), None);
        assert_eq!(MemberId::parse("x"), None);
        assert_eq!(MemberId::parse(&"é".repeat(20)), None);
    }
}
