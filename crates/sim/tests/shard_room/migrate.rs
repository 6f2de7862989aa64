//! MIGRATE by a primary whose lease runs out in the very turn in which it sends: somebody else may
//! lead by then, have changed the key and moved it to the same target.

use crate::primary::{LEASE_MILLIS, Primary, Tells};
use base::DatabaseId;
use node::Broken;
use node::Scratch;
use node::Server;
use sim::driver::SimDriver;
use sim::lone;

/// A server that takes keys.
struct Target {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
}

impl Target {
    fn new(primary: &Primary) -> Self {
        let server = lone::server(&primary.clock);
        let driver = SimDriver::listen(&primary.network, "there", primary.clock.clone(), 2);
        Self { server, driver, scratch: Scratch::default() }
    }

    /// Whether it has the key after everything that was sent to it.
    fn has(&mut self, key: &str) -> bool {
        for _ in 0..5 {
            self.server.turn(&mut self.driver, &mut self.scratch);
        }
        self.server.core.shard.engine.keyspace.exists(DatabaseId(0), key.as_bytes())
    }
}

/// What the client receives, with the target at work.
fn pass(primary: &mut Primary, target: &mut Target) -> String {
    (0..5)
        .map(|_| {
            let received = primary.pass();
            target.has("");
            received
        })
        .collect()
}

/// Whether a key leaves although the lease has run out while it was dumped. The log keeps silent
/// meanwhile, so that nothing has renewed the lease.
fn leaves_without_lease(broken: Option<Broken>) -> bool {
    let mut primary = Primary::new();
    primary.server.core.broken = broken;
    let mut target = Target::new(&primary);
    let value = "v".repeat(8 << 10);
    let sets = format!("SET warm 1\r\nSET k {value}\r\nMIGRATE there 6379 warm 0 60000\r\n");
    primary.client.send(sets.as_bytes());
    // The connection is kept, and so needs no handshake.
    assert_eq!(pass(&mut primary, &mut target), "+OK\r\n".repeat(3));
    primary.tells.set(Tells::Nothing);
    primary.turn_slowly("MIGRATE there 6379 k 0 60000\r\n", 0, LEASE_MILLIS);
    assert!(primary.server.core.leadership.has_lapsed(), "the lease runs on");
    let has_left = target.has("k");
    primary.tells.set(Tells::All);
    assert_eq!(pass(&mut primary, &mut target), "+OK\r\n");
    assert!(target.has("k"), "it is sent once the lease is renewed");
    has_left
}

#[test]
fn no_key_leaves_once_the_lease_is_over() {
    assert!(!leaves_without_lease(None));
}

/// Otherwise the test above would prove nothing.
#[test]
fn a_primary_that_sends_keys_without_a_lease_is_noticed() {
    assert!(leaves_without_lease(Some(Broken::MigratesWithoutLease)));
}
