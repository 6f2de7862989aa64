//! When what a log says of the next write may change. The suite runs this case with its others.

use super::{Bench, Leader, payload};
use crate::chain::Chain;
use crate::log::{Gate, TransactionLog};
use base::Position;

/// Records after which a log that still is open is taken as it is.
const RECORDS_MAX: usize = 2000;

/// Turns in which a log goes on without its writer.
const TURNS: usize = 10;

/// A call that must leave the gate as it is, of a log at this place and chain.
type Call = fn(&mut dyn TransactionLog, Position, Chain);

const CALLS: [(&str, Call); 11] = [
    ("limits", |log, _, _| _ = log.limits()),
    ("is_busy", |log, _, _| _ = log.is_busy()),
    ("wait_nanos", |log, _, _| _ = log.wait_nanos()),
    ("stop_reading", |log, _, _| log.stop_reading()),
    ("tail", |log, _, _| _ = log.tail()),
    ("compare", |log, at, chain| _ = log.compare(at, chain)),
    ("is_watched", |log, _, _| _ = log.is_watched()),
    ("probe_holder", |log, _, _| log.probe_holder()),
    ("trouble", |log, _, _| _ = log.trouble()),
    ("trim", |log, at, _| log.trim(at)),
    ("first", |log, _, _| _ = log.first()),
];

/// Nothing but `append`, `poll` and `commit_inline` changes a writer's gate, so that a loop may
/// keep what it says between them: not time, and no other call that a writer makes.
pub(super) fn a_gate_stays_until_the_writer_acts(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    let origin = bench.origin();
    let start = Chain::start(origin.incarnation);
    let takes_all = leader.log.limits().in_flight_records_max > RECORDS_MAX;
    // With nothing under way, then with some records, then with all that the log takes.
    for (records, expected) in
        [(0, Some(Gate::Open)), (3, None), (RECORDS_MAX, (!takes_all).then_some(Gate::Wait))]
    {
        let mut number = 0;
        while number < records && leader.log.gate() == Gate::Open {
            leader.append_data(&payload(number));
            number += 1;
        }
        let before = leader.log.gate();
        assert!(expected.is_none_or(|expected| expected == before), "{before:?} at {number}");
        for _ in 0..TURNS {
            for (name, call) in CALLS {
                call(&mut *leader.log, origin, start);
                assert_eq!(leader.log.gate(), before, "behind {name}");
            }
            bench.wait();
            assert_eq!(leader.log.gate(), before, "behind a while");
        }
        if number > 0 {
            assert_eq!(leader.settle(bench), []);
        }
        assert_eq!(leader.log.gate(), Gate::Open, "all is durable");
    }
}
