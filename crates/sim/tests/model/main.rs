//! Leadership, leases, void records and hand-over, in every order in which they can happen.
//!
//! The simulator tries many runs of the real server; this tries all runs of a small model. It is
//! explored state by state ([`stateright`]) within bounds: few nodes, few writes, few epochs, short
//! leases; but every interleaving of clocks that drift, puts that arrive late, nodes that pause,
//! crash, stand, yield and answer. What the protocol is, why it is safe, and what the model leaves
//! out is told in `docs/protocol.md`.
//!
//! | file | holds |
//! |---|---|
//! | `bounds` | how large a world is checked, and which rule is left out of it |
//! | `record` | records, judged by the real rule of `txlog` |
//! | `node` | what one node knows, and what it makes of what it learns |
//! | `shard` | nodes, log and what is under way; everything that can happen next |
//! | `properties` | what must always hold, and what must be reached for that to mean something |
//! | `protocol` | the shard as a model for the checker |
//!
//! | checked | nodes | writes | epochs | besides | states |
//! |---|---|---|---|---|---|
//! | the lease | 2 | 2 | 2 | replies held | 67,060 |
//! | a renewed lease | 2 | 1 | 2 | 2 Renews | 179,936 |
//! | a long command | 2 | 0 | 2 | a Renew, replies held | 3,892 |
//! | a frozen machine | 2 | 1 | 2 | a freeze | 11,255 |
//! | a frozen machine | 2 | 0 | 2 | a freeze, 2 Renews | 24,113 |
//! | void records | 2 | 4, 3 in flight | 2 | | 252,407 |
//! | a Lead in doubt | 2 | 1 | 3 | a crash, or a candidate that gives up | 99,373 |
//! | a lease that was over | 2 | 2 | 2 | a Renew, replies held | 414,837 |
//! | hand-over | 3 | 0 | 2 | a Yield | 496,129 |
//! | hand-over | 2 | 2 | 2 | a Yield | 183,802 |
//! | reads on replicas | 3 | 2 | 1 | | 312,312 |
//! | reads on replicas | 2 | 2 | 2 | | 28,632 |
//! | two challengers | 3 | 1 | 2 | | 156,228 |
//! | an empty log | 3 | 1 | 1 | | 96,155 |
//! | *at length:* void records | 3 | 3 | 2 | | 4,968,376 |
//! | two challengers | 3 | 1 | 3 | | 1,964,711 |
//! | hand-over | 3 | 1 | 2 | a Yield | 6,160,642 |
//! | reads on replicas | 3 | 1 | 2 | | 619,970 |
//! | frozen machines | 2 | 1 | 2 | 2 freezes, a Renew, replies held | 735,601 |
//! | all at once | 2 | 1 | 2 | reads on replicas, a Yield, a crash | 2,122,963 |
//! | a Lead in doubt | 2 | 2 | 3 | a crash, or a candidate that gives up | 1,252,733 |
//!
//! The tests hold these numbers exactly, so that no change of a rule or bound goes unseen. One core
//! sees about 200,000 states a second, and 6 million take 0.6 GiB. What is checked at length are
//! ignored tests, which `make test-long` runs.

mod bounds;
mod node;
mod properties;
mod protocol;
mod record;
mod shard;

use bounds::{Bounds, Broken};
use properties::{
    ALWAYS, COUNTERS, FOUNDED, FRESH, NO_STRANGER, ONE_HISTORY, ONE_LEADER, PREFIX, SERVER_LEADS,
};
use protocol::{explore, notice};

/// A holder and one other. Nothing is written.
const TWO: Bounds = Bounds {
    nodes: 2,
    writes: 0,
    renews: 0,
    yields: 0,
    crashes: 0,
    freezes: 0,
    epochs: 2,
    in_flight: 3,
    records: 6,
    holds_replies: false,
    replica_reads: false,
    begins_empty: false,
    clocks: Bounds::CLOCKS,
    broken: None,
};
const THREE: Bounds = Bounds { nodes: 3, ..TWO };

#[test]
fn a_lease_is_over_before_another_serves() {
    let bounds = Bounds { writes: 2, holds_replies: true, ..TWO };
    explore(bounds, &[properties::CUT_OFF], 67_060);
}

#[test]
fn a_renewed_lease_is_over_before_another_serves() {
    explore(Bounds { writes: 1, renews: 2, ..TWO }, &[properties::RENEWED], 179_936);
}

