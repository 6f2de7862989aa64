use super::*;
use base::Seeds;

const ONE: CacherId = CacherId(1);
const TWO: CacherId = CacherId(2);

struct Table {
    caches: Caches,
    hasher: KeyHasher,
}

impl Table {
    fn new(clients: &[CacherId]) -> Self {
        let hasher = KeyHasher::new(Seeds::fixed(1).hash);
        let mut caches = Caches::default();
        clients.iter().for_each(|client| caches.add(*client));
        Self { caches, hasher }
    }

    fn read(&mut self, client: CacherId, key: &str) {
        let hash = self.hasher.hash(key.as_bytes());
        self.caches.remember(client, hash, key.as_bytes(), self.hasher);
    }

    fn change(&mut self, key: &str) {
        self.caches.changed(self.hasher.hash(key.as_bytes()), key.as_bytes(), true);
    }

    /// What was noticed, as text.
    fn told(&mut self) -> Vec<String> {
        let (notices, broadcasts) = self.caches.take_notices();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let one_by_one = notices.iter().map(|notice| match notice {
            Notice::All => "all".to_owned(),
            Notice::Key(it) => {
                let readers: Vec<u64> = it.readers.iter().map(|reader| reader.0).collect();
                format!("{} {readers:?}", text(&it.key))
            }
        });
        let together = broadcasts.iter().map(|(prefix, keys)| {
            let keys: Vec<String> = keys.keys().map(|key| text(key)).collect();
            format!("'{}': {}", text(prefix), keys.join(" "))
        });
        one_by_one.chain(together).collect()
    }
}

#[test]
fn who_read_a_key_is_told_once() {
    let mut table = Table::new(&[ONE, TWO]);
    for client in [TWO, ONE, TWO, TWO] {
        table.read(client, "k");
    }
    table.read(ONE, "other");
    assert_eq!((table.caches.keys_len(), table.caches.items_len()), (2, 3));
    table.change("k");
    table.change("k");
    table.change("unread");
    assert_eq!(table.told(), ["k [1, 2]"]);
    table.read(TWO, "k");
    table.change("k");
    assert_eq!(table.told(), ["k [2]"]);
    assert_eq!((table.caches.keys_len(), table.caches.items_len()), (1, 1));
}

#[test]
fn what_is_known_of_readers_is_counted_and_goes() {
    let mut table = Table::new(&[ONE]);
    for round in 0..3 {
        for key in 0..1000 {
            (1..=1 + key % 9).for_each(|client| table.read(CacherId(client), &format!("k{key}")));
        }
        assert!(table.caches.allocated_bytes() > 1000 * 20);
        assert_eq!(
            table.caches.items_len(),
            (0..1000).map(|key| 1 + key % 9).sum::<u64>() as usize
        );
        match round {
            0 => (0..1000).for_each(|key| table.change(&format!("k{key}"))),
            1 => table.caches.changed_all(),
            _ => table.caches.remove(ONE, []),
        }
        assert_eq!((table.caches.keys_len(), table.caches.items_len()), (0, 0), "{round}");
        assert_eq!(table.caches.bytes, 0, "{round}");
    }
    assert_eq!(table.caches.take_garbage().len(), 2, "a large table is freed elsewhere");
}

#[test]
fn a_prefix_finds_the_keys_under_it() {
    let mut table = Table::new(&[ONE, TWO]);
    let prefixes = ["", "a", "ab", "abcd", "abx", "b", "aa", "ac"];
    prefixes.iter().for_each(|prefix| table.caches.add_prefix(ONE, prefix.as_bytes()));
    let mut under = |key: &str| {
        table.change(key);
        table.told()
    };
    assert_eq!(under("abcde"), ["'': abcde", "'a': abcde", "'ab': abcde", "'abcd': abcde"]);
    assert_eq!(under("abc"), ["'': abc", "'a': abc", "'ab': abc"]);
    assert_eq!(under("c"), ["'': c"]);
    assert_eq!(under(""), ["'': "]);
    assert_eq!(under("b"), ["'': b", "'b': b"]);
    table.caches.remove(ONE, &prefixes.map(|prefix| prefix.as_bytes().to_vec()));
    assert_eq!(table.caches.prefixes_len(), 0);
    table.change("abcde");
    assert!(table.told().is_empty());
}

#[test]
fn what_a_prefix_finds_is_what_comparing_each_finds() {
    let mut random = Random::new(7);
    let mut word = |length: u64| -> Vec<u8> {
        (0..random.below(length)).map(|_| b'a' + random.below(2) as u8).collect()
    };
    for _ in 0..300 {
        let map: ByPrefix<()> = (0..12).map(|_| (word(6), ())).collect();
        for _ in 0..20 {
            let key = word(9);
            let mut found: Vec<&[u8]> = prefixes_of(&map, &key).collect();
            found.reverse();
            let each = map.keys().filter(|prefix| key.starts_with(prefix));
            assert_eq!(found, each.map(Vec::as_slice).collect::<Vec<_>>());
        }
    }
}

#[test]
fn who_changed_a_key_last_is_known() {
    let mut table = Table::new(&[ONE]);
    table.caches.add_prefix(ONE, b"");
    let hash = table.hasher.hash(b"k");
    for by_command in [false, true, false] {
        table.caches.changed(hash, b"k", by_command);
    }
    let (_, broadcasts) = table.caches.take_notices();
    assert_eq!(broadcasts[&b""[..]], Broadcast::from([(b"k".to_vec(), false)]));
}

#[test]
fn an_emptied_database_is_told_of_once() {
    let mut table = Table::new(&[ONE]);
    table.read(ONE, "k");
    table.caches.changed_all();
    table.caches.changed_all();
    table.change("k");
    assert_eq!(table.told(), ["all"]);
}

#[test]
fn too_much_is_many_keys_or_long_ones() {
    let mut table = Table::new(&[ONE]);
    let mut random = Random::new(1);
    (0..100).for_each(|key| table.read(ONE, &format!("k{key}")));
    assert!(!table.caches.is_over(0) && !table.caches.is_over(100));
    let mut gone = BTreeSet::new();
    while table.caches.is_over(10) {
        table.caches.forget_random_key(&mut random);
        gone.extend(table.told());
    }
    assert_eq!((table.caches.keys_len(), gone.len()), (10, 90));
    assert!(gone.iter().all(|told| told.ends_with(" [1]")));
    table.read(ONE, &"long".repeat(2000));
    assert!(table.caches.is_over(11));
}
