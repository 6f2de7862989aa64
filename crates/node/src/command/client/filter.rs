//! The filters of CLIENT LIST and CLIENT KILL: a client is chosen if it fits all of them. Redis 7.0
//! has the first six; MAXAGE is of Redis 7.4, all others and NOT- are of Valkey 9. MAXAGE and IDLE
//! have no opposite.

use crate::core::Core;
use crate::core::describe::{Kind, flags, kind_of};
use crate::session::Session;
use catalog::acl::UserId;
use engine::command::Args;
use engine::refusal::{Refusal, quoted};
use engine::value::text::canonical_integer;
use std::collections::BTreeSet;
use std::mem::discriminant;

/// The client flags of CLIENT LIST in any release.
const FLAGS: &[u8] = b"ABEIMNOPRSTUbcdegirtux";

/// Capabilities that a client may announce to a Valkey: redirection. No client has any here.
const CAPABILITIES: &[u8] = b"r";

/// A filter.
enum Criterion<'a> {
    Ids(BTreeSet<i64>),
    Kind(Kind),
    User(UserId),
    Peer(&'a [u8]),
    Local(&'a [u8]),
    /// MAXAGE: connected for at least this many seconds.
    Age(u64),
    /// Nothing was received from it or sent to it for at least this many seconds.
    Idle(u64),
    Name(&'a [u8]),
    LibraryName(&'a [u8]),
    LibraryVersion(&'a [u8]),
    Database(u32),
    Ip(&'a [u8]),
    /// FLAGS: has all of these flags.
    Flags(&'a [u8]),
    /// CAPA: has all of these capabilities.
    Capabilities(&'a [u8]),
}

pub(super) struct Filter<'a> {
    /// The filters, each with whether it must match (false for NOT-). There is at most one of each
    /// kind and sense.
    criteria: Vec<(bool, Criterion<'a>)>,
    pub spares_caller: bool,
}

impl<'a> Filter<'a> {
    /// Reads the filters, from argument 2 on.
    ///
    /// # Errors
    /// Redis's texts, those of Valkey for its own.
    pub fn parse(core: &Core, args: Args<'a>, spares_caller: bool) -> Result<Self, Refusal> {
        let mut filter = Self { criteria: Vec::new(), spares_caller };
        let (work, mut at) = (core.work(), 2);
        while at < args.len() {
            work.step();
            let value = args.get(at + 1).ok_or(Refusal::SYNTAX)?;
            if args.is(at, "SKIPME") {
                filter.spares_caller = args.is(at + 1, "YES");
                if !filter.spares_caller && !args.is(at + 1, "NO") {
                    return Err(Refusal::SYNTAX);
                }
                at += 2;
                continue;
            }
            let word = args.at(at);
            let is_negated = word.len() > 4 && word[..4].eq_ignore_ascii_case(b"NOT-");
            let name = if is_negated { &word[4..] } else { word };
            at += 2;
            let criterion = if name.eq_ignore_ascii_case(b"ID") {
                let no_number = if is_negated { Refusal::SYNTAX } else { NO_ID };
                let first = canonical_integer(value).ok_or(no_number)?;
                let mut ids = BTreeSet::from([checked(first)?]);
                while let Some(id) = args.get(at).and_then(canonical_integer) {
                    work.step();
                    ids.insert(checked(id)?);
                    at += 1;
                }
                Criterion::Ids(ids)
            } else {
                Criterion::parse(core, name, value, is_negated)?
            };
            filter.add(!is_negated, criterion);
        }
        Ok(filter)
    }

    /// Adds a filter. It replaces an earlier one of the same kind, but IDs are all kept.
    fn add(&mut self, wanted: bool, criterion: Criterion<'a>) {
        let kind = discriminant(&criterion);
        let is_same = |(other, it): &&mut (bool, _)| *other == wanted && discriminant(it) == kind;
        match (self.criteria.iter_mut().find(is_same), criterion) {
            (Some((_, Criterion::Ids(ids))), Criterion::Ids(more)) => ids.extend(more),
            (Some((_, before)), criterion) => *before = criterion,
            (None, criterion) => self.criteria.push((wanted, criterion)),
        }
    }

    /// The filter of the old form of CLIENT KILL: the client at an address.
    pub fn of_peer(peer: &'a [u8]) -> Self {
        Self { criteria: vec![(true, Criterion::Peer(peer))], spares_caller: false }
    }

    /// Whether a client matches all filters.
    pub fn fits(&self, core: &Core, session: &Session) -> bool {
        self.criteria.iter().all(|(wanted, it)| it.fits(core, session) == *wanted)
    }
}

const NO_ID: Refusal = Refusal::of("ERR client-id should be greater than 0");

fn checked(id: i64) -> Result<i64, Refusal> {
    if id > 0 { Ok(id) } else { Err(NO_ID) }
}

/// A number of seconds, more than none. The name is the filter's, as its errors have it.
fn seconds(name: &str, value: &[u8]) -> Result<u64, Refusal> {
    let seconds = canonical_integer(value)
        .ok_or_else(|| Refusal::new(format!("ERR {name} is not an integer or out of range")))?;
    let seconds = u64::try_from(seconds).ok().filter(|it| *it > 0);
    seconds.ok_or_else(|| Refusal::new(format!("ERR {name} should be greater than 0")))
}

/// Refuses a value with a letter other than the `known` ones.
fn letters<'v>(
    name: &str,
    value: &'v [u8],
    known: &[u8],
    is_negated: bool,
) -> Result<&'v [u8], Refusal> {
    if value.iter().all(|letter| known.contains(letter)) {
        return Ok(value);
    }
    let (what, value) = (name.to_ascii_lowercase(), quoted(value));
    let filter = if is_negated { format!("NOT-{name}") } else { "provided".to_owned() };
    Err(Refusal::new(format!("ERR Unknown {what} found in the {filter} filter: {value}")))
}

impl<'a> Criterion<'a> {
    /// Reads a filter, by its name without NOT-.
    fn parse(core: &Core, name: &[u8], value: &'a [u8], is_negated: bool) -> Result<Self, Refusal> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        Ok(if is("TYPE") {
            Self::Kind(Kind::parse(value)?)
        } else if is("ADDR") {
            Self::Peer(value)
        } else if is("LADDR") {
            Self::Local(value)
        } else if is("USER") {
            let user = core.process.acl.find(value).ok_or_else(|| {
                let user = quoted(value);
                Refusal::new(format!("ERR No such user '{user}'"))
            })?;
            Self::User(user)
        } else if is("MAXAGE") && !is_negated {
            Self::Age(seconds("maxage", value)?)
        } else if is("IDLE") && !is_negated {
            Self::Idle(seconds("idle", value)?)
        } else if is("NAME") {
            Self::Name(value)
        } else if is("LIB-NAME") {
            Self::LibraryName(value)
        } else if is("LIB-VER") {
            Self::LibraryVersion(value)
        } else if is("DB") {
            let name = if is_negated { "NOT-DB" } else { "DB" };
            let databases = core.shard.engine.keyspace.settings.databases;
            let index = canonical_integer(value).ok_or_else(|| {
                Refusal::new(format!("ERR {name} is not an integer or out of range"))
            })?;
            let index = u32::try_from(index).ok().filter(|index| *index < databases);
            Self::Database(index.ok_or_else(|| {
                let last = databases - 1;
                Refusal::new(format!("ERR {name} number should be between 0 and {last}"))
            })?)
        } else if is("IP") {
            Self::Ip(value)
        } else if is("FLAGS") {
            Self::Flags(letters("FLAGS", value, FLAGS, is_negated)?)
        } else if is("CAPA") {
            Self::Capabilities(letters("CAPA", value, CAPABILITIES, is_negated)?)
        } else {
            return Err(Refusal::SYNTAX);
        })
    }

    fn fits(&self, core: &Core, session: &Session) -> bool {
        let who = &session.who;
        let (library, version) = &who.library;
        match self {
            Self::Ids(ids) => ids.contains(&(who.id as i64)),
            Self::Kind(kind) => kind_of(session) == *kind,
            Self::User(user) => who.user == *user,
            Self::Peer(peer) => who.peer.as_bytes() == *peer,
            Self::Local(local) => who.local.as_bytes() == *local,
            Self::Age(seconds) => core.turn.monotonic.seconds_since(who.created) >= *seconds,
            Self::Idle(seconds) => {
                core.turn.monotonic.seconds_since(session.flow.last_interaction) >= *seconds
            }
            // An empty name matches no client.
            Self::Name(name) => !name.is_empty() && who.name == *name,
            Self::LibraryName(name) => !name.is_empty() && library.as_bytes() == *name,
            Self::LibraryVersion(name) => !name.is_empty() && version.as_bytes() == *name,
            Self::Database(index) => session.database.0 == *index,
            Self::Ip(ip) => {
                let host = who.peer.rsplit_once(':').map_or("", |(host, _)| host);
                host.as_bytes() == *ip
                    || host
                        .strip_prefix('[')
                        .and_then(|it| it.strip_suffix(']'))
                        .is_some_and(|host| host.as_bytes() == *ip)
            }
            Self::Flags(wanted) => {
                let flags = flags(core, session);
                wanted.iter().all(|flag| flags.as_bytes().contains(flag))
            }
            Self::Capabilities(wanted) => wanted.is_empty(),
        }
    }
}