/// A command is executed at one instant and answered at a later one, and the holder may renew in
/// between.
#[test]
fn a_long_command_is_answered_by_a_lease_that_was_renewed_meanwhile() {
    let bounds = Bounds { renews: 1, holds_replies: true, ..TWO };
    explore(bounds, &[properties::LONG], 3_892);
}

#[test]
fn a_holder_that_was_frozen_serves_nothing_stale() {
    let bounds = Bounds { writes: 1, freezes: 1, ..TWO };
    explore(bounds, &[properties::FROZEN_OUT], 11_255);
}

#[test]
fn a_holder_that_was_frozen_serves_again_behind_a_record_sent_since() {
    let bounds = Bounds { renews: 2, freezes: 1, clocks: Bounds::COARSE, ..TWO };
    explore(bounds, &[properties::THAWED, properties::FROZEN_OUT], 24_113);
}

#[test]
fn what_a_deposed_writer_had_in_flight_is_void() {
    let bounds = Bounds { writes: 4, records: 8, clocks: Bounds::COARSE, ..TWO };
    let reached =
        [properties::PIPELINE, properties::LATE_AND_VOID, properties::SHIFTED, properties::TWICE];
    explore(bounds, &reached, 252_407);
}

#[test]
fn a_lead_in_doubt_harms_nobody() {
    let bounds = Bounds { writes: 1, crashes: 1, epochs: 3, clocks: Bounds::COARSE, ..TWO };
    explore(bounds, &[properties::ORPHANED_LEAD], 99_373);
}

#[test]
fn a_holder_may_go_on_after_a_stall() {
    let bounds =
        Bounds { writes: 2, renews: 1, holds_replies: true, clocks: Bounds::COARSE, ..TWO };
    explore(bounds, &[properties::WENT_ON], 414_837);
}

#[test]
fn a_hand_over_waits_for_no_lease() {
    explore(Bounds { yields: 1, ..THREE }, &[properties::HANDED_OVER], 496_129);
}

#[test]
fn a_hand_over_loses_no_write() {
    explore(Bounds { writes: 2, yields: 1, ..TWO }, &[], 183_802);
}

#[test]
fn replicas_answer_what_is_current() {
    let bounds =
        Bounds { writes: 2, epochs: 1, replica_reads: true, clocks: Bounds::COARSE, ..THREE };
    explore(bounds, &[properties::REPLICA_AHEAD], 312_312);
}

#[test]
fn replicas_answer_what_is_current_behind_a_new_leader() {
    let bounds = Bounds { writes: 2, replica_reads: true, clocks: Bounds::COARSE, ..TWO };
    explore(bounds, &[properties::REPLICA_FOLLOWS], 28_632);
}

#[test]
fn one_of_two_challengers_leads() {
    explore(Bounds { writes: 1, ..THREE }, &[], 156_228);
}

#[test]
fn one_of_three_candidates_leads_an_empty_log() {
    explore(Bounds { writes: 1, epochs: 1, begins_empty: true, ..THREE }, &[], 96_155);
}

/// The same in larger bounds.
mod at_length {
    use super::*;

    #[test]
    #[ignore = "a minute"]
    fn three_nodes_with_three_records_in_flight() {
        let bounds = Bounds { writes: 3, records: 7, clocks: Bounds::COARSE, ..THREE };
        explore(bounds, &[properties::PIPELINE, properties::LATE_AND_VOID], 4_968_376);
    }

    #[test]
    #[ignore = "half a minute"]
    fn three_nodes_and_three_epochs() {
        explore(Bounds { writes: 1, records: 5, epochs: 3, ..THREE }, &[], 1_964_711);
    }

    #[test]
    #[ignore = "a minute"]
    fn a_hand_over_among_three_nodes() {
        let bounds = Bounds { writes: 1, yields: 1, ..THREE };
        explore(bounds, &[properties::HANDED_OVER], 6_160_642);
    }

    #[test]
    #[ignore = "half a minute"]
    fn reads_on_two_replicas_behind_a_new_leader() {
        let bounds = Bounds { writes: 1, replica_reads: true, clocks: Bounds::COARSE, ..THREE };
        explore(bounds, &[properties::REPLICA_AHEAD, properties::REPLICA_FOLLOWS], 619_970);
    }

