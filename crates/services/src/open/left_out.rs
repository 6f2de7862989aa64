//! The clients that a build may leave out, and the one wording in which it says so.

use std::io;

/// A client, and how it is had.
pub(super) struct Client {
    /// What keeps the log.
    service: &'static str,
    feature: &'static str,
    /// What the machine that builds must have beside Rust.
    needs: &'static str,
}

pub(super) const JETSTREAM: Client =
    Client { service: "NATS JetStream", feature: "jetstream", needs: "" };

pub(super) const OBJECTS: Client =
    Client { service: "an object store", feature: "objects", needs: "" };

pub(super) const ETCD: Client =
    Client { service: "etcd", feature: "etcd", needs: ", on a machine that has protoc" };

impl Client {
    /// Says that this build lacks the client, and how to build one that has it.
    pub(super) fn refusal(&self) -> io::Error {
        let Self { service, feature, needs } = self;
        let what = format!(
            "this build of Kiln has no client for a log in {service}: build it with `cargo build \
             --release -p kiln --features {feature}`{needs}"
        );
        io::Error::new(io::ErrorKind::Unsupported, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_was_left_out_says_how_to_get_it() {
        for client in [JETSTREAM, OBJECTS, ETCD] {
            let error = client.refusal();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            let text = error.to_string();
            let command = format!("--features {}`{}", client.feature, client.needs);
            assert!(text.contains(client.service) && text.ends_with(&command), "{text}");
        }
    }
}
