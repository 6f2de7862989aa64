//! What one client knows of its own keys, which nobody else changes.
//!
//! Commands of one connection execute in order, so whatever happens, its keys must hold what some
//! prefix of its commands made of them: all that were acknowledged, and of those without a reply
//! any number, counted from the oldest. A transaction counts as one. Each client has two databases
//! of its own, so that it can exchange them and move keys between them.

use crate::reply::Reply;
use base::DatabaseId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Bytes = Vec<u8>;
type Words = Vec<Bytes>;

/// What the keys of one client hold in one of its databases.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Keys {
    register: Option<Bytes>,
    counter: i64,
    list: VecDeque<Bytes>,
    set: BTreeSet<Bytes>,
    hash: BTreeMap<Bytes, Bytes>,
    /// Entries of a stream, by the second half of their IDs; the first is 1.
    stream: BTreeMap<u64, Bytes>,
}

/// What the keys of one client hold.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Holdings {
    /// In the database where it works.
    here: Keys,
    /// In its other one.
    there: Keys,
}

/// One change of them.
#[derive(Clone, Debug)]
pub enum Change {
    Set(Bytes),
    Delete,
    Count(i64),
    PushHead(Bytes),
    PushTail(Bytes),
    PopHead,
    PopTail,
    /// Waits a little if nothing is there.
    PopBlocking,
    Add(Bytes),
    Remove(Bytes),
    SetField(Bytes, Bytes),
    DeleteField(Bytes),
    /// Under a number greater than all that were sent.
    Append(u64, Bytes),
    DeleteEntry(u64),
    /// So many entries stay, the last.
    Trim(u64),
    /// The register moves to the other database.
    Move,
    /// The register is copied to the other database.
    Copy,
    /// The databases change places.
    Swap,
    Flush,
    /// Somebody emptied all databases.
    FlushAll,
    /// MULTI … EXEC.
    Together(Vec<Self>),
    /// The changes made one by one by a script (EVAL).
    Scripted(Vec<Self>),
}

/// The two databases of a client; it works in the first.
pub fn databases(client: usize) -> [DatabaseId; 2] {
    [4, 5].map(|first| DatabaseId(first + 2 * client as u32))
}

fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Requests that read the holdings of a client in one database.
pub const QUERIES: usize = 6;

/// The requests that read the holdings of a client in one database, in the order of
/// [`Holdings::read`].
pub fn queries(client: usize) -> [Words; QUERIES] {
    [
        format!("GET register:{client}"),
        format!("GET counter:{client}"),
        format!("LRANGE list:{client} 0 -1"),
        format!("SMEMBERS set:{client}"),
        format!("HGETALL hash:{client}"),
        format!("XRANGE stream:{client} - +"),
    ]
    .map(|line| words(&line))
}

/// The requests between MULTI and EXEC that read both databases.
pub fn readings(client: usize) -> Vec<Words> {
    let [here, there] = databases(client).map(|id| words(&format!("SELECT {}", id.0)));
    let mut requests = queries(client).to_vec();
    requests.push(there);
    requests.extend(queries(client));
    requests.push(here);
    requests
}

fn bulks(reply: &Reply) -> Result<Vec<Bytes>, String> {
    let Reply::Array(elements) = reply else { return Err(format!("no array: {reply:?}")) };
    elements.iter().map(|element| Ok(bulk(element)?.unwrap_or_default())).collect()
}

fn bulk(reply: &Reply) -> Result<Option<Bytes>, String> {
    match reply {
        Reply::Bulk(bytes) => Ok(Some(bytes.clone())),
        Reply::Null => Ok(None),
        other => Err(format!("no string: {other:?}")),
    }
}

