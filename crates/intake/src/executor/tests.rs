//! Requests as they stand in append-only files, and what the engine holds afterwards.

use super::*;
use base::HashKey;
use base::time::{MonotonicNanos, UnixMillis};
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use engine::settings::Settings;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn unix_micros(&self) -> i64 {
        NOW.0 * 1000
    }

    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(1)
    }
}

pub(crate) fn executor() -> Executor {
    let keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    Executor::new(Target::new(Engine::new(keyspace, 1), NOW), Arc::new(Still))
}

/// The reply to a command about keys, whose words stand between blanks; a blank for each line's
/// end. Not as the file's own request: keys whose time has come are kept.
pub(crate) fn ask(executor: &mut Executor, database: u32, line: &str) -> String {
    String::from_utf8_lossy(&reply_to(executor, database, line)).trim_end().replace("\r\n", " ")
}

/// The same as its bytes.
pub(crate) fn reply_to(executor: &mut Executor, database: u32, line: &str) -> Vec<u8> {
    let request = Arguments::of(line.split(' ').map(str::as_bytes)).expect("it is short");
    let args = Args::new(request.source(), request.ranges());
    let function = executor.commands.find(args).expect("it is there");
    let mut reply = Reply::new(Protocol::Resp2);
    let context = executor.target.context(DatabaseId(database));
    if let Err(refusal) = executor.target.run(&function, context, args, &mut reply) {
        reply.error(refusal.0.as_bytes());
    }
    reply.into_bytes()
}

fn execute_words(executor: &mut Executor, words: &[&[u8]]) -> Result<(), String> {
    let request = Arguments::of(words.iter().copied()).expect("it is short");
    executor.execute(Args::new(request.source(), request.ranges()))
}

fn execute(executor: &mut Executor, line: &str) -> Result<(), String> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    execute_words(executor, &words)
}

#[test]
fn what_asks_for_more_than_the_limits_is_refused() {
    let limits = Limits { transaction_bytes_max: 64, script_pauses_max: 3 };
    let mut executor = executor().with_limits(limits);
    let endless: [&[u8]; 3] = [b"EVAL", b"while true do end", b"0"];
    let why = execute_words(&mut executor, &endless).expect_err("it never ends");
    assert!(why.contains("the script does not end"), "{why}");
    execute(&mut executor, "MULTI").expect("it begins");
    execute(&mut executor, "SET a 1").expect("there is room");
    let why = execute(&mut executor, &format!("SET b {}", "x".repeat(64)));
    assert_eq!(why, Err("a transaction of more than 64 bytes".to_owned()));
}

#[test]
fn requests_are_executed_in_the_database_that_they_select() {
    let mut executor = executor();
    for line in ["SET a 1", "select 3", "SET a 2", "INCR a", "SWAPDB 3 4", "RPUSH l x y"] {
        execute(&mut executor, line).expect(line);
    }
    assert_eq!(ask(&mut executor, 0, "GET a"), "$1 1");
    assert_eq!(ask(&mut executor, 4, "GET a"), "$1 3");
    assert_eq!(ask(&mut executor, 3, "LRANGE l 0 -1"), "*2 $1 x $1 y");
    executor.begin_file();
    execute(&mut executor, "SET b 1").expect("it is in the first one again");
    assert_eq!(ask(&mut executor, 0, "GET b"), "$1 1");
}

#[test]
fn a_transaction_counts_when_its_end_is_there() {
    let mut executor = executor();
    for line in ["MULTI", "SET a 1", "SELECT 1", "SET a 2", "EXEC", "SET b 1", "MULTI", "SET c 1"] {
        execute(&mut executor, line).expect(line);
    }
    assert!(executor.is_in_transaction());
    assert_eq!(ask(&mut executor, 1, "MGET a b c"), "*3 $1 2 $1 1 $-1");
    assert!(execute(&mut executor, "MULTI").is_err());
    executor.begin_file();
    assert!(execute(&mut executor, "EXEC").expect_err("there is none").contains("without MULTI"));
    assert_eq!(ask(&mut executor, 0, "MGET a c"), "*2 $1 1 $-1");
}

#[test]
fn a_transaction_that_is_discarded_never_happened() {
    let mut executor = executor();
    for line in ["MULTI", "SET a 1", "DISCARD", "SET b 1"] {
        execute(&mut executor, line).expect(line);
    }
    assert!(!executor.is_in_transaction());
    assert_eq!(ask(&mut executor, 0, "MGET a b"), "*2 $-1 $1 1");
    let why = execute(&mut executor, "DISCARD").expect_err("there is none");
    assert!(why.contains("DISCARD without MULTI"), "{why}");
}

/// What follows was executed before the time came, so the key was there.
#[test]
fn keys_whose_time_has_come_go_when_the_file_says_so() {
    let mut executor = executor();
    let past = NOW.0 - 1000;
    for line in [
        format!("SET k 5 PXAT {past}"),
        "INCR k".to_owned(),
        "SET gone 1".to_owned(),
        format!("PEXPIREAT gone {past}"),
        "DEL gone".to_owned(),
        "SET kept 7".to_owned(),
        format!("PEXPIREAT kept {past}"),
        "INCR kept".to_owned(),
        "PERSIST kept".to_owned(),
    ] {
        execute(&mut executor, &line).expect("it is executed");
    }
    assert_eq!(ask(&mut executor, 0, "MGET k gone kept"), "*3 $1 6 $-1 $1 8");
    assert_eq!(ask(&mut executor, 0, "PEXPIRETIME k"), format!(":{past}"));
    assert_eq!(ask(&mut executor, 0, "PEXPIRETIME kept"), ":-1");
}

