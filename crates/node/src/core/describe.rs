//! The line that CLIENT LIST and CLIENT INFO show of a connection.

use super::Core;
use crate::session::{Session, Transaction};
use engine::refusal::Refusal;
use resp::Protocol;

/// The classes of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Normal,
    Primary,
    Replica,
    Subscriber,
}

impl Kind {
    /// Reads the value of a TYPE filter.
    pub fn parse(word: &[u8]) -> Result<Self, Refusal> {
        let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
        if is("normal") {
            Ok(Self::Normal)
        } else if is("master") {
            Ok(Self::Primary)
        } else if is("replica") || is("slave") {
            Ok(Self::Replica)
        } else if is("pubsub") {
            Ok(Self::Subscriber)
        } else {
            let word = String::from_utf8_lossy(word).replace(['\r', '\n'], " ");
            Err(Refusal::new(format!("ERR Unknown client type '{word}'")))
        }
    }
}

pub(crate) fn kind_of(session: &Session) -> Kind {
    if session.is_master() {
        Kind::Primary
    } else if session.is_any_replica() {
        Kind::Replica
    } else if session.is_subscriber() {
        Kind::Subscriber
    } else {
        Kind::Normal
    }
}

/// A client's flags, as the letters of CLIENT LIST.
pub(crate) fn flags(core: &Core, session: &Session) -> String {
    let tracking = session.tracking.as_deref();
    let candidates = [
        ('M', session.is_master()),
        ('S', session.is_any_replica()),
        ('O', core.clients.monitors.contains(&session.connection)),
        ('P', session.is_subscriber()),
        ('x', session.transaction.is_some()),
        ('b', session.blocked.is_some()),
        ('t', tracking.is_some()),
        ('R', tracking.is_some_and(|tracking| tracking.is_redirect_broken)),
        ('B', tracking.is_some_and(|tracking| tracking.is_broadcast())),
        ('d', session.is_dirty),
        ('c', session.flow.is_closing),
        ('U', session.who.peer.ends_with(":0")),
        ('e', session.no_evict),
        ('T', session.no_touch),
    ];
    let flags: String =
        candidates.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect();
    if flags.is_empty() { "N".to_owned() } else { flags }
}

/// The CLIENT ID to which a client's invalidation messages go: 0 for itself, -1 if it does not
/// track.
pub(crate) fn redirection(session: &Session) -> i64 {
    session.tracking.as_ref().map_or(-1, |tracking| tracking.redirect.map_or(0, |id| id as i64))
}

/// Bytes of output that Redis keeps in a buffer, `obl`; of more, most is `omem`, in a list. Here
/// all of it, as limits count it.
const BUFFER_BYTES: usize = 16 << 10;

/// One line, its end included.
pub(crate) fn describe(core: &Core, session: &Session) -> String {
    let transaction = session.transaction.as_ref();
    let queued = transaction.map_or(-1, |transaction| transaction.queued().len() as i64);
    let (executing, _) = session.input.executing;
    let waiting = session.input.undecoded_bytes() + executing;
    let room = session.input.allocated_bytes() - session.input.bytes.len() - executing;
    let output = &session.output;
    let pending = output.pending_bytes();
    let listed = if pending > BUFFER_BYTES { pending } else { 0 };
    let command = session.last_command.map(|id| core.process.catalog.command(id).name());
    let protocol = if session.output.reply.protocol() == Protocol::Resp3 { 3 } else { 2 };
    let (library, version) = &session.who.library;
    let redirect = redirection(session);
    let user = match session.is_master() {
        true => "(superuser)".into(),
        false => String::from_utf8_lossy(&core.process.acl.user(session.who.user).name),
    };
    format!(
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} \
         ssub={} multi={queued} qbuf={} qbuf-free={} argv-mem=0 multi-mem={} rbs={} rbp={} \
         obl={} oll={} omem={} tot-mem={} events=r{} cmd={} user={user} redir={redirect} \
         resp={protocol} lib-name={library} lib-ver={version}\n",
        session.who.id,
        session.who.peer,
        session.who.local,
        session.connection.0 & 0xff_ffff,
        String::from_utf8_lossy(&session.who.name),
        core.turn.monotonic.seconds_since(session.who.created),
        core.turn.monotonic.seconds_since(session.flow.last_interaction),
        flags(core, session),
        session.database.0,
        session.subscriptions.channels.len(),
        session.subscriptions.patterns.len(),
        session.subscriptions.shard_channels.len(),
        waiting,
        room,
        transaction.map_or(0, Transaction::allocated_bytes),
        output.allocated_bytes(),
        output.allocated_bytes(),
        pending - listed,
        listed.div_ceil(BUFFER_BYTES),
        listed,
        session.memory_bytes(),
        if session.flow.kernel_is_full { "w" } else { "" },
        command.unwrap_or("NULL"),
    )
}
