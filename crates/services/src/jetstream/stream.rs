//! The stream that holds a log: made if there is none, and otherwise looked at closely.
//!
//! A stream forgets records by age, size or count if it is told to, keeps one copy, acknowledges
//! before it has written, or changes what it is given. So every property is pinned, and a stream
//! that differs is refused by the property's name. A property that a future server adds passes as
//! long as it is off.
//!
//! The identity of a log is a random number in the stream's metadata, and again in the only subject
//! that the stream listens to. So a put or a message of another life of the log is told apart
//! without a question: a stream that was deleted and made anew does not hear what is sent to the
//! old one.

use super::address::Address;
use super::connection::{Connection, Unanswered};
use base::{Incarnation, Sequence};
use serde_json::{Map, Value, json};
use txlog::remote::store::SEQUENCE_MAX;

/// The metadata's key for the log's identity.
const INCARNATION_KEY: &str = "kiln.incarnation";

/// The stream that holds the log called `name`.
pub fn stream_of(name: &str) -> String {
    format!("kiln-{name}")
}

fn subject_of(name: &str, incarnation: Incarnation) -> String {
    format!("kiln.{name}.{:016x}", incarnation.0)
}

/// A server that keeps a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    pub name: String,
    /// Not heard by the leader for a while: it acknowledges nothing now.
    pub is_away: bool,
}

/// After so long without a word to the leader a server is away, in nanoseconds. The leader sends
/// to all others every second, and they answer.
const AWAY_NANOS: u64 = 5_000_000_000;

/// What the stream's leader says of it. A leader that was cut off goes on saying so for some
/// seconds: a fact about the past, good for a lower bound only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    pub incarnation: Incarnation,
    pub subject: String,
    pub first: Sequence,
    pub last: Sequence,
    /// Empty if the server does not belong to a cluster.
    pub peers: Vec<Peer>,
    /// What differs from a log's stream, each with its name.
    pub differences: Vec<String>,
}

impl Stream {
    /// Asks for the stream.
    pub async fn find(connection: &Connection, address: &Address) -> Result<Self, Unanswered> {
        let stream = stream_of(&address.name);
        let info = connection.ask(&format!("STREAM.INFO.{stream}"), &json!({})).await?;
        Self::read(&info, address)
    }

