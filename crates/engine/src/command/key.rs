//! Keys of any type (Redis documentation, "Commands", group generic).

use super::{Args, Command, DataFn, Outcome, write};
use crate::notify::Class;
use crate::tx::Tx;
use resp::Reply;

pub const COMMANDS: &[Command<DataFn>] = &[
    write("DEL key [key ...]", del)
        .doc("Deletes one or more keys.")
        .cost("O(N) where N is the number of keys that will be removed."),
];

fn del(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let mut deleted = 0;
    for key in args.from(1) {
        if tx.delete(key) {
            tx.notify(Class::Generic, "del", key);
            deleted += 1;
        }
    }
    reply.integer(deleted);
    Ok(())
}
