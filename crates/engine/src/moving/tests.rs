use super::*;
use crate::testing::Bench;
use crate::value::Value;
use structures::{Met, Mover};

/// A round in which every block moves; how many did.
fn move_all(keyspace: &mut Keyspace, elements_max: usize) -> u64 {
    let mut hand = MovingHand::default();
    let wanted = &mut |_: Met<'_>| true;
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
    let wanted = &mut |_: Met<'_>| true;
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

/// Steps of a walk on which blocks of more than 100 bytes are copied, 16 bytes at a time, until the
/// walk has come round, or a large block has been copied in part. How many blocks moved.
fn copy_on(keyspace: &mut Keyspace, hand: &mut MovingHand, until_begun: bool) -> u64 {
    let wanted = &mut |met: Met<'_>| met.bytes.is_some_and(|bytes| bytes() > 100);
    let mut mover = Mover::new(wanted);
    (mover.whole_bytes_max, mover.piece_bytes) = (100, 16);
    for _ in 0..100_000 {
        let has_come_round = keyspace.move_blocks(hand, 1000, &mut mover);
        let copied = hand.copy.as_ref().map_or(0, |copy| copy.progress().1);
        if has_come_round || until_begun && copied >= 48 {
            return mover.moved;
        }
    }
    panic!("the walk does not come round");
}

fn address_of(bench: &Bench, key: &[u8]) -> usize {
    let keyspace = &bench.engine.keyspace;
    let entry = keyspace.database(DatabaseId(0)).find(keyspace.hash(key), key);
    let entry = entry.expect("it is there");
    match entry.value() {
        ValueRef::Boxed(Value::Text(text)) => text.as_ptr().addr(),
        _ => panic!("it is a long string"),
    }
}

#[test]
fn a_large_block_is_copied_in_pieces_and_then_takes_the_old_ones_place() {
    let mut bench = Bench::new();
    bench.run_alone(&format!("SET text {}", "x".repeat(1000)));
    bench.run_alone(&format!("APPEND text {}", "y".repeat(1000)));
    let before = address_of(&bench, b"text");
    let mut hand = MovingHand::default();
    assert_eq!(copy_on(&mut bench.engine.keyspace, &mut hand, true), 0);
    assert_eq!(address_of(&bench, b"text"), before);
    // Reading it harms nothing.
    assert_eq!(bench.run_alone("GETRANGE text 998 1001"), "$4 xxyy");
    assert_eq!(copy_on(&mut bench.engine.keyspace, &mut hand, false), 1);
    assert_ne!(address_of(&bench, b"text"), before);
    assert_eq!(bench.run_alone("GETRANGE text 998 1001"), "$4 xxyy");
    assert_eq!(bench.run_alone("STRLEN text"), ":2000");
}

#[test]
fn what_a_command_changes_while_it_is_copied_stays_until_the_next_round() {
    let changes = [
        ("SETRANGE text 3 abc", "$6 xxxabc"),
        ("SETBIT text 7 1", "$6 yxxxxx"),
        ("APPEND text abc", "$6 xxxxxx"),
        ("SET text other", "$5 other"),
        ("DEL text", "$0"),
        ("RENAME text elsewhere", "$0"),
        ("COPY other text REPLACE", "$6 zzzzzz"),
        ("SWAPDB 0 1", "$0"),
        ("FLUSHALL", "$0"),
    ];
    for (line, reply) in changes {
        let mut bench = Bench::new();
        for (key, letter) in [("text", "x"), ("other", "z")] {
            bench.run_alone(&format!("APPEND {key} {}", letter.repeat(1000)));
            bench.run_alone(&format!("APPEND {key} {}", letter.repeat(1000)));
        }
        // Until it is this one's turn, and the walk is amid it.
        let mut hand = MovingHand::default();
        let text = address_of(&bench, b"text");
        let is_amid =
            |hand: &MovingHand| hand.copy.as_ref().is_some_and(|copy| copy.progress().0 == text);
        while !is_amid(&hand) {
            copy_on(&mut bench.engine.keyspace, &mut hand, true);
        }
        bench.run_alone(line);
        let moved = copy_on(&mut bench.engine.keyspace, &mut hand, false);
        // The other one, and in another database the walk comes to both.
        let moved_max = if line.starts_with("SWAPDB") { 2 } else { 1 };
        assert!(moved <= moved_max && hand.copy.is_none(), "{line}: {moved}");
        assert_eq!(bench.run_alone("GETRANGE text 0 5"), reply, "{line}");
    }
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