    /// Makes the stream. If another node did so at the same time, its stream stands.
    pub async fn create(
        connection: &Connection,
        address: &Address,
        incarnation: Incarnation,
    ) -> Result<(), Unanswered> {
        /// The name is taken, by a stream of another configuration: of another incarnation.
        const NAME_IN_USE: u64 = 10_058;
        let stream = stream_of(&address.name);
        let config = wanted(address, incarnation);
        match connection.ask(&format!("STREAM.CREATE.{stream}"), &config).await {
            Ok(_) | Err(Unanswered::Refused { code: NAME_IN_USE, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read(info: &Value, address: &Address) -> Result<Self, Unanswered> {
        let strange = || Unanswered::Silence("the answer does not describe a stream".into());
        if info["cluster"].is_object() && leader(&info["cluster"]).is_none() {
            // Of a server that is cut off, or has just started: it knows its own copy only.
            return Err(Unanswered::Silence("the stream has no leader, says the server".into()));
        }
        let config = info["config"].as_object().ok_or_else(strange)?;
        let state = &info["state"];
        let number = |name: &str| {
            let found = state[name].as_u64().map(Sequence);
            found.filter(|sequence| *sequence <= SEQUENCE_MAX).ok_or_else(strange)
        };
        let (first, last) = (number("first_seq")?, number("last_seq")?);
        let identity =
            config.get("metadata").and_then(|metadata| metadata[INCARNATION_KEY].as_str());
        let identity = identity.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let incarnation = Incarnation(identity.unwrap_or_default());
        let subject = subject_of(&address.name, incarnation);
        let mut differences = differences(config, address, &subject);
        if identity.is_none() {
            differences.push(format!("metadata has no {INCARNATION_KEY}: Kiln did not make it"));
        }
        Ok(Self {
            incarnation,
            subject,
            first: first.max(Sequence(1)),
            last,
            peers: peers(&info["cluster"]),
            differences,
        })
    }
}

fn leader(cluster: &Value) -> Option<&str> {
    cluster["leader"].as_str().filter(|name| !name.is_empty())
}

fn peers(cluster: &Value) -> Vec<Peer> {
    let leader = leader(cluster).map(|name| Peer { name: name.to_owned(), is_away: false });
    let others = cluster["replicas"].as_array().into_iter().flatten().map(|replica| Peer {
        name: replica["name"].as_str().unwrap_or("?").to_owned(),
        is_away: is_away(replica),
    });
    let mut peers: Vec<Peer> = leader.into_iter().chain(others).collect();
    peers.sort_by(|left, right| left.name.cmp(&right.name));
    peers
}

/// A leader that has never heard from a server says 0, or nothing, of when it did.
fn is_away(replica: &Value) -> bool {
    let silent_nanos = replica["active"].as_u64().unwrap_or_default();
    let was_never_heard = silent_nanos == 0 && !replica["current"].as_bool().unwrap_or_default();
    replica["offline"].as_bool().unwrap_or_default() || silent_nanos > AWAY_NANOS || was_never_heard
}

/// Deleting single messages is denied: a log has no holes. Purging is not: it trims the log. Reads
/// by any replica (`allow_direct`) are not needed.
fn wanted(address: &Address, incarnation: Incarnation) -> Value {
    json!({
        "name": stream_of(&address.name),
        "description": "Transaction log of Kiln. It refuses to write if this is changed.",
        "subjects": [subject_of(&address.name, incarnation)],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "num_replicas": address.replicas.when_created(),
        "max_consumers": -1,
        "max_msgs": -1,
        "max_msgs_per_subject": -1,
        "max_bytes": -1,
        "max_msg_size": -1,
        "max_age": 0,
        "deny_delete": true,
        "deny_purge": false,
        "metadata": { INCARNATION_KEY: format!("{:016x}", incarnation.0) },
    })
}

/// Properties whose value is of no consequence. No message carries an id, so that none is ever
/// taken for a duplicate. Placement is the operator's.
const FREE: &[&str] = &["name", "description", "metadata", "placement", "duplicate_window"];

/// What in a stream's configuration is not as a log's must be.
fn differences(config: &Map<String, Value>, address: &Address, subject: &str) -> Vec<String> {
    let mut found = Vec::new();
    for needed in ["retention", "storage", "discard", "num_replicas", "deny_delete", "subjects"] {
        if !config.contains_key(needed) {
            found.push(format!("{needed} is not set"));
        }
    }
    for (property, value) in config {
        let is_fine = match property.as_str() {
            free if FREE.contains(&free) => true,
            "subjects" => *value == json!([subject]),
            "retention" => value == "limits",
            "storage" => value == "file",
            "discard" => value == "new",
            "compression" => value == "none" || value == "s2",
            "persist_mode" => value == "default",
            "deny_delete" => value == true,
            "num_replicas" => {
                value.as_u64().is_some_and(|count| address.replicas.accepts(count as usize))
            }
            "max_consumers"
            | "max_msgs"
            | "max_msgs_per_subject"
            | "max_bytes"
            | "max_msg_size" => value == -1 || value == 0,
            _ => is_off(value),
        };
        if !is_fine {
            found.push(format!("{property} is {value}"));
        }
    }
    found
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_on) => !is_on,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.values().all(is_off),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(options: &str) -> Address {
        Address::parse(&format!("jetstream://a/x{options}")).expect("the URL is right")
    }

    /// A server's answer, as 2.15.2 gives it for the stream that this file makes.
    fn info() -> Value {
        let mut config = wanted(&address(""), Incarnation(0xabc));
        let added = json!({
            "duplicate_window": 120_000_000_000u64, "compression": "none", "allow_direct": false,
            "mirror_direct": false, "sealed": false, "allow_rollup_hdrs": false,
            "consumer_limits": {}, "allow_msg_ttl": false,
        });
        let config_fields = config.as_object_mut().expect("it is an object");
        config_fields.extend(added.as_object().expect("it is an object").clone());
        json!({
            "config": config,
            "state": { "first_seq": 3, "last_seq": 9 },
            "cluster": { "leader": "n2", "replicas": [
                { "name": "n3", "current": true, "active": 700_000_000 },
                { "name": "n1", "current": false, "offline": true },
            ] },
        })
    }

    fn differences_with(property: &str, value: Value, options: &str) -> Vec<String> {
        let mut info = info();
        info["config"][property] = value;
        Stream::read(&info, &address(options)).expect("it is a stream").differences
    }

    #[test]
    fn a_stream_as_made_here_is_accepted() {
        let stream = Stream::read(&info(), &address("")).expect("it is a stream");
        assert_eq!(stream.differences, [""; 0]);
        assert_eq!(stream.subject, "kiln.x.0000000000000abc");
        assert_eq!((stream.first, stream.last), (Sequence(3), Sequence(9)));
        let peers: Vec<_> = stream.peers.iter().map(|p| (p.name.as_str(), p.is_away)).collect();
        assert_eq!(peers, [("n1", true), ("n2", false), ("n3", false)]);
        let mut silent = info();
        silent["cluster"]["replicas"][0]["active"] = json!(AWAY_NANOS + 1);
        let silent = Stream::read(&silent, &address("")).expect("it is a stream");
        assert!(silent.peers.iter().any(|peer| peer.name == "n3" && peer.is_away));
    }

    #[test]
    fn whatever_could_lose_a_record_is_refused_by_name() {
        let cases = [
            ("max_age", json!(1_000_000_000u64)),
            ("max_msgs", json!(100)),
            ("max_bytes", json!(1 << 30)),
            ("max_msgs_per_subject", json!(1)),
            ("discard", json!("old")),
            ("storage", json!("memory")),
            ("retention", json!("workqueue")),
            ("num_replicas", json!(1)),
            ("persist_mode", json!("async")),
            ("deny_delete", json!(false)),
            ("allow_rollup_hdrs", json!(true)),
            ("subjects", json!(["kiln.x.>"])),
            ("subject_transform", json!({ "src": ">", "dest": "y.>" })),
            ("mirror", json!({ "name": "y" })),
            ("no_ack", json!(true)),
            ("something_new", json!(true)),
        ];
        for (property, value) in cases {
            let found = differences_with(property, value, "");
            assert_eq!(found.len(), 1, "{property}: {found:?}");
            assert!(found[0].starts_with(property), "{found:?}");
        }
    }

    #[test]
    fn a_stream_that_kiln_did_not_make_is_refused() {
        let found = differences_with("metadata", json!({}), "");
        assert!(found.iter().any(|text| text.contains("Kiln did not make it")), "{found:?}");
        assert!(Stream::read(&json!({}), &address("")).is_err());
        assert!(Stream::read(&json!({ "config": {}, "state": [] }), &address("")).is_err());
        let mut endless = info();
        endless["state"]["last_seq"] = json!(u64::MAX);
        assert!(Stream::read(&endless, &address("")).is_err());
    }

    #[test]
    fn a_server_that_knows_of_no_leader_is_not_believed() {
        for leader in [json!(null), json!("")] {
            let mut info = info();
            info["cluster"]["leader"] = leader;
            let answer = Stream::read(&info, &address(""));
            assert!(matches!(answer, Err(Unanswered::Silence(_))));
        }
        let mut alone = info();
        alone["cluster"] = json!(null);
        assert!(Stream::read(&alone, &address("?replicas=1")).is_ok());
    }

    #[test]
    fn the_number_of_copies_is_as_asked_for() {
        assert_eq!(differences_with("num_replicas", json!(5), ""), [""; 0]);
        assert_eq!(differences_with("num_replicas", json!(1), "?replicas=1"), [""; 0]);
        assert_eq!(differences_with("num_replicas", json!(3), "?replicas=1").len(), 1);
    }
}
