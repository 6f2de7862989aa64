//! Libraries of functions are data: they outlive whoever loaded them.

use crate::three::Three;

const LIBRARY: &str = "#!lua name=lib
redis.register_function('bump', function(keys) return redis.call('INCR', keys[1]) end)";

fn request(words: &[&str]) -> String {
    let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), bulks.collect::<String>())
}

fn ask(three: &mut Three, member: usize, words: &[&str]) -> String {
    let client = three.connect(member);
    client.send(request(words).as_bytes());
    three.elapse(500);
    String::from_utf8(client.received()).expect("replies are text")
}

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
    three.end(1);
    three.leader_after(3);
    let leader = three.leader_after(1).expect("one of two leads");
    assert_eq!(
        ask(&mut three, leader, &["FCALL", "bump", "1", "n"]),
        "-ERR Function not found\r\n"
    );
}
