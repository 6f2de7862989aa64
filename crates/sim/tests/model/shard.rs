//! One shard: nodes, the log between them, what is under way, and everything that can happen next.

use crate::bounds::{Bounds, Broken};
use crate::node::{Learned, Node, Read, Role};
use crate::record::{Content, Entry, Standing};

/// One place of the log.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    pub entry: Entry,
    /// Whether the record counts, as every reader must find.
    pub counts: bool,
}

/// A put under way. Whatever its sender does or suffers, it may arrive at any later time, or
/// never. It stays until its place is taken: so a loss is a put that never arrives, and sending
/// identical bytes again is the same put arriving later.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Put {
    pub place: u8,
    pub entry: Entry,
}

/// What clients saw that they must not see.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// A reply revealed a write that does not stand in the log.
    Unfounded,
    /// A reply was older than what had been revealed before its request.
    Stale,
    /// A record that counts in a primary's epoch is not the primary's.
    Stranger,
}

/// How often something happened that is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Spent {
    pub writes: u8,
    pub renews: u8,
    pub yields: u8,
    pub crashes: u8,
    pub freezes: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shard {
    pub log: Vec<Slot>,
    /// The chain of the whole log.
    pub standing: Standing,
    /// In order of place, each once.
    pub puts: Vec<Put>,
    pub nodes: Vec<Node>,
    /// By how much each node's clock has run ahead of the one furthest behind.
    pub ahead: Vec<u8>,
    pub spent: Spent,
    /// The place of the newest value that any reply has revealed.
    pub revealed: u8,
    pub fault: Option<Fault>,
}

/// A step of one node, or of the log. Numbers of nodes come first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// A node's clock advances.
    Tick(u8),
    /// A put arrives, and its number fits.
    Arrive(Put),
    /// A node learns what lies at its next place.
    Learn(u8),
    /// A primary executes a write and appends it.
    Write(u8),
    Renew(u8),
    /// A replica appends a Lead.
    Stand(u8),
    /// A drained primary stops serving and appends a Yield to another node.
    Yield(u8, u8),
    /// A primary executes a read and holds its reply.
    Hold(u8),
    /// It lets the held reply go.
    Release(u8),
    /// A replica is asked, asks a primary for a read position, and is told. To ask later than one
    /// was asked would only make it easier.
    Ask(u8, u8),
    /// It asks the log instead, where a quorum confirms the tail.
    AskLog(u8),
    /// It has applied that far, and answers.
    Answer(u8),
    /// A node loses everything and starts again.
    Crash(u8),
    /// A candidate in doubt is a replica again; its Lead may still arrive.
    GiveUp(u8),
    /// A machine stops, and its clock.
    Freeze(u8),
    /// It goes on.
    Wake(u8),
    /// What only a broken build does.
    Misdeed(Misdeed),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Misdeed {
    /// The acknowledgement of a later record is taken for one of all records through it.
    AcknowledgeLater(u8, usize),
    /// A record's acknowledgement at another place is taken for one at its present place.
    AcknowledgeElsewhere(u8),
    /// The newest record in flight is replaced by another under the same counter.
    Replace(u8),
    /// A replica takes any old tail for a read position.
    TrustStaleTail(u8),
    /// A primary reads its clock for whatever it executes later.
    Look(u8),
}

impl Shard {
    pub fn start(bounds: &Bounds) -> Self {
        let nodes = usize::from(bounds.nodes);
        let mut shard = Self {
            log: Vec::new(),
            standing: Standing::start(),
            puts: Vec::new(),
            nodes: vec![Node::fresh(0); nodes],
            ahead: vec![0; nodes],
            spent: Spent::default(),
            revealed: 0,
            fault: None,
        };
        if !bounds.begins_empty {
            shard.stand(0, bounds);
            shard.arrive(&shard.puts[0].clone(), bounds);
            (0..bounds.nodes).for_each(|index| shard.learn(index, bounds));
        }
        shard
    }

    pub fn node(&self, index: u8) -> &Node {
        &self.nodes[usize::from(index)]
    }

    fn node_mut(&mut self, index: u8) -> &mut Node {
        &mut self.nodes[usize::from(index)]
    }

    fn length(&self) -> u8 {
        u8::try_from(self.log.len()).expect("the log is short")
    }

