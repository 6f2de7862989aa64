//! Why something cannot be encrypted or decrypted.

use std::fmt;

/// What stands between encrypted bytes and their reader. No variant holds a key or plain bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyError {
    /// The process has no master key at all.
    None { needed: String },
    /// The process has master keys, and none of this name.
    Unknown { needed: String },
    /// There is a master key of this name, and it does not open the envelope.
    Wrong { name: String },
    /// The bytes are no form that this release knows; what is wrong with them.
    Malformed(&'static str),
    /// The bytes are not those that were encrypted, or were encrypted for another place.
    Altered,
    /// A service that keeps the master keys does not do its part; what it says.
    Service(String),
}

impl KeyError {
    /// Whether the bytes may be whole, and readable by who has the right master key.
    pub fn may_be_whole(&self) -> bool {
        match self {
            Self::None { .. } | Self::Unknown { .. } | Self::Wrong { .. } | Self::Service(_) => {
                true
            }
            Self::Malformed(_) | Self::Altered => false,
        }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { needed } => write!(
                f,
                "it is encrypted with the master key '{needed}', and this process was given no \
                 keys (encryption-key-file, KILN_ENCRYPTION_KEYS)"
            ),
            Self::Unknown { needed } => write!(
                f,
                "it is encrypted with the master key '{needed}', which is not among the keys that \
                 this process was given"
            ),
            Self::Wrong { name } => write!(
                f,
                "the master key '{name}' does not open its data key: another key has this name, \
                 or the envelope is damaged"
            ),
            Self::Malformed(what) => write!(f, "its encryption is malformed: {what}"),
            Self::Altered => f.write_str(
                "it does not decrypt: its bytes are damaged, or belong to another place",
            ),
            Self::Service(what) => write!(f, "the service of the master keys: {what}"),
        }
    }
}

impl std::error::Error for KeyError {}