/// The entries that XRANGE tells, each with one field.
fn entries(reply: &Reply) -> Result<BTreeMap<u64, Bytes>, String> {
    let Reply::Array(elements) = reply else { return Err(format!("no array: {reply:?}")) };
    let entry = |element: &Reply| {
        let Reply::Array(parts) = element else { return None };
        let [Reply::Bulk(id), Reply::Array(fields)] = &parts[..] else { return None };
        let [Reply::Bulk(_), Reply::Bulk(value)] = &fields[..] else { return None };
        let number = std::str::from_utf8(id).ok()?.strip_prefix("1-")?.parse().ok()?;
        Some((number, value.clone()))
    };
    let entry = |it: &Reply| entry(it).ok_or_else(|| format!("no entry of a stream: {it:?}"));
    elements.iter().map(entry).collect()
}

impl Keys {
    fn read(replies: &[Reply]) -> Result<Self, String> {
        let [register, counter, list, set, hash, stream] = replies else {
            return Err(format!("{} replies", replies.len()));
        };
        let counter = String::from_utf8_lossy(&bulk(counter)?.unwrap_or_default()).into_owned();
        let counter: Result<i64, _> = if counter.is_empty() { Ok(0) } else { counter.parse() };
        let fields = bulks(hash)?;
        Ok(Self {
            register: bulk(register)?,
            counter: counter.map_err(|error| format!("the counter: {error}"))?,
            list: bulks(list)?.into(),
            set: bulks(set)?.into_iter().collect(),
            hash: fields.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
            stream: entries(stream)?,
        })
    }
}

impl Holdings {
    /// Takes the replies to [`queries`] in each of [`databases`].
    ///
    /// # Errors
    /// A reply is not of its key's type.
    pub fn read(here: &[Reply], there: &[Reply]) -> Result<Self, String> {
        Ok(Self { here: Keys::read(here)?, there: Keys::read(there)? })
    }

    /// Makes a change; the reply it must have.
    fn apply(&mut self, client: usize, change: &Change) -> Reply {
        let count = |is: bool| Reply::Integer(i64::from(is));
        let popped = |item: Option<Bytes>| item.map_or(Reply::Null, Reply::Bulk);
        let here = &mut self.here;
        match change {
            Change::Set(value) => {
                here.register = Some(value.clone());
                Reply::ok()
            }
            Change::Delete => count(here.register.take().is_some()),
            Change::Count(by) => {
                here.counter += by;
                Reply::Integer(here.counter)
            }
            Change::PushHead(item) => {
                here.list.push_front(item.clone());
                Reply::Integer(here.list.len() as i64)
            }
            Change::PushTail(item) => {
                here.list.push_back(item.clone());
                Reply::Integer(here.list.len() as i64)
            }
            Change::PopHead => popped(here.list.pop_front()),
            Change::PopTail => popped(here.list.pop_back()),
            Change::PopBlocking => here.list.pop_front().map_or(Reply::Null, |item| {
                let key = format!("list:{client}");
                Reply::Array(vec![Reply::bulk(key.as_bytes()), Reply::Bulk(item)])
            }),
            Change::Add(member) => count(here.set.insert(member.clone())),
            Change::Remove(member) => count(here.set.remove(member)),
            Change::SetField(field, value) => {
                count(here.hash.insert(field.clone(), value.clone()).is_none())
            }
            Change::DeleteField(field) => count(here.hash.remove(field).is_some()),
            Change::Append(number, value) => {
                here.stream.insert(*number, value.clone());
                Reply::bulk(format!("1-{number}").as_bytes())
            }
            Change::DeleteEntry(number) => count(here.stream.remove(number).is_some()),
            Change::Trim(length) => {
                let before = here.stream.len();
                while here.stream.len() as u64 > *length {
                    here.stream.pop_first();
                }
                Reply::Integer((before - here.stream.len()) as i64)
            }
            Change::Move | Change::Copy | Change::Swap | Change::Flush | Change::FlushAll => {
                self.apply_to_databases(change)
            }
            Change::Together(changes) | Change::Scripted(changes) => {
                Reply::Array(changes.iter().map(|change| self.apply(client, change)).collect())
            }
        }
    }

