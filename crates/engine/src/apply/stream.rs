//! Effects on streams and their groups.

use super::{Applied, Hashed};
use crate::effect::Effect;
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::{Recipe, Value, stream};
use base::DatabaseId;

impl Keyspace {
    /// Applies an effect on a stream's entries or on its counters.
    pub(super) fn change_stream(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        effect: &Effect<'_>,
    ) -> Result<Applied, Refusal> {
        if *effect == Effect::StreamCreate {
            let is_there = self.entry(database, key.hash, key.name).is_some();
            let applied = if is_there { Applied::Nothing } else { Applied::Added };
            return self.edit(database, key, Some(stream::create), |value, _| {
                stream::of_mut(value).map(|_| applied)
            });
        }
        let creates = matches!(effect, Effect::StreamAdd { .. } | Effect::StreamBlock { .. });
        let create: Option<fn(&Recipe<'_>) -> Value> =
            if creates { Some(stream::create) } else { None };
        self.edit(database, key, create, |value, recipe| {
            let stream = stream::of_mut(value)?;
            let work = recipe.work;
            Ok(match *effect {
                Effect::StreamAdd { id, fields } => added(stream.add(id, fields, recipe)),
                Effect::StreamBlock { base, block } => {
                    // Commands write valid blocks only; a damaged record may hold any bytes.
                    let added = stream.add_block(base, block.to_vec(), work);
                    added.map_err(|what| Refusal::new(format!("ERR {what}")))?;
                    Applied::Added
                }
                Effect::StreamDelete { ids } => changed(stream.delete(ids, work) > 0),
                Effect::StreamTrim { below } => changed(stream.trim(below, work) > 0),
                Effect::StreamSetId { last, added, max_deleted } => {
                    changed(stream.set_id(last, added, max_deleted))
                }
                _ => Applied::Nothing,
            })
        })
    }

    /// Applies an effect on a consumer group or on one of its consumers.
    pub(super) fn change_group(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        effect: &Effect<'_>,
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, None, |value, recipe| {
            let stream = stream::of_mut(value)?;
            let work = recipe.work;
            Ok(match *effect {
                Effect::StreamGroupCreate { group, last, read } => {
                    added(stream.create_group(group, last, read))
                }
                Effect::StreamGroupSet { group, last, read } => {
                    changed(stream.set_group(group, last, read))
                }
                Effect::StreamGroupDelete { group } => changed(stream.delete_group(group, work)),
                Effect::StreamConsumerCreate { group, consumer, seen } => {
                    added(stream.create_consumer(group, consumer, seen))
                }
                Effect::StreamConsumerDelete { group, consumer } => {
                    changed(stream.delete_consumer(group, consumer, work))
                }
                Effect::StreamDeliver { group, consumer, seen, time, count, ids } => {
                    changed(stream.deliver(group, consumer, seen, time, count, ids, work))
                }
                Effect::StreamAcknowledge { group, ids } => {
                    changed(stream.acknowledge(group, ids, work) > 0)
                }
                _ => Applied::Nothing,
            })
        })
    }
}

fn added(is_new: bool) -> Applied {
    if is_new { Applied::Added } else { Applied::Nothing }
}

fn changed(did: bool) -> Applied {
    if did { Applied::Changed } else { Applied::Nothing }
}
