//! What real servers wrote, and what they said of it (`golden/README.md`).

use super::*;
use crate::aof;
use crate::executor::tests::reply_to;

/// What a server wrote: an RDB file, an append-only file, and its replies behind each.
struct Golden {
    server: &'static str,
    rdb: &'static [u8],
    said: &'static str,
    aof: Files,
    said_of_aof: &'static str,
}

macro_rules! golden {
    ($server:literal: $($aof:literal),+) => {
        Golden {
            server: $server,
            rdb: include_bytes!(concat!("golden/", $server, ".rdb")),
            said: include_str!(concat!("golden/", $server, ".txt")),
            aof: Files(vec![
                $((
                    concat!("dir/", $aof),
                    include_bytes!(concat!("golden/", $server, "-aof/", $aof)),
                )),+
            ]),
            said_of_aof: include_str!(concat!("golden/", $server, "-aof/said.txt")),
        }
    };
    ($server:literal) => { golden!($server: "appendonly.aof") };
    ($server:literal, in parts) => {
        golden!($server: "appendonlydir/appendonly.aof.manifest",
            "appendonlydir/appendonly.aof.2.base.rdb",
            "appendonlydir/appendonly.aof.2.incr.aof")
    };
}

fn all() -> Vec<Golden> {
    vec![
        golden!("2.8.17"),
        golden!("3.0.5"),
        golden!("3.2.6"),
        golden!("5.0.6"),
        golden!("6.2.5"),
        golden!("7.0.15", in parts),
        golden!("7.4.1", in parts),
        golden!("8.2.3", in parts),
        golden!("valkey-9.0.0", in parts),
    ]
}

/// Asks what the server was asked, and compares.
fn compare(executor: &mut Executor, server: &str, said: &str) {
    let lines: Vec<&str> = said.lines().collect();
    let (pairs, rest) = lines.as_chunks::<2>();
    assert!(rest.is_empty() && pairs.len() > 70, "{server}: {} requests", pairs.len());
    let mut database = 0;
    for [request, expected] in pairs {
        if let Some(number) = request.strip_prefix("SELECT ") {
            database = number.parse().expect("a number");
            continue;
        }
        let reply = reply_to(executor, database, request).escape_ascii().to_string();
        // RESP2 has two forms of nothing, which the recorder does not tell apart.
        let reply = reply.replace(r"*-1\r\n", r"$-1\r\n");
        // Redis before 7.0 names a stream in which it has looked for entries and found none.
        let expected = expected.replace(r"*1\r\n*2\r\n$6\r\nstream\r\n*0\r\n", r"$-1\r\n");
        assert!(is_same(&reply, &expected), "{server}: {request}\n{reply}\n{expected}");
    }
    let count = executor.target.engine.keyspace.libraries().len();
    let has_functions = !["2.", "3.", "5.", "6."].iter().any(|old| server.starts_with(old));
    assert_eq!(count, usize::from(has_functions), "{server}");
}

/// Whether two replies say the same. Scores are written otherwise since Redis 7.2, and have another
/// length then.
fn is_same(left: &str, right: &str) -> bool {
    let is_same_line = |(left, right): (&str, &str)| {
        let are_lengths = left.starts_with('$') && right.starts_with('$');
        let is_score = |score: &str| score.parse::<f64>().ok();
        left == right
            || are_lengths
            || (is_score(left).is_some() && is_score(left) == is_score(right))
    };
    let [left, right] = [left, right].map(|reply| reply.split("\\r\\n").collect::<Vec<_>>());
    left.len() == right.len() && left.into_iter().zip(right).all(is_same_line)
}

#[test]
fn rdb_files_of_every_release_hold_what_their_servers_said() {
    for Golden { server, rdb, said, .. } in all() {
        let mut executor = executor();
        let mut reading = Reading::of_rdb(part(server, rdb));
        while !reading.advance(&mut executor).expect(server) {}
        compare(&mut executor, server, said);
    }
}

#[test]
fn append_only_files_of_every_release_hold_what_their_servers_said() {
    for Golden { server, aof, said_of_aof, .. } in all() {
        let is_divided = aof.0.len() > 1;
        for path in ["dir", if is_divided { "dir/appendonlydir" } else { "dir/appendonly.aof" }] {
            let mut executor = executor();
            let parts = aof::parts(&aof, Path::new(path)).expect(server);
            assert_eq!(parts.len(), if is_divided { 2 } else { 1 });
            assert_eq!(read(&mut executor, parts), Ok(None), "{server}");
            compare(&mut executor, server, said_of_aof);
        }
    }
}

/// The encodings for which the files are made, by the bytes that name them.
#[test]
fn the_files_have_the_encodings_of_their_releases() {
    let kinds = |server: &str| {
        let golden = all().into_iter().find(|golden| golden.server == server).expect("it is there");
        // The byte before the length and the text of the key.
        move |key: &str| {
            let name = [&[key.len() as u8], key.as_bytes()].concat();
            let at = golden.rdb.windows(name.len()).position(|bytes| bytes == name);
            golden.rdb[at.expect(key) - 1]
        }
    };
    let keys = ["list:small", "set:int16", "set:text", "hash:small", "hash:table", "sorted:small"];
    for (server, expected) in [
        ("2.8.17", [10, 11, 2, 13, 4, 12]),
        ("3.2.6", [14, 11, 2, 13, 4, 12]),
        ("6.2.5", [14, 11, 2, 13, 4, 12]),
        ("7.0.15", [18, 11, 2, 16, 4, 17]),
        ("8.2.3", [18, 11, 20, 16, 4, 17]),
        ("valkey-9.0.0", [18, 11, 20, 16, 4, 17]),
    ] {
        assert_eq!(keys.map(kinds(server)), expected, "{server}");
    }
    assert_eq!(kinds("2.8.17")("list:nodes"), 1);
    assert_eq!(kinds("2.8.17")("sorted:table"), 3);
    assert_eq!([kinds("5.0.6")("stream"), kinds("7.0.15")("stream")], [15, 19]);
    assert_eq!([kinds("8.2.3")("stream"), kinds("8.2.3")("fields:table")], [21, 24]);
    assert_eq!([kinds("7.4.1")("fields:small"), kinds("valkey-9.0.0")("fields:small")], [25, 22]);
}