    #[test]
    #[ignore = "half a minute"]
    fn machines_that_freeze_twice() {
        let bounds = Bounds { writes: 1, renews: 1, freezes: 2, holds_replies: true, ..TWO };
        explore(bounds, &[properties::THAWED, properties::FROZEN_OUT], 735_601);
    }

    #[test]
    #[ignore = "a minute"]
    fn everything_at_once() {
        let bounds = Bounds { writes: 1, yields: 1, crashes: 1, ..TWO };
        let bounds = Bounds { replica_reads: true, clocks: Bounds::COARSE, ..bounds };
        explore(bounds, &[properties::REPLICA_FOLLOWS], 2_122_963);
    }

    #[test]
    #[ignore = "a minute"]
    fn crashes_and_three_epochs() {
        let bounds = Bounds { writes: 2, crashes: 1, epochs: 3, ..TWO };
        explore(bounds, &[properties::ORPHANED_LEAD, properties::LATE_AND_VOID], 1_252_733);
    }
}

/// Each rule left out, the bounds in which that shows, and the claim that it refutes.
const NOTICED: [(Broken, Bounds, &str); 26] = {
    let written = Bounds { writes: 2, ..TWO };
    let renewed = Bounds { renews: 1, holds_replies: true, ..written };
    let coarse = Bounds { clocks: Bounds::COARSE, ..written };
    let pipelined = Bounds { writes: 4, records: 8, ..coarse };
    let read = Bounds { writes: 3, records: 7, replica_reads: true, ..coarse };
    let read_twice = Bounds { replica_reads: true, clocks: Bounds::COARSE, ..THREE };
    [
        (Broken::LeaseUnchecked, written, FRESH),
        (Broken::LeaseFromAcknowledgement, written, FRESH),
        (Broken::LeaseFromAcknowledgement, written, SERVER_LEADS),
        (Broken::LeaseFromAcknowledgement, renewed, FRESH),
        (Broken::ClockReadBeforeExecution, renewed, FRESH),
        (Broken::FreezeUnnoticed, Bounds { freezes: 1, ..written }, FRESH),
        (Broken::FreezeUnnoticed, Bounds { freezes: 1, ..written }, SERVER_LEADS),
        (Broken::FreezeForgottenByRecords, Bounds { freezes: 1, ..renewed }, FRESH),
        (Broken::ChallengerWaitsOnlyTheLease, written, FRESH),
        (Broken::DriftBeyondMargin, written, FRESH),
        (Broken::ServesAfterYield, Bounds { yields: 1, ..written }, FRESH),
        (Broken::VoidRuleOff, read, FRESH),
        (Broken::VoidRuleOff, written, ONE_LEADER),
        (Broken::VoidRuleOff, written, NO_STRANGER),
        (Broken::ForeignLeadIgnored, coarse, FOUNDED),
        (Broken::TailUnread, coarse, FRESH),
        (Broken::TailUnread, coarse, ONE_HISTORY),
        (Broken::DeposedKeepsState, read, FOUNDED),
        (Broken::DeposedKeepsState, coarse, PREFIX),
        (Broken::EarlierFailuresIgnored, pipelined, FOUNDED),
        (Broken::PlaceIgnored, pipelined, FOUNDED),
        (Broken::AcknowledgedBeforeDurable, coarse, FOUNDED),
        (Broken::CounterReused, coarse, FOUNDED),
        (Broken::WriterReused, Bounds { crashes: 1, ..coarse }, COUNTERS),
        (Broken::PositionWithoutLease, Bounds { writes: 2, ..read_twice }, FRESH),
        (Broken::PositionOnlyDurable, Bounds { writes: 1, epochs: 1, ..read_twice }, FRESH),
    ]
};

#[test]
fn every_rule_left_out_is_noticed() {
    for (broken, bounds, claim) in NOTICED {
        notice(bounds, broken, claim);
    }
    notice(Bounds { writes: 1, replica_reads: true, ..TWO }, Broken::StaleTailTrusted, FRESH);
}

/// A claim that nothing refutes may claim nothing.
#[test]
fn every_claim_can_be_refuted() {
    for (claim, _) in ALWAYS {
        let refuted = NOTICED.iter().any(|(_, _, refuted)| *refuted == claim);
        assert!(refuted, "nothing refutes: {claim}");
    }
}
