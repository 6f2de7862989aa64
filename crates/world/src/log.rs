//! Logs that other machines keep, each through its own client.
//!
//! ```text
//! node ─▶ txlog::remote::RemoteLog ─▶ ServiceStore ═ bounded queue ═▶ thread: tokio + client
//!            order, doubt, reading        ▲ outcomes, waker ◀═══════════╝
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `address` | what the URLs of logs have in common |
//! | `etcd` | the log in etcd; a feature, because its client's build needs `protoc` |
//! | [`jetstream`] | the log in a NATS JetStream cluster |
//! | [`objects`] | the log in an object store: S3, what speaks like it, a directory |
//! | [`service`] | the thread on which a client works, and the way there and back |

mod address;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod jetstream;
pub mod objects;
pub mod service;
