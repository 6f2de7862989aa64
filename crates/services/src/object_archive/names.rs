//! What an archive's objects are called.
//!
//! ```text
//! PREFIX/snapshot-{sequence:020}-{number:03}/part-0000-{writer:016x}.rdb
//!                                           /manifest.json      a snapshot's, or a tombstone
//!       /snapshot-{sequence:020}-{number:03}.writing     the sign of a writer that lives
//!       /log-{first:020}-{last:020}[-{attempt:03}]/…     the same: a stretch of the log
//!       /claim.json                                      who takes the snapshots off the box
//!       /probe/{entropy:016x}                            shows what the store can do; removed
//! ```
//!
//! Parts are called after their writer too: one that was given up for dead and goes on can never
//! write over another's.

use archive::Content;
use object_store::path::Path;

pub const MANIFEST: &str = "manifest.json";
const SIGN: &str = ".writing";

/// Makes and reads the names below one prefix.
#[derive(Clone, Debug)]
pub struct Names {
    prefix: Path,
}

/// What an object of a snapshot is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role<'a> {
    Sign,
    Manifest,
    /// A part, or something else that goes with the snapshot.
    Part(&'a str),
}

impl Names {
    pub fn new(prefix: Path) -> Self {
        Self { prefix }
    }

    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Names of these sort behind it.
    pub fn before(&self, content: Content) -> Path {
        self.prefix.clone().join(content.prefix())
    }

    /// What all names of one snapshot's objects begin with, but its sign's.
    pub fn within(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    pub fn part(&self, name: &str, part: &str) -> Path {
        self.within(name).join(part)
    }

    pub fn manifest(&self, name: &str) -> Path {
        self.part(name, MANIFEST)
    }

    pub fn sign(&self, name: &str) -> Path {
        self.prefix.clone().join(format!("{name}{SIGN}"))
    }

    pub fn claim(&self) -> Path {
        self.prefix.clone().join("claim.json")
    }

    pub fn probe(&self, entropy: u64) -> Path {
        self.prefix.clone().join("probe").join(format!("{entropy:016x}"))
    }

    /// Whether an object stands where these do, or others of the same prefix.
    pub fn is_of(&self, content: Content, path: &Path) -> bool {
        path.as_ref().starts_with(self.before(content).as_ref())
    }

    /// The snapshot that an object belongs to, and what it is of it. Others' objects are nothing.
    pub fn read<'a>(&self, path: &'a Path) -> Option<(&'a str, Role<'a>)> {
        let text: &'a str = path.as_ref();
        let rest = match self.prefix.as_ref() {
            "" => text,
            prefix => text.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        let (name, role) = match rest.split_once('/') {
            Some((name, MANIFEST)) => (name, Role::Manifest),
            Some((name, part)) => (name, Role::Part(part)),
            None => (rest.strip_suffix(SIGN)?, Role::Sign),
        };
        Content::of(name).map(|_| (name, role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_nothing() {
        for prefix in ["", "some/shard"] {
            let names = Names::new(Path::from(prefix));
            let name = "snapshot-7-000";
            assert_eq!(names.read(&names.sign(name)), Some((name, Role::Sign)));
            assert_eq!(names.read(&names.manifest(name)), Some((name, Role::Manifest)));
            let part = names.part(name, "part-0000-00.rdb");
            assert_eq!(names.read(&part), Some((name, Role::Part("part-0000-00.rdb"))));
            for other in [names.claim(), names.probe(1), names.before(Content::Snapshots)] {
                assert_eq!(names.read(&other), None, "{other}");
            }
            assert!(names.sign(name) > names.before(Content::Snapshots));
        }
        let names = Names::new(Path::from("some/shard"));
        assert_eq!(names.read(&Path::from("some/shards/snapshot-7-000.writing")), None);
        // A log may lie beside the snapshots.
        for other in ["log-orders/00/log/00000000000000000001", "log-1.writing", "pin-x/part"] {
            assert_eq!(names.read(&Path::from(format!("some/shard/{other}"))), None, "{other}");
        }
    }
}
