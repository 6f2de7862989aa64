//! Names of what the engine tells apart by number: keys, and the clients that listen to them.

/// The hash of a key, as the table and the tracker use it.
pub type KeyHash = u64;

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