    /// Everything that can happen next.
    pub fn actions(&self, bounds: &Bounds, actions: &mut Vec<Action>) {
        if self.fault.is_some() {
            return;
        }
        let arrives = |put: &&Put| put.place == self.length() + 1;
        actions.extend(self.puts.iter().filter(arrives).cloned().map(Action::Arrive));
        for index in 0..bounds.nodes {
            let node = self.node(index);
            if node.is_frozen {
                actions.push(Action::Wake(index));
                continue;
            }
            if self.spent.freezes < bounds.freezes {
                actions.push(Action::Freeze(index));
            }
            if self.ahead[usize::from(index)] < bounds.drift() {
                actions.push(Action::Tick(index));
            }
            if node.at < self.length() {
                actions.push(Action::Learn(index));
            }
            if self.spent.crashes < bounds.crashes {
                actions.push(Action::Crash(index));
                let may_give_up = node.role == Role::Candidate;
                actions.extend(may_give_up.then_some(Action::GiveUp(index)));
            }
            self.appends(index, bounds, actions);
            self.answers(index, bounds, actions);
            self.misdeeds(index, bounds, actions);
        }
    }

    fn appends(&self, index: u8, bounds: &Bounds, actions: &mut Vec<Action>) {
        let node = self.node(index);
        if usize::from(node.place_of_last()) >= bounds.records {
            return;
        }
        if node.may_append(bounds) {
            if self.spent.writes < bounds.writes {
                actions.push(Action::Write(index));
            }
            if self.spent.renews < bounds.renews {
                actions.push(Action::Renew(index));
            }
            if self.spent.yields < bounds.yields && node.pending.is_empty() {
                let others = (0..bounds.nodes).filter(|other| *other != index);
                actions.extend(others.map(|other| Action::Yield(index, other)));
            }
        }
        let sees_tail = node.at == self.length() || bounds.is_broken(Broken::TailUnread);
        if node.may_stand(bounds) && sees_tail && self.is_turn_of(index) {
            actions.push(Action::Stand(index));
        }
    }

    /// Nodes 1 and 2 begin alike, so runs in which 2 stands first are those in which 1 does, by
    /// other names.
    fn is_turn_of(&self, index: u8) -> bool {
        let is_first = |entry: &Entry| entry.writer % 10 == 1;
        index < 2
            || self.node(1).counter > 0
            || self.node(1).life > 0
            || self.log.iter().any(|slot| is_first(&slot.entry))
            || self.puts.iter().any(|put| is_first(&put.entry))
    }

    fn answers(&self, index: u8, bounds: &Bounds, actions: &mut Vec<Action>) {
        let node = self.node(index);
        match node.read {
            Read::None if node.role == Role::Primary && bounds.holds_replies => {
                actions.push(Action::Hold(index));
            }
            Read::None if bounds.replica_reads && node.role == Role::Replica => {
                let tells = |other: &u8| {
                    let other = self.node(*other);
                    let unchecked = bounds.is_broken(Broken::PositionWithoutLease);
                    other.serves(bounds) || (unchecked && other.role == Role::Primary)
                };
                let others = (0..bounds.nodes).filter(tells);
                actions.extend(others.map(|other| Action::Ask(index, other)));
                actions.push(Action::AskLog(index));
            }
            Read::Held { value, .. }
                if (node.serves(bounds) || node.has_looked) && !node.awaits(value) =>
            {
                actions.push(Action::Release(index));
            }
            Read::Waits { place, .. } if node.at >= place => actions.push(Action::Answer(index)),
            _ => {}
        }
    }

    fn misdeeds(&self, index: u8, bounds: &Bounds, actions: &mut Vec<Action>) {
        let node = self.node(index);
        let at = usize::from(node.at);
        let stands_at = |place: usize, entry: &Entry| {
            self.log.get(place).is_some_and(|slot| slot.entry == *entry)
        };
        let pending = node.pending.iter().enumerate();
        let misdeed = match bounds.broken {
            Some(Broken::EarlierFailuresIgnored) => {
                let later = pending.skip(1).find(|(i, later)| stands_at(at + i, &later.entry));
                later.map(|(i, _)| Misdeed::AcknowledgeLater(index, i))
            }
            Some(Broken::PlaceIgnored) => {
                let first = node.pending.first();
                let is_first = |slot: &Slot| first.is_some_and(|p| p.entry == slot.entry);
                let is_anywhere = self.log.iter().any(is_first);
                is_anywhere.then_some(Misdeed::AcknowledgeElsewhere(index))
            }
            Some(Broken::CounterReused) if self.spent.writes < bounds.writes => {
                let last = node.pending.last();
                last.and_then(|last| last.entry.write()).map(|_| Misdeed::Replace(index))
            }
            Some(Broken::ClockReadBeforeExecution) => {
                let may_look = node.serves(bounds) && !node.has_looked;
                may_look.then_some(Misdeed::Look(index))
            }
            Some(Broken::StaleTailTrusted) => {
                let may_ask = node.role == Role::Replica && node.read == Read::None;
                may_ask.then_some(Misdeed::TrustStaleTail(index))
            }
            _ => None,
        };
        actions.extend(misdeed.map(Action::Misdeed));
    }

