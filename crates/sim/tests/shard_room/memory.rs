//! What `maxmemory` counts, DEBUG POPULATE and RELOAD NOSAVE, and files without keys.

use crate::three::{Three, ask, request};
use engine::rdb::Crc64;
use engine::save::checksum;

const DEBUG: [&str; 2] = ["--enable-debug-command", "yes"];
const LIBRARY: &str = "#!lua name=lib
redis.register_function('one', function() return 1 end)";

fn led(three: &mut Three) {
    assert_eq!(three.leader_after(3), Some(0));
}

/// The number in a line of INFO memory or stats.
fn figure(three: &mut Three, member: usize, name: &str) -> u64 {
    let info = ask(three, member, &["INFO", "ALL"]);
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.expect("INFO has it").trim().parse().expect("it is a number")
}

#[test]
fn what_a_client_sends_counts_towards_the_limit_of_memory() {
    let mut three = Three::new(&DEBUG);
    led(&mut three);
    assert_eq!(ask(&mut three, 0, &["DEBUG", "POPULATE", "60", "key", "1000"]), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["DBSIZE"]), ":60\r\n");
    let limit = figure(&mut three, 0, "used_memory") + (100 << 10);
    let limit = limit.to_string();
    let policy = ["CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory"];
    let words = [&policy[..], &[limit.as_str()]].concat();
    assert_eq!(ask(&mut three, 0, &words), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["DBSIZE"]), ":60\r\n", "there is room");
    let (hog, asking) = (three.connect(0), three.connect(0));
    hog.send(format!("*2\r\n$3\r\nGET\r\n$150000\r\n{}", "k".repeat(140_000)).as_bytes());
    three.elapse(500);
    // Who asks takes room for its request, for which a key more may have to go.
    let mut left = String::new();
    for _ in 0..3 {
        asking.send(b"DBSIZE\r\n");
        three.elapse(50);
        left = String::from_utf8_lossy(&asking.received()).into_owned();
    }
    assert_ne!(left, ":60\r\n");
    let on_replica = "READONLY\r\nDBSIZE\r\n";
    let client = three.connect(1);
    client.send(on_replica.as_bytes());
    three.elapse(300);
    assert_eq!(String::from_utf8_lossy(&client.received()), format!("+OK\r\n{left}"));
    assert_eq!(figure(&mut three, 1, "evicted_keys"), 0, "a replica is told what went");
}

#[test]
fn populate_makes_keys_as_redis_does() {
    let mut three = Three::new(&DEBUG);
    led(&mut three);
    assert_eq!(ask(&mut three, 0, &["SET", "p:1", "mine"]), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["DEBUG", "POPULATE", "3", "p", "9"]), "+OK\r\n");
    assert_eq!(
        ask(&mut three, 0, &["MGET", "p:0", "p:1", "p:2"]),
        "*3\r\n$9\r\nvalue:0\0\0\r\n$4\r\nmine\r\n$9\r\nvalue:2\0\0\r\n"
    );
    assert_eq!(ask(&mut three, 0, &["DEBUG", "POPULATE", "2"]), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["GET", "key:1"]), "$7\r\nvalue:1\r\n");
    assert_eq!(ask(&mut three, 0, &["DEBUG", "POPULATE", "1", "q", "3"]), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["GET", "q:0"]), "$3\r\nval\r\n");
    for refused in [&["-1"][..], &["x"], &["9999999999"], &["1", "k", "2000000000"]] {
        let words = [&["DEBUG", "POPULATE"], refused].concat();
        assert!(ask(&mut three, 0, &words).starts_with("-ERR"), "{words:?}");
    }
    let replica = ask(&mut three, 1, &["DEBUG", "POPULATE", "1"]);
    assert!(replica.starts_with("-READONLY"), "{replica}");
}

/// The file without keys that a client is sent that asks for one, and what follows it.
fn file_for(three: &mut Three, filter: &str, is_alone: bool) -> (Vec<u8>, Vec<u8>) {
    let client = three.connect(0);
    if is_alone {
        client.send(request(&["REPLCONF", "rdb-only", "1"]).as_bytes());
    }
    client.send(request(&["REPLCONF", "rdb-filter-only", filter]).as_bytes());
    three.elapse(100);
    client.received();
    client.send(b"SYNC\r\n");
    three.elapse(300);
    assert_eq!(ask(three, 0, &["SET", "later", "1"]), "+OK\r\n");
    let said = client.received();
    let end = said.iter().position(|byte| *byte == b'\n').expect("a length");
    let length: usize = String::from_utf8_lossy(&said[1..end - 1]).parse().expect("a length");
    (said[end + 1..][..length].to_vec(), said[end + 1 + length..].to_vec())
}

