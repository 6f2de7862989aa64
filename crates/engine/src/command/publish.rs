//! PUBLISH and SPUBLISH (Redis documentation, group pubsub). Scripts call them too, so they are
//! commands of the engine: the message is addressed here, and node delivers it.

use super::{Args, Channels, Command, DataFn, Flags, Group, KeySpec, Outcome};
use crate::view::View;
use resp::Reply;

pub const COMMANDS: &[Command<DataFn>] = &[
    publishing("PUBLISH channel message", publish)
        .doc("Posts a message to a channel.")
        .since("2.0.0")
        .cost(
            "O(N+M) where N is the number of clients subscribed to the receiving channel and M is \
             the total number of subscribed patterns (by any client).",
        ),
    publishing("SPUBLISH shardchannel message", spublish)
        .key_use("not_key")
        .doc("Post a message to a shard channel")
        .since("7.0.0")
        .cost("O(N) where N is the number of clients subscribed to the receiving shard channel.")
        .keys(&[KeySpec::Range { first: 1, last: 1, step: 1 }]),
];

const fn publishing(
    usage: &'static str,
    function: fn(&mut View<'_>, Args<'_>, &mut Reply) -> Outcome,
) -> Command<DataFn> {
    let flags = Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE).union(Flags::MAY_REPLICATE);
    Command::new(usage, DataFn::Read(function), flags)
        .channels(Channels::First)
        .group(Group::PubSub)
        .fast()
}

fn publish(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let receivers = view.publish(args.at(1), args.at(2), false);
    reply.integer(receivers as i64);
    Ok(())
}

fn spublish(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let receivers = view.publish(args.at(1), args.at(2), true);
    reply.integer(receivers as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ids::SubscriberId;
    use crate::subscribers::Sort;
    use crate::testing::Bench;

    #[test]
    fn publish_counts_deliveries_at_the_moment_of_publication() {
        let mut bench = Bench::new();
        bench.check("PUBLISH c hello", ":0");
        assert!(bench.interest.messages.is_empty(), "nobody is there to get it");
        let subscribers = &mut bench.interest.subscribers;
        subscribers.subscribe(SubscriberId(1), Sort::Channel, b"c");
        subscribers.subscribe(SubscriberId(1), Sort::Pattern, b"?");
        subscribers.subscribe(SubscriberId(2), Sort::Shard, b"c");
        bench.check("PUBLISH c hello", ":2");
        let message = &bench.interest.messages[0];
        assert_eq!((message.receivers.len(), message.sharded), (2, false));
        bench.check("SPUBLISH c hello", ":1");
        assert!(bench.interest.messages[0].sharded);
    }
}
