//! Disk jobs that end at simulated instants.

use crate::random::Random;
use crate::timeline::Timeline;
use base::MonotonicNanos;
use base::disk::{DiskJob, DiskOutcome, DiskQueue, DiskTicket};
use base::driver::Waker;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue whose jobs run, one after the other, each at the instant it ends: until then its
/// effects are not there, as with a thread that has not come to it.
pub struct SimDiskQueue {
    timeline: Timeline,
    random: Random,
    /// Each job takes between one and two times this.
    latency_nanos: u64,
    waker: Waker,
    submitted: u64,
    busy_until: MonotonicNanos,
    jobs: Arc<Mutex<Jobs>>,
}

#[derive(Default)]
struct Jobs {
    queued: BTreeMap<DiskTicket, DiskJob>,
    done: Vec<(DiskTicket, DiskOutcome)>,
}

impl SimDiskQueue {
    /// `waker` is called when a job has ended.
    pub fn new(timeline: &Timeline, random: Random, latency_nanos: u64, waker: Waker) -> Self {
        Self {
            timeline: timeline.clone(),
            random,
            latency_nanos: latency_nanos.max(1),
            waker,
            submitted: 0,
            busy_until: MonotonicNanos(0),
            jobs: Arc::default(),
        }
    }
}

impl DiskQueue for SimDiskQueue {
    fn submit(&mut self, job: DiskJob) -> DiskTicket {
        self.submitted += 1;
        let ticket = DiskTicket(self.submitted);
        let now = self.timeline.now();
        let took = self.random.within(self.latency_nanos..2 * self.latency_nanos);
        self.busy_until = MonotonicNanos(now.max(self.busy_until).0 + took);
        lock(&self.jobs).queued.insert(ticket, job);
        let (jobs, waker) = (Arc::clone(&self.jobs), self.waker.clone());
        let happening = move || {
            run(&jobs, ticket);
            waker.wake();
        };
        self.timeline.schedule(self.busy_until.since(now), Box::new(happening));
        ticket
    }

    fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>) {
        done.append(&mut lock(&self.jobs).done);
    }

    /// Runs what is queued now; time stands still.
    fn drain(&mut self) {
        loop {
            let first = lock(&self.jobs).queued.first_key_value().map(|(ticket, _)| *ticket);
            let Some(ticket) = first else { return };
            run(&self.jobs, ticket);
        }
    }
}

impl Drop for SimDiskQueue {
    /// A process that dies takes its threads along: what they had not come to never happens.
    fn drop(&mut self) {
        lock(&self.jobs).queued.clear();
    }
}

fn lock(jobs: &Mutex<Jobs>) -> MutexGuard<'_, Jobs> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one job, unless a drain ran it before its time.
fn run(jobs: &Mutex<Jobs>, ticket: DiskTicket) {
    let job = lock(jobs).queued.remove(&ticket);
    if let Some(job) = job {
        let outcome = job();
        lock(jobs).done.push((ticket, outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn jobs_end_in_order_and_not_before_their_time() {
        let timeline = Timeline::new();
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let waker = Waker(Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        let mut queue = SimDiskQueue::new(&timeline, Random::from_seed(1), 100, waker);
        let first = queue.submit(Box::new(|| Box::new(1_u8)));
        let second = queue.submit(Box::new(|| Box::new(2_u8)));
        let mut done = Vec::new();
        timeline.pass(99);
        queue.poll(&mut done);
        assert!(done.is_empty());
        timeline.step(timeline.next_due().unwrap());
        queue.poll(&mut done);
        assert_eq!(done.iter().map(|(ticket, _)| *ticket).collect::<Vec<_>>(), [first]);
        timeline.pass(200);
        queue.poll(&mut done);
        assert_eq!(done[1].0, second);
        assert_eq!(woken.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn jobs_die_with_their_process() {
        let timeline = Timeline::new();
        let waker = Waker(Arc::new(|| {}));
        let ran = Arc::new(AtomicUsize::new(0));
        let mut queue = SimDiskQueue::new(&timeline, Random::from_seed(1), 100, waker);
        let count = Arc::clone(&ran);
        queue.submit(Box::new(move || Box::new(count.fetch_add(1, Ordering::SeqCst))));
        drop(queue);
        timeline.pass(1_000);
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }
}
