//! DEBUG PROTOCOL: one reply of each type, for tests of clients.

use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;
use resp::{Protocol, Reply};

pub(super) fn protocol(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let reply = server.core.clients.reply(client);
    let name = String::from_utf8_lossy(args.at(2)).to_ascii_lowercase();
    match name.as_str() {
        "string" => reply.bulk("Hello World"),
        "integer" => reply.integer(12_345),
        // As Redis answers: not pi, but the three digits that its test suite reads.
        "double" => reply.double_text("3.141"),
        "bignum" => reply.big_number("1234567999999999999999999999999999999"),
        "null" => reply.null(),
        "array" => {
            reply.array(3);
            three(reply);
        }
        "set" => {
            reply.set(3);
            three(reply);
        }
        "map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        "attrib" => {
            if reply.attribute(1) {
                reply.bulk("key-popularity");
                reply.array(2);
                reply.bulk("key:123");
                reply.integer(90);
            }
            // An attribute is no reply: one must follow.
            reply.bulk("Some real reply following the attribute");
        }
        "push" if reply.protocol() == Protocol::Resp2 => {
            return Err(Refusal::of("ERR RESP2 is not supported by this command"));
        }
        "push" => {
            reply.push(2);
            reply.bulk("server-cpu-usage");
            reply.integer(42);
            reply.bulk("Some real reply following the push reply");
        }
        "true" => reply.boolean(true),
        "false" => reply.boolean(false),
        "verbatim" => reply.verbatim(b"txt", "This is a verbatim\nstring"),
        _ => {
            return Err(Refusal::of(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

fn three(reply: &mut Reply) {
    for number in 0..3 {
        reply.integer(number);
    }
}
