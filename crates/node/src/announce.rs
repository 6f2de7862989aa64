//! Who this process is to others: its name, and the address under which clients and members find
//! it.

use crate::core::Process;
use crate::core::hex_id;
use base::machine::Identity;
use shard::role::member::{Member, MemberId};

impl Process {
    /// This process as a member of its shard: its name in INFO, and where clients find it.
    pub(crate) fn member(&self) -> Member {
        let host = self.announced_host().or_else(|| self.address_for_others());
        let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
        Member { id: self.member_id(), host, port: self.announced_port() }
    }

    /// Where others find a server that listens on all addresses, unless protected mode turns them
    /// away.
    fn address_for_others(&self) -> Option<String> {
        if self.turns_strangers_away() {
            return None;
        }
        let Identity { address_v4, address_v6, .. } = &self.identity;
        let mut bound = self.settings.bind.iter().map(|host| host.trim_start_matches('-'));
        bound.find_map(|host| match host {
            "*" | "0.0.0.0" => address_v4.clone(),
            "::*" | "::" => address_v6.clone(),
            _ => None,
        })
    }

    pub(crate) fn member_id(&self) -> MemberId {
        MemberId::parse(&hex_id(self.options.entropy)).unwrap_or_default()
    }

    /// The address or name under which clients find this process, if the operator gave one.
    pub(crate) fn announced_host(&self) -> Option<String> {
        let settings = &self.settings;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let discovery = &settings.discovery;
        let name = Some(&discovery.announce_hostname)
            .filter(|_| discovery.preferred_endpoint_type == "hostname");
        let announced = name
            .into_iter()
            .chain([&discovery.announce_ip, &settings.replica_announce_ip])
            .find(|host| !host.is_empty());
        let bound = settings.bind.iter().map(|host| host.trim_start_matches('-'));
        let mut bound = bound.filter(|host| !matches!(*host, "*" | "::*" | "0.0.0.0" | "::"));
        announced.map(|host| text(host)).or_else(|| bound.next().map(str::to_owned))
    }

    /// The port under which clients find this process.
    pub(crate) fn announced_port(&self) -> u16 {
        let settings = &self.settings;
        let ports = [settings.discovery.announce_port, settings.replica_announce_port];
        ports.into_iter().find(|port| *port > 0).unwrap_or(self.port_for_others())
    }

    /// Whether others are given the TLS port of this server: clients of a cluster, and members of
    /// the shard, which find each other by the address for clients.
    pub(crate) fn is_found_by_tls(&self) -> bool {
        self.settings.tls_replication || self.settings.tls_cluster
    }

    /// The port that is announced to others.
    pub(crate) fn port_for_others(&self) -> u16 {
        match self.settings.tls_port {
            0 => self.options.port,
            port if self.is_found_by_tls() => port,
            _ => self.options.port,
        }
    }

    /// Protected mode: whoever comes from another machine is turned away, because nobody would be
    /// asked for a password.
    pub(crate) fn turns_strangers_away(&self) -> bool {
        self.settings.protected_mode && self.acl.default_user().has_no_password()
    }
}
