//! The examples of redis-rs, as its users write them, against any server. The port is the only
//! argument. Each function is one example; its name is the claim.

use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{Commands, Connection, RedisResult, Script};
use std::process::ExitCode;

fn commands(connection: &mut Connection) -> RedisResult<bool> {
    let _: () = connection.set("rs:k", 41)?;
    let next: i64 = connection.incr("rs:k", 1)?;
    let _: () = connection.hset_multiple("rs:h", &[("a", 1), ("b", 2)])?;
    let all: std::collections::BTreeMap<String, i64> = connection.hgetall("rs:h")?;
    Ok(next == 42 && all.get("b") == Some(&2))
}

fn pipelines(connection: &mut Connection) -> RedisResult<bool> {
    let (first, second): (i64, i64) =
        redis::pipe().atomic().incr("rs:p", 1).incr("rs:p", 1).query(connection)?;
    Ok((first, second) == (1, 2))
}

fn transactions(connection: &mut Connection) -> RedisResult<bool> {
    let (done,): (i64,) = redis::transaction(connection, &["rs:t"], |connection, pipe| {
        let before: Option<i64> = connection.get("rs:t")?;
        pipe.set("rs:t", before.unwrap_or(0) + 5).ignore().get("rs:t").query(connection)
    })?;
    Ok(done == 5)
}

fn scripts(connection: &mut Connection) -> RedisResult<bool> {
    let script = Script::new("return tonumber(ARGV[1]) + redis.call('INCR', KEYS[1])");
    let first: i64 = script.key("rs:s").arg(1).invoke(connection)?;
    let _: () = redis::cmd("SCRIPT").arg("FLUSH").query(connection)?;
    let second: i64 = script.key("rs:s").arg(1).invoke(connection)?;
    Ok((first, second) == (2, 3))
}

fn streams(connection: &mut Connection) -> RedisResult<bool> {
    let _: () = connection.xgroup_create_mkstream("rs:x", "group", "0")?;
    let id: String = connection.xadd("rs:x", "*", &[("n", "1")])?;
    let options = StreamReadOptions::default().group("group", "consumer").count(10);
    let read: StreamReadReply = connection.xread_options(&["rs:x"], &[">"], &options)?;
    let acknowledged: i64 = connection.xack("rs:x", "group", &[&id])?;
    Ok(read.keys[0].ids[0].id == id && acknowledged == 1)
}

fn main() -> ExitCode {
    let port = std::env::args().nth(1).unwrap_or_default();
    let connected = redis::Client::open(format!("redis://127.0.0.1:{port}/"))
        .and_then(|client| client.get_connection());
    let mut connection = match connected {
        Ok(connection) => connection,
        Err(error) => {
            println!("FAIL connect: {error}");
            return ExitCode::FAILURE;
        }
    };
    type Example = fn(&mut Connection) -> RedisResult<bool>;
    let examples: [(&str, Example); 5] = [
        ("commands", commands),
        ("pipelines", pipelines),
        ("transactions", transactions),
        ("scripts", scripts),
        ("streams", streams),
    ];
    for (name, example) in examples {
        let flushed: RedisResult<()> = redis::cmd("FLUSHALL").query(&mut connection);
        match flushed.and_then(|()| example(&mut connection)) {
            Ok(true) => println!("ok {name}"),
            Ok(false) => println!("FAIL {name}: other values than were written"),
            Err(error) => println!("FAIL {name}: {error}"),
        }
    }
    ExitCode::SUCCESS
}
