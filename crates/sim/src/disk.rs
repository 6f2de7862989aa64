//! A disk that keeps live and durable bytes apart, loses power, fails and fills up.
//!
//! What a program reads back is the live state, as the page cache would give it. What a power cut
//! leaves is the durable state and, of everything not yet synced, an arbitrary part chosen by the
//! seed: each 512-byte sector of a file stays old, becomes new or is torn between the two, and of
//! the changes of names in a directory a prefix survives.

use crate::random::Random;
use base::disk::{Disk, DiskEntry, DiskFile};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

const SECTOR_BYTES: usize = 512;

/// The disk of one simulated machine. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    hook: Arc<Mutex<Hook>>,
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
    /// Bytes that the disk holds.
    pub capacity_bytes: Option<u64>,
    /// Syncs of files report success and do nothing: a build broken on purpose.
    pub lies_about_sync: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct NodeId(u64);

#[derive(Clone, Default)]
struct Node {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors in which live and durable may differ.
    dirty: BTreeSet<usize>,
    lock: Option<Weak<LockGuard>>,
}

#[derive(Clone)]
enum NameChange {
    Set(PathBuf, NodeId),
    Remove(PathBuf),
}

#[derive(Clone)]
struct State {
    nodes: BTreeMap<NodeId, Node>,
    names: BTreeMap<PathBuf, NodeId>,
    durable_names: BTreeMap<PathBuf, NodeId>,
    /// Changes of names since their directory was synced, in order.
    unsynced: Vec<NameChange>,
    directories: BTreeSet<PathBuf>,
    random: Random,
    faults: Faults,
    syncs: u64,
    is_off: bool,
    /// Counts restarts: handles of an earlier life work no more.
    life: u64,
    created: u64,
    /// What a watcher has not taken yet; `None`: nobody watches.
    watched: Option<Watched>,
}

/// What happened to a disk under [`SimDisk::watch`].
#[derive(Clone, Default)]
pub struct Watched {
    /// The disk as a power cut in place of each sync would have left it, oldest first.
    pub images: Vec<SimDisk>,
    /// Stretches of files that became durable, each with some bytes of its surroundings.
    pub synced: Vec<Vec<u8>>,
}

/// Bytes around a stretch that became durable, so that nothing is cut at a sector's edge.
const SURROUNDINGS_BYTES: usize = 64;

/// A held lock, and the life of the process that holds it.
struct LockGuard(u64);

impl SimDisk {
    pub fn new(seed: u64) -> Self {
        let state = State {
            nodes: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced: Vec::new(),
            directories: BTreeSet::new(),
            random: Random::stream(seed, "disk"),
            faults: Faults::default(),
            syncs: 0,
            is_off: false,
            life: 0,
            created: 0,
            watched: None,
        };
        Self { state: Arc::new(Mutex::new(state)), hook: Arc::default() }
    }

    /// From now on keeps what [`Self::take_watched`] gives out.
    pub fn watch(&self) {
        self.state().watched.get_or_insert_default();
    }

    /// What happened since the last call.
    pub fn take_watched(&self) -> Watched {
        self.state().watched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Runs `work` right before the operation that is the `at`th from now (counted from 1), as
    /// another process would that is scheduled at that instant.
    pub fn interrupt(&self, at: u64, work: Box<dyn FnOnce() + Send>) {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        *hook = Hook { operations: 0, at, work: Some(work) };
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
        self.names.values().map(|id| self.nodes[id].live.len() as u64).sum()
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
        let watched = self.watched.take();
        let mut state = self.clone();
        self.watched = watched;
        state.cut();
        state.is_off = false;
        state.life += 1;
        state.faults = Faults::default();
        SimDisk { state: Arc::new(Mutex::new(state)), hook: Arc::default() }
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
        self.names = self.durable_names.clone();
        // A name that came back brings the directory that held it with it.
        let held = self.names.keys().flat_map(|path| path.ancestors().skip(1));
        self.directories.extend(held.map(Path::to_owned));
        for node in self.nodes.values_mut() {
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
        }
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

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).expect("nodes are never dropped")
    }
}

