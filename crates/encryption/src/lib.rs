//! Encryption at rest: data keys in envelopes, and what is encrypted with them.
//!
//! ```text
//! master key ──wraps──▶ data key ──encrypts──▶ payloads of records   (one key for many)
//!  (named, outside)      (in an envelope            │
//!                         beside the bytes)         └▶ an object      (a key of its own)
//! ```
//! Whatever is encrypted has its data key beside it, wrapped by a master key that is named there.
//! So nothing that was written is written anew when the master key changes, and each record and
//! object can be read alone. `docs/formats/encryption.md` is normative.
//!
//! | file | holds |
//! |---|---|
//! | `error` | why something cannot be decrypted |
//! | `masters` | who wraps and unwraps data keys: a trait, for services that keep keys |
//! | `keyring` | the master keys of a file or of the environment |
//! | `envelope` | a wrapped data key as bytes |
//! | `data_key` | AES-256-GCM with one data key |
//! | `keys` | what a process holds: master keys that can be replaced, and data keys it met |
//! | `payload` | the payload of one record |
//! | `object` | an object of any length, in chunks that can be read by ranges |
//!
//! Absent on purpose: what records and objects are; files, the environment and true randomness,
//! which are passed in; the cryptography itself, which is `ring`'s.
#![forbid(unsafe_code)]

mod data_key;
mod envelope;
mod error;
mod keyring;
mod keys;
mod masters;
pub mod object;
mod payload;

pub use envelope::{ENVELOPE_BYTES_MAX, NAME_BYTES_MAX, WRAPPED_BYTES_MAX};
pub use error::KeyError;
pub use keyring::{KEYS_MAX, Keyring};
pub use keys::{Entropy, Keys};
pub use masters::{MasterKeys, Wrapped};
pub use payload::{PAYLOAD_OVERHEAD_BYTES_MAX, key_name_of_payload};
