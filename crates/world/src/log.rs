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
//! | [`jetstream`] | the log in a NATS JetStream cluster |
//! | [`objects`] | the log in an object store: S3, what speaks like it, a directory |
//! | [`service`] | the thread on which a client works, and the way there and back |

mod address;
pub mod jetstream;
pub mod objects;
pub mod service;
