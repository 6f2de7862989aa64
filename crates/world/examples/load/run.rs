//! The loop: receive what there is, send what is due, wait.
//!
//! Everything that is ready is received before anything is sent, so a server that was waiting finds
//! more than one request. Sending after each receive was tried too: the load then spent more on
//! pipelined requests (0.60 instead of 0.55 µs each, medians of four) and no less on others.
//! Registration is edge-triggered: the kernel need not look at a connection again after it has
//! reported it. Level-triggered was no faster and no slower than the noise of some 10 %.
//!
//! It sleeps when nothing is ready. Asking the kernel again and again instead would spare a server
//! on the same machine the waking of our core (a lone request then took 19 µs of the server instead
//! of 52, on a virtual machine), but no other work, and the core could be given to nobody else.

use crate::arguments::Wanted;
use crate::by_second::BySecond;
use crate::clock::{kept_waiting_nanos, now_nanos, used_nanos};
use crate::connection::Connection;
use crate::histogram::Histogram;
use crate::pace::Pace;
use crate::replies::Outcomes;
use crate::requests::Requests;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::collections::VecDeque;

/// Bytes received at a time: more than 16 replies of 100 members each.
const BUFFER_BYTES: usize = 64 << 10;

/// Reports taken from epoll at a time.
const REPORTS_MAX: usize = 1024;

/// What epoll says of the timer; of a connection it says its index.
const TIMER: u64 = u64::MAX;

pub struct Run {
    epoll: OwnedFd,
    /// Ends a wait when the next request is due: epoll by itself counts in milliseconds.
    timer: OwnedFd,
    connections: Vec<Connection>,
    /// Connections with no request under way, the longest free first.
    free: VecDeque<usize>,
    requests: Requests,
    buffer: Vec<u8>,
    pace: Pace,
    pipeline: u64,
    total: u64,
    sent: u64,
    answered: u64,
    start_nanos: u64,
    /// When a closed loop sends no more, in nanoseconds after the start.
    until_nanos: Option<u64>,
    latencies: Histogram,
    apart: Option<Apart>,
    by_second: Option<BySecond>,
}

/// The latencies of hot and of cold requests.
#[derive(Default)]
pub struct Apart {
    pub hot: Histogram,
    pub cold: Histogram,
}

/// What a run showed.
pub struct Seen {
    pub requests: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// The share of the time in which the load neither used a core nor waited for one.
    pub idle: f64,
    pub latencies: Histogram,
    /// If there are cold requests.
    pub apart: Option<Apart>,
    pub outcomes: Outcomes,
}

