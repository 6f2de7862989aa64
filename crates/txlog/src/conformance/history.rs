//! What every backend must answer when its history is compared with what was read before. The
//! suite runs these cases with its others.

use super::{Bench, Leader, await_event, payload};
use crate::chain::Chain;
use crate::log::{History, LogEvent, TransactionLog};
use base::{Incarnation, Position};

/// What a log says of a place.
pub(super) fn compare(
    bench: &mut dyn Bench,
    log: &mut dyn TransactionLog,
    position: Position,
    chain: Chain,
) -> History {
    let asked = log.compare(position, chain);
    await_event(bench, log, |event| match event {
        LogEvent::Compared { ticket, history } if ticket == asked => Some(history),
        _ => None,
    })
}

pub(super) fn a_log_tells_its_history_from_another(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    let mut known = vec![(leader.at, leader.stamper.chain())];
    for number in 0..30 {
        leader.append_data(&payload(number));
        known.push((leader.at, leader.stamper.chain()));
    }
    assert_eq!(leader.settle(bench), []);
    let mut reader = bench.open();
    for log in [&mut leader.log, &mut reader] {
        for pair in known.windows(2) {
            let (position, chain) = pair[1];
            let of_before = pair[0].1;
            let of_another_epoch = Chain { epoch: base::Epoch(chain.epoch.0 + 1), ..chain };
            for (chain, expected) in [
                (chain, History::Same),
                (of_before, History::Other),
                (of_another_epoch, History::Other),
            ] {
                let history = compare(bench, &mut **log, position, chain);
                assert_eq!(history, expected, "at {}", position.sequence);
            }
        }
    }
}

/// Where no record stands, nothing can contradict what a reader knows but the log's identity.
pub(super) fn the_origin_is_the_history_of_every_log(bench: &mut dyn Bench) {
    let origin = bench.origin();
    let start = Chain::start(origin.incarnation);
    let stranger = Incarnation(origin.incarnation.0 ^ 1);
    let is_empty = bench.open();
    let leader = Leader::elect(bench, 1);
    for mut log in [is_empty, leader.log] {
        for (position, chain, expected) in [
            (origin, start, History::Same),
            (origin, leader.stamper.chain(), History::Other),
            (Position { incarnation: stranger, ..origin }, start, History::Lost),
            (Position { incarnation: stranger, ..leader.at }, start, History::Lost),
        ] {
            assert_eq!(compare(bench, &mut *log, position, chain), expected, "at {position:?}");
        }
    }
}
