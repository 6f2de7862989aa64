//! Who is in the shard, as clients are told: the one place that knows where a server is found and
//! which of them is the primary.

use crate::server::Server;
use base::ConnectionId;
use shard::role::member::{Member, MemberId};

/// A replica is not called dead before it has been silent for so long: it reports each second.
const SILENCE_MILLIS: u64 = 3000;

/// A server of the shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub member: Member,
    pub is_primary: bool,
    pub is_self: bool,
    /// The last record that it has, as far as this process knows.
    pub offset: u64,
    /// Nothing was heard of it for longer than a lease, or than some of its reports take.
    pub has_failed: bool,
    /// Milliseconds since something was heard of it.
    pub silence_millis: u64,
}

impl Node {
    pub fn role(&self) -> &'static str {
        if self.is_primary { "master" } else { "slave" }
    }
}

/// The primary first, then this process, then the others. No two have the same address.
pub(crate) struct Nodes(pub Vec<Node>);

impl Nodes {
    pub fn primary(&self) -> Option<&Node> {
        self.0.iter().find(|node| node.is_primary)
    }

    pub fn replicas(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().filter(|node| !node.is_primary)
    }

    pub fn find(&self, id: &[u8]) -> Option<&Node> {
        let id = MemberId::parse(std::str::from_utf8(id).ok()?)?;
        self.0.iter().find(|node| node.member.id == id)
    }

    /// A process that was started anew has another id and the same address: the first one counts.
    fn add(&mut self, node: Node) {
        let is_same = |known: &Node| {
            let (one, other) = (&known.member, &node.member);
            one.id == other.id || (&one.host, one.port) == (&other.host, other.port)
        };
        if !node.member.host.is_empty() && !self.0.iter().any(is_same) {
            self.0.push(node);
        }
    }
}

impl Server {
    /// The shard as a client is told of it. A server that was not told where it is to be found is
    /// where that client found it.
    pub(crate) fn nodes(&self, client: ConnectionId) -> Nodes {
        let mut member = self.core.process.member();
        if self.core.process.announced_host().is_none()
            && let Some(address) = address_of(&self.core.clients.at(client).who.local)
        {
            member.host = address.to_owned();
        }
        let offset = self.core.shard.appended().sequence.0;
        let is_primary = !self.core.is_following();
        let mut nodes = Nodes(Vec::new());
        if let Some(leader) = self.primary_elsewhere() {
            nodes.add(Node {
                member: leader.clone(),
                is_primary: true,
                is_self: false,
                offset,
                has_failed: !self.core.hears_primary(),
                silence_millis: self.core.turn.monotonic.since(self.core.leadership.roles.heard())
                    / 1_000_000,
            });
        }
        nodes.add(Node {
            member,
            is_primary,
            is_self: true,
            offset,
            has_failed: false,
            silence_millis: 0,
        });
        let silence_millis_max =
            self.core.process.settings.transaction_log_lease.max(SILENCE_MILLIS);
        for known in self.members.known(&self.core) {
            nodes.add(Node {
                member: known.member,
                is_primary: false,
                is_self: false,
                offset: known.applied.0,
                has_failed: known.silence_millis > silence_millis_max,
                silence_millis: known.silence_millis,
            });
        }
        nodes
    }

    /// The primary, if it is another process and the log has told where. A former life of this one
    /// that led is nobody to be sent to.
    pub(crate) fn primary_elsewhere(&self) -> Option<&Member> {
        let leader = &self.core.leadership.roles.leader()?.member;
        let own = self.core.process.member();
        let is_here = leader.id == own.id || (&leader.host, leader.port) == (&own.host, own.port);
        (self.core.is_following() && !leader.host.is_empty() && !is_here).then_some(leader)
    }

    /// What INFO and HELLO say this is, for clients that choose their protocol by it.
    pub(crate) fn mode(&self) -> &'static str {
        if self.core.process.settings.discovery.cluster_enabled { "cluster" } else { "standalone" }
    }
}

/// The address of a socket's name, if it is no path.
fn address_of(local: &str) -> Option<&str> {
    let address = local.rsplit_once(':')?.0.trim_matches(['[', ']']);
    let is_plain = |byte: u8| byte.is_ascii_hexdigit() || b".:".contains(&byte);
    (address.contains(['.', ':']) && address.bytes().all(is_plain)).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u8, port: u16) -> Node {
        let member = Member { id: MemberId([number; 20]), host: "h".to_owned(), port };
        Node {
            member,
            is_primary: false,
            is_self: false,
            offset: 0,
            has_failed: false,
            silence_millis: 0,
        }
    }

    #[test]
    fn a_process_and_its_former_life_are_one_node() {
        let mut nodes = Nodes(Vec::new());
        for (number, port) in [(1, 1), (2, 1), (1, 2), (3, 3)] {
            nodes.add(node(number, port));
        }
        let ports: Vec<u16> = nodes.0.iter().map(|node| node.member.port).collect();
        assert_eq!(ports, [1, 3]);
        let id = nodes.0[1].member.id.to_string();
        assert_eq!(nodes.find(id.as_bytes()), Some(&nodes.0[1]));
        assert_eq!(nodes.find(b"nobody"), None);
    }

    #[test]
    fn a_socket_tells_its_address() {
        assert_eq!(address_of("10.0.0.1:6379"), Some("10.0.0.1"));
        assert_eq!(address_of("[::1]:6379"), Some("::1"));
        assert_eq!(address_of("/run/kiln.sock:0"), None);
        assert_eq!(address_of(""), None);
    }
}
