//! A disk that keeps live and durable bytes apart, loses power, fails and fills up.
//!
//! What a program reads back is the live state, as the page cache would give it. What a power cut
//! leaves is the durable state and, of everything not yet synced, an arbitrary part chosen by the
//! seed: each 512-byte sector of a file stays old, becomes new or is torn between the two, and of
//! the changes of names in a directory a prefix survives.

mod file;
pub mod nameless;
mod node;

use crate::random::Random;
use base::disk::{Disk, DiskEntry, DiskFile};
use file::SimFile;
use nameless::Reads;
use node::{LockGuard, Node, SECTOR_BYTES};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The disk of one simulated machine. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    hook: Arc<Mutex<Hook>>,
    /// The life of the process whose handle this is; `None`: of whichever lives.
    process: Option<u64>,
}

/// Work that another process does between two operations of this one.
#[derive(Default)]
struct Hook {
    operations: u64,
    at: u64,
    work: Option<Box<dyn FnOnce() + Send>>,
}

/// What the disk will do wrong.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// Power goes off in place of this sync (counted from 1 over the disk's life): it does not
    /// happen, and nothing works until [`SimDisk::restart`].
    pub cut_at_sync: Option<u64>,
    /// This sync fails with an I/O error, and takes the unsynced bytes with it.
    pub fail_sync: Option<u64>,
    /// This write finds no space (counted from 1 over the disk's life), even over bytes that are
    /// there: as on a file system that copies what it overwrites.
    pub full_at_write: Option<u64>,
    /// Bytes that the disk holds.
    pub capacity_bytes: Option<u64>,
    /// Syncs of files report success and do nothing: a build broken on purpose.
    pub lies_about_sync: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct NodeId(u64);

#[derive(Clone)]
enum NameChange {
    Set(PathBuf, NodeId),
    Remove(PathBuf),
    MakeDirectory(PathBuf),
    RemoveDirectory(PathBuf),
}

impl NameChange {
    /// The file that the change gives a name to.
    fn node(&self) -> Option<NodeId> {
        match self {
            Self::Set(_, id) => Some(*id),
            Self::Remove(_) | Self::MakeDirectory(_) | Self::RemoveDirectory(_) => None,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Set(path, _)
            | Self::Remove(path)
            | Self::MakeDirectory(path)
            | Self::RemoveDirectory(path) => path,
        }
    }
}

#[derive(Clone)]
struct State {
    nodes: BTreeMap<NodeId, Node>,
    names: BTreeMap<PathBuf, NodeId>,
    durable_names: BTreeMap<PathBuf, NodeId>,
    /// Changes of names since their directory was synced, in order.
    unsynced: Vec<NameChange>,
    directories: BTreeSet<PathBuf>,
    /// What is in one that is not in a durable one itself is out of reach after a power cut.
    durable_directories: BTreeSet<PathBuf>,
    random: Random,
    faults: Faults,
    syncs: u64,
    writes: u64,
    released: u64,
    is_off: bool,
    /// Counts restarts: handles of an earlier life work no more.
    life: u64,
    created: u64,
    reads: Reads,
    /// What a watcher has not taken yet; `None`: nobody watches.
    watched: Option<Watched>,
}

/// What happened to a disk under [`SimDisk::watch`].
#[derive(Clone, Default)]
pub struct Watched {
    /// The disk as a power cut in place of each sync would have left it, oldest first.
    pub images: Vec<SimDisk>,
    /// Stretches of files that became durable, each with its file's name and some bytes of its
    /// surroundings.
    pub synced: Vec<(PathBuf, Vec<u8>)>,
}

impl SimDisk {
    pub fn new(seed: u64) -> Self {
        let state = State {
            nodes: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced: Vec::new(),
            directories: BTreeSet::from([PathBuf::from("/")]),
            durable_directories: BTreeSet::from([PathBuf::from("/")]),
            random: Random::stream(seed, "disk"),
            faults: Faults::default(),
            syncs: 0,
            writes: 0,
            released: 0,
            is_off: false,
            life: 0,
            created: 0,
            reads: Reads::new(seed),
            watched: None,
        };
        Self { state: Arc::new(Mutex::new(state)), hook: Arc::default(), process: None }
    }