    fn apply_to_databases(&mut self, change: &Change) -> Reply {
        let Self { here, there } = self;
        match change {
            Change::Move if here.register.is_some() && there.register.is_none() => {
                there.register = here.register.take();
                Reply::Integer(1)
            }
            Change::Copy if here.register.is_some() => {
                there.register.clone_from(&here.register);
                Reply::Integer(1)
            }
            Change::Swap => {
                std::mem::swap(here, there);
                Reply::ok()
            }
            Change::Flush => {
                *here = Keys::default();
                Reply::ok()
            }
            Change::FlushAll => {
                *self = Self::default();
                Reply::ok()
            }
            _ => Reply::Integer(0),
        }
    }
}

/// A script that calls commands, each with as many arguments as the number before it says, and
/// pauses after the first.
const CALLS_ALL: &[u8] = b"local at, replies = 1, {} \
                           while ARGV[at] do \
                               local count = tonumber(ARGV[at]) \
                               local reply = redis.call(unpack(ARGV, at + 1, at + count)) \
                               replies[#replies + 1] = reply \
                               if at == 1 then for i = 1, 20000 do local x = i end end \
                               at = at + count + 1 \
                           end \
                           return replies";

impl Change {
    /// The requests that make the change; the last one's reply tells whether it happened.
    pub fn requests(&self, client: usize) -> Vec<Words> {
        let request = |name: &str, key: &str, arguments: &[&Bytes]| {
            let mut words = vec![name.as_bytes().to_vec(), format!("{key}:{client}").into_bytes()];
            words.extend(arguments.iter().map(|argument| (*argument).clone()));
            vec![words]
        };
        let line = |line: String| vec![words(&line)];
        let [DatabaseId(here), DatabaseId(there)] = databases(client);
        match self {
            Self::Set(value) => request("SET", "register", &[value]),
            Self::Delete => request("DEL", "register", &[]),
            Self::Count(by) => request("INCRBY", "counter", &[&by.to_string().into_bytes()]),
            Self::PushHead(item) => request("LPUSH", "list", &[item]),
            Self::PushTail(item) => request("RPUSH", "list", &[item]),
            Self::PopHead => request("LPOP", "list", &[]),
            Self::PopTail => request("RPOP", "list", &[]),
            Self::PopBlocking => line(format!("BLPOP list:{client} 0.02")),
            Self::Add(member) => request("SADD", "set", &[member]),
            Self::Remove(member) => request("SREM", "set", &[member]),
            Self::SetField(field, value) => request("HSET", "hash", &[field, value]),
            Self::DeleteField(field) => request("HDEL", "hash", &[field]),
            Self::Append(number, value) => {
                let id = format!("1-{number}").into_bytes();
                request("XADD", "stream", &[&id, &b"v".to_vec(), value])
            }
            Self::DeleteEntry(number) => line(format!("XDEL stream:{client} 1-{number}")),
            Self::Trim(length) => line(format!("XTRIM stream:{client} MAXLEN {length}")),
            Self::Move => line(format!("MOVE register:{client} {there}")),
            Self::Copy => {
                line(format!("COPY register:{client} register:{client} DB {there} REPLACE"))
            }
            Self::Swap => line(format!("SWAPDB {here} {there}")),
            Self::Flush => line("FLUSHDB".to_owned()),
            Self::FlushAll => line("FLUSHALL".to_owned()),
            Self::Together(changes) => {
                let mut requests = vec![words("MULTI")];
                requests.extend(changes.iter().flat_map(|change| change.requests(client)));
                requests.push(words("EXEC"));
                requests
            }
            Self::Scripted(changes) => {
                let mut request = vec![b"EVAL".to_vec(), CALLS_ALL.to_vec(), b"0".to_vec()];
                for call in changes.iter().flat_map(|change| change.requests(client)) {
                    request.push(call.len().to_string().into_bytes());
                    request.extend(call);
                }
                vec![request]
            }
        }
    }