impl Node {
    fn touch(&mut self, from: usize, to: usize) {
        self.dirty.extend(from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES));
    }

    /// The stretches that a sync makes durable.
    fn unsynced(&self) -> Vec<Vec<u8>> {
        let mut stretches: Vec<std::ops::Range<usize>> = Vec::new();
        for sector in &self.dirty {
            let range = self.range(*sector);
            match stretches.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => stretches.push(range),
            }
        }
        let around = stretches.into_iter().map(|range| {
            let end = (range.end + SURROUNDINGS_BYTES).min(self.live.len());
            self.live[range.start.saturating_sub(SURROUNDINGS_BYTES)..end].to_vec()
        });
        around.collect()
    }

    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let range = self.range(sector);
            self.durable[range.clone()].copy_from_slice(&self.live[range]);
        }
    }

    fn range(&self, sector: usize) -> std::ops::Range<usize> {
        let start = (sector * SECTOR_BYTES).min(self.live.len());
        start..(start + SECTOR_BYTES).min(self.live.len())
    }

    /// Leaves what a power cut leaves, and makes it the live state.
    fn settle(&mut self, random: &mut Random) {
        // The new length may have reached the disk or not; sectors behind it are gone.
        if self.live.len() != self.durable.len() && random.chance(50) {
            self.live.resize(self.durable.len(), 0);
        }
        self.durable.resize(self.live.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let range = self.range(sector);
            let kept = match random.within(0..8) {
                0..=3 => 0,
                4..=6 => range.len(),
                _ => random.within(0..range.len() as u64 + 1) as usize,
            };
            let kept = range.start..range.start + kept;
            self.durable[kept.clone()].copy_from_slice(&self.live[kept]);
        }
        self.live.clone_from(&self.durable);
        self.lock = None;
    }
}

impl Disk for SimDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.enter();
        let life = state.life;
        state.check(life)?;
        if state.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        if !path.parent().is_some_and(|parent| state.directories.contains(parent)) {
            return Err(ErrorKind::NotFound.into());
        }
        state.created += 1;
        let id = NodeId(state.created);
        state.nodes.insert(id, Node::default());
        state.names.insert(path.to_owned(), id);
        state.unsynced.push(NameChange::Set(path.to_owned(), id));
        Ok(Arc::new(SimFile { disk: self.clone(), id, life }))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.enter();
        state.check(state.life)?;
        let id = state.node(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), id, life: state.life }))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.open_read(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.enter();
        state.check(state.life)?;
        Ok(state.names.contains_key(path) || state.directories.contains(path))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DiskEntry>> {
        let state = self.enter();
        state.check(state.life)?;
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

    /// Directories are durable at once: what is simulated is the loss of files and their names.
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.enter();
        state.check(state.life)?;
        state.directories.extend(directory.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.enter();
        state.check(state.life)?;
        let id = state.node(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), id);
        state.unsynced.push(NameChange::Set(to.to_owned(), id));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter();
        state.check(state.life)?;
        state.node(path)?;
        state.names.remove(path);
        state.unsynced.push(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.enter();
        state.check(state.life)?;
        let is_inside = |path: &&PathBuf| path.parent() == Some(directory);
        if state.names.keys().chain(&state.directories).any(|path| is_inside(&path)) {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        if !state.directories.remove(directory) {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.enter();
        state.check(state.life)?;
        state.begin_sync()?;
        let changes = std::mem::take(&mut state.unsynced);
        for change in changes {
            let (NameChange::Set(path, _) | NameChange::Remove(path)) = &change;
            if path.parent() == Some(directory) {
                state.apply_durably(change);
            } else {
                state.unsynced.push(change);
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        let mut state = self.enter();
        state.check(state.life)?;
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

struct SimFile {
    disk: SimDisk,
    id: NodeId,
    life: u64,
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.enter();
        state.check(self.life)?;
        Ok(state)
    }
}

impl DiskFile for SimFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.state()?.nodes[&self.id].live.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.state()?;
        let live = &state.nodes[&self.id].live;
        let start = (offset as usize).min(live.len());
        let count = into.len().min(live.len() - start);
        into[..count].copy_from_slice(&live[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        state.grow(self.id, end)?;
        let node = state.node_mut(self.id);
        node.live[start..end].copy_from_slice(bytes);
        node.touch(start, end);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.grow(self.id, length as usize)?;
        let node = state.node_mut(self.id);
        node.live.truncate(length as usize);
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.state()?.grow(self.id, (offset + length) as usize)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state()?;
        let lies = state.faults.lies_about_sync;
        if let Err(error) = state.begin_sync() {
            if !state.is_off {
                // The kernel marks the pages clean: a second sync would succeed without them.
                let node = state.node_mut(self.id);
                node.dirty.clear();
            }
            return Err(error);
        }
        if !lies {
            let node = state.node_mut(self.id);
            let stretches = node.unsynced();
            node.sync();
            if let Some(watched) = &mut state.watched {
                watched.synced.extend(stretches);
            }
        }
        Ok(())
    }
}
