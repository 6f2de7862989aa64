//! Libraries of functions are data: they outlive whoever loaded them.

use crate::three::{Three, ask};

const LIBRARY: &str = "#!lua name=lib
redis.register_function('bump', function(keys) return redis.call('INCR', keys[1]) end)";

#[test]
fn a_library_survives_the_server_that_loaded_it() {
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    assert_eq!(ask(&mut three, 0, &["FUNCTION", "LOAD", LIBRARY]), "$3\r\nlib\r\n");
    assert_eq!(ask(&mut three, 0, &["FCALL", "bump", "1", "n"]), ":1\r\n");
    assert_eq!(ask(&mut three, 0, &["FLUSHALL"]), "+OK\r\n");
    three.end(0);
    assert_eq!(three.leader_after(3), Some(1));
    assert_eq!(ask(&mut three, 1, &["FCALL", "bump", "1", "n"]), ":1\r\n");
    three.restart(0, 0, &[]);
    three.elapse(500);
    let listed = ask(&mut three, 0, &["FUNCTION", "LIST"]);
    assert!(listed.contains("bump"), "a replica knows it too: {listed}");
    let refused = ask(&mut three, 0, &["FUNCTION", "DELETE", "lib"]);
    assert!(refused.starts_with("-MOVED") || refused.starts_with("-READONLY"), "{refused}");
    assert_eq!(ask(&mut three, 1, &["FUNCTION", "DELETE", "lib"]), "+OK\r\n");
    let figures = ask(&mut three, 1, &["FUNCTION", "STATS"]);
    assert!(figures.ends_with("libraries_count\r\n:0\r\n$15\r\nfunctions_count\r\n:0\r\n"));
    three.end(1);
    three.leader_after(3);
    let leader = three.leader_after(1).expect("one of two leads");
    assert_eq!(
        ask(&mut three, leader, &["FCALL", "bump", "1", "n"]),
        "-ERR Function not found\r\n"
    );
}

/// What Redis's own tests call is all that DEBUG lets scripts call of the denied commands: the rest
/// would wait amid a unit, use the interpreter that runs it, or take the data set from under it.
#[test]
fn a_script_calls_no_command_that_changes_the_server() {
    let mut three = Three::new(&["--enable-debug-command", "yes"]);
    assert_eq!(three.leader_after(3), Some(0));
    assert_eq!(ask(&mut three, 0, &["FUNCTION", "LOAD", LIBRARY]), "$3\r\nlib\r\n");
    let denied = ["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"];
    assert_eq!(ask(&mut three, 0, &denied), "+OK\r\n");
    for words in ["'CLIENT', 'LIST'", "'DEBUG', 'PROTOCOL', 'map'", "'DEBUG', 'SLEEP', '0'"] {
        let script = format!("redis.call({words}) return 1");
        assert_eq!(ask(&mut three, 0, &["EVAL", &script, "0"]), ":1\r\n", "{words}");
    }
    for words in [
        "'SCRIPT', 'FLUSH'",
        "'SCRIPT', 'LOAD', 'return 1'",
        "'FUNCTION', 'FLUSH'",
        "'DEBUG', 'RELOAD'",
        "'DEBUG', 'SET-DISABLE-DENY-SCRIPTS', '1'",
        "'CONFIG', 'SET', 'maxmemory', '1'",
        "'REPLICAOF', 'no', 'one'",
        "'SHUTDOWN', 'NOSAVE'",
        "'FAILOVER'",
        "'SAVE'",
        "'WAIT', '1', '0'",
        "'CLIENT', 'REPLY', 'OFF'",
        "'EVAL', 'return 1', '0'",
    ] {
        let script = format!("return redis.call({words})");
        let refused = ask(&mut three, 0, &["EVAL", &script, "0"]);
        assert!(refused.starts_with("-ERR This Redis command is not allowed"), "{refused}");
    }
    assert_eq!(ask(&mut three, 0, &["FCALL", "bump", "1", "n"]), ":1\r\n");
}

/// FUNCTION LOAD takes both, so FUNCTION RESTORE of what FUNCTION DUMP made takes them again.
#[test]
fn names_that_differ_in_case_alone_may_be_in_one_library() {
    const BOTH: &str = "#!lua name=both
redis.register_function('f', function() return 'small' end)
redis.register_function('F', function() return 'large' end)";
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    assert_eq!(ask(&mut three, 0, &["FUNCTION", "LOAD", BOTH]), "$4\r\nboth\r\n");
    let mut libraries = engine::functions::Libraries::default();
    libraries.load(BOTH.as_bytes()).expect("it has a name");
    let payload = engine::dump::dump_libraries(&libraries, &engine::work::Work::default());
    let header = format!("*4\r\n$8\r\nFUNCTION\r\n$7\r\nRESTORE\r\n${}\r\n", payload.len());
    let client = three.connect(0);
    client.send(&[header.as_bytes(), &payload, b"\r\n$5\r\nFLUSH\r\n"].concat());
    three.elapse(1000);
    assert_eq!(client.received(), b"+OK\r\n");
    let figures = ask(&mut three, 0, &["FUNCTION", "STATS"]);
    assert!(figures.ends_with("functions_count\r\n:2\r\n"), "{figures}");
}
