//! What loading a snapshot costs: keys a second on one core, from memory.
//!
//! `cargo run --release -p engine --example load_cost -- [keys]`

use base::{DatabaseId, HashKey, UnixMillis};
use engine::effect::Effect;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::rdb::Crc64;
use engine::save::checksum;
use engine::settings::Settings;

fn main() {
    let keys: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2_000_000);
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    for key in 0..keys {
        let name = format!("key:{key:012}");
        let effect = Effect::SetString { value: &[b'x'; 100], expire_at: None };
        keyspace.apply(DatabaseId(0), name.as_bytes(), &effect).expect("a string can be set");
    }
    keyspace.begin_snapshot(UnixMillis(0));
    #[expect(clippy::disallowed_methods, reason = "a measurement reads the machine's clock")]
    let clock = std::time::Instant::now;
    let began = clock();
    keyspace.walk_snapshot(u64::MAX, usize::MAX / 2);
    let walked = began.elapsed();
    let mut file = keyspace.take_snapshot_bytes(Vec::new());
    drop(keyspace);
    let began = clock();
    let mut crc = Crc64::default();
    crc.update(&file);
    let summed = began.elapsed();
    file.extend_from_slice(&checksum(crc));
    for _ in 0..3 {
        let mut loaded = Keyspace::new(Settings::default(), HashKey::fixed(2));
        let began = clock();
        let mut loader = Loader::of_own_file(&file[..], keys, UnixMillis(0));
        loader.load_all(&mut loaded).expect("it was just written");
        let took = began.elapsed();
        println!(
            "{keys} keys, {} bytes: walked in {walked:?}, crc64 in {summed:?}, loaded in {took:?}",
            file.len()
        );
    }
}
