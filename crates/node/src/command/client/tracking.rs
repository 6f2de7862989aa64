//! CLIENT TRACKING and its kin (Redis documentation, "Client-side caching in Redis").

use crate::core::describe::redirection;
use crate::server::Server;
use crate::session::tracking::{Remembered, Tracking};
use base::ConnectionId;
use engine::command::{Args, Outcome, int_argument};
use engine::interest::caches::prefixes_of;
use engine::refusal::{Refusal, quoted};
use engine::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The options of CLIENT TRACKING, in any order.
#[derive(Default)]
struct Options<'a> {
    redirect: Option<u64>,
    prefixes: Vec<&'a [u8]>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    spares_own: bool,
}

impl<'a> Options<'a> {
    fn parse(server: &Server, args: Args<'a>) -> Result<Self, Refusal> {
        let (work, mut options) = (server.core.work(), Self::default());
        let mut at = 3;
        while at < args.len() {
            work.step();
            let value = args.get(at + 1);
            if args.is(at, "REDIRECT")
                && let Some(value) = value
            {
                options.redirect = Some(redirect_to(server, options.redirect, value)?);
                at += 1;
            } else if args.is(at, "PREFIX")
                && let Some(value) = value
            {
                options.prefixes.push(value);
                at += 1;
            } else if args.is(at, "BCAST") {
                options.is_broadcast = true;
            } else if args.is(at, "OPTIN") {
                options.is_opt_in = true;
            } else if args.is(at, "OPTOUT") {
                options.is_opt_out = true;
            } else if args.is(at, "NOLOOP") {
                options.spares_own = true;
            } else {
                return Err(Refusal::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }

    /// The mode of tracking that the options ask for. Refused if options exclude each other, or the
    /// mode that is on already.
    fn remembered(&self, now: Option<&Tracking>) -> Result<Remembered, Refusal> {
        const BROADCAST_IS_ANOTHER: Refusal = Refusal::of(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
             and then re-enabling it with a different mode.",
        );
        const CHOICE_IS_ANOTHER: Refusal = Refusal::of(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and \
             then re-enabling it with a different mode.",
        );
        if !self.is_broadcast && !self.prefixes.is_empty() {
            return Err(Refusal::of("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if now.is_some_and(|now| now.is_broadcast() != self.is_broadcast) {
            return Err(BROADCAST_IS_ANOTHER);
        }
        if self.is_broadcast && (self.is_opt_in || self.is_opt_out) {
            return Err(Refusal::of("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if self.is_opt_in && self.is_opt_out {
            return Err(Refusal::of("ERR You can't specify both OPTIN mode and OPTOUT mode"));
        }
        let is_now = |what| now.is_some_and(|now| now.remembered == what);
        if self.is_opt_in && is_now(Remembered::OptOut)
            || self.is_opt_out && is_now(Remembered::OptIn)
        {
            return Err(CHOICE_IS_ANOTHER);
        }
        Ok(match (self.is_broadcast, self.is_opt_in, self.is_opt_out) {
            (true, ..) => Remembered::Broadcast,
            (_, true, _) => Remembered::OptIn,
            (_, _, true) => Remembered::OptOut,
            _ => Remembered::All,
        })
    }
}

fn redirect_to(server: &Server, before: Option<u64>, id: &[u8]) -> Result<u64, Refusal> {
    if before.is_some() {
        return Err(Refusal::of("ERR A client can only redirect to a single other client"));
    }
    let id = u64::try_from(int_argument(id)?).ok();
    id.filter(|id| server.core.clients.by_id.contains_key(id))
        .ok_or(Refusal::of("ERR The client ID you want redirect to does not exist"))
}

pub(super) fn tracking(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let options = Options::parse(server, args)?;
    if args.is(2, "ON") {
        let now = server.core.clients.at(client).tracking.as_deref();
        let remembered = options.remembered(now)?;
        let mut tracking = Tracking {
            remembered,
            spares_own: options.spares_own,
            redirect: options.redirect,
            is_redirect_broken: false,
            caching_was_called: now.is_some_and(|now| now.caching_was_called),
            prefixes: BTreeSet::new(),
            prefix_bytes: 0,
        };
        if let Some(now) = now.filter(|now| now.is_broadcast()) {
            (tracking.prefixes, tracking.prefix_bytes) = (now.prefixes.clone(), now.prefix_bytes);
        }
        check_overlaps(&tracking.prefixes, &options.prefixes, &server.core.work())?;
        for prefix in &options.prefixes {
            tracking.add_prefix(prefix);
        }
        if tracking.is_broadcast() && options.prefixes.is_empty() {
            tracking.add_prefix(b"");
        }
        server.core.track(client, tracking);
        // Prefixes count as input of the client, as names of subscriptions do.
        server.core.check_input(client);
    } else if args.is(2, "OFF") {
        server.core.untrack(client);
    } else {
        return Err(Refusal::SYNTAX);
    }
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Refuses prefixes of which one begins with another: a change would be told twice.
fn check_overlaps(
    present: &BTreeSet<Vec<u8>>,
    wanted: &[&[u8]],
    work: &Work,
) -> Result<(), Refusal> {
    let present: BTreeMap<&[u8], usize> = present.iter().map(|it| (it.as_slice(), 1)).collect();
    // The prefixes after the one that is checked, with how often each occurs.
    let mut later: BTreeMap<&[u8], usize> = BTreeMap::new();
    for prefix in wanted {
        work.step();
        *later.entry(prefix).or_default() += 1;
    }
    for (at, prefix) in wanted.iter().enumerate() {
        work.step();
        if let Some(other) = overlapping(&present, prefix) {
            return Err(overlap(prefix, "an existing", other));
        }
        if let Some(count) = later.get_mut(prefix) {
            *count -= 1;
            if *count == 0 {
                later.remove(prefix);
            }
        }
        if overlapping(&later, prefix).is_some() {
            let overlaps = |other: &&[u8]| other.starts_with(prefix) || prefix.starts_with(other);
            let other = wanted[at + 1..].iter().copied().find(overlaps).unwrap_or_default();
            return Err(overlap(prefix, "another provided", other));
        }
    }
    Ok(())
}

/// The first of `others` that is a prefix of `prefix`, or of which it is one.
fn overlapping<'o>(others: &'o BTreeMap<&[u8], usize>, prefix: &[u8]) -> Option<&'o [u8]> {
    let shorter = prefixes_of(others, prefix).last();
    let longer = || {
        let range = (Bound::Included(prefix), Bound::Unbounded);
        let next = others.range::<[u8], _>(range).next().map(|(other, _)| *other);
        next.filter(|other| other.starts_with(prefix))
    };
    shorter.or_else(longer)
}

fn overlap(prefix: &[u8], whose: &str, other: &[u8]) -> Refusal {
    Refusal::new(format!(
        "ERR Prefix '{}' overlaps with {whose} prefix '{}'. Prefixes for a single client must not \
         overlap.",
        quoted(prefix),
        quoted(other)
    ))
}

pub(super) fn caching(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let session = server.core.clients.at_mut(client);
    let Some(tracking) = &mut session.tracking else {
        return Err(Refusal::of(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    if args.is(2, "YES") {
        if tracking.remembered != Remembered::OptIn {
            return Err(Refusal::of(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
    } else if args.is(2, "NO") {
        if tracking.remembered != Remembered::OptOut {
            return Err(Refusal::of(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
    } else {
        return Err(Refusal::SYNTAX);
    }
    tracking.caching_was_called = true;
    session.reply().ok();
    Ok(())
}

/// CLIENT GETREDIR: the ID of the client that gets the notices; 0 for the client itself, -1 if
/// tracking is off.
pub(super) fn get_redirection(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let session = server.core.clients.at_mut(client);
    let id = redirection(session);
    session.reply().integer(id);
    Ok(())
}

pub(super) fn tracking_info(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let work = server.core.work();
    let session = server.core.clients.at_mut(client);
    let redirect = redirection(session);
    let tracking = session.tracking.as_deref();
    let is = |what| tracking.is_some_and(|tracking| tracking.remembered == what);
    let caching_was_called = tracking.is_some_and(|tracking| tracking.caching_was_called);
    let flags = [
        ("off", tracking.is_none()),
        ("on", tracking.is_some()),
        ("bcast", is(Remembered::Broadcast)),
        ("optin", is(Remembered::OptIn)),
        ("caching-yes", is(Remembered::OptIn) && caching_was_called),
        ("optout", is(Remembered::OptOut)),
        ("caching-no", is(Remembered::OptOut) && caching_was_called),
        ("noloop", tracking.is_some_and(|tracking| tracking.spares_own)),
        ("broken_redirect", tracking.is_some_and(|tracking| tracking.is_redirect_broken)),
    ];
    let flags: Vec<&str> =
        flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect();
    let prefixes = tracking.map(|tracking| tracking.prefixes.clone()).unwrap_or_default();
    let reply = session.reply();
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect);
    reply.bulk(b"prefixes");
    reply.array(prefixes.len());
    work.reply_each(prefixes, reply, |prefix, reply| reply.bulk(prefix));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(present: &[&str], wanted: &[&str]) -> String {
        let present = present.iter().map(|prefix| prefix.as_bytes().to_vec()).collect();
        let wanted: Vec<&[u8]> = wanted.iter().map(|prefix| prefix.as_bytes()).collect();
        match check_overlaps(&present, &wanted, &Work::default()) {
            Ok(()) => "fine".to_owned(),
            Err(refusal) => {
                let quoted: Vec<&str> = refusal.0.split('\'').collect();
                let whose = if quoted[2].contains("existing") { "existing" } else { "provided" };
                format!("{} / {whose} {}", quoted[1], quoted[3])
            }
        }
    }

    /// The expected text is redis-server 7.0.15's.
    #[test]
    fn the_first_overlap_is_told() {
        assert_eq!(checked(&[], &["a", "b", "cd", "ce"]), "fine");
        assert_eq!(checked(&[], &["FOOBAR", "FOO"]), "FOOBAR / provided FOO");
        assert_eq!(checked(&[], &["FOO", "FOOBAR"]), "FOO / provided FOOBAR");
        assert_eq!(checked(&["FOO", "BAR"], &["FO"]), "FO / existing FOO");
        assert_eq!(checked(&["FOO", "BAR"], &["BARB"]), "BARB / existing BAR");
        assert_eq!(checked(&["a"], &["a"]), "a / existing a");
        assert_eq!(checked(&["a", "b"], &[""]), " / existing a");
        assert_eq!(checked(&["", "a", "b"], &["bc"]), "bc / existing ");
        assert_eq!(checked(&["z"], &["c", "x", "c", "z"]), "c / provided c");
        assert_eq!(checked(&["z"], &["c", "z", "x", "xy"]), "z / existing z");
        assert_eq!(checked(&[], &["q", "abc", "abd", "x", "ab", "abcd"]), "abc / provided ab");
    }
}