    /// From now on keeps what [`Self::take_watched`] gives out.
    pub fn watch(&self) {
        self.state().watched.get_or_insert_default();
    }

    /// What happened since the last call.
    pub fn take_watched(&self) -> Watched {
        self.state().watched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Another disk with the same files, for a machine of its own.
    pub fn copy(&self) -> Self {
        let state = self.state().copy();
        Self { state: Arc::new(Mutex::new(state)), hook: Arc::default(), process: None }
    }

    /// Runs `work` right before the operation that is the `at`th from now (counted from 1), as
    /// another process would that is scheduled at that instant.
    pub fn interrupt(&self, at: u64, work: Box<dyn FnOnce() + Send>) {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        *hook = Hook { operations: 0, at, work: Some(work) };
    }

    /// The disk for the process that lives now: once that is dead, nothing it left running can
    /// do anything to the disk.
    #[must_use]
    pub fn for_process(&self) -> Self {
        let process = Some(self.state().life);
        Self { process, ..self.clone() }
    }

    /// The state for one operation of a program on names.
    fn enter_for_names(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.enter();
        state.check(self.process.unwrap_or(state.life))?;
        Ok(state)
    }

    /// The state for one operation of a program.
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        hook.operations += 1;
        let work = if hook.operations == hook.at { hook.work.take() } else { None };
        drop(hook);
        if let Some(work) = work {
            work();
        }
        self.state()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what will go wrong.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Syncs so far, those that failed included.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Writes so far, those that failed included.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// How often somebody said of a file that its bytes need not be kept in memory.
    pub fn released(&self) -> u64 {
        self.state().released
    }

    /// Whether a sync that is to fail is still to come.
    pub fn will_fail(&self) -> bool {
        let state = self.state();
        state.faults.fail_sync.is_some_and(|at| at > state.syncs)
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Cuts the power now.
    pub fn cut_power(&self) {
        self.state().cut();
    }

    /// The process dies and the machine goes on: live bytes stay, handles and locks do not.
    pub fn kill_process(&self) {
        self.state().life += 1;
    }

    /// Power comes back, and every fault but the capacity is gone. What was not durable is what
    /// the cut left of it.
    pub fn restart(&self) {
        let mut state = self.state();
        state.is_off = false;
        state.life += 1;
        state.faults = Faults { capacity_bytes: state.faults.capacity_bytes, ..Faults::default() };
    }

    /// Changes one byte of a file, live and durable, as a failing medium would.
    ///
    /// # Panics
    /// If there is no such file or byte: a test asked for it.
    pub fn damage(&self, path: &Path, offset: usize, mask: u8) {
        let mut state = self.state();
        let id = state.names[path];
        let node = state.nodes.get_mut(&id).expect("a name has a node");
        node.live[offset] ^= mask;
        if let Some(byte) = node.durable.get_mut(offset) {
            *byte ^= mask;
        }
    }

    /// Removes every file, as an operator's `rm -r` would. Directories stay.
    pub fn remove_all(&self) {
        let mut state = self.state();
        state.names.clear();
        state.durable_names.clear();
        state.unsynced.clear();
        state.durable_directories = state.directories.clone();
    }

    /// Bytes that files occupy.
    pub fn used_bytes(&self) -> u64 {
        self.state().used()
    }
}

impl State {
    fn check(&self, life: u64) -> io::Result<()> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        if life != self.life {
            return Err(io::Error::other("the process of this handle is dead"));
        }
        Ok(())
    }

    fn used(&self) -> u64 {
        let named = self.names.values().map(|id| &self.nodes[id]);
        let is_there =
            |node: &&Node| node.nameless.as_ref().is_some_and(|it| it.is_there(self.life));
        let nameless = self.nodes.values().filter(is_there);
        named.chain(nameless).map(|node| node.live.len() as u64).sum()
    }

    fn node(&self, path: &Path) -> io::Result<NodeId> {
        self.names.get(path).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Counts a sync and says what becomes of it.
    fn begin_sync(&mut self) -> io::Result<()> {
        self.syncs += 1;
        if self.watched.is_some() && !self.is_off {
            let image = self.image();
            self.watched.get_or_insert_default().images.push(image);
        }
        if self.faults.cut_at_sync == Some(self.syncs) {
            self.cut();
            return Err(io::Error::other("the power went off"));
        }
        if self.faults.fail_sync == Some(self.syncs) {
            return Err(io::Error::other("simulated I/O error"));
        }
        Ok(())
    }

    /// The disk as a power cut now would leave it, with the power on again.
    fn image(&mut self) -> SimDisk {
        let mut state = self.copy();
        state.cut();
        state.is_off = false;
        SimDisk { state: Arc::new(Mutex::new(state)), hook: Arc::default(), process: None }
    }

    /// The same files for another machine.
    fn copy(&mut self) -> Self {
        let named = self.names.values().chain(self.durable_names.values());
        let unsynced = self.unsynced.iter().filter_map(NameChange::node);
        // What has no name any more is nobody's but this process's.
        let kept = named.copied().chain(unsynced);
        let nodes = kept.map(|id| (id, self.nodes[&id].clone())).collect();
        Self {
            nodes,
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            unsynced: self.unsynced.clone(),
            directories: self.directories.clone(),
            durable_directories: self.durable_directories.clone(),
            random: Random::from_seed(self.random.draw()),
            reads: self.reads.clone(),
            watched: None,
            faults: Faults::default(),
            life: self.life + 1,
            ..*self
        }
    }

    fn cut(&mut self) {
        if self.is_off {
            return;
        }
        self.is_off = true;
        let survivors = self.random.within(0..self.unsynced.len() as u64 + 1) as usize;
        for change in std::mem::take(&mut self.unsynced).into_iter().take(survivors) {
            self.apply_durably(change);
        }
        let durable = &self.durable_directories;
        let is_reached = |path: &Path| path.ancestors().skip(1).all(|it| durable.contains(it));
        let directories = durable.iter().filter(|path| is_reached(path)).cloned().collect();
        self.durable_names.retain(|path, _| is_reached(path));
        self.names = self.durable_names.clone();
        self.durable_directories = directories;
        self.directories = self.durable_directories.clone();
        // A file without a name is gone.
        for node in self.nodes.values_mut().filter(|node| node.nameless.is_none()) {
            node.settle(&mut self.random);
        }
    }

    fn apply_durably(&mut self, change: NameChange) {
        match change {
            NameChange::Set(path, id) => {
                // A rename takes the old name away in the same instant.
                self.durable_names.retain(|_, other| *other != id);
                self.durable_names.insert(path, id);
            }
            NameChange::Remove(path) => {
                self.durable_names.remove(&path);
            }
            NameChange::MakeDirectory(path) => {
                self.durable_directories.insert(path);
            }
            NameChange::RemoveDirectory(path) => {
                self.durable_directories.remove(&path);
            }
        }
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.created += 1;
        let id = NodeId(self.created);
        self.nodes.insert(id, node);
        id
    }

    fn grow(&mut self, id: NodeId, length: usize) -> io::Result<()> {
        let has = self.nodes[&id].live.len();
        if length <= has {
            return Ok(());
        }
        let more = (length - has) as u64;
        if self.faults.capacity_bytes.is_some_and(|capacity| self.used() + more > capacity) {
            return Err(ErrorKind::StorageFull.into());
        }
        let node = self.node_mut(id);
        node.live.resize(length, 0);
        node.touch(has, length);
        Ok(())
    }

    /// What a write leaves that fails amid its bytes: any of the sectors that it was to fill.
    fn write_some_sectors(&mut self, id: NodeId, start: usize, bytes: &[u8]) {
        for (number, sector) in bytes.chunks_exact(SECTOR_BYTES).enumerate() {
            let at = start + number * SECTOR_BYTES;
            let end = at + SECTOR_BYTES;
            if end <= self.nodes[&id].live.len() && self.random.chance(50) {
                let node = self.node_mut(id);
                node.live[at..end].copy_from_slice(sector);
                node.touch(at, end);
            }
        }
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).expect("a node stays while there is a name or a handle")
    }
}

impl Disk for SimDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.enter_for_names()?;
        let life = state.life;
        if state.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        if !path.parent().is_some_and(|parent| state.directories.contains(parent)) {
            return Err(ErrorKind::NotFound.into());
        }
        let id = state.add(Node::default());
        state.names.insert(path.to_owned(), id);
        state.unsynced.push(NameChange::Set(path.to_owned(), id));
        Ok(Arc::new(SimFile { disk: self.clone(), id, life, handle: None }))
    }

    fn create_nameless(&self, directory: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.create_file_without_name(directory)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.enter_for_names()?;
        let id = state.node(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), id, life: state.life, handle: None }))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.open_read(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.enter_for_names()?;
        Ok(state.names.contains_key(path) || state.directories.contains(path))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DiskEntry>> {
        let state = self.enter_for_names()?;
        if !state.directories.contains(directory) {
            return Err(ErrorKind::NotFound.into());
        }
        let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
        let mut entries = Vec::new();
        for (path, id) in state.names.iter().filter(|(p, _)| p.parent() == Some(directory)) {
            let length = state.nodes[id].live.len() as u64;
            entries.extend(name(path).map(|name| DiskEntry { name, length, is_directory: false }));
        }
        for path in state.directories.iter().filter(|p| p.parent() == Some(directory)) {
            entries.extend(name(path).map(|name| DiskEntry {
                name,
                length: 0,
                is_directory: true,
            }));
        }
        entries.sort();
        Ok(entries)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.enter_for_names()?;
        let mut levels: Vec<&Path> = directory.ancestors().collect();
        levels.reverse();
        for level in levels {
            if state.directories.insert(level.to_owned()) {
                state.unsynced.push(NameChange::MakeDirectory(level.to_owned()));
            }
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.enter_for_names()?;
        let id = state.node(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), id);
        state.unsynced.push(NameChange::Set(to.to_owned(), id));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter_for_names()?;
        state.node(path)?;
        state.names.remove(path);
        state.unsynced.push(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.enter_for_names()?;
        let is_inside = |path: &&PathBuf| path.parent() == Some(directory);
        if state.names.keys().chain(&state.directories).any(|path| is_inside(&path)) {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        if !state.directories.remove(directory) {
            return Err(ErrorKind::NotFound.into());
        }
        state.unsynced.push(NameChange::RemoveDirectory(directory.to_owned()));
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.enter_for_names()?;
        state.begin_sync()?;
        let changes = std::mem::take(&mut state.unsynced);
        for change in changes {
            if change.path().parent() == Some(directory) {
                state.apply_durably(change);
            } else {
                state.unsynced.push(change);
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        let mut state = self.enter_for_names()?;
        let life = state.life;
        let id = state.node(path)?;
        let node = state.node_mut(id);
        if node.lock.as_ref().and_then(Weak::upgrade).is_some_and(|held| held.0 == life) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let guard = Arc::new(LockGuard(life));
        node.lock = Some(Arc::downgrade(&guard));
        Ok(guard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_dead_process_left_running_reaches_the_disk() {
        let disk = SimDisk::new(1);
        let process = disk.for_process();
        let path = Path::new("/data/file");
        process.create_directory(Path::new("/data")).expect("the process lives");
        process.create_new(path).expect("the process lives");
        disk.kill_process();
        assert!(process.remove(path).is_err());
        assert!(disk.for_process().exists(path).expect("another process"));
    }
}
