//! What one client knows of its own keys, which nobody else changes.
//!
//! Commands of one connection execute in order, so whatever happens, its keys must hold what some
//! prefix of its commands made of them: all that were acknowledged, and of those without a reply
//! any number, counted from the oldest. A transaction counts as one.

use crate::reply::Reply;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Bytes = Vec<u8>;

/// What the keys of one client hold.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Holdings {
    register: Option<Bytes>,
    counter: i64,
    list: VecDeque<Bytes>,
    set: BTreeSet<Bytes>,
    hash: BTreeMap<Bytes, Bytes>,
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
    Add(Bytes),
    Remove(Bytes),
    SetField(Bytes, Bytes),
    DeleteField(Bytes),
    /// MULTI … EXEC.
    Together(Vec<Self>),
}

/// The requests that read the holdings of a client, in the order of [`Holdings::read`].
pub fn queries(client: usize) -> [Vec<Bytes>; 5] {
    [
        format!("GET register:{client}"),
        format!("GET counter:{client}"),
        format!("LRANGE list:{client} 0 -1"),
        format!("SMEMBERS set:{client}"),
        format!("HGETALL hash:{client}"),
    ]
    .map(|line| line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
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

impl Holdings {
    /// Takes the replies to [`queries`].
    ///
    /// # Errors
    /// A reply is not of its key's type.
    pub fn read(replies: &[Reply]) -> Result<Self, String> {
        let [register, counter, list, set, hash] = replies else {
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
        })
    }

    /// Makes a change; the reply it must have.
    fn apply(&mut self, change: &Change) -> Reply {
        let count = |is: bool| Reply::Integer(i64::from(is));
        let popped = |item: Option<Bytes>| item.map_or(Reply::Null, Reply::Bulk);
        match change {
            Change::Set(value) => {
                self.register = Some(value.clone());
                Reply::ok()
            }
            Change::Delete => count(self.register.take().is_some()),
            Change::Count(by) => {
                self.counter += by;
                Reply::Integer(self.counter)
            }
            Change::PushHead(item) => {
                self.list.push_front(item.clone());
                Reply::Integer(self.list.len() as i64)
            }
            Change::PushTail(item) => {
                self.list.push_back(item.clone());
                Reply::Integer(self.list.len() as i64)
            }
            Change::PopHead => popped(self.list.pop_front()),
            Change::PopTail => popped(self.list.pop_back()),
            Change::Add(member) => count(self.set.insert(member.clone())),
            Change::Remove(member) => count(self.set.remove(member)),
            Change::SetField(field, value) => {
                count(self.hash.insert(field.clone(), value.clone()).is_none())
            }
            Change::DeleteField(field) => count(self.hash.remove(field).is_some()),
            Change::Together(changes) => {
                Reply::Array(changes.iter().map(|change| self.apply(change)).collect())
            }
        }
    }
}

impl Change {
    /// The requests that make the change; the last one's reply tells whether it happened.
    pub fn requests(&self, client: usize) -> Vec<Vec<Bytes>> {
        let request = |name: &str, key: &str, arguments: &[&Bytes]| {
            let mut words = vec![name.as_bytes().to_vec(), format!("{key}:{client}").into_bytes()];
            words.extend(arguments.iter().map(|argument| (*argument).clone()));
            vec![words]
        };
        match self {
            Self::Set(value) => request("SET", "register", &[value]),
            Self::Delete => request("DEL", "register", &[]),
            Self::Count(by) => request("INCRBY", "counter", &[&by.to_string().into_bytes()]),
            Self::PushHead(item) => request("LPUSH", "list", &[item]),
            Self::PushTail(item) => request("RPUSH", "list", &[item]),
            Self::PopHead => request("LPOP", "list", &[]),
            Self::PopTail => request("RPOP", "list", &[]),
            Self::Add(member) => request("SADD", "set", &[member]),
            Self::Remove(member) => request("SREM", "set", &[member]),
            Self::SetField(field, value) => request("HSET", "hash", &[field, value]),
            Self::DeleteField(field) => request("HDEL", "hash", &[field]),
            Self::Together(changes) => {
                let mut requests = vec![vec![b"MULTI".to_vec()]];
                requests.extend(changes.iter().flat_map(|change| change.requests(client)));
                requests.push(vec![b"EXEC".to_vec()]);
                requests
            }
        }
    }

    /// The values that are durable once the change is.
    pub fn values(&self) -> Vec<&[u8]> {
        match self {
            Self::Set(value)
            | Self::PushHead(value)
            | Self::PushTail(value)
            | Self::SetField(_, value) => vec![value],
            Self::Together(changes) => changes.iter().flat_map(Self::values).collect(),
            _ => Vec::new(),
        }
    }
}

/// What one client knows.
#[derive(Default)]
pub struct Ledger {
    acknowledged: Holdings,
    /// Sent, without a reply.
    pending: VecDeque<Change>,
}

impl Ledger {
    pub fn submit(&mut self, change: Change) {
        self.pending.push_back(change);
    }

    /// The reply to the oldest change without one has left the server; the change, if it says
    /// that it was made.
    ///
    /// # Errors
    /// The reply is not the one that the client's commands so far must have.
    pub fn acknowledge(&mut self, reply: &Reply) -> Result<Option<Change>, String> {
        let change = self.pending.pop_front().ok_or("a reply to nothing")?;
        if reply.is_error("MISCONF") || reply.is_error("EXECABORT") {
            return Ok(None);
        }
        let expected = self.acknowledged.apply(&change);
        if *reply != expected {
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
        if possible == *found {
            return Ok(());
        }
        for change in &self.pending {
            possible.apply(change);
            if possible == *found {
                return Ok(());
            }
        }
        let (known, pending) = (&self.acknowledged, &self.pending);
        Err(format!("acknowledged {known:?}, pending {pending:?}, found {found:?}"))
    }

    /// The client has read its keys on a new connection: from now on it knows what they hold.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn resolve(&mut self, found: Holdings) -> Result<(), String> {
        self.check(&found)?;
        self.acknowledged = found;
        self.pending.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_changes_must_be_there_and_others_may() {
        let mut ledger = Ledger::default();
        let push = |item: &[u8]| Change::PushTail(item.to_vec());
        for item in [b"a", b"b", b"c"] {
            ledger.submit(push(item));
        }
        assert!(ledger.acknowledge(&Reply::Integer(1)).is_ok());
        let holding = |items: &[&[u8]]| Holdings {
            list: items.iter().map(|item| item.to_vec()).collect(),
            ..Holdings::default()
        };
        assert!(ledger.check(&holding(&[])).is_err());
        assert!(ledger.check(&holding(&[b"a"])).is_ok());
        assert!(ledger.check(&holding(&[b"a", b"b", b"c"])).is_ok());
        assert!(ledger.check(&holding(&[b"a", b"c"])).is_err());
        assert!(ledger.acknowledge(&Reply::Integer(7)).is_err());
    }
}
