use crate::testing::Bench;

#[test]
fn bits_are_set_beyond_the_end_and_in_numbers() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("SETBIT k 9 1", ":0"),
        ("STRLEN k", ":2"),
        ("SETBIT k 9 0", ":1"),
        ("SETBIT k 30 0", ":0"),
        ("STRLEN k", ":4"),
        ("SET n 1", "+OK"),
        ("SETBIT n 6 1", ":0"),
        ("GET n", "$1 3"),
        ("GETBIT n 6", ":1"),
        ("GETBIT n 800", ":0"),
        ("SETBIT k -1 1", "-ERR bit offset is not an integer or out of range"),
        ("SETBIT k 4294967296 1", "-ERR bit offset is not an integer or out of range"),
        ("SETBIT k 1 2", "-ERR bit is not an integer or out of range"),
    ]);
}

#[test]
fn ranges_are_in_bytes_or_bits() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("SET k foobar", "+OK"),
        ("BITCOUNT k", ":26"),
        ("BITCOUNT k 0 0", ":4"),
        ("BITCOUNT k 5 30 BIT", ":17"),
        ("BITCOUNT k -1 -2 nonsense", ":0"),
        ("BITCOUNT k 0", "-ERR syntax error"),
        ("BITCOUNT none 0", ":0"),
        ("BITPOS k 1", ":1"),
        ("BITPOS k 0 1 -1 BIT", ":3"),
        ("BITPOS k 2", "-ERR The bit argument must be 1 or 0."),
        ("BITPOS none 0", ":0"),
        ("BITPOS none 1", ":-1"),
    ]);
    bench.run_words(&[b"SET", b"ones", &[0xff; 3]]);
    bench.check_all(&[
        ("BITPOS ones 0", ":24"),
        ("BITPOS ones 0 1", ":24"),
        ("BITPOS ones 0 0 -1", ":-1"),
        ("BITPOS ones 0 5", ":-1"),
    ]);
}

#[test]
fn bitop_replaces_its_target() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("SET a abc", "+OK"),
        ("SET b a", "+OK"),
        ("BITOP OR t a b none", ":3"),
        ("GET t", "$3 abc"),
        ("BITOP XOR t a a", ":3"),
        ("BITOP NOT t none", ":0"),
        ("EXISTS t", ":0"),
        ("BITOP NOT t a b", "-ERR BITOP NOT must be called with a single source key."),
        ("BITOP NAND t a", "-ERR syntax error"),
        ("RPUSH l 1", ":1"),
        ("BITOP AND t a l", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn fields_wrap_saturate_or_fail() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("BITFIELD k INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :1 :1"),
        ("BITFIELD k INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :2 :2"),
        ("BITFIELD k INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :3 :3"),
        ("BITFIELD k INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :0 :3"),
        ("BITFIELD k OVERFLOW FAIL INCRBY u2 102 1", "*1 $-1"),
        ("BITFIELD i SET i64 #1 -9223372036854775808 GET i64 64", "*2 :0 :-9223372036854775808"),
        ("BITFIELD i OVERFLOW SAT INCRBY i64 64 -1", "*1 :-9223372036854775808"),
        ("BITFIELD i INCRBY i64 64 -1", "*1 :9223372036854775807"),
        ("BITFIELD s OVERFLOW SAT SET u8 3 -1 GET u8 3", "*2 :0 :255"),
        ("BITFIELD_RO s GET i5 3 GET u63 0", "*2 :-1 :1148417904979476480"),
        ("BITFIELD_RO s SET u1 0 1", "-ERR BITFIELD_RO only supports the GET subcommand"),
        ("BITFIELD f OVERFLOW FAIL SET u1 20 2", "*1 $-1"),
        ("STRLEN f", ":3"),
        ("BITFIELD f GET u1 #-1", "-ERR bit offset is not an integer or out of range"),
    ]);
}
