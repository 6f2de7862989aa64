//! Failovers as Sentinel tells them: subscribers hear who leads now.

use crate::core::Core;
use base::{Epoch, Sequence};
use shard::role::member::Leader;

/// Where failovers are told.
const SWITCH: &[u8] = b"+switch-master";

/// What subscribers were last told of the primary.
#[derive(Default)]
pub(crate) struct Switches {
    epoch: Epoch,
    primary: Option<Address>,
}

/// Host and port.
type Address = (String, u16);

impl Switches {
    /// The primary's address before and now, if another one leads than subscribers were told.
    fn learn(&mut self, leader: &Leader) -> Option<(Address, Address)> {
        if leader.epoch == self.epoch || leader.member.host.is_empty() {
            return None;
        }
        self.epoch = leader.epoch;
        let now = (leader.member.host.clone(), leader.member.port);
        let before = self.primary.replace(now.clone());
        before.filter(|before| *before != now).map(|before| (before, now))
    }
}

impl Switches {
    /// Tells subscribers that another process leads, if so: the log has said it.
    pub(crate) fn tell(&mut self, core: &mut Core, leader: &Leader) {
        let Some((before, now)) = self.learn(leader) else { return };
        let name = String::from_utf8_lossy(&core.process.settings.discovery.sentinel_master_name);
        let text = format!("{name} {} {} {} {}", before.0, before.1, now.0, now.1);
        let work = &core.shard.engine.keyspace.work;
        core.interest.publish(SWITCH, text.as_bytes(), false, work);
        // What the log was read to say is durable.
        core.spread(Sequence::ZERO, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard::role::member::Member;

    #[test]
    fn a_switch_is_another_address_in_a_later_epoch() {
        let mut switches = Switches::default();
        let mut learn = |epoch, host: &str, port| {
            let member = Member { host: host.to_owned(), port, ..Member::default() };
            let switch = switches.learn(&Leader { epoch: Epoch(epoch), member });
            switch.map(|(before, now)| (before.1, now.1))
        };
        assert_eq!(learn(3, "a", 1), None, "the first one is no switch");
        assert_eq!(learn(3, "a", 1), None);
        assert_eq!(learn(4, "a", 2), Some((1, 2)));
        assert_eq!(learn(4, "a", 2), None, "told once");
        assert_eq!(learn(5, "a", 2), None, "the same one leads again");
        assert_eq!(learn(6, "", 0), None, "nobody knows where");
        assert_eq!(learn(6, "b", 2), Some((2, 2)), "until a record says it");
    }
}
