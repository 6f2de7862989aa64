//! A table of fields, with the sum of their memory.

use crate::work::Work;
use structures::{Field, FieldRef, KeyHasher, Mover, Table};

/// A table of fields, and the bytes of their blocks.
pub struct FieldTable {
    pub(super) table: Table<Field>,
    /// Bytes of the blocks that the table's slots point to.
    field_bytes: usize,
}

impl FieldTable {
    /// Moves what `mover` takes of up to `buckets_max` buckets: see [`Table::move_blocks`].
    pub(crate) fn move_blocks(
        &mut self,
        from: u64,
        buckets_max: usize,
        mover: &mut Mover<'_>,
    ) -> Option<u64> {
        self.table.move_blocks(from, buckets_max, mover, |_, _| {})
    }

    #[cfg(test)]
    pub(crate) fn lookup_steps(&self) -> u64 {
        self.table.lookup_steps()
    }

    pub(super) fn new(hasher: KeyHasher) -> Self {
        Self { table: Table::new(hasher), field_bytes: 0 }
    }

    /// Bytes of the struct and of all its allocations.
    pub(super) fn allocated_bytes(&self) -> usize {
        size_of::<Self>() + self.table.allocated_bytes() + self.field_bytes
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<FieldRef<'_>> {
        self.table.find(self.table.hasher().hash(name), name)
    }

    /// Sets a field's value. A field that exists keeps its expiry. Returns whether the field is
    /// new.
    pub(super) fn set(&mut self, name: &[u8], value: &[u8]) -> bool {
        let hash = self.table.hasher().hash(name);
        let Some(mut found) = self.table.find_mut(hash, name) else {
            let field = Field::new(name, value);
            self.field_bytes += field.as_ref().allocated_bytes();
            self.table.insert_new(hash, field);
            return true;
        };
        // Written in place, the block keeps its size class and so its bytes.
        if !found.as_mut().set_value_in_place(value) {
            let field = Field::expiring(name, value, found.as_ref().expire_at());
            self.field_bytes += field.as_ref().allocated_bytes();
            let old = found.replace(field);
            self.field_bytes -= old.as_ref().allocated_bytes();
        }
        false
    }

    /// Sets or removes the expiry of an existing field.
    pub(super) fn expire(&mut self, hash: u64, name: &[u8], expire_at: Option<i64>) {
        let Some(mut found) = self.table.find_mut(hash, name) else { return };
        if expire_at.is_some_and(|at| found.as_mut().set_expire_in_place(at)) {
            return;
        }
        let field = Field::expiring(name, found.as_ref().value(), expire_at);
        self.field_bytes += field.as_ref().allocated_bytes();
        let old = found.replace(field);
        self.field_bytes -= old.as_ref().allocated_bytes();
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Field> {
        let removed = self.table.remove(self.table.hasher().hash(name), name);
        self.field_bytes -= removed.as_ref().map_or(0, |field| field.as_ref().allocated_bytes());
        removed
    }

    pub(super) fn copied(&self, work: &Work) -> Self {
        let mut copy = Self::new(*self.table.hasher());
        for field in self.table.iter() {
            work.step();
            let hash = copy.table.hasher().hash(field.name());
            let same = Field::expiring(field.name(), field.value(), field.expire_at());
            copy.field_bytes += same.as_ref().allocated_bytes();
            copy.table.insert_new(hash, same);
        }
        copy
    }
}