impl Run {
    /// # Errors
    /// The kernel refuses what is needed.
    pub fn new(
        connections: Vec<Connection>,
        requests: Requests,
        wanted: &Wanted,
    ) -> Result<Self, String> {
        let refused = |error: Errno| format!("the kernel refuses: {error}");
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(refused)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
        let timer = timer.map_err(refused)?;
        let edges = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), edges).map_err(refused)?;
        for (index, connection) in connections.iter().enumerate() {
            let datum = EventData::new_u64(index as u64);
            epoll::add(&epoll, &connection.socket, datum, edges | EventFlags::OUT)
                .map_err(refused)?;
        }
        Ok(Self {
            epoll,
            timer,
            free: (0..connections.len()).collect(),
            connections,
            requests,
            buffer: vec![0; BUFFER_BYTES],
            pace: wanted.pace,
            pipeline: wanted.shape.pipeline as u64,
            total: wanted.requests,
            sent: 0,
            answered: 0,
            start_nanos: 0,
            until_nanos: wanted.until_nanos(),
            latencies: Histogram::default(),
            apart: wanted.shape.skew.map(|_| Apart::default()),
            by_second: wanted.by_second.then(BySecond::default),
        })
    }

    /// # Errors
    /// The server answered with an error, or a connection broke.
    pub fn until_all_are_answered(mut self) -> Result<Seen, String> {
        let mut reports: Vec<Event> = Vec::with_capacity(REPORTS_MAX);
        let (used_before, kept_before) = (used_nanos(), kept_waiting_nanos());
        self.start_nanos = now_nanos();
        self.send_due()?;
        while self.answered < self.total {
            self.wait(&mut reports);
            if let Some(by_second) = &mut self.by_second {
                let connections = &self.connections;
                by_second.end_those_before(now_nanos(), || outcomes(connections).refused);
            }
            for report in &reports {
                let (datum, flags) = (report.data.u64(), report.flags);
                if datum != TIMER {
                    self.serve(datum as usize, flags)?;
                }
            }
            self.send_due()?;
        }
        let seconds = self.passed_nanos() as f64 / 1e9;
        let cpu_seconds = (used_nanos() - used_before) as f64 / 1e9;
        let kept_seconds = (kept_waiting_nanos() - kept_before) as f64 / 1e9;
        Ok(Seen {
            requests: self.answered,
            seconds,
            cpu_seconds,
            idle: (1.0 - (cpu_seconds + kept_seconds) / seconds).max(0.0),
            outcomes: outcomes(&self.connections),
            latencies: self.latencies,
            apart: self.apart,
        })
    }

    /// Nanoseconds since the start.
    fn passed_nanos(&self) -> u64 {
        now_nanos() - self.start_nanos
    }

    /// Waits for a connection, or for the time of the next request if one could take it.
    fn wait(&self, reports: &mut Vec<Event>) {
        let mut timeout = None;
        if !self.free.is_empty() && self.sent < self.total {
            match self.pace.due_nanos(self.sent) {
                Some(due) if due > self.passed_nanos() => self.arm(self.start_nanos + due),
                _ => timeout = Some(timespec(0)),
            }
        }
        reports.clear();
        let spare = rustix::buffer::spare_capacity(reports);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("the descriptor and the buffer are ours: {error}"),
        }
    }

    fn arm(&self, at_nanos: u64) {
        let time = Itimerspec { it_interval: timespec(0), it_value: timespec(at_nanos) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &time)
            .expect("the descriptor is ours and the time is in range");
    }

    fn serve(&mut self, index: usize, flags: EventFlags) -> Result<(), String> {
        let connection = &mut self.connections[index];
        if flags.contains(EventFlags::OUT) {
            connection.flush()?;
        }
        if !flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP) {
            return Ok(());
        }
        let count = connection.receive(&mut self.buffer)?;
        if count == 0 {
            return Ok(());
        }
        if count > connection.under_way {
            return Err("the server answered more than it was asked".to_owned());
        }
        let passed_nanos = now_nanos() - self.start_nanos;
        if self.pace == Pace::Closed && self.apart.is_none() {
            let nanos = passed_nanos - connection.sent_nanos;
            record(&mut self.latencies, &mut self.by_second, nanos, count);
        } else {
            for request in connection.first..connection.first + count {
                let since = self.pace.due_nanos(request).unwrap_or(connection.sent_nanos);
                let nanos = passed_nanos - since;
                record(&mut self.latencies, &mut self.by_second, nanos, 1);
                if let Some(apart) = &mut self.apart {
                    let is_cold = connection.are_cold.pop_front().unwrap_or(false);
                    let latencies = if is_cold { &mut apart.cold } else { &mut apart.hot };
                    latencies.record(nanos, 1);
                }
            }
        }
        connection.first += count;
        connection.under_way -= count;
        self.answered += count;
        if connection.under_way == 0 {
            self.free.push_back(index);
        }
        Ok(())
    }

    /// Gives free connections the requests that are due, a batch each.
    fn send_due(&mut self) -> Result<(), String> {
        while self.sent < self.total {
            let Some(&index) = self.free.front() else { break };
            let passed_nanos = now_nanos() - self.start_nanos;
            if self.until_nanos.is_some_and(|until| until <= passed_nanos) {
                self.total = self.sent;
                break;
            }
            let due = self.pace.due(passed_nanos).min(self.total);
            let count = due.saturating_sub(self.sent).min(self.pipeline);
            if count == 0 {
                break;
            }
            self.free.pop_front();
            let connection = &mut self.connections[index];
            connection.under_way = count;
            connection.first = self.sent;
            connection.sent_nanos = passed_nanos;
            self.sent += count;
            connection.send(self.requests.next(count as usize))?;
            if self.apart.is_some() {
                connection.are_cold.extend(self.requests.are_cold());
            }
        }
        Ok(())
    }
}

/// Those of all connections together.
fn outcomes(connections: &[Connection]) -> Outcomes {
    let mut sum = Outcomes::default();
    for outcomes in connections.iter().map(Connection::outcomes) {
        sum.missed += outcomes.missed;
        sum.refused += outcomes.refused;
    }
    sum
}

/// Counts the same latency `count` times.
fn record(all: &mut Histogram, by_second: &mut Option<BySecond>, nanos: u64, count: u64) {
    all.record(nanos, count);
    if let Some(by_second) = by_second {
        by_second.record(nanos, count);
    }
}

fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}