    /// What the action makes of this state.
    pub fn act(&mut self, action: &Action, bounds: &Bounds) {
        match *action {
            Action::Tick(index) => self.tick(index, bounds),
            Action::Arrive(ref put) => self.arrive(put, bounds),
            Action::Learn(index) => self.learn(index, bounds),
            Action::Write(index) => {
                self.spent.writes += 1;
                self.append(index, Content::Write(self.spent.writes));
            }
            Action::Renew(index) => {
                self.spent.renews += 1;
                self.append(index, Content::Renew);
            }
            Action::Stand(index) => self.stand(index, bounds),
            Action::Yield(index, to) => {
                self.spent.yields += 1;
                self.append(index, Content::Yield(to));
                if !bounds.is_broken(Broken::ServesAfterYield) {
                    self.node_mut(index).become_replica();
                }
            }
            Action::Crash(index) => {
                self.spent.crashes += 1;
                let life = self.node(index).life;
                let reused = bounds.is_broken(Broken::WriterReused);
                *self.node_mut(index) = Node::fresh(life + u8::from(!reused));
            }
            Action::GiveUp(index) => {
                self.spent.crashes += 1;
                self.node_mut(index).become_replica();
            }
            Action::Freeze(index) => {
                self.spent.freezes += 1;
                self.node_mut(index).is_frozen = true;
            }
            Action::Wake(index) => self.node_mut(index).wake(bounds),
            Action::Misdeed(ref misdeed) => self.misbehave(misdeed, bounds),
            ref read => self.read(read, bounds),
        }
        self.reply(bounds);
    }

    fn tick(&mut self, index: u8, bounds: &Bounds) {
        self.node_mut(index).tick(bounds);
        self.ahead[usize::from(index)] += 1;
        // A clock that stands still falls behind all others, and is not waited for.
        let clocks = self.ahead.iter().zip(&self.nodes);
        let running = clocks.filter(|(_, node)| !node.is_frozen).map(|(ahead, _)| *ahead);
        let behind = running.min().expect("one has ticked");
        self.ahead.iter_mut().for_each(|ahead| *ahead = ahead.saturating_sub(behind));
    }

    /// The log checks numbers and nothing else.
    fn arrive(&mut self, put: &Put, bounds: &Bounds) {
        let counts = self.standing.admits(&put.entry, bounds.broken);
        if counts {
            self.standing = Standing::behind(&put.entry);
        }
        self.log.push(Slot { entry: put.entry, counts });
        self.puts.retain(|other| other.place > put.place);
    }

    fn learn(&mut self, index: u8, bounds: &Bounds) {
        let entry = self.log[usize::from(self.node(index).at)].entry;
        match self.node_mut(index).learn(index, &entry, bounds) {
            Learned::Fine | Learned::Deposed => {}
            Learned::Shifted => self.send_pending(index, bounds),
            Learned::Stranger => self.fault = Some(Fault::Stranger),
        }
    }

    /// Sends everything pending, unchanged, to where it belongs now.
    fn send_pending(&mut self, index: u8, bounds: &Bounds) {
        let node = self.node(index);
        let places = (node.at + 1)..;
        let sent: Vec<_> = node.pending.iter().map(|pending| pending.entry).zip(places).collect();
        for (entry, place) in sent {
            if usize::from(place) <= bounds.records {
                self.send(place, entry);
            }
        }
    }

    fn stand(&mut self, index: u8, bounds: &Bounds) {
        let length = self.length();
        let node = self.node_mut(index);
        if node.role == Role::Replica {
            node.role = Role::Candidate;
            node.read = Read::None;
            node.is_chosen = false;
            node.age = 0;
            if bounds.is_broken(Broken::TailUnread) {
                node.at = length;
            }
        }
        self.append(index, Content::Lead);
    }

