//! Several writers of one place, of whom the server lets one have it.

use super::places::Objects;
use crate::driven::Driven;
use crate::outside::fresh_name;
use base::Sequence;
use bytes::Bytes;
use txlog::remote::store::{Operation, Outcome};

const WRITERS: usize = 4;
const PLACES: u64 = 25;

/// Every place is contended: as many writers as there are, each of them sure that it is free. moto
/// is not asked: it looks whether there is such an object, and then writes, in several threads.
#[test]
fn of_many_writers_of_one_place_one_has_it() {
    let Some(place) = Objects::in_gateway() else { return };
    let place = place.trimming_after(60_000);
    let name = fresh_name();
    let mut writers = [(); WRITERS].map(|()| Driven::open(&place, &name).expect("the log opens"));
    for sequence in 1..=PLACES {
        let record = |number| format!("{number} at {sequence}");
        let put = |(number, writer): (usize, &mut Driven)| {
            writer.put(sequence, record(number).as_bytes())
        };
        let puts: Vec<_> = writers.iter_mut().enumerate().map(put).collect();
        let outcome = |(writer, put): (&mut Driven, _)| writer.outcome(put);
        let outcomes: Vec<Outcome> = writers.iter_mut().zip(puts).map(outcome).collect();
        let winners: Vec<usize> =
            (0..WRITERS).filter(|number| outcomes[*number] == Outcome::Stored).collect();
        let misplaced = outcomes.iter().filter(|outcome| **outcome == Outcome::Misplaced).count();
        assert_eq!((winners.len(), misplaced), (1, WRITERS - 1), "at {sequence}: {outcomes:?}");
        let tail = Sequence(sequence);
        let records = vec![Bytes::from(record(winners[0]))];
        let get = Operation::Get { from: tail, bytes_max: 1, waits: false };
        assert_eq!(writers[0].ask(get), Outcome::Records { records, tail });
    }
}
