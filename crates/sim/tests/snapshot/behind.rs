//! A snapshot for which more waits than its disk takes: only who writes waits with it.

use super::world::{DISK_NANOS, Ledger, Life, store};
use base::Clock;
use base::time::MILLISECOND;
use shard::snapshots::Pace;
use sim::disk::SimDisk;
use sim::network::SimClient;

/// How long a job of the snapshot takes at least.
const JOB_NANOS: u64 = 1000 * MILLISECOND;

fn run(life: &mut Life, millis: u64) {
    let until = life.clock.monotonic().0 + millis * MILLISECOND;
    while life.clock.monotonic().0 < until {
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
}

fn heard(client: &mut SimClient) -> String {
    String::from_utf8(client.received()).expect("replies are text")
}

#[test]
fn who_only_reads_does_not_wait_for_a_snapshot_that_is_behind() {
    let disk = SimDisk::new(1);
    let mut life = Life::start_unchecked(DISK_NANOS, Pace::default(), &disk, 1).expect("it starts");
    // Nothing may wait for the disk: so it is behind with its first bytes.
    let pace = Pace { backlog_bytes_blocking: 0, ..Pace::default() };
    life.keep_snapshots_by(store(&disk).expect("a store"), JOB_NANOS, pace);
    let mut clients: Vec<SimClient> = (0..5).map(|_| life.connect()).collect();
    let [writer, mixed, block, script, reader] = &mut clients[..] else { unreachable!() };
    writer.send(b"SET a 1\r\nSET due 1 PX 50\r\nBGSAVE\r\n");
    run(&mut life, 100);
    assert_eq!(heard(writer), "+OK\r\n+OK\r\n+Background saving started\r\n");

    writer.send(b"SET a 2\r\n");
    mixed.send(b"GET a\r\nINCR n\r\nGET n\r\n");
    block.send(b"MULTI\r\nGET a\r\nINCR m\r\nEXEC\r\n");
    script.send(b"EVAL \"return redis.call('INCR', KEYS[1])\" 1 l\r\n");
    reader.send(b"PING\r\nMULTI\r\nGET a\r\nEXEC\r\nEVAL_RO \"return 7\" 0\r\nEXISTS n m l\r\n");
    run(&mut life, 100);
    assert_eq!(heard(reader), "+PONG\r\n+OK\r\n+QUEUED\r\n*1\r\n$1\r\n1\r\n:7\r\n:0\r\n");
    assert_eq!(heard(mixed), "$1\r\n1\r\n", "what stands before a write is answered");
    assert_eq!(heard(writer) + &heard(script), "", "they write");
    // A deletion is a write too.
    reader.send(b"GET due\r\nDBSIZE\r\n");
    run(&mut life, 100);
    assert_eq!(heard(reader), "$-1\r\n:2\r\n");
    // Queueing a write takes a log that is open, as it always did.
    assert_eq!(heard(block), "+OK\r\n+QUEUED\r\n");

    run(&mut life, 20 * JOB_NANOS / MILLISECOND);
    assert_eq!(heard(writer), "+OK\r\n");
    assert_eq!(heard(mixed), ":1\r\n$1\r\n1\r\n");
    assert_eq!(heard(block), "+QUEUED\r\n*2\r\n$1\r\n2\r\n:1\r\n");
    assert_eq!(heard(script), ":1\r\n");
    reader.send(b"EXISTS due\r\nDBSIZE\r\n");
    run(&mut life, 100);
    assert_eq!(heard(reader), ":0\r\n:4\r\n", "a, n, m and l");
}