#[test]
fn scripts_are_executed_and_found_by_their_hashes() {
    let mut executor = executor();
    let body = b"redis.call('SELECT', 2) redis.call('SET', KEYS[1], ARGV[1]) return 1";
    execute_words(&mut executor, &[b"EVAL", body, b"1", b"a", b"1"]).expect("it is run");
    let hash = base::sha1::hex(&base::sha1::sha1(body));
    let words: [&[u8]; 5] = [b"evalsha", hash.as_bytes(), b"1", b"b", b"2"];
    execute_words(&mut executor, &words).expect("it is known");
    assert_eq!(ask(&mut executor, 2, "MGET a b"), "*2 $1 1 $1 2");
    execute(&mut executor, "SET here 1").expect("the database is the caller's");
    assert_eq!(ask(&mut executor, 0, "EXISTS here"), ":1");
    execute(&mut executor, "SCRIPT FLUSH").expect("it is run");
    let why = execute_words(&mut executor, &words).expect_err("it is forgotten");
    assert!(why.contains(&hash), "{why}");
    execute_words(&mut executor, &[b"SCRIPT", b"LOAD", body]).expect("it is kept");
    execute_words(&mut executor, &words).expect("it is known again");
}

#[test]
fn a_script_that_fails_keeps_what_it_did_and_one_that_wants_what_is_not_here_ends_the_loading() {
    let mut executor = executor();
    let body = b"redis.call('SET', 'a', 1) redis.call('LPUSH', 'a', 1)";
    execute_words(&mut executor, &[b"EVAL", body, b"0"]).expect("so it was before");
    assert_eq!(ask(&mut executor, 0, "GET a"), "$1 1");
    let body = b"redis.pcall('FT.CREATE', 'a') return 1";
    let why = execute_words(&mut executor, &[b"EVAL", body, b"0"]).expect_err("a module's");
    assert!(why.contains("FT.CREATE"), "{why}");
    for words in [
        &[&b"EVAL"[..], b"return (", b"0"][..],
        &[b"EVAL", b"return 1", b"2", b"a"],
        &[b"EVAL", b"return 1", b"x"],
        &[b"EVAL", b"return 1"],
        &[b"EVAL"],
        &[b"EVALSHA", b"zz", b"0"],
        &[b"SCRIPT", b"KILL"],
    ] {
        execute_words(&mut executor, words).expect_err("it is no call of a script");
    }
}

#[test]
fn libraries_of_functions_come_and_go() {
    let mut executor = executor();
    let code = |name: &str| format!("#!lua name={name}\nredis.register_function('{name}', print)");
    for name in ["one", "two", "three"] {
        let words: [&[u8]; 4] = [b"FUNCTION", b"LOAD", b"REPLACE", &code(name).into_bytes()];
        execute_words(&mut executor, &words).expect("it is loaded");
    }
    let payload = {
        let keyspace = &executor.target.engine.keyspace;
        engine::dump::dump_libraries(keyspace.libraries(), &keyspace.work)
    };
    let names = |executor: &Executor| -> Vec<String> {
        let libraries = executor.target.engine.keyspace.libraries();
        libraries.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
    };
    execute(&mut executor, "FUNCTION DELETE two").expect("it is there");
    assert_eq!(names(&executor), ["one", "three"]);
    execute(&mut executor, "FUNCTION FLUSH").expect("there are some");
    assert!(names(&executor).is_empty());
    let words: [&[u8]; 4] = [b"FUNCTION", b"RESTORE", &payload, b"FLUSH"];
    execute_words(&mut executor, &words).expect("it is a payload");
    assert_eq!(names(&executor), ["one", "three", "two"]);
    for words in [
        &[&b"FUNCTION"[..], b"LOAD", b"no header"][..],
        &[b"FUNCTION", b"RESTORE", b"no payload"],
        &[b"FUNCTION", b"LIST"],
        &[b"FUNCTION"],
    ] {
        execute_words(&mut executor, words).expect_err("it is nothing that is written");
    }
}

#[test]
fn what_cannot_be_executed_is_named_and_shows_no_argument() {
    let mut executor = executor();
    execute(&mut executor, "SET text x").expect("it is executed");
    for (line, said) in [
        ("FT.CREATE secret", "FT.CREATE, which cannot be executed here"),
        ("CONFIG SET secret", "CONFIG, which"),
        ("\n\u{1} secret", "\\N\\X01, which"),
        ("SET secret", "SET: the wrong number of arguments"),
        ("LPUSH text secret", "LPUSH: WRONGTYPE"),
        ("SELECT 16", "database 16 (there are 16"),
        ("SELECT secret", "SELECT: no number"),
        ("SELECT", "SELECT: no number"),
    ] {
        let why = execute(&mut executor, line).expect_err(line);
        assert!(why.contains(said) && !why.contains("secret"), "{why}");
    }
}
