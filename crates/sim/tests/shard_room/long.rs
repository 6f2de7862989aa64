//! Every command of the node either counts its work, in a long request that is listed here, or is
//! named as one that no request makes long; and one whose reply is long ends where its reply does.
//! Those of the engine are tried by its own tests.

use base::time::MILLISECOND;
use catalog::Kind;
use engine::work::Pulse;
use node::Scratch;
use node::Server;
use node::standard;
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::timeline::Timeline;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Arguments of each request, and results of those that have as many as there are.
const ELEMENTS: usize = 1500;

/// Counts steps: it is called at each.
struct Counter(Rc<Cell<usize>>);

impl Pulse for Counter {
    fn beat(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

struct Tried {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    timeline: Timeline,
    network: SimNetwork,
    steps: Rc<Cell<usize>>,
    /// Who is subscribed, and shown by CLIENT LIST.
    first: Option<SimClient>,
}

fn encode(words: &[String]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words.collect::<String>()).into_bytes()
}

impl Tried {
    /// A server with keys of one slot, channels and shard channels.
    fn new() -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
        let clock = SimClock::new(&timeline);
        let server = lone::server(&clock);
        let steps = Rc::new(Cell::new(0));
        let work = &server.core.shard.engine.keyspace.work;
        work.set_steps_per_pulse(1);
        work.wrap_pulse(|_| Rc::new(RefCell::new(Counter(Rc::clone(&steps)))));
        let driver = SimDriver::listen(&network, "here", clock, 1);
        let scratch = Scratch::default();
        let mut tried = Self { server, driver, scratch, timeline, network, steps, first: None };
        let client = tried.network.connect("here");
        for line in ["MSET", "SUBSCRIBE", "SSUBSCRIBE"] {
            tried.ask(&client, &[numbered(line, if line == "MSET" { "{a} v" } else { "c" })]);
        }
        let operator = tried.network.connect("here");
        for user in [
            format!("ACL SETUSER known on +@all >{}", password()),
            format!("ACL SETUSER narrow on nopass +@all ~{0} resetchannels &{0}", pattern()),
        ] {
            assert_eq!(tried.ask(&operator, &[words(&user)]), b"+OK\r\n");
        }
        tried.first = Some(client);
        tried
    }

    /// What the client receives in some turns.
    fn ask(&mut self, client: &SimClient, requests: &[Vec<String>]) -> Vec<u8> {
        client.send(&requests.iter().flat_map(|words| encode(words)).collect::<Vec<_>>());
        let mut received = Vec::new();
        for _ in 0..60 {
            self.timeline.pass(10 * MILLISECOND);
            self.server.turn(&mut self.driver, &mut self.scratch);
            received.extend(client.received());
        }
        received
    }

