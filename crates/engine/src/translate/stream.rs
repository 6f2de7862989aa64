//! Translates effects on streams into Redis commands. The time at which a consumer was last seen is
//! not told: Redis does not tell its replicas either.

use crate::effect::Effect;
use crate::feed::{Feed, Word};
use crate::stream_id::StreamId;
use crate::value::stream::entries_of;
use base::DatabaseId;

/// The most IDs in one command. More would make one request longer than any other; a guess.
const IDS_MAX: usize = 1024;

impl Feed {
    /// Translates an effect on a stream.
    pub(super) fn tell_stream(&mut self, database: DatabaseId, key: &[u8], effect: &Effect<'_>) {
        let name = Word::Text(key);
        match *effect {
            // No single command creates an empty stream.
            Effect::StreamCreate => {
                let [maxlen, none, id] = [text("MAXLEN"), Word::Number(0), text("0-1")];
                let words = [text("XADD"), name, maxlen, none, id, text("x"), text("y")];
                self.say(database, &words);
                self.say_set_id(database, key, StreamId::MIN, 0, StreamId::MIN);
            }
            Effect::StreamAdd { id, fields } => {
                let id = id.to_string();
                let mut words = vec![text("XADD"), name, Word::Text(id.as_bytes())];
                let texts = fields.iter().flat_map(|(field, value)| [field, value]);
                words.extend(texts.map(Word::Text));
                self.say(database, &words);
            }
            Effect::StreamBlock { base, block } => self.say_block(database, key, base, block),
            Effect::StreamDelete { ids } => {
                self.say_ids(database, &[text("XDEL"), name], ids.iter(), &[]);
            }
            Effect::StreamTrim { below: StreamId::MIN } => {
                self.say(database, &[text("XTRIM"), name, text("MAXLEN"), text("0")]);
            }
            Effect::StreamTrim { below } => {
                let below = below.to_string();
                let below = Word::Text(below.as_bytes());
                self.say(database, &[text("XTRIM"), name, text("MINID"), text("="), below]);
            }
            Effect::StreamSetId { last, added, max_deleted } => {
                self.say_set_id(database, key, last, added, max_deleted);
            }
            _ => self.tell_group(database, key, effect),
        }
    }

    /// Translates an effect on a consumer group.
    fn tell_group(&mut self, database: DatabaseId, key: &[u8], effect: &Effect<'_>) {
        let name = Word::Text(key);
        match *effect {
            Effect::StreamGroupCreate { group, last, read } => {
                self.say_group(database, "CREATE", key, group, last, read);
            }
            Effect::StreamGroupSet { group, last, read } => {
                self.say_group(database, "SETID", key, group, last, read);
            }
            Effect::StreamGroupDelete { group } => {
                self.say(database, &[text("XGROUP"), text("DESTROY"), name, Word::Text(group)]);
            }
            Effect::StreamConsumerCreate { group, consumer, .. } => {
                let (group, consumer) = (Word::Text(group), Word::Text(consumer));
                let words = [text("XGROUP"), text("CREATECONSUMER"), name, group, consumer];
                self.say(database, &words);
            }
            Effect::StreamConsumerDelete { group, consumer } => {
                let (group, consumer) = (Word::Text(group), Word::Text(consumer));
                let words = [text("XGROUP"), text("DELCONSUMER"), name, group, consumer];
                self.say(database, &words);
            }
            Effect::StreamDeliver { group, consumer, time, count, ids, .. } => {
                let (group, consumer) = (Word::Text(group), Word::Text(consumer));
                let head = [text("XCLAIM"), name, group, consumer, Word::Number(0)];
                let count = Word::Number(i64::try_from(count).unwrap_or(i64::MAX));
                let [time_is, retries] = [text("TIME"), text("RETRYCOUNT")];
                let [force, just_id] = [text("FORCE"), text("JUSTID")];
                let tail = [time_is, Word::Number(time), retries, count, force, just_id];
                self.say_ids(database, &head, ids.iter(), &tail);
            }
            Effect::StreamAcknowledge { group, ids } => {
                self.say_ids(database, &[text("XACK"), name, Word::Text(group)], ids.iter(), &[]);
            }
            _ => {}
        }
    }

    fn say_group(
        &mut self,
        database: DatabaseId,
        verb: &'static str,
        key: &[u8],
        group: &[u8],
        last: StreamId,
        read: i64,
    ) {
        let last = last.to_string();
        let words = [
            text("XGROUP"),
            text(verb),
            Word::Text(key),
            Word::Text(group),
            Word::Text(last.as_bytes()),
            text("ENTRIESREAD"),
            Word::Number(read),
        ];
        self.say(database, &words);
    }

    fn say_set_id(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        last: StreamId,
        added: u64,
        max_deleted: StreamId,
    ) {
        let is_told = max_deleted <= last;
        let (last, max_deleted) = (last.to_string(), max_deleted.to_string());
        let words = [
            text("XSETID"),
            Word::Text(key),
            Word::Text(last.as_bytes()),
            text("ENTRIESADDED"),
            Word::Number(i64::try_from(added).unwrap_or(i64::MAX)),
            text("MAXDELETEDID"),
            Word::Text(max_deleted.as_bytes()),
        ];
        // Redis refuses a greatest deleted ID beyond the last ID. Its replica has deleted the entry
        // itself, and so knows the ID.
        self.say(database, if is_told { &words } else { &words[..5] });
    }

    /// Translates a block into one XADD per entry. A replica divides them into blocks by its own
    /// settings.
    fn say_block(&mut self, database: DatabaseId, key: &[u8], base: StreamId, block: &[u8]) {
        entries_of(base, block, |entry| {
            let id = entry.id.to_string();
            let texts: Vec<Vec<u8>> = entry
                .fields()
                .flat_map(|(field, value)| [field.to_vec(), value.to_vec()])
                .collect();
            let mut words = vec![text("XADD"), Word::Text(key), Word::Text(id.as_bytes())];
            words.extend(texts.iter().map(|text| Word::Text(text)));
            self.say(database, &words);
        });
    }

    fn say_ids(
        &mut self,
        database: DatabaseId,
        head: &[Word<'_>],
        ids: impl Iterator<Item = StreamId>,
        tail: &[Word<'_>],
    ) {
        let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
        for ids in ids.chunks(IDS_MAX) {
            let mut words = head.to_vec();
            words.extend(ids.iter().map(|id| Word::Text(id.as_bytes())));
            words.extend_from_slice(tail);
            self.say(database, &words);
        }
    }
}

fn text(text: &'static str) -> Word<'static> {
    Word::Text(text.as_bytes())
}