    /// The values that are durable once the change is.
    pub fn values(&self) -> Vec<&[u8]> {
        match self {
            Self::Set(value)
            | Self::PushHead(value)
            | Self::PushTail(value)
            | Self::SetField(_, value)
            | Self::Append(_, value) => vec![value],
            Self::Together(changes) | Self::Scripted(changes) => {
                changes.iter().flat_map(Self::values).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Whether a reply says that nothing was done because the server could not.
pub fn is_refusal(reply: &Reply) -> bool {
    ["MISCONF", "EXECABORT", "OOM", "LOADING"].iter().any(|code| reply.is_error(code))
}

/// What one client knows.
pub struct Ledger {
    client: usize,
    acknowledged: Holdings,
    /// Sent, without a reply.
    pending: VecDeque<Change>,
    /// Keys are evicted, or were: anything may be missing until the client has read its keys.
    is_unknown: bool,
    /// Memory or disk were full: what has no reply may have been refused, and what came behind it
    /// not.
    may_be_refused: bool,
}

impl Ledger {
    pub fn new(client: usize) -> Self {
        let (acknowledged, pending) = (Holdings::default(), VecDeque::new());
        Self { client, acknowledged, pending, is_unknown: false, may_be_refused: false }
    }

    pub fn submit(&mut self, change: Change) {
        self.pending.push_back(change);
    }

    /// From now on keys may go by themselves.
    pub fn forget(&mut self) {
        self.is_unknown = true;
    }

    /// From now on the server may refuse some changes.
    pub fn expect_refusals(&mut self) {
        self.may_be_refused = true;
    }

    /// The reply to the oldest change without one has left the server; the change, if it says
    /// that it was made.
    ///
    /// # Errors
    /// The reply is not the one that the client's commands so far must have.
    pub fn acknowledge(&mut self, reply: &Reply) -> Result<Option<Change>, String> {
        let change = self.pending.pop_front().ok_or("a reply to nothing")?;
        if is_refusal(reply) {
            return Ok(None);
        }
        let expected = self.acknowledged.apply(self.client, &change);
        if *reply != expected && !self.is_unknown {
            return Err(format!("{change:?} was answered {reply:?}, not {expected:?}"));
        }
        Ok(Some(change))
    }

    /// Compares what was found with what may be there.
    ///
    /// # Errors
    /// It is no prefix of what was sent that holds everything acknowledged.
    pub fn check(&self, found: &Holdings) -> Result<(), String> {
        let mut possible = self.acknowledged.clone();
        if self.is_unknown || possible == *found {
            return Ok(());
        }
        for change in &self.pending {
            possible.apply(self.client, change);
            if possible == *found {
                return Ok(());
            }
        }
        if self.may_be_refused && self.is_possible_with_refusals(found) {
            return Ok(());
        }
        let (known, pending) = (&self.acknowledged, &self.pending);
        Err(format!("acknowledged {known:?}, pending {pending:?}, found {found:?}"))
    }

    /// Whether some of the changes without a reply make what was found.
    fn is_possible_with_refusals(&self, found: &Holdings) -> bool {
        let mut possible = BTreeSet::from([self.acknowledged.clone()]);
        for change in &self.pending {
            let made = possible.iter().map(|before| {
                let mut after = before.clone();
                after.apply(self.client, change);
                after
            });
            let made: Vec<Holdings> = made.collect();
            possible.extend(made);
            if possible.contains(found) {
                return true;
            }
        }
        false
    }

    /// The client has read its keys with nothing under way: from now on it knows what they hold,
    /// unless keys are being evicted; changes may still be refused.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn resolve(
        &mut self,
        found: Holdings,
        is_evicting: bool,
        may_be_refused: bool,
    ) -> Result<(), String> {
        self.check(&found)?;
        self.acknowledged = found;
        self.pending.clear();
        self.is_unknown = is_evicting;
        self.may_be_refused = may_be_refused;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(items: &[&[u8]]) -> Holdings {
        let list = items.iter().map(|item| item.to_vec()).collect();
        Holdings { here: Keys { list, ..Keys::default() }, ..Holdings::default() }
    }

    #[test]
    fn acknowledged_changes_must_be_there_and_others_may() {
        let mut ledger = Ledger::new(0);
        let push = |item: &[u8]| Change::PushTail(item.to_vec());
        for item in [b"a", b"b", b"c"] {
            ledger.submit(push(item));
        }
        assert!(ledger.acknowledge(&Reply::Integer(1)).is_ok());
        assert!(ledger.check(&holding(&[])).is_err());
        assert!(ledger.check(&holding(&[b"a"])).is_ok());
        assert!(ledger.check(&holding(&[b"a", b"b", b"c"])).is_ok());
        assert!(ledger.check(&holding(&[b"a", b"c"])).is_err());
        assert!(ledger.acknowledge(&Reply::Integer(7)).is_err());
    }

    #[test]
    fn an_acknowledged_entry_is_there_until_it_is_deleted_or_trimmed() {
        let mut ledger = Ledger::new(0);
        let found = |numbers: &[u64]| {
            let entry = |number: &u64| {
                let [id, field, value] =
                    [&format!("1-{number}")[..], "v", "x"].map(|text| Reply::bulk(text.as_bytes()));
                Reply::Array(vec![id, Reply::Array(vec![field, value])])
            };
            let stream = Reply::Array(numbers.iter().map(entry).collect());
            let none = || Reply::Array(vec![]);
            let here = [Reply::Null, Reply::Null, none(), none(), none(), stream];
            let there = [Reply::Null, Reply::Null, none(), none(), none(), none()];
            Holdings::read(&here, &there).unwrap()
        };
        for number in 1..=4 {
            ledger.submit(Change::Append(number, b"x".to_vec()));
            let reply = Reply::bulk(format!("1-{number}").as_bytes());
            assert!(ledger.acknowledge(&reply).is_ok());
        }
        assert!(ledger.check(&found(&[1, 2, 3, 4])).is_ok());
        assert!(ledger.check(&found(&[1, 2, 4])).is_err());
        ledger.submit(Change::DeleteEntry(3));
        assert!(ledger.check(&found(&[1, 2, 4])).is_ok());
        assert!(ledger.acknowledge(&Reply::Integer(1)).is_ok());
        assert!(ledger.check(&found(&[1, 2, 3, 4])).is_err());
        ledger.submit(Change::Trim(1));
        assert!(ledger.check(&found(&[4])).is_ok());
        assert!(ledger.acknowledge(&Reply::Integer(1)).is_err());
    }

    #[test]
    fn a_change_may_be_missing_before_another_only_if_it_may_be_refused() {
        let mut ledger = Ledger::new(0);
        for item in [b"a", b"b"] {
            ledger.submit(Change::PushTail(item.to_vec()));
        }
        assert!(ledger.check(&holding(&[b"b"])).is_err());
        ledger.expect_refusals();
        assert!(ledger.check(&holding(&[b"b"])).is_ok());
        assert!(ledger.check(&holding(&[b"b", b"a"])).is_err());
    }

    #[test]
    fn databases_change_places_with_what_they_hold() {
        let mut ledger = Ledger::new(0);
        let changes = [Change::Set(b"a".to_vec()), Change::Copy, Change::Delete, Change::Swap];
        let replies = [Reply::ok(), Reply::Integer(1), Reply::Integer(1), Reply::ok()];
        for (change, reply) in changes.into_iter().zip(&replies) {
            ledger.submit(change);
            assert!(ledger.acknowledge(reply).is_ok());
        }
        assert_eq!(ledger.acknowledged.here.register.as_deref(), Some(&b"a"[..]));
        ledger.submit(Change::FlushAll);
        assert!(ledger.check(&ledger.acknowledged).is_ok());
        assert!(ledger.check(&Holdings::default()).is_ok());
    }
}
