//! What must hold in every state, and what must be reached in some.

use crate::bounds::Bounds;
use crate::node::{Node, Read, Role};
use crate::protocol::Protocol;
use crate::record::{Content, Standing};
use crate::shard::{Fault, Shard, Slot};

/// A claim about one state.
pub type Claim = fn(&Protocol, &Shard) -> bool;

/// What must hold in every state.
pub const ALWAYS: [(&str, Claim); 8] = [
    (ONE_LEADER, one_leader_an_epoch),
    (SERVER_LEADS, who_serves_leads),
    (PREFIX, every_node_holds_a_prefix),
    (COUNTERS, a_counter_names_one_record),
    (FOUNDED, |_, shard| shard.fault != Some(Fault::Unfounded)),
    (FRESH, |_, shard| shard.fault != Some(Fault::Stale)),
    (ONE_HISTORY, no_record_contradicts),
    (NO_STRANGER, |_, shard| shard.fault != Some(Fault::Stranger)),
];

pub const ONE_LEADER: &str = "an epoch has at most one leader";
pub const SERVER_LEADS: &str = "while a node may serve, nobody else leads";
pub const PREFIX: &str = "a node holds exactly what a prefix of the log makes";
pub const COUNTERS: &str = "a writer's counter names one record";
pub const FOUNDED: &str = "what a reply revealed stands in the log for ever";
pub const FRESH: &str = "no reply is older than what was revealed before its request";
pub const ONE_HISTORY: &str = "a later epoch continues the chain";
pub const NO_STRANGER: &str = "only the leader's records count in its epoch";

/// What must be reached, or the bounds prove too little.
pub const PIPELINE: (&str, Claim) = ("three records of one writer are in flight", |_, shard| {
    shard.nodes.iter().any(|node| node.role == Role::Primary && node.pending.len() >= 3)
});
pub const RENEWED: (&str, Claim) =
    ("a holder serves by a Renew when its Lead's lease is over by another's clock", |p, shard| {
        let Bounds { clocks, .. } = p.bounds;
        let has_waited = |node: &Node| node.at == 1 && node.age >= clocks.lease;
        let holder = &shard.nodes[0];
        let has_renewed = shard.log.last().is_some_and(|slot| slot.entry.content == Content::Renew);
        holder.serves(&p.bounds) && has_renewed && shard.nodes.iter().any(has_waited)
    });
pub const LONG: (&str, Claim) =
    ("a reply is held that was executed a lease ago, and leaves by a Renew", |p, shard| {
        let holder = &shard.nodes[0];
        let is_held = matches!(holder.read, Read::Held { value: 0, .. });
        is_held && RENEWED.1(p, shard)
    });
pub const THAWED: (&str, Claim) =
    ("a holder that was frozen serves again, and has led all the time", |p, shard| {
        shard.spent.freezes > 0 && shard.nodes[0].serves(&p.bounds) && shard.standing.epoch == 1
    });
pub const FROZEN_OUT: (&str, Claim) =
    ("a holder that was frozen wakes while another serves, and does not know it", |p, shard| {
        let woken = &shard.nodes[0];
        let is_ignorant = woken.role == Role::Primary && woken.standing.epoch == 1;
        let others_serve = shard.nodes[1..].iter().any(|node| node.serves(&p.bounds));
        shard.spent.freezes > 0 && !woken.is_frozen && is_ignorant && others_serve
    });
pub const LATE_AND_VOID: (&str, Claim) =
    ("a deposed writer's record fits by number and is void", |_, shard| {
        stragglers(shard).next().is_some()
    });
pub const SHIFTED: (&str, Claim) =
    ("a straggler takes a new leader's place, and the record counts behind it", |_, shard| {
        stragglers(shard).any(|(at, straggler)| {
            let mut behind = shard.log[at..].iter();
            behind.any(|slot| is_counted_write(slot) && slot.entry.epoch > straggler.entry.epoch)
        })
    });
pub const TWICE: (&str, Claim) =
    ("a record lies in the log twice, void and counting", |_, shard| {
        shard.log.iter().any(|slot| {
            !slot.counts && shard.log.iter().any(|twin| twin.counts && twin.entry == slot.entry)
        })
    });
pub const ORPHANED_LEAD: (&str, Claim) =
    ("a Lead in doubt counts, its candidate is gone, and another leads", |protocol, shard| {
        shard.log.windows(2).any(|pair| {
            let both_lead = pair.iter().all(|slot| slot.counts && slot.entry.is_lead());
            both_lead && pair[0].entry.writer != pair[1].entry.writer
        }) && shard
            .nodes
            .iter()
            .any(|node| node.serves(&protocol.bounds) && node.standing.epoch > 1)
    });
pub const WENT_ON: (&str, Claim) =
    ("a record counts that was sent when the lease was over, and a reply waits", |p, shard| {
        shard.nodes.iter().any(|node| {
            // Since it was sent, its sender's clock has not moved.
            let sent = node.pending.first().filter(|pending| pending.age == 0);
            let stored = shard.log.get(usize::from(node.at));
            let counts = sent.zip(stored).is_some_and(|(sent, slot)| {
                slot.counts && slot.entry == sent.entry && !sent.entry.is_lead()
            });
            let held = matches!(node.read, Read::Held { value, .. } if value > 0);
            node.role == Role::Primary && !node.holds_lease(&p.bounds) && counts && held
        })
    });
