use crate::ids::{WaiterId, WatcherId};
use crate::settings::Settings;
use crate::testing::Bench;
use base::DatabaseId;

fn bench() -> Bench {
    Bench::with_settings(Settings { notify_keyspace_events: u32::MAX, ..Settings::default() })
}

/// What a command tells on the primary and on a replica.
fn told(bench: &mut Bench, line: &str) -> [String; 2] {
    bench.run(line);
    [bench.events().join(", "), bench.twin_events().join(", ")]
}

#[test]
fn a_replica_tells_the_events_of_its_primary() {
    let mut bench = bench();
    for line in [
        "SET s 1",
        "SET s 5 EX 10",
        "SET s 6 KEEPTTL",
        "GETEX s PERSIST",
        "GETSET s v",
        "MSET s 1 t 2",
        "DECR t",
        "APPEND t x",
        "SETRANGE t 1 y",
        "RENAME t u",
        "COPY u t",
        "MOVE u 1",
        "BITOP NOT b t",
        "MSETEX 2 s 1 v 2 PX 100",
        "DELIFEQ t 1",
        "GETDEL t",
        "RPUSH l 1 2 3 4 5 6 7",
        "LSET l 0 9",
        "LINSERT l BEFORE 3 x",
        "LREM l 0 3",
        "LMOVE l m LEFT RIGHT",
        "LPOP m",
        "RPOP l 2",
        "HSET h a 1 b 2",
        "HDEL h a b",
        "SADD a 1 2 3",
        "SMOVE a b2 1",
        "SREM a 2 3",
        "ZADD z 1 a 2 b 3 c",
        "ZREM z a b",
        "PEXPIRE z 1000",
        "UNLINK z l",
        "DEL none",
        "FLUSHALL",
    ] {
        let [primary, replica] = told(&mut bench, line);
        assert_eq!(primary, replica, "{line}");
    }
    bench.run("SET s 1 PX 10");
    bench.context.now.0 += 20;
    bench.run("GET s");
    assert_eq!(bench.twin_events(), ["expired s"]);
}

/// What docs/compatibility.md says of events on replicas.
#[test]
fn a_replica_names_events_after_what_was_done() {
    let mut bench = bench();
    for (line, on_replica) in [
        ("SETBIT b 3 1", "new b, setrange b"),
        ("BITFIELD b SET u8 0 3", "setrange b"),
        ("PFADD p a", "new p, setrange p"),
        ("INCRBYFLOAT n 1.5", "new n, set n"),
        ("HINCRBY h f 1", "new h, hset h"),
        ("HINCRBYFLOAT h f 1", "hset h"),
        ("ZINCRBY z 1 m", "new z, zadd z"),
        ("ZPOPMIN z", "zrem z, del z"),
    ] {
        let [primary, replica] = told(&mut bench, line);
        assert_eq!(replica, on_replica, "{line}");
        assert_ne!(primary, replica, "{line}");
    }
    for line in ["RPUSH l 1 2 3 4 5", "SADD s 1 2 3"] {
        bench.run(line);
    }
    for (line, on_replica) in [
        ("LTRIM l 1 3", "lpop l, rpop l"),
        ("SPOP s", "srem s"),
        ("SUNIONSTORE u s", "new u, sadd u"),
        ("SUNIONSTORE u s", "del u, new u, sadd u"),
        ("SORT l STORE m", "new m, rpush m"),
        ("SPOP s 9", "del s"),
    ] {
        let [primary, replica] = told(&mut bench, line);
        assert_eq!(replica, on_replica, "{line}");
        assert_ne!(primary, replica, "{line}");
    }
}

/// Registers the same listeners with both, so that both must be told alike.
fn watch(bench: &mut Bench, watcher: u64, database: u32, key: &[u8]) {
    for interest in [&mut bench.interest, &mut bench.twin_interest] {
        interest.watchers.watch(WatcherId(watcher), DatabaseId(database), key, false);
        interest.waiters.add(WaiterId(watcher), DatabaseId(database), key, false);
    }
}

