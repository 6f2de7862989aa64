//! A log read by a tool, beside its writer: all of it, and nothing is left behind.

use super::driven::{Driven, trim};
use super::outside::{PATIENCE, clock, entropy, fresh_name, now, pause};
use super::place::{Place, polled};
use base::{Sequence, UnixMillis};
use bytes::Bytes;
use std::time::Duration;
use txlog::reader::{Goal, Next, Reader, Start};
use txlog::record::WriterId;
use txlog::remote::RemoteLog;
use txlog::remote::store::{Outcome, RecordStore};
use txlog::{Chain, Consumed, Kind, Part, Stamper, empty_record};

/// Records beside the first; more than a piece of a service's reading holds.
const RECORDS: u64 = 300;

/// A tool begins no log, reads one that another process writes, from its beginning and from where
/// it was trimmed, and tells records that count from those that do not.
pub fn a_tool_reads_it_and_begins_none(place: &impl Place) {
    let name = fresh_name();
    let open = || services::open_to_read(&place.url(&name), clock(), polled());
    for _ in 0..2 {
        let error = open().err().expect("there is no log yet");
        assert!(error.to_string().contains("no log") || error.to_string().contains("No such"));
    }
    let mut writer = Driven::open(place, &name).expect("the log begins");
    let incarnation = writer.store.incarnation();
    let mut stamper = Stamper::new(WriterId(entropy()), Chain::start(incarnation), UnixMillis(0));
    let mut deposed = stamper.clone();
    let void = deposed.lead(1, &[], UnixMillis(1), Sequence::ZERO);
    let lead = stamper.lead(2, &[], UnixMillis(1), Sequence::ZERO);
    let mut expected = vec![None, None];
    for (sequence, record) in (1..).zip([lead, void]) {
        assert_eq!(writer.put_and_see(sequence, &record), Outcome::Stored);
    }
    for sequence in 3..=RECORDS {
        let payload = sequence.to_le_bytes();
        let mut buffer = empty_record(payload.len());
        buffer.extend_from_slice(&payload);
        let record = stamper.stamp(Kind::Data, Part::Whole, buffer, UnixMillis(1), Sequence::ZERO);
        assert_eq!(writer.put_and_see(sequence, &record), Outcome::Stored);
        expected.push(Some(Bytes::copy_from_slice(&payload)));
    }
    let read = || read(open().expect("the log is there"));
    assert_eq!(read(), (expected.clone(), 1));
    let Outcome::First { sequence } = writer.ask(trim(RECORDS / 2)) else { panic!("trimmed") };
    assert!(sequence > Sequence(1));
    assert_eq!(read(), (expected.split_off(sequence.0 as usize - 1), 0));
}

/// The payloads of all records in order, `None` of one without effects, and how many are void.
/// Asked again where a service is behind its newest record.
fn read(store: Box<dyn RecordStore>) -> (Vec<Option<Bytes>>, usize) {
    let start = Start::Oldest(store.incarnation());
    let mut log = RemoteLog::new(store, clock());
    let (mut payloads, mut void) = (Vec::new(), 0);
    let mut reader = Reader::new(&mut log, start, Goal::Through(Sequence(RECORDS)));
    let began = now();
    loop {
        match reader.next(&mut log).expect("the log is whole") {
            Next::Done => return (payloads, void),
            Next::Wait => pause(Duration::from_millis(1)),
            Next::Record(read) => {
                void += usize::from(!read.counts());
                payloads.push(match read.consumed {
                    Consumed::Record(record) if record.header.kind == Kind::Data => {
                        Some(record.payload)
                    }
                    _ => None,
                });
            }
        }
        assert!(began.elapsed() < PATIENCE, "never read to its end");
    }
}