#[test]
fn a_file_without_keys_is_sent_to_who_asks_for_one() {
    let mut three = Three::new(&DEBUG);
    led(&mut three);
    assert_eq!(ask(&mut three, 0, &["SET", "k", "v"]), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["FUNCTION", "LOAD", LIBRARY]), "$3\r\nlib\r\n");
    let (file, rest) = file_for(&mut three, "functions", true);
    let (start, stored) = file.split_last_chunk::<8>().unwrap();
    let mut crc = Crc64::default();
    crc.update(start);
    assert_eq!(*stored, checksum(crc));
    assert!(String::from_utf8_lossy(&file).contains("name=lib"));
    assert!(rest.is_empty(), "it wanted the file alone");
    let (file, rest) = file_for(&mut three, "", false);
    assert!(file.starts_with(b"REDIS0010") && !String::from_utf8_lossy(&file).contains("lib"));
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.starts_with("*2\r\n$6\r\nSELECT") && rest.contains("later"), "it follows: {rest}");
    let other = ask(&mut three, 0, &["REPLCONF", "rdb-filter-only", "functions keys"]);
    assert_eq!(other, "-ERR Unsupported rdb-filter-only option: keys\r\n");
}

#[test]
fn a_file_takes_the_place_of_all_data_if_it_is_whole() {
    let mut three = Three::new(&DEBUG);
    led(&mut three);
    assert_eq!(ask(&mut three, 0, &["FUNCTION", "LOAD", LIBRARY]), "$3\r\nlib\r\n");
    let (mut file, _) = file_for(&mut three, "functions", true);
    assert_eq!(ask(&mut three, 0, &["FUNCTION", "FLUSH"]), "+OK\r\n");
    let reload = ["DEBUG", "RELOAD", "NOSAVE"];
    assert_eq!(ask(&mut three, 0, &reload), "+OK\r\n", "there is no file");
    assert_eq!(ask(&mut three, 0, &["GET", "later"]), "$1\r\n1\r\n");
    let put = |three: &mut Three, bytes: &[u8]| {
        let process = &three.member(0).core.process;
        let path = process.settings.dbfilename.clone();
        if process.options.disk.exists(&path).unwrap() {
            process.options.disk.remove(&path).unwrap();
        }
        process.options.disk.create_directory(path.parent().unwrap()).unwrap();
        process.options.disk.create_new(&path).unwrap().write_at(0, bytes).unwrap();
    };
    file[20] ^= 1;
    put(&mut three, &file);
    assert!(ask(&mut three, 0, &reload).starts_with("-ERR Error trying to load"));
    assert_eq!(ask(&mut three, 0, &["GET", "later"]), "$1\r\n1\r\n", "it stays as it was");
    file[20] ^= 1;
    put(&mut three, &file);
    assert_eq!(ask(&mut three, 0, &reload), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["FCALL", "one", "0"]), ":1\r\n");
    // Zeroes are no checksum: that such a file is cut short shows when it is read.
    put(&mut three, &[&file[..file.len() - 20], &[0; 8]].concat());
    let client = three.connect(0);
    client.send((request(&reload) + &request(&["FCALL", "one", "0"])).as_bytes());
    three.elapse(300);
    let said = String::from_utf8_lossy(&client.received()).into_owned();
    assert!(said.starts_with("-ERR Error trying to load"), "{said}");
    assert!(said.ends_with("\r\n-ERR Function not found\r\n"), "its library went: {said}");
    put(&mut three, &file);
    assert_eq!(ask(&mut three, 0, &reload), "+OK\r\n");
    assert_eq!(ask(&mut three, 0, &["DBSIZE"]), ":0\r\n");
    assert_eq!(ask(&mut three, 0, &["FCALL", "one", "0"]), ":1\r\n");
    three.end(0);
    let next = three.leader_after(3).expect("one of two leads");
    assert_eq!(ask(&mut three, next, &["DBSIZE"]), ":0\r\n", "the log says so");
    assert_eq!(ask(&mut three, next, &["FCALL", "one", "0"]), ":1\r\n");
}
