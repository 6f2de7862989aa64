//! What one node knows, and what it makes of what it learns.
//!
//! ```text
//!             stands: applied all, waited        its Lead counts
//!   replica ──────────────────────────▶ candidate ─────────────▶ primary
//!    ▲ ▲ ▲                                  │                     │ │
//!    │ │ └────── another's record counts ───┘                     │ │
//!    │ └──────── yields: stops serving, then appends ─────────────┘ │
//!    └────────── deposed by a foreign Lead: discards everything ────┘
//! ```

use crate::bounds::{Bounds, Broken};
use crate::record::{Content, Entry, Standing};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Replica,
    /// Its Lead is in flight. It appends nothing else.
    Candidate,
    Primary,
}

/// A record on its way. The first one's place is right behind what the node has read, the next
/// ones follow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pending {
    pub entry: Entry,
    /// Ticks of the node's clock since before it was first sent.
    pub age: u8,
}

/// A read on its way through a node. `floor` is ghost: the place of the newest value that anybody
/// had been told when the client asked. The answer must not be older.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Read {
    None,
    /// A primary has executed it and holds the reply.
    Held {
        value: u8,
        floor: u8,
    },
    /// A replica waits until it has applied this place.
    Waits {
        place: u8,
        floor: u8,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// Grows with each restart.
    pub life: u8,
    /// Of the last record stamped in this life.
    pub counter: u8,
    pub role: Role,
    /// The last place whose record it knows; everything through there is durable.
    pub at: u8,
    /// The chain through there.
    pub standing: Standing,
    /// The register through there.
    pub value: u8,
    /// What it executed, or stands for, beyond.
    pub pending: Vec<Pending>,
    /// By the node's own clock. Of a primary: since before it sent the newest record that it knows
    /// to count. Of a replica: since it saw the newest record that counts.
    pub age: u8,
    /// The newest record that counts is a Yield to this node.
    pub is_chosen: bool,
    pub read: Read,
    /// It does nothing, and its clock stands still.
    pub is_frozen: bool,
    /// It has read its clock, and believes for ever what it showed. Only a broken build does.
    pub has_looked: bool,
}

/// What reading a record did to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learned {
    Fine,
    /// A void record took the first pending one's place: all must be sent again, unchanged, to
    /// the places behind it.
    Shifted,
    /// Another's Lead counts.
    Deposed,
    /// A record of nobody's counts in this primary's epoch. That cannot be.
    Stranger,
}

impl Node {
    /// A process that has just started and knows nothing.
    pub fn fresh(life: u8) -> Self {
        Self {
            life,
            counter: 0,
            role: Role::Replica,
            at: 0,
            standing: Standing::start(),
            value: 0,
            pending: Vec::new(),
            age: 0,
            is_chosen: false,
            read: Read::None,
            is_frozen: false,
            has_looked: false,
        }
    }

    /// The register as executed, durable or not.
    pub fn executed(&self) -> u8 {
        let newest = self.pending.iter().rev().find_map(|pending| pending.entry.write());
        newest.unwrap_or(self.value)
    }

    /// Whether it executed writes that it does not know to be durable.
    pub fn is_dirty(&self) -> bool {
        self.pending.iter().any(|pending| pending.entry.write().is_some())
    }

    /// Whether this value is one of them.
    pub fn awaits(&self, value: u8) -> bool {
        self.pending.iter().any(|pending| pending.entry.write() == Some(value))
    }

    pub fn holds_lease(&self, bounds: &Bounds) -> bool {
        self.role == Role::Primary && !self.is_frozen && self.age < bounds.served_ticks()
    }

    /// It goes on after a freeze. What tells it, wall clock or hypervisor, does not say how long it
    /// was: so its lease is over, and nothing that it sent before renews it.
    pub fn wake(&mut self, bounds: &Bounds) {
        self.is_frozen = false;
        if self.role == Role::Replica || bounds.is_broken(Broken::FreezeUnnoticed) {
            return;
        }
        self.age = bounds.served_ticks();
        if !bounds.is_broken(Broken::FreezeForgottenByRecords) {
            self.pending.iter_mut().for_each(|pending| pending.age = bounds.served_ticks());
        }
    }

    /// Whether it may let a reply go, by its clock at this moment.
    pub fn serves(&self, bounds: &Bounds) -> bool {
        let unchecked = bounds.is_broken(Broken::LeaseUnchecked) && self.role == Role::Primary;
        unchecked || self.holds_lease(bounds)
    }

