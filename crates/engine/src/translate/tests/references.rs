//! What a replica of Redis 7.0 is told of XDELEX, XACKDEL and ACKED, which it does not know.

use super::Pair;

#[test]
fn references_that_go_are_told_in_older_words() {
    let mut pair = Pair::new(1);
    for (line, told) in [
        ("XADD z 1-1 f v", &["XADD z 1-1 f v"][..]),
        ("XADD z 2-1 f v", &["XADD z 2-1 f v"]),
        ("XADD z 3-1 f v", &["XADD z 3-1 f v"]),
        ("XGROUP CREATE z g 9", &["XGROUP CREATE z g 9-0 ENTRIESREAD -1"]),
        ("XGROUP CREATE z h 9", &["XGROUP CREATE z h 9-0 ENTRIESREAD -1"]),
        (
            "XCLAIM z g c 0 1-1 FORCE JUSTID",
            &[
                "XGROUP CREATECONSUMER z g c",
                "XCLAIM z g c 0 1-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID",
            ],
        ),
        // What XTRIM takes from amid a stream is not remembered as deleted.
        (
            "XTRIM z MAXLEN 1 ACKED",
            &["XDEL z 2-1 3-1", "XSETID z 3-1 ENTRIESADDED 3 MAXDELETEDID 0-1"],
        ),
        ("XACKDEL z g DELREF IDS 2 2-1 1-1", &["XACK z g 1-1", "XDEL z 1-1"]),
    ] {
        assert_eq!(pair.run(line), told, "{line}");
    }
}