    /// The steps of some requests of a new client, and the bytes of its replies.
    fn steps(&mut self, requests: &[Vec<String>]) -> (usize, Vec<u8>) {
        let client = self.network.connect("here");
        self.ask(&client, &[]);
        self.steps.set(0);
        let received = self.ask(&client, requests);
        (self.steps.get(), received)
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// A password that takes as many steps to hash as there are elements.
fn password() -> String {
    "p".repeat(ELEMENTS << 10)
}

/// A pattern that fits no name. Each byte of a name is compared with all of its class, which never
/// ends: 64 steps a byte.
fn pattern() -> String {
    format!("*[{}", "Z".repeat(64 << 10))
}

/// A key or channel that the pattern takes long to refuse.
fn name() -> String {
    "k".repeat(ELEMENTS / 10)
}

/// A request with as many arguments as there are elements, each numbered.
fn numbered(words: &str, argument: &str) -> Vec<String> {
    let given = words.split(' ').map(str::to_owned);
    let arguments = (0..ELEMENTS).flat_map(|number| {
        argument.split(' ').map(move |word| format!("{word}{number}")).collect::<Vec<_>>()
    });
    given.chain(arguments).collect()
}

/// A request with the same argument as many times.
fn repeated(words: &str, argument: &str) -> Vec<String> {
    let given = words.split(' ').map(str::to_owned);
    given.chain((0..ELEMENTS).map(|_| argument.to_owned())).collect()
}

/// The slot of keys with the tag `{a}`.
const SLOT: &str = "15495";

/// Whether a reply grows with its request, or with what it finds.
#[derive(Clone, Copy, PartialEq)]
enum Grows {
    Yes,
    No,
}

/// Long requests of a connection; the last one's command is the one that is tried.
fn long_requests() -> Vec<(&'static str, Grows, Vec<Vec<String>>)> {
    let watch = || numbered("WATCH", "w");
    let queued = || [vec![words("MULTI")], vec![words("PING"); ELEMENTS]].concat();
    let one = |request: Vec<String>| vec![request];
    let kept = |name: &str| {
        let call = numbered(&format!("{name} 930269f31393d0be681588b6ab08dccee7d6bb67 0"), "a");
        vec![words("SCRIPT LOAD return(1)"), call]
    };
    vec![
        ("command|info", Grows::Yes, one(repeated("COMMAND INFO", "get"))),
        ("command|docs", Grows::Yes, one(repeated("COMMAND DOCS", "get"))),
        ("command|getkeys", Grows::Yes, one(numbered("COMMAND GETKEYS MGET", "k"))),
        ("command|getkeysandflags", Grows::Yes, one(numbered("COMMAND GETKEYSANDFLAGS MGET", "k"))),
        (
            "command|list",
            Grows::No,
            one(words(&format!("COMMAND LIST FILTERBY PATTERN {}", pattern()))),
        ),
        ("acl|deluser", Grows::No, one(numbered("ACL DELUSER", "n"))),
        ("acl|dryrun", Grows::No, one(words(&format!("ACL DRYRUN narrow GET {}", name())))),
        ("acl|setuser", Grows::No, one(numbered("ACL SETUSER other", "~k"))),
        ("acl|setuser", Grows::No, one(words(&format!("ACL SETUSER other >{}", password())))),
        ("auth", Grows::No, one(words(&format!("AUTH known {}", password())))),
        ("hello", Grows::No, one(words(&format!("HELLO 3 AUTH known {}", password())))),
        ("hello", Grows::No, one(words(&format!("HELLO 3{}", " AUTH default p".repeat(ELEMENTS))))),
        (
            "client|kill",
            Grows::No,
            one(words(&format!("CLIENT KILL{}", " ID 1000000".repeat(ELEMENTS)))),
        ),
        ("client|list", Grows::Yes, one(repeated("CLIENT LIST ID", "1"))),
        (
            "client|list",
            Grows::No,
            one(words(&format!("CLIENT LIST{}", " NOT-NAME x".repeat(ELEMENTS)))),
        ),
        ("config|get", Grows::No, one(numbered("CONFIG GET", "n*"))),
        ("config|get", Grows::No, one(words(&format!("CONFIG GET {}", pattern())))),
        ("info", Grows::No, one(numbered("INFO", "n"))),
        ("pubsub|channels", Grows::Yes, one(words("PUBSUB CHANNELS *"))),
        ("pubsub|shardchannels", Grows::Yes, one(words("PUBSUB SHARDCHANNELS"))),
        ("pubsub|numsub", Grows::Yes, one(numbered("PUBSUB NUMSUB", "c"))),
        ("pubsub|shardnumsub", Grows::Yes, one(numbered("PUBSUB SHARDNUMSUB", "c"))),
        ("eval", Grows::No, one(numbered("EVAL return(1) 0", "a"))),
        ("eval_ro", Grows::No, one(numbered("EVAL_RO return(1) 0", "a"))),
        ("evalsha", Grows::No, kept("EVALSHA")),
        ("evalsha_ro", Grows::No, kept("EVALSHA_RO")),
        ("script|exists", Grows::Yes, one(numbered("SCRIPT EXISTS", "s"))),
        ("latency|histogram", Grows::Yes, one(repeated("LATENCY HISTOGRAM", "mset"))),
        (
            "cluster|getkeysinslot",
            Grows::Yes,
            one(words(&format!("CLUSTER GETKEYSINSLOT {SLOT} 100000"))),
        ),
        (
            "cluster|countkeysinslot",
            Grows::No,
            one(words(&format!("CLUSTER COUNTKEYSINSLOT {SLOT}"))),
        ),
        ("subscribe", Grows::No, one(numbered("SUBSCRIBE", "n"))),
        ("psubscribe", Grows::No, one(numbered("PSUBSCRIBE", "n"))),
        ("ssubscribe", Grows::No, one(numbered("SSUBSCRIBE", "n"))),
        ("unsubscribe", Grows::No, one(numbered("UNSUBSCRIBE", "n"))),
        ("punsubscribe", Grows::No, one(numbered("PUNSUBSCRIBE", "n"))),
        ("sunsubscribe", Grows::No, one(numbered("SUNSUBSCRIBE", "n"))),
        ("watch", Grows::No, one(watch())),
        ("unwatch", Grows::No, vec![watch(), words("UNWATCH")]),
        ("discard", Grows::No, vec![watch(), words("MULTI"), words("DISCARD")]),
        ("exec", Grows::No, [queued(), one(words("EXEC"))].concat()),
    ]
}

/// Commands that no request makes long, beside those whose complexity says so. `name|*` are all
/// subcommands of one.
const OTHERS: [(&str, &str); 36] = [
    ("acl|getuser", "as many rules as an administrator gave the user"),
    ("acl|list", "as many users and rules as an administrator made"),
    ("acl|load", "as many users and rules as an administrator wrote"),
    ("acl|log", "as many entries as acllog-max-len"),
    ("acl|save", "as many users and rules as an administrator made"),
    ("acl|users", "as many users as an administrator made"),
    ("client|no-evict", "one flag"),
    ("client|pause", "one time"),
    ("client|unblock", "one client, whose keys are counted"),
    ("client|unpause", "one flag"),
    ("cluster|count-failure-reports", "as many as the shard has servers"),
    ("cluster|keyslot", "one key"),
    ("cluster|links", "as many as the shard has servers"),
    ("cluster|nodes", "as many as the shard has servers"),
    ("cluster|shards", "as many as the shard has servers"),
    ("cluster|slots", "as many as the shard has servers"),
    ("command", "as many as there are commands"),
    ("command|count", "as many as there are commands"),
    ("config|set", "each directive once"),
    ("debug", "for tests and administrators; what goes through keys or a pattern counts"),
    ("fcall", "as EVAL; what a function does counts"),
    ("fcall_ro", "as EVAL; what a function does counts"),
    ("function|dump", "as much code as an administrator loaded"),
    ("function|flush", "as much code as an administrator loaded"),
    ("function|list", "as much code as an administrator loaded, each function counted"),
    ("function|restore", "as much code as an administrator loaded"),
    ("lolwut", "one drawing"),
    ("migrate", "many turns"),
    ("psync", "many turns"),
    ("sync", "many turns"),
    ("save", "many turns"),
    ("script|flush", "as many as are kept, which is bounded"),
    ("script|load", "as long as the script, whose bytes are counted"),
    ("sentinel|*", "as many as the shard has servers"),
    ("shutdown", "ends"),
    ("slowlog|*", "as many entries as slowlog-max-len, each counted by GET"),
];

fn is_named(command: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(family) => command.starts_with(family),
        None => command == name,
    }
}

#[test]
fn every_command_of_the_node_is_tried_at_length_or_named_as_short() {
    let tried: BTreeSet<&str> = long_requests().iter().map(|(name, ..)| *name).collect();
    let (mut used, mut forgotten) = (BTreeSet::new(), Vec::new());
    for command in standard().0.iter() {
        let (name, complexity) = (command.name(), command.row.complexity);
        let is_of_node = command.kind() == Kind::Node;
        if !is_of_node || tried.contains(name) || complexity.starts_with("O(1)") {
            continue;
        }
        match OTHERS.iter().find(|(other, _)| is_named(name, other)) {
            Some((other, _)) => drop(used.insert(*other)),
            None => forgotten.push((name, complexity)),
        }
    }
    assert!(forgotten.is_empty(), "try them, or say why not: {forgotten:#?}");
    let unused: Vec<_> = OTHERS.iter().filter(|(other, _)| !used.contains(other)).collect();
    assert!(unused.is_empty(), "is no command, or its complexity says it already: {unused:#?}");
}

#[test]
fn long_commands_of_the_node_count_their_steps_and_end_where_their_reply_does() {
    let mut tried = Tried::new();
    let mut wrong = Vec::new();
    let limit = "CONFIG SET client-output-buffer-limit".split(' ').map(str::to_owned);
    let mut limited = Tried::new();
    let client = limited.network.connect("here");
    let request: Vec<String> = limit.chain(["normal 4800 0 0".to_owned()]).collect();
    assert_eq!(limited.ask(&client, &[request]), b"+OK\r\n");
    for (name, grows, requests) in long_requests() {
        let (steps, received) = tried.steps(&requests);
        let shown = String::from_utf8_lossy(&received[..received.len().min(60)]).into_owned();
        if steps < ELEMENTS || received.starts_with(b"-") {
            wrong.push(format!("{name}: {steps} steps: {shown}"));
        }
        if grows == Grows::Yes {
            let (steps, received) = limited.steps(&requests);
            let looks_first = ["command|docs", "latency|histogram", "cluster|getkeysinslot"];
            let looked = if looks_first.contains(&name) { ELEMENTS } else { 0 };
            let steps = steps.saturating_sub(looked);
            if steps > ELEMENTS * 9 / 10 || !received.is_empty() {
                wrong.push(format!("{name}: {steps} steps beyond the limit"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Keys and channels of a user who may use those of a pattern only.
#[test]
fn what_a_users_patterns_are_compared_with_is_counted() {
    let mut tried = Tried::new();
    for line in ["GET name", "SUBSCRIBE name", "PUBLISH name message"] {
        let line = line.replace("name", &name());
        let (steps, received) = tried.steps(&[words("AUTH narrow p"), words(&line)]);
        let received = String::from_utf8_lossy(&received);
        assert!(received.starts_with("+OK\r\n-NOPERM"), "{received}");
        assert!(steps >= ELEMENTS, "{steps} steps: {line}");
    }
}

/// To compile a script may take a quarter of a second, and a transaction may have any number. One
/// that is kept is not compiled again.
#[test]
fn scripts_count_as_work_where_they_are_compiled() {
    let mut tried = Tried::new();
    let mut steps_of = |command: &str| {
        let request = |n| [words(command), vec![format!("return 1 -- {command} {n}")]].concat();
        let scripts = (0..10).map(|n| match command {
            "SCRIPT LOAD" => request(n),
            _ => [request(n), words("0")].concat(),
        });
        let requests: Vec<_> =
            [words("MULTI")].into_iter().chain(scripts).chain([words("EXEC")]).collect();
        tried.steps(&requests).0
    };
    for command in ["EVAL", "EVAL_RO", "SCRIPT LOAD"] {
        let compiled = steps_of(command);
        let kept = steps_of(command);
        assert!(compiled >= kept + 10, "{command}: {compiled} and {kept}");
    }
}

/// SCRIPT LOAD hashes a script that is kept, and comes to nothing else that would count.
#[test]
fn what_the_requests_of_a_transaction_hold_is_counted() {
    let mut tried = Tried::new();
    let mut steps_of = |bytes| {
        let script = format!("return 1 --{}", "-".repeat(bytes));
        let load = [words("SCRIPT LOAD"), vec![script]].concat();
        let requests = [vec![load.clone(), words("MULTI")], vec![load; 10], vec![words("EXEC")]];
        let (steps, received) = tried.steps(&requests.concat());
        assert!(received.ends_with(b"\r\n") && !received.contains(&b'-'), "{received:?}");
        steps
    };
    let (short, long) = (steps_of(10), steps_of(4000));
    assert!(long >= short + 10, "{long} and {short}");
}

#[test]
fn the_keys_that_a_client_comes_to_wait_for_are_counted() {
    let mut tried = Tried::new();
    let request = || [numbered("BLPOP", "none"), words("0")].concat();
    let (at_once, received) = tried.steps(&[words("MULTI"), request(), words("EXEC")]);
    assert_eq!(received, b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
    let (waiting, received) = tried.steps(&[request()]);
    assert_eq!(received, b"");
    assert!(waiting >= at_once + ELEMENTS * 9 / 10, "{waiting} steps, {at_once} without waiting");
}

#[test]
fn one_long_value_leaves_in_as_many_turns_as_many_short_ones() {
    const VALUE_BYTES: usize = 16 << 20;
    let timeline = Timeline::new();
    // The line takes all that it is offered.
    let faults = NetworkFaults { window_bytes: usize::MAX, ..NetworkFaults::benign() };
    let network = SimNetwork::new(&timeline, 1, faults);
    let clock = SimClock::new(&timeline);
    let mut server = lone::server(&clock);
    let mut driver = SimDriver::listen(&network, "here", clock, 1);
    let mut scratch = Scratch::default();
    let client = network.connect("here");
    let value = "x".repeat(VALUE_BYTES);
    client.send(&encode(&["SET", "long", &value].map(str::to_owned)));
    client.send(&encode(&["GET", "long"].map(str::to_owned)));
    let (mut received, mut most) = (0, 0);
    for _ in 0..200 {
        timeline.pass(10 * MILLISECOND);
        server.turn(&mut driver, &mut scratch);
        timeline.pass(10 * MILLISECOND);
        let arrived = client.received().len();
        (received, most) = (received + arrived, most.max(arrived));
    }
    assert!(received > VALUE_BYTES, "{received}");
    assert!(most <= VALUE_BYTES / 4, "{most} bytes in one turn");
}