#[test]
fn a_replica_dirties_watchers_and_wakes_waiters_as_its_primary_does() {
    let mut bench = bench();
    bench.run("SET there 1");
    for (number, key) in ["there", "k", "l", "gone"].iter().enumerate() {
        watch(&mut bench, number as u64, 0, key.as_bytes());
    }
    watch(&mut bench, 9, 1, b"k");
    let mut silent = Vec::new();
    for line in [
        "SET k 1",
        "INCR k",
        "RPUSH l a b",
        "LPOP l 2",
        "RENAME k l",
        "COPY l k",
        "MOVE k 1",
        "DEL there",
        "SET other 1",
        "SWAPDB 0 1",
        "FLUSHDB",
        "SWAPDB 0 1",
        "FLUSHALL",
        "FLUSHALL",
    ] {
        bench.run(line);
        let (primary, replica) = (&bench.interest, &bench.twin_interest);
        assert_eq!(primary.ready, replica.ready, "{line}");
        let mut dirtied = [primary.dirtied.clone(), replica.dirtied.clone()];
        // A command of several effects may dirty a client more than once.
        dirtied.iter_mut().for_each(|dirtied| dirtied.dedup());
        assert_eq!(dirtied[0], dirtied[1], "{line}");
        if dirtied[0].is_empty() {
            silent.push(line);
        }
    }
    assert_eq!(silent, ["SET other 1", "FLUSHALL"], "nobody watches `other`, and nothing is left");
}

#[test]
fn who_watched_a_key_past_its_time_is_not_dirtied_by_its_deletion() {
    let mut bench = bench();
    bench.run("SET k 1 PX 10");
    bench.context.now.0 += 20;
    bench.twin_interest.watchers.watch(WatcherId(1), DatabaseId(0), b"k", true);
    bench.run("GET k");
    assert_eq!(bench.twin_interest.dirtied, []);
    bench.run("SET k 2");
    assert_eq!(bench.twin_interest.dirtied, [WatcherId(1)]);
}

#[test]
fn nothing_is_told_of_a_transfer_but_to_who_watches() {
    use crate::effect::Effect;
    let mut bench = bench();
    bench.run("SET k 1");
    bench.twin_interest.watchers.watch(WatcherId(1), DatabaseId(0), b"k", false);
    let (engine, unit) = (&mut bench.engine, &mut bench.unit);
    engine.tx(bench.context, unit, &mut bench.interest).change_all(DatabaseId(0), Effect::FlushAll);
    let mut tx = engine.tx(bench.context, unit, &mut bench.interest);
    tx.change_all(DatabaseId(0), Effect::TransferBegan);
    bench.run("SET k 2");
    assert_eq!(bench.twin_events(), Vec::<String>::new());
    assert_eq!(bench.twin_interest.dirtied, [WatcherId(1)]);
}

#[test]
fn a_key_that_changes_often_is_told_once_until_that_is_taken() {
    let mut bench = bench();
    for watcher in 0..3 {
        watch(&mut bench, watcher, 0, b"l");
    }
    for line in ["RPUSH l a b c d e f g", "LPOP l 3", "RPUSH l h i", "SWAPDB 0 1"] {
        bench.run(line);
        for interest in [&bench.interest, &bench.twin_interest] {
            let expected = [0, 1, 2].map(WatcherId);
            assert_eq!(interest.dirtied, expected, "{line}");
        }
    }
    watch(&mut bench, 3, 1, b"l");
    bench.run("SWAPDB 0 1");
    assert_eq!(bench.interest.dirtied, [0, 1, 2, 3].map(WatcherId));
}

#[test]
fn who_is_owed_too_much_is_owed_no_more() {
    use crate::ids::SubscriberId;
    use crate::subscribers::Sort;
    let mut bench = bench();
    let interest = &mut bench.interest;
    interest.owed_bytes_max = Some(10_000);
    for number in 0..500 {
        let pattern = format!("n*{}", "*".repeat(number));
        interest.subscribers.subscribe(SubscriberId(1), Sort::Pattern, pattern.as_bytes());
    }
    interest.subscribers.subscribe(SubscriberId(2), Sort::Channel, b"news");
    for _ in 0..2 {
        for _ in 0..100 {
            bench.check("PUBLISH news x", ":501");
        }
        // `check` forgets what the command before it told.
        let [message] = &bench.interest.messages[..] else { panic!("one message") };
        // 31 bytes for the shortest of its patterns, and one more for each longer one.
        assert_eq!(message.receivers.len(), 1 + 115, "the last one is beyond the limit");
        assert_eq!(message.receivers[0].subscriber, SubscriberId(2));
        assert_eq!(bench.interest.overdrawn, [SubscriberId(1)].into());
    }
    let Bench { interest, engine, .. } = &mut bench;
    let told: Vec<usize> = (0..100)
        .map(|_| {
            let before: usize = interest.messages.iter().map(|it| it.receivers.len()).sum();
            assert_eq!(interest.publish(b"news", b"x", false, &engine.keyspace.work), 501);
            let after: usize = interest.messages.iter().map(|it| it.receivers.len()).sum();
            after - before
        })
        .collect();
    assert!(told[..90].iter().all(|count| *count == 1), "only who is owed little: {told:?}");
}
