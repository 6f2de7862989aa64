//! A handle of one file of a simulated disk, as a program reads, writes and syncs it.

use super::{NodeId, SimDisk, State};
use base::disk::DiskFile;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, MutexGuard};

/// An open file. It serves the life of the process that opened it, and no later one.
pub(super) struct SimFile {
    pub(super) disk: SimDisk,
    pub(super) id: NodeId,
    pub(super) life: u64,
    /// Of a file without a name, which is gone with the last one.
    pub(super) handle: Option<Arc<()>>,
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
        let mut state = self.state()?;
        let live = &state.nodes[&self.id].live;
        let start = (offset as usize).min(live.len());
        let count = into.len().min(live.len() - start);
        into[..count].copy_from_slice(&live[start..start + count]);
        state.disturb_read(self.id, start, &mut into[..count])
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        state.writes += 1;
        if state.faults.full_at_write == Some(state.writes) {
            state.write_some_sectors(self.id, start, bytes);
            return Err(ErrorKind::StorageFull.into());
        }
        if state.will_fail_write(self.id) {
            state.write_some_sectors(self.id, start, bytes);
            return Err(io::Error::other("simulated I/O error"));
        }
        state.grow(self.id, end)?;
        let node = state.node_mut(self.id);
        if let Some(nameless) = &mut node.nameless {
            nameless.keep_earlier(&node.live, start, end);
        }
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

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        Ok(self.state()?.names.get(path) == Some(&self.id))
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.state()?.grow(self.id, (offset + length) as usize)
    }

    fn release_cache(&self) {
        if let Ok(mut state) = self.state() {
            state.released += 1;
        }
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
            // No sync makes one without a name outlive its process.
            let stretches = if self.handle.is_some() { Vec::new() } else { node.unsynced() };
            node.sync();
            let name = state.names.iter().find(|(_, id)| **id == self.id);
            let name = name.map(|(path, _)| path.clone()).unwrap_or_default();
            if let Some(watched) = &mut state.watched {
                watched.synced.extend(stretches.into_iter().map(|bytes| (name.clone(), bytes)));
            }
        }
        Ok(())
    }
}
