use super::*;
use crate::testing::Bench;
use structures::Mover;

/// A round in which every block moves; how many did.
fn move_all(keyspace: &mut Keyspace, elements_max: usize) -> u64 {
    let mut hand = MovingHand::default();
    let wanted = &mut |_: usize, _: Option<&dyn Fn() -> usize>| true;
    let mut mover = Mover::new(wanted);
    for _ in 0..1_000_000 {
        if keyspace.move_blocks(&mut hand, elements_max, &mut mover) {
            assert!(hand.long.is_empty(), "a round has walked over long values, too");
            return mover.moved;
        }
    }
    panic!("the walk does not come round");
}

/// Some of every type, in every encoding.
fn filled() -> Bench {
    let mut bench = Bench::new();
    for index in 0..300 {
        let long = "x".repeat(index);
        bench.run(&format!("SET text:{index} {long}y EX {}", 1000 + index));
        bench.run(&format!("APPEND grown:{} {long}z", index % 7));
        bench.run(&format!("SADD integers {index}"));
        bench.run(&format!("SADD members m{index} {index}"));
        bench.run(&format!("RPUSH list {long} {index}"));
        bench.run(&format!("HSET packed:{} f{index} {index}", index % 40));
        bench.run(&format!("HSET table f{index} {long}"));
        bench.run(&format!("ZADD packed:z:{} {index} m{index}", index % 40));
        bench.run(&format!("ZADD tree {index} m{index}{long}"));
        bench.run(&format!("XADD stream {}-1 f v{index}", index + 1));
        bench.run(&format!("HSET timed f{index} {index}"));
        bench.run(&format!("HPEXPIRE timed 100000 FIELDS 1 f{index}"));
    }
    bench
}

#[test]
fn values_are_the_same_wherever_their_blocks_lie() {
    let mut bench = filled();
    for elements_max in [1, 7, 1000] {
        let bytes = bench.engine.keyspace.used_bytes();
        let moved = move_all(&mut bench.engine.keyspace, elements_max);
        assert!(moved > 1000, "{moved}");
        assert_eq!(bench.engine.keyspace.used_bytes(), bytes);
        // Holds everything against the twin, which did not move.
        bench.run("EXISTS a");
    }
    // Order and lookup of what a tree and a table share.
    assert_eq!(bench.run("ZRANGEBYSCORE tree 5 5 WITHSCORES"), "*2 $7 m5xxxxx $1 5");
    assert_eq!(bench.run("ZREM tree m5xxxxx"), ":1");
    assert_eq!(bench.run("ZCARD tree"), ":299");
}

#[test]
fn a_copy_on_the_tier_stays_good() {
    let mut bench = filled();
    let keyspace = &mut bench.twin;
    let (cold, placed) = (keyspace.cold_keys(), keyspace.databases[0].placed);
    assert!(cold > 100 && placed >= cold, "{cold} of {placed}");
    move_all(keyspace, 16);
    assert_eq!((keyspace.cold_keys(), keyspace.databases[0].placed), (cold, placed));
    bench.run("EXISTS a");
}

#[test]
fn a_value_that_went_or_changed_amid_a_round_does_no_harm() {
    let mut bench = filled();
    let mut hand = MovingHand::default();
    let wanted = &mut |_: usize, _: Option<&dyn Fn() -> usize>| true;
    let mut mover = Mover::new(wanted);
    let lines = ["DEL tree", "DEL table", "RPUSH table a", "SADD tree b", "FLUSHALL", "SET a b"];
    for line in lines {
        // Until something is left for later.
        for _ in 0..10_000 {
            bench.engine.keyspace.move_blocks(&mut hand, 2, &mut mover);
            if !hand.long.is_empty() {
                break;
            }
        }
        bench.run(line);
    }
    for _ in 0..100 {
        bench.engine.keyspace.move_blocks(&mut hand, 2, &mut mover);
    }
    bench.run("EXISTS a");
}

#[test]
fn what_a_sorted_set_takes_does_not_change_as_its_members_move() {
    let mut bench = Bench::new();
    for index in 0..3000 {
        bench.run_alone(&format!("ZADD tree {index} member:{index}"));
    }
    // Leaves with room, and some about to be merged.
    for index in (0..3000).filter(|index| index % 7 != 0) {
        bench.run_alone(&format!("ZREM tree member:{index}"));
    }
    let keyspace = &mut bench.engine.keyspace;
    let counted = |keyspace: &Keyspace| {
        let entries = keyspace.database(DatabaseId(0)).table().iter();
        entries.map(crate::value::entry_bytes).sum::<usize>()
    };
    for _ in 0..3 {
        assert!(move_all(keyspace, 50) > 400);
        assert_eq!(keyspace.databases[0].entry_bytes, counted(keyspace));
    }
    assert_eq!(bench.run_alone("ZRANK tree member:2100"), ":300");
    assert_eq!(bench.run_alone("ZREMRANGEBYRANK tree 0 -1"), ":429");
    assert_eq!(bench.engine.keyspace.databases[0].entry_bytes, 0);
}