    /// Whether it may append anything but a Lead. A primary may while its lease is over: if the
    /// record counts, nobody else has led.
    pub fn may_append(&self, bounds: &Bounds) -> bool {
        let has_room = self.pending.len() < bounds.in_flight;
        let leaves = self.pending.iter().any(|pending| {
            pending.entry.is_lead() || matches!(pending.entry.content, Content::Yield(_))
        });
        self.role == Role::Primary && has_room && !leaves
    }

    /// Whether it may append a Lead: a replica that has waited, or was chosen, or sees a log that
    /// nobody ever led.
    pub fn may_stand(&self, bounds: &Bounds) -> bool {
        let epoch_fits = self.standing.epoch < bounds.epochs;
        let nobody_led = bounds.begins_empty && self.at == 0;
        let may = nobody_led || self.is_chosen || self.age >= bounds.waited_ticks();
        self.role == Role::Replica && epoch_fits && may
    }

    /// Stamps a record behind everything pending. Returns its place and bytes.
    pub fn stamp(&mut self, index: u8, content: Content) -> (u8, Entry) {
        self.counter += 1;
        let head = self.pending.last().map(|last| Standing::behind(&last.entry));
        let writer = self.life * 10 + index;
        let entry = head.unwrap_or(self.standing).stamp(writer, self.counter, content);
        self.pending.push(Pending { entry, age: 0 });
        (self.place_of_last(), entry)
    }

    pub fn place_of_last(&self) -> u8 {
        self.at + u8::try_from(self.pending.len()).expect("a few are in flight")
    }

    /// The node's clock advances.
    pub fn tick(&mut self, bounds: &Bounds) {
        let age_max = match self.role {
            Role::Replica => bounds.waited_ticks(),
            // Its Lead's own age is what counts.
            Role::Candidate => 0,
            Role::Primary => bounds.served_ticks(),
        };
        self.age = (self.age + 1).min(age_max);
        for pending in &mut self.pending {
            pending.age = (pending.age + 1).min(bounds.served_ticks());
        }
    }

    /// Learns what lies at the next place, from an acknowledgement or by reading: the two tell the
    /// same, and either may be late or never come.
    pub fn learn(&mut self, index: u8, entry: &Entry, bounds: &Bounds) -> Learned {
        if !self.standing.admits(entry, bounds.broken) {
            self.at += 1;
            return if self.pending.is_empty() { Learned::Fine } else { Learned::Shifted };
        }
        if let Some(first) = self.pending.first()
            && is_same(&first.entry, entry, bounds)
        {
            self.count_first(bounds);
            return Learned::Fine;
        }
        match self.role {
            Role::Primary if !entry.is_lead() => Learned::Stranger,
            Role::Primary if bounds.is_broken(Broken::ForeignLeadIgnored) => {
                self.at += 1;
                Learned::Shifted
            }
            Role::Primary => self.depose(bounds),
            Role::Candidate | Role::Replica => {
                self.become_replica();
                self.apply(index, entry);
                Learned::Fine
            }
        }
    }

    /// The first pending record counts, at the place that was predicted.
    pub fn count_first(&mut self, bounds: &Bounds) {
        let Pending { entry, age } = self.pending.remove(0);
        let age = if bounds.is_broken(Broken::LeaseFromAcknowledgement) { 0 } else { age };
        self.age = if entry.is_lead() { age } else { self.age.min(age) };
        self.role = Role::Primary;
        self.follow(&entry);
        if matches!(entry.content, Content::Yield(_)) {
            self.become_replica();
        }
    }

    fn apply(&mut self, index: u8, entry: &Entry) {
        self.age = 0;
        self.is_chosen = entry.content == Content::Yield(index);
        self.follow(entry);
    }

    fn follow(&mut self, entry: &Entry) {
        self.at += 1;
        self.standing = Standing::behind(entry);
        self.value = entry.write().unwrap_or(self.value);
    }

    /// Serves and appends no more, but keeps its state, which is all durable.
    pub fn become_replica(&mut self) {
        if self.role != Role::Replica {
            self.role = Role::Replica;
            self.read = Read::None;
            self.age = 0;
        }
        self.pending.clear();
    }

    fn depose(&mut self, bounds: &Bounds) -> Learned {
        let kept = Self { value: self.executed(), ..self.clone() };
        let counter = self.counter;
        *self = Self { counter, ..Self::fresh(self.life) };
        if bounds.is_broken(Broken::DeposedKeepsState) {
            (self.at, self.standing, self.value) = (kept.at, kept.standing, kept.value);
        }
        Learned::Deposed
    }
}

/// Whether a record read back is the one that was sent.
fn is_same(sent: &Entry, read: &Entry, bounds: &Bounds) -> bool {
    let by_counter = sent.writer == read.writer && sent.counter == read.counter;
    sent == read || (bounds.is_broken(Broken::CounterReused) && by_counter)
}
