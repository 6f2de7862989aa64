use super::*;
use crate::settings::Settings;
use crate::value::ValueType;
use crate::work::Work;
use std::collections::BTreeSet;

fn with_recipe(run: impl FnOnce(&Recipe<'_>)) {
    let settings = Settings { set_max_intset_entries: 8, ..Settings::default() };
    let work = Work::default();
    run(&Recipe { settings: &settings, hasher: KeyHasher::fixed(1), work: &work });
}

fn sorted(set: &Set) -> Vec<Vec<u8>> {
    set.iter().map(MemberRef::to_vec).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn a_set_stays_an_intset_up_to_the_limit_and_while_all_are_integers() {
    with_recipe(|recipe| {
        let mut set = Set::new();
        for member in ["1", "-7", "9223372036854775807", "4", "5", "6", "7", "8"] {
            assert!(set.add(member.as_bytes(), recipe));
        }
        assert!(!set.add(b"8", recipe));
        assert_eq!(set.encoding(), "intset");
        let mut other = set.copied(&Work::default());
        assert!(set.add(b"9", recipe) && other.add(b"08", recipe));
        assert_eq!((set.encoding(), other.encoding()), ("hashtable", "hashtable"));
        assert!(set.contains(b"9223372036854775807") && other.contains(b"9223372036854775807"));
        assert_eq!((set.len(), other.len()), (9, 9));
        assert_eq!(sorted(&set.copied(&Work::default())), sorted(&set));
        assert!(set.remove(b"9223372036854775807") && !set.remove(b"9223372036854775807"));
    });
}

#[test]
fn bytes_are_those_of_the_same_set_built_anew() {
    with_recipe(|recipe| {
        let mut set = Set::new();
        for i in 0..500 {
            set.add(format!("member-{i}-{}", "x".repeat(i)).as_bytes(), recipe);
        }
        let full = set.allocated_bytes();
        assert_eq!(set.copied(&Work::default()).allocated_bytes(), full);
        for i in 0..490 {
            assert!(set.remove(format!("member-{i}-{}", "x".repeat(i)).as_bytes()));
        }
        assert!(set.allocated_bytes() < full / 10);
    });
}

#[test]
fn a_scan_visits_every_member() {
    with_recipe(|recipe| {
        let mut set = Set::new();
        for i in 0..300 {
            set.add(format!("m{i}").as_bytes(), recipe);
        }
        let (mut seen, mut cursor) = (BTreeSet::new(), 0);
        loop {
            cursor = set.scan(cursor, 10, |member| {
                seen.insert(member.to_vec());
            });
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), 300);
    });
}