    fn append(&mut self, index: u8, content: Content) {
        let (place, entry) = self.node_mut(index).stamp(index, content);
        self.send(place, entry);
    }

    fn send(&mut self, place: u8, entry: Entry) {
        let put = Put { place, entry };
        if place > self.length()
            && let Err(at) = self.puts.binary_search(&put)
        {
            self.puts.insert(at, put);
        }
    }

    /// Every primary that may lets go at once what it can: the answer to a read of a clean
    /// register, or else the answer to the newest write that is durable, which may be as old as it
    /// likes. To answer later, or not, would only hide what can go wrong: nothing else depends on
    /// it.
    fn reply(&mut self, bounds: &Bounds) {
        let early = bounds.is_broken(Broken::AcknowledgedBeforeDurable);
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.serves(bounds) {
                let value = if early { node.executed() } else { node.value };
                let floor = if node.is_dirty() { 0 } else { self.revealed };
                self.reveal(value, floor);
            }
        }
    }

    fn read(&mut self, action: &Action, bounds: &Bounds) {
        let floor = self.revealed;
        match *action {
            Action::Hold(index) => {
                let value = self.node(index).executed();
                self.node_mut(index).read = Read::Held { value, floor };
            }
            Action::Ask(index, other) => {
                let place = self.read_position(other, bounds);
                self.node_mut(index).read = Read::Waits { place, floor };
            }
            Action::AskLog(index) => {
                let place = self.length();
                self.node_mut(index).read = Read::Waits { place, floor };
            }
            Action::Release(index) | Action::Answer(index) => {
                let value = self.node(index).value;
                match std::mem::replace(&mut self.node_mut(index).read, Read::None) {
                    Read::Held { value, floor } => self.reveal(value, floor),
                    Read::Waits { floor, .. } => self.reveal(value, floor),
                    Read::None => {}
                }
            }
            _ => {}
        }
    }

    /// What a primary tells a replica to have applied before it answers: the place of the newest
    /// record that it has sent. The newest one that it knows to be durable would be too little. A
    /// replica reads the log by itself and may already have answered from a record whose
    /// acknowledgement is still on its way to the primary.
    fn read_position(&self, primary: u8, bounds: &Bounds) -> u8 {
        let primary = self.node(primary);
        match bounds.broken {
            Some(Broken::PositionOnlyDurable) => primary.at,
            _ => primary.place_of_last(),
        }
    }

    /// A reply leaves, to a client who asked when `floor` was the newest value revealed.
    ///
    /// The log's order is the order in which operations took effect. A history fits it exactly if
    /// nothing is revealed that does not stand in the log, and nothing older than what was revealed
    /// before the request.
    fn reveal(&mut self, value: u8, floor: u8) {
        match self.place_of(value) {
            None => self.fault = Some(Fault::Unfounded),
            Some(place) if place < floor => self.fault = Some(Fault::Stale),
            Some(place) => self.revealed = self.revealed.max(place),
        }
    }

    /// Where a value was written; the register's first one stands before the log.
    fn place_of(&self, value: u8) -> Option<u8> {
        if value == 0 {
            return Some(0);
        }
        let writes = |slot: &Slot| slot.counts && slot.entry.write() == Some(value);
        let index = self.log.iter().position(writes)?;
        Some(u8::try_from(index + 1).expect("the log is short"))
    }

    fn misbehave(&mut self, misdeed: &Misdeed, bounds: &Bounds) {
        match *misdeed {
            Misdeed::AcknowledgeLater(index, later) => {
                let node = self.node_mut(index);
                node.at += u8::try_from(later).expect("a few are in flight");
                node.pending.drain(..later);
                node.count_first(bounds);
            }
            Misdeed::AcknowledgeElsewhere(index) => self.node_mut(index).count_first(bounds),
            Misdeed::Replace(index) => {
                self.spent.writes += 1;
                let value = self.spent.writes;
                let node = self.node_mut(index);
                node.pending.pop();
                node.counter -= 1;
                self.append(index, Content::Write(value));
            }
            Misdeed::Look(index) => self.node_mut(index).has_looked = true,
            Misdeed::TrustStaleTail(index) => {
                let (place, floor) = (self.node(index).at, self.revealed);
                self.node_mut(index).read = Read::Waits { place, floor };
            }
        }
    }
}
