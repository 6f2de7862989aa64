//! Linearizable reads on a replica.
//!
//! ```text
//! request arrives ─▶ waits ─▶ report to the primary ─▶ its newest record ─▶ applied ─▶ runs
//! ```
//! The primary answers only under its lease, so nobody else had acknowledged anything when it did,
//! which is after the request arrived. Its newest record is the last that it has *appended*, not
//! the last that it knows to be durable: another replica may have read the one and shown it.
//!
//! One report serves all requests that arrived before it was sent.

use super::Members;
use crate::core::Core;
use crate::core::asker::Asker;
use crate::core::verdict::needs_data;
use base::{ConnectionId, MonotonicNanos};
use catalog::Registered;
use shard::RecordId;
use std::collections::VecDeque;

/// How long a read waits for what its primary says and for the log, in milliseconds: longer than a
/// failover takes, shorter than clients wait.
const WAIT_MILLIS_MAX: u64 = 10_000;

/// Who waits to read.
#[derive(Default)]
pub struct Reads {
    /// For the next report.
    waiting: Vec<ConnectionId>,
    /// For the answer to the report under way.
    asked: Vec<ConnectionId>,
    /// For a record, since a report that was sent in this turn of the loop.
    applying: VecDeque<(RecordId, u64, Vec<ConnectionId>)>,
}

impl Reads {
    /// A client's request waits for the next report; until when.
    pub fn add(&mut self, client: ConnectionId, now: MonotonicNanos) -> Option<MonotonicNanos> {
        self.waiting.push(client);
        Some(now.after_millis(WAIT_MILLIS_MAX))
    }

    /// Whether somebody waits for the next report.
    pub(super) fn wants(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty() && self.applying.is_empty()
    }

    /// A report is being sent.
    pub(super) fn asked(&mut self) {
        self.asked.append(&mut self.waiting);
    }

    /// The report under way was answered.
    pub(super) fn learned(&mut self, newest: RecordId, turn: u64) {
        if !self.asked.is_empty() {
            self.applying.push_back((newest, turn, std::mem::take(&mut self.asked)));
        }
    }

    /// The report under way will not be answered.
    pub(super) fn ask_again(&mut self) {
        self.waiting.append(&mut self.asked);
    }

    /// The next ones that have waited long enough where this record is applied, and the turn since
    /// which that is known.
    fn take_ready(&mut self, applied: &RecordId) -> Option<(u64, Vec<ConnectionId>)> {
        let (newest, ..) = self.applying.front()?;
        if !applied.covers(newest) {
            return None;
        }
        self.applying.pop_front().map(|(_, turn, readers)| (turn, readers))
    }

    fn take_all(&mut self) -> Vec<ConnectionId> {
        let applying = self.applying.drain(..).flat_map(|(.., readers)| readers);
        let mut all: Vec<_> = applying.collect();
        all.append(&mut self.asked);
        all.append(&mut self.waiting);
        all
    }
}

impl Members {
    /// Whether a request must wait until it is known that what it reads is the newest.
    pub(crate) fn must_learn_newest(
        &self,
        core: &Core,
        asker: &Asker,
        command: &Registered,
    ) -> bool {
        asker.awaits_newest && core.is_following() && needs_data(command)
    }

    /// Lets the reads go on that have waited long enough.
    pub(crate) fn resume_reads(&mut self, core: &mut Core) {
        if !core.is_following() {
            // What a primary has is the newest.
            for client in self.reads.take_all() {
                self.resume_read(core, client, core.turn.number);
            }
            return;
        }
        let applied = core.shard.newest_id();
        while let Some((turn, readers)) = self.reads.take_ready(&applied) {
            for client in readers {
                self.resume_read(core, client, turn);
            }
        }
    }

    fn resume_read(&mut self, core: &mut Core, client: ConnectionId, turn: u64) {
        let Some(session) = core.clients.sessions.get_mut(client) else { return };
        session.newest.confirmed_turn = turn;
        core.clients.resuming.push_back(client);
    }
}
