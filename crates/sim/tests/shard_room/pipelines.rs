//! A run of requests of one command is judged once: whatever lets or refuses it anew ends the run.

use crate::three::{Three, request};

/// A pipeline that arrives in one piece, and what is answered to each of its requests.
const PIPELINE: &[(&[&str], &str)] = &[
    (&["SET", "k", "1"], "+OK"),
    (&["SET", "k", "2"], "+OK"),
    (&["SET", "k"], "-ERR wrong number of arguments for 'set' command"),
    (&["SET", "k", "3"], "+OK"),
    (&["CONFIG", "SET", "maxmemory", "1"], "+OK"),
    (&["SET", "k", "4"], "-OOM command not allowed when used memory > 'maxmemory'."),
    (&["SET", "k", "5"], "-OOM command not allowed when used memory > 'maxmemory'."),
    (&["CONFIG", "SET", "maxmemory", "0"], "+OK"),
    (&["SET", "k", "6"], "+OK"),
    (&["SET", "k", "7"], "+OK"),
    (&["CONFIG", "SET", "min-replicas-to-write", "9"], "+OK"),
    (&["SET", "k", "8"], "-NOREPLICAS Not enough good replicas to write."),
    (&["CONFIG", "SET", "min-replicas-to-write", "0"], "+OK"),
    (&["SET", "k", "9"], "+OK"),
    (&["SELECT", "1"], "+OK"),
    (&["SET", "k", "in another"], "+OK"),
    (&["GET", "k"], "$10\r\nin another"),
    (&["SELECT", "0"], "+OK"),
    (&["GET", "k"], "$1\r\n9"),
    (&["GET", "k"], "$1\r\n9"),
    (&["MULTI"], "+OK"),
    (&["SET", "k", "10"], "+QUEUED"),
    (&["SET", "k", "11"], "+QUEUED"),
    (&["EXEC"], "*2\r\n+OK\r\n+OK"),
    (&["SET", "k", "12"], "+OK"),
    (&["ACL", "SETUSER", "default", "-set"], "+OK"),
    (&["SET", "k", "13"], "-NOPERM this user has no permissions to run the 'set' command"),
    (&["ACL", "SETUSER", "default", "+set", "resetkeys", "~l*"], "+OK"),
    (&["SET", "l", "1"], "+OK"),
    (
        &["SET", "k", "14"],
        "-NOPERM this user has no permissions to access one of the keys used as arguments",
    ),
    (&["ACL", "SETUSER", "default", "~*"], "+OK"),
    (&["GET", "k"], "$2\r\n12"),
    // Keys of one name, of one length, and none.
    (&["RPUSH", "kk", "a"], ":1"),
    (&["RPUSH", "kk", "b", "c"], ":3"),
    (&["RPUSH", "kl", "a"], ":1"),
    (&["RPUSH", "k", "a"], "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    (&["RPUSH", "", "a"], ":1"),
    (&["LRANGE", "kk", "0", "-1"], "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc"),
    (&["LLEN", ""], ":1"),
];

#[test]
fn a_pipeline_is_answered_as_its_requests_would_be_one_by_one() {
    for is_whole in [true, false] {
        let mut three = Three::new(&[]);
        assert_eq!(three.leader_after(3), Some(0));
        let client = three.connect(0);
        let requests = PIPELINE.iter().map(|(words, _)| request(words));
        match is_whole {
            true => client.send(requests.collect::<String>().as_bytes()),
            false => requests.for_each(|request| {
                client.send(request.as_bytes());
                three.elapse(20);
            }),
        }
        three.elapse(1000);
        let expected: String = PIPELINE.iter().map(|(_, reply)| format!("{reply}\r\n")).collect();
        assert_eq!(String::from_utf8_lossy(&client.received()), expected);
    }
}