pub const HANDED_OVER: (&str, Claim) =
    ("the chosen node leads while others still wait", |protocol, shard| {
        let chosen = |pair: &[Slot]| match pair[0].entry.content {
            Content::Yield(to) if pair.iter().all(|slot| slot.counts) => Some(to),
            _ => None,
        };
        let leader = shard.log.windows(2).last().and_then(chosen);
        leader.is_some_and(|leader| {
            let waits = |node: &Node| node.role == Role::Replica && node.age == 0;
            shard.node(leader).serves(&protocol.bounds) && shard.nodes.iter().any(waits)
        })
    });
pub const REPLICA_AHEAD: (&str, Claim) =
    ("a replica has applied what its primary does not yet know to be durable", |_, shard| {
        let primary = shard.nodes.iter().find(|node| node.role == Role::Primary);
        primary
            .is_some_and(|primary| shard.nodes.iter().any(|node| may_answer(node, primary.at + 1)))
    });
pub const REPLICA_FOLLOWS: (&str, Claim) =
    ("a replica answers behind a later leader's Lead", |_, shard| {
        shard.nodes.iter().any(|node| may_answer(node, 1) && node.standing.epoch > 1)
    });
pub const CUT_OFF: (&str, Claim) =
    ("a deposed primary that does not know it holds a reply", |protocol, shard| {
        let is_deposed = |node: &Node| {
            let held = matches!(node.read, Read::Held { .. });
            node.role == Role::Primary && held && node.standing.epoch < shard.standing.epoch
        };
        let has_successor = shard.nodes.iter().any(|node| node.serves(&protocol.bounds));
        has_successor && shard.nodes.iter().any(is_deposed)
    });

fn may_answer(node: &Node, at: u8) -> bool {
    node.at >= at && matches!(node.read, Read::Waits { place, .. } if node.at >= place)
}

/// Void records of an epoch that was over when they arrived.
fn stragglers(shard: &Shard) -> impl Iterator<Item = (usize, &Slot)> {
    shard.log.iter().enumerate().filter(|(at, slot)| {
        let is_over = |earlier: &Slot| earlier.counts && earlier.entry.epoch > slot.entry.epoch;
        !slot.counts && !slot.entry.is_lead() && shard.log[..*at].iter().any(is_over)
    })
}

fn is_counted_write(slot: &Slot) -> bool {
    slot.counts && slot.entry.write().is_some()
}

fn one_leader_an_epoch(_: &Protocol, shard: &Shard) -> bool {
    let leads = || shard.log.iter().filter(|slot| slot.counts && slot.entry.is_lead());
    let grows = leads().zip(leads().skip(1)).all(|(a, b)| a.entry.epoch < b.entry.epoch);
    let mut primaries = shard.nodes.iter().enumerate().filter(|(_, n)| n.role == Role::Primary);
    let is_alone = primaries.all(|(index, node)| {
        shard.nodes[index + 1..]
            .iter()
            .all(|other| other.role != Role::Primary || other.standing.epoch != node.standing.epoch)
    });
    grows && is_alone
}

/// Stronger than that no two leases are valid at once: as long as a node's clock lets it serve, no
/// Lead of another even counts.
fn who_serves_leads(protocol: &Protocol, shard: &Shard) -> bool {
    let leads = |node: &Node| node.standing.epoch == shard.standing.epoch;
    shard.nodes.iter().all(|node| !node.serves(&protocol.bounds) || leads(node))
}

fn every_node_holds_a_prefix(_: &Protocol, shard: &Shard) -> bool {
    shard.nodes.iter().all(|node| {
        let read = shard.log.get(..usize::from(node.at));
        let Some(read) = read else { return false };
        let mut counted = read.iter().rev().filter(|slot| slot.counts);
        let standing = counted.clone().next().map(|slot| Standing::behind(&slot.entry));
        let value = counted.find_map(|slot| slot.entry.write());
        node.standing == standing.unwrap_or(Standing::start()) && node.value == value.unwrap_or(0)
    })
}

/// What lets a reader tell another history from stragglers: see `txlog::chain`.
fn no_record_contradicts(_: &Protocol, shard: &Shard) -> bool {
    let mut standing = Standing::start();
    shard.log.iter().all(|slot| {
        let contradicts = standing.contradicts(&slot.entry);
        if slot.counts {
            standing = Standing::behind(&slot.entry);
        }
        !contradicts
    })
}

fn a_counter_names_one_record(_: &Protocol, shard: &Shard) -> bool {
    let stored = shard.log.iter().map(|slot| slot.entry);
    let records: Vec<_> = stored.chain(shard.puts.iter().map(|put| put.entry)).collect();
    records.iter().enumerate().all(|(index, one)| {
        records[index + 1..]
            .iter()
            .all(|other| one.writer != other.writer || one.counter != other.counter || one == other)
    })
}
