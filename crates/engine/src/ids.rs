//! Names of what the engine tells apart by number: keys, and the clients that listen to them.

/// The hash of a key, as the table and the tracker use it.
pub type KeyHash = u64;

/// The hash of an argument of the running request, and where in memory that argument stands. Valid
/// while the request's bytes are borrowed: no other bytes can stand there then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashedKey {
    address: usize,
    len: usize,
    pub hash: KeyHash,
}

impl HashedKey {
    pub fn new(key: &[u8], hash: KeyHash) -> Self {
        Self { address: key.as_ptr().addr(), len: key.len(), hash }
    }

    /// Whether `key` is this argument: the same address and length, so the same bytes.
    #[inline]
    pub fn is(&self, key: &[u8]) -> bool {
        self.address == key.as_ptr().addr() && self.len == key.len()
    }
}

/// A client that waits for keys, named by the node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WaiterId(pub u64);

/// A client that watches keys for its transaction, named by the node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WatcherId(pub u64);

/// A client that is subscribed to channels, named by the node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SubscriberId(pub u64);

/// A client that caches what it reads (CLIENT TRACKING), named by the node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CacherId(pub u64);