/// Of Redis 2.4 no server can be had; this follows the description of its format: version 2,
/// without a checksum, with zipmaps, and times in seconds.
#[test]
fn an_rdb_file_of_redis_2_4_is_read() {
    let mut file = b"REDIS0002\xfe\x00".to_vec();
    // Kind, key, value.
    file.extend(b"\xfd\x00\x94\x35\x77\x00\x07expires\x01v");
    file.extend(b"\x00\x06number\xc1\x18\xfc");
    file.extend(b"\x09\x06zipmap\x15\x02\x01f\x03\x00one\x05field\x02\x02xy..\xff");
    file.extend(b"\x01\x04list\x02\x01a\x01b");
    file.extend(b"\x02\x03set\x02\x01x\x01y");
    file.extend(b"\x03\x06sorted\x03\x01a\x031.5\x01b\xfe\x01c\xff");
    file.extend(b"\x04\x04hash\x01\x01f\x01v");
    file.extend(b"\xfe\x03\x00\x05three\x013\xff");
    let mut executor = executor();
    let mut reading = Reading::of_rdb(part("2.4", &file));
    while !reading.advance(&mut executor).expect("it is whole") {}
    for (database, request, expected) in [
        (0, "PEXPIRETIME expires", ":2000000000000"),
        (0, "GET number", "$5 -1000"),
        (0, "HMGET zipmap f field", "*2 $3 one $2 xy"),
        (0, "LRANGE list 0 -1", "*2 $1 a $1 b"),
        (0, "SORT set ALPHA", "*2 $1 x $1 y"),
        (0, "ZRANGE sorted 0 -1 WITHSCORES", "*6 $1 c $4 -inf $1 a $3 1.5 $1 b $3 inf"),
        (0, "HGET hash f", "$1 v"),
        (3, "GET three", "$1 3"),
        (0, "DBSIZE", ":7"),
    ] {
        assert_eq!(ask(&mut executor, database, request), expected, "{request}");
    }
}

#[test]
fn data_of_modules_and_newer_files_are_refused_by_name() {
    for (file, said) in [
        (&b"REDIS0099\xff"[..], "RDB version 99"),
        (b"REDIS0010\xf7\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03", "data of the module ReJSON-RL"),
        (b"REDIS0010\x07\x01k\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03", "data of the module R"),
        (b"REDIS0010\x06\x01k\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03", "data of the module R"),
        (b"REDIS0012\x17\x01k", "a value of type 23"),
        (b"REDIS0010\xf6\x00", "functions of 7.0's previews"),
        (b"REDIS0010\xfe\x10", "database 16 (there are 16)"),
    ] {
        let mut executor = executor();
        let mut reading = Reading::of_rdb(part("f", file));
        let why = loop {
            match reading.advance(&mut executor) {
                Ok(is_done) => assert!(!is_done, "{said}"),
                Err(why) => break why,
            }
        };
        assert!(why.contains(said) && why.contains("not supported"), "{why}");
    }
}

#[test]
fn where_an_append_only_file_lies_is_found_or_said() {
    let manifest: &[u8] = b"file a.1.incr.aof seq 1 type i\n";
    let named = |files: &[(&'static str, &'static [u8])], path: &str| {
        let parts = aof::parts(&Files(files.to_vec()), Path::new(path))?;
        Ok(parts.iter().map(|part| part.path.display().to_string()).collect::<Vec<_>>().join(" "))
    };
    let whole = [("d/x/a.manifest", manifest), ("d/x/a.1.incr.aof", b"")];
    for (files, path, found) in [
        (&whole[..], "d/x", Ok("d/x/a.1.incr.aof")),
        (&whole, "d/x/a.manifest", Ok("d/x/a.1.incr.aof")),
        (&whole, "d", Err("d has no 'appendonlydir', no manifest and no 'appendonly.aof'")),
        (&whole[..1], "d/x", Err("d/x/a.1.incr.aof: ")),
        (&[("d/appendonly.aof", b"")], "d", Ok("d/appendonly.aof")),
        (&[("d/any.aof", b"")], "d/any.aof", Ok("d/any.aof")),
        (&[("d/appendonlydir/x", b"")], "d", Err("d/appendonlydir has no manifest")),
        (&[("d/a.manifest", b"x")], "d", Err("d/a.manifest: line 1 names no file")),
        (&[("d/temp-a.manifest", manifest)], "d", Err("d has no 'appendonlydir'")),
        (&[("d/a.manifest", b""), ("d/b.manifest", b"")], "d", Err("d has several manifests")),
        (&[], "d", Err("d: ")),
    ] {
        match (named(files, path), found) {
            (Ok(names), Ok(expected)) => assert_eq!(names, expected),
            (Err(why), Err(said)) => {
                let why: String = why;
                assert!(why.starts_with(said), "{path}: {why}");
            }
            (got, expected) => panic!("{path}: {got:?}, not {expected:?}"),
        }
    }
}
