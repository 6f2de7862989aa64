//! Fields and values asked for.

use super::{find, reply_text};
use crate::command::{Args, Outcome};
use crate::value::hash::{self, Seen, Text};
use crate::view::View;
use resp::Reply;

fn reply_found(value: Option<Text<'_>>, reply: &mut Reply) {
    match value {
        Some(value) => reply_text(value, reply),
        None => reply.null(),
    }
}

pub(super) fn hget(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let hash = find(view, args.at(1))?;
    reply_found(hash.and_then(|hash| hash.get(args.at(2))), reply);
    Ok(())
}

pub(super) fn hmget(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let hash = find(view, args.at(1))?;
    reply.array(args.len() - 2);
    view.work().reply_each(args.from(2), reply, |field, reply| {
        reply_found(hash.and_then(|hash| hash.get(field)), reply);
    });
    Ok(())
}

pub(super) fn hgetall(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let hash = find(view, args.at(1))?;
    reply.map(hash.map_or(0, |hash| hash.len(view.work())));
    let pairs = hash.into_iter().flat_map(|hash| hash.iter(view.work()));
    view.work().reply_each(pairs, reply, |(field, value), reply| {
        reply_text(field, reply);
        reply_text(value, reply);
    });
    Ok(())
}

pub(super) fn hkeys(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let hash = find(view, args.at(1))?;
    reply.array(hash.map_or(0, |hash| hash.len(view.work())));
    let pairs = hash.into_iter().flat_map(|hash| hash.iter(view.work()));
    view.work().reply_each(pairs, reply, |(field, _), reply| reply_text(field, reply));
    Ok(())
}

pub(super) fn hvals(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let hash = find(view, args.at(1))?;
    reply.array(hash.map_or(0, |hash| hash.len(view.work())));
    let pairs = hash.into_iter().flat_map(|hash| hash.iter(view.work()));
    view.work().reply_each(pairs, reply, |(_, value), reply| reply_text(value, reply));
    Ok(())
}

pub(super) fn hlen(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let len = view.count(args.at(1), "hash", |view, entry| {
        let seen = Seen::new(hash::of(entry)?, view.context().hidden_by());
        Ok(seen.len(view.work()))
    })?;
    reply.integer(len as i64);
    Ok(())
}

pub(super) fn hexists(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let hash = find(view, args.at(1))?;
    reply.integer(i64::from(hash.is_some_and(|hash| hash.contains(args.at(2)))));
    Ok(())
}

pub(super) fn hstrlen(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let hash = find(view, args.at(1))?;
    let value = hash.and_then(|hash| hash.get(args.at(2)));
    reply.integer(value.map_or(0, |value| value.text_len()) as i64);
    Ok(())
}
