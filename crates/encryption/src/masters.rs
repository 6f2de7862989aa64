//! Who wraps and unwraps data keys.

use crate::error::KeyError;

/// Bytes of a data key.
pub const DATA_KEY_BYTES: usize = 32;

/// A data key that only the holder of a master key can open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrapped {
    /// The master key, by its name: printable ASCII without spaces, at most
    /// [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX) bytes.
    pub name: String,
    /// At most [`WRAPPED_BYTES_MAX`](crate::WRAPPED_BYTES_MAX) bytes, which only the giver reads.
    pub bytes: Vec<u8>,
}

/// Master keys, one of which is current: a [`Keyring`](crate::Keyring), or a service that keeps
/// keys (KMS).
///
/// Both calls may be made by any thread, and by the execution loop: at a start, at a change of the
/// keys, and with the first record of each foreign data key. An implementation that asks a service
/// blocks those for as long as it takes, so it has a time limit, after which it fails.
pub trait MasterKeys: Send + Sync {
    /// The name of the key that wraps from now on.
    fn current(&self) -> &str;

    /// Wraps a data key by the current master key. `entropy` fills a buffer unpredictably.
    ///
    /// # Errors
    /// [`KeyError::Service`].
    fn wrap(
        &self,
        data_key: &[u8; DATA_KEY_BYTES],
        entropy: &dyn Fn(&mut [u8]),
    ) -> Result<Wrapped, KeyError>;

    /// Opens a data key that was wrapped by any of the master keys.
    ///
    /// # Errors
    /// The key of this name is not there, or is another one; [`KeyError::Service`].
    fn unwrap(&self, wrapped: &Wrapped) -> Result<[u8; DATA_KEY_BYTES], KeyError>;
}
