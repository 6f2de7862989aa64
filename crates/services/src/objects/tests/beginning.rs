//! Two processes that begin one log at once.

use super::{block_on, connect, faulty, life};
use crate::objects::names::Names;
use base::{Incarnation, Sequence};
use futures_util::FutureExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use std::sync::Arc;

/// The requests that a process makes until it has begun a log, and some more.
const REQUESTS: usize = 12;

#[test]
fn who_comes_second_reads_what_the_first_began_and_wrote_at_any_step() {
    let mut read = 0;
    for at in 1..=REQUESTS {
        let (store, objects) = faulty();
        let other = life(9, 0);
        let there = Arc::clone(&store);
        store.interrupt(at, move || {
            let names = Names::new(Path::from("some/shard"));
            let put = |path: Path, bytes: Vec<u8>| {
                let put = there.inner().put(&path, PutPayload::from(bytes));
                put.now_or_never().expect("it is in memory").expect("it is well");
            };
            let is_begun = there.inner().head(&names.incarnation()).now_or_never();
            if is_begun.expect("it is in memory").is_err() {
                put(names.floor(other, Sequence::ZERO), Vec::new());
                put(names.incarnation(), other.encode());
                put(names.record(other, Sequence(1)), b"record 1".to_vec());
            }
        });
        let second = block_on(connect(&objects, life(7, 0)));
        let second = second.unwrap_or_else(|why| panic!("request {at}: {why}"));
        assert!([Incarnation(7), Incarnation(9)].contains(&second.life.incarnation));
        read += usize::from(second.life.incarnation == Incarnation(9));
    }
    assert!(read >= 4, "{read}");
}
