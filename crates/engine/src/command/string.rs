//! Strings (Redis documentation, "Commands", group string).

use super::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::effect::Effect;
use crate::tx::Tx;
use crate::value::StringValue;
use crate::view::View;
use resp::Reply;

pub const COMMANDS: &[Command<DataFn>] = &[
    read("GET key", get)
        .doc("Returns the string value of a key.")
        .group(Group::String)
        .cost("O(1)")
        .fast(),
    write("SET key value", set)
        .doc("Sets the string value of a key, ignoring its type.")
        .group(Group::String)
        .cost("O(1)")
        .denyoom(),
];

fn get(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    match view.string(args.at(1))? {
        Some(StringValue::Bytes(bytes)) => reply.bulk(bytes),
        Some(StringValue::Integer(integer)) => reply.bulk_integer(integer),
        None => reply.null(),
    }
    Ok(())
}

fn set(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    tx.change(args.at(1), Effect::SetString { value: args.at(2), expire_at: None })?;
    tx.notify(crate::notify::Class::String, "set", args.at(1));
    reply.ok();
    Ok(())
}
