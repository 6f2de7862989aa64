//! Disk jobs that end at simulated instants.

use crate::random::Random;
use crate::timeline::Timeline;
use base::MonotonicNanos;
use base::disk::{DiskJob, DiskOutcome, DiskQueue, DiskRead, DiskTicket};
use base::driver::Waker;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In a pool, how many of 100 jobs take longer than usual, and how many times as long: an order
/// that is seldom that of submission, and now and then one outcome long after many others.
const SLOW_PERCENT: u64 = 10;
const SLOW_FACTOR: u64 = 8;

/// In a pool, how many of 100 reads have ended as soon as they are begun, for the same turn of the
/// loop: simulated time stands still within it.
const QUICK_PERCENT: u64 = 20;

/// In a pool, how many of 100 polls that find outcomes leave some for the next one, as if these had
/// ended between the two.
const LATE_PERCENT: u64 = 30;

/// In a pool, how many of 100 jobs nobody takes before the next call, as if a thread had the queue.
const KEPT_PERCENT: u64 = 20;

/// A queue whose jobs run, one after the other, each at the instant it ends: until then its
/// effects are not there, as with a thread that has not come to it. Or a pool, whose jobs run
/// several at a time and end in an order that the seed chose.
pub struct SimDiskQueue {
    timeline: Timeline,
    random: Random,
    /// Each job takes between one and two times this; a slow one longer.
    latency_nanos: u64,
    waker: Waker,
    is_pool: bool,
    /// See [`KEPT_PERCENT`].
    kept_percent: u64,
    submitted: u64,
    /// When each thread has done what was submitted.
    busy_until: Vec<MonotonicNanos>,
    jobs: Arc<Mutex<Jobs>>,
    /// Jobs and reads that nobody has begun.
    kept_back: Vec<(DiskTicket, DiskJob)>,
    /// All that was submitted was drained: the next poll leaves no outcomes.
    leaves_none: bool,
}

/// The instant at which a job ends.
type Ending = (MonotonicNanos, DiskTicket);

#[derive(Default)]
struct Jobs {
    queued: BTreeMap<Ending, DiskJob>,
    done: Vec<(DiskTicket, DiskOutcome)>,
    /// Who submitted is woken when more lie there than this.
    sleeps_until: usize,
}

impl SimDiskQueue {
    /// `waker` is called when a job has ended.
    pub fn new(timeline: &Timeline, random: Random, latency_nanos: u64, waker: Waker) -> Self {
        Self {
            timeline: timeline.clone(),
            random,
            latency_nanos: latency_nanos.max(1),
            waker,
            is_pool: false,
            kept_percent: 0,
            submitted: 0,
            busy_until: vec![MonotonicNanos(0)],
            jobs: Arc::default(),
            kept_back: Vec::new(),
            leaves_none: false,
        }
    }

    /// A pool of so many threads. `waker` is called when there are outcomes where there were none.
    ///
    /// # Panics
    /// No threads are asked for.
    pub fn pool(
        timeline: &Timeline,
        random: Random,
        threads: usize,
        latency_nanos: u64,
        waker: Waker,
    ) -> Self {
        assert!(threads > 0, "nobody would run the jobs");
        let mut pool = Self::new(timeline, random, latency_nanos, waker);
        pool.busy_until = vec![MonotonicNanos(0); threads];
        pool.is_pool = true;
        pool.kept_percent = KEPT_PERCENT;
        pool
    }

    /// How long the next job takes.
    fn took_nanos(&mut self) -> u64 {
        let took = self.random.within(self.latency_nanos..2 * self.latency_nanos);
        let is_slow = self.is_pool && self.random.chance(SLOW_PERCENT);
        if is_slow { took * SLOW_FACTOR } else { took }
    }
}

impl DiskQueue for SimDiskQueue {
    fn submit(&mut self, job: DiskJob) -> DiskTicket {
        let ticket = self.next_ticket();
        if self.random.chance(self.kept_percent) {
            self.kept_back.push((ticket, job));
            self.waker.wake();
        } else {
            self.enqueue(ticket, job);
        }
        ticket
    }

    /// A pool keeps reads back, as a ring does.
    fn submit_read(&mut self, read: DiskRead) -> DiskTicket {
        let ticket = self.next_ticket();
        let job: DiskJob = Box::new(move || read.run());
        match self.is_pool {
            true => self.kept_back.push((ticket, job)),
            false => self.enqueue(ticket, job),
        }
        ticket
    }

    fn begin_reads(&mut self) {
        for (ticket, job) in std::mem::take(&mut self.kept_back) {
            match self.random.chance(QUICK_PERCENT) {
                true => self.end_at_once(ticket, job),
                false => self.enqueue(ticket, job),
            }
        }
    }

    fn wake_from(&mut self, outcomes: usize) {
        let mut jobs = lock(&self.jobs);
        let slept = jobs.done.len() <= jobs.sleeps_until;
        jobs.sleeps_until = outcomes.saturating_sub(1);
        let wakes = slept && jobs.done.len() > jobs.sleeps_until;
        drop(jobs);
        if wakes {
            self.waker.wake();
        }
    }

    fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>) {
        self.begin_reads();
        let mut ended = std::mem::take(&mut lock(&self.jobs).done);
        let may_leave = self.is_pool && !self.leaves_none && !ended.is_empty();
        if may_leave && self.random.chance(LATE_PERCENT) {
            let mut jobs = lock(&self.jobs);
            jobs.done = ended.split_off(self.random.within(0..ended.len() as u64) as usize);
            let wakes = jobs.done.len() > jobs.sleeps_until;
            drop(jobs);
            if wakes {
                self.waker.wake();
            }
        }
        done.append(&mut ended);
    }

    /// Runs what is queued now; time stands still.
    fn drain(&mut self) {
        self.begin_reads();
        self.leaves_none = true;
        loop {
            let first = lock(&self.jobs).queued.first_key_value().map(|(ending, _)| *ending);
            let Some(ending) = first else { return };
            run(&self.jobs, ending);
        }
    }
}

impl SimDiskQueue {
    fn next_ticket(&mut self) -> DiskTicket {
        self.submitted += 1;
        self.leaves_none = false;
        DiskTicket(self.submitted)
    }

    fn end_at_once(&mut self, ticket: DiskTicket, job: DiskJob) {
        let outcome = job();
        let mut jobs = lock(&self.jobs);
        let were_enough = jobs.done.len() > jobs.sleeps_until;
        jobs.done.push((ticket, outcome));
        let wakes = !were_enough && jobs.done.len() > jobs.sleeps_until;
        drop(jobs);
        if wakes {
            self.waker.wake();
        }
    }

    fn enqueue(&mut self, ticket: DiskTicket, job: DiskJob) {
        let now = self.timeline.now();
        let took = self.took_nanos();
        // The thread that is free first takes it.
        let thread = self.busy_until.iter_mut().min().expect("there is a thread");
        *thread = MonotonicNanos(now.max(*thread).0 + took);
        let ending = (*thread, ticket);
        lock(&self.jobs).queued.insert(ending, job);
        let (jobs, waker, is_pool) = (Arc::clone(&self.jobs), self.waker.clone(), self.is_pool);
        let happening = move || {
            let are_enough = |jobs: &Jobs| jobs.done.len() > jobs.sleeps_until;
            let were_enough = are_enough(&lock(&jobs));
            run(&jobs, ending);
            if !is_pool || !were_enough && are_enough(&lock(&jobs)) {
                waker.wake();
            }
        };
        self.timeline.schedule(ending.0.since(now), Box::new(happening));
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
fn run(jobs: &Mutex<Jobs>, ending: Ending) {
    let job = lock(jobs).queued.remove(&ending);
    if let Some(job) = job {
        let outcome = job();
        lock(jobs).done.push((ending.1, outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A waker, and how often it was called.
    fn counting() -> (Waker, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let waker = Waker(Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        (waker, woken)
    }

    #[test]
    fn jobs_end_in_order_and_not_before_their_time() {
        let timeline = Timeline::new();
        let (waker, woken) = counting();
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

    /// The tickets of 50 jobs of a pool in the order in which they end, and how long all take.
    fn endings(seed: u64, threads: usize) -> (Vec<u64>, u64) {
        let timeline = Timeline::new();
        let begin = timeline.now();
        let waker = Waker(Arc::new(|| {}));
        let mut queue = SimDiskQueue::pool(&timeline, Random::from_seed(seed), threads, 100, waker);
        queue.kept_percent = 0;
        for _ in 0..50 {
            queue.submit(Box::new(|| Box::new(())));
        }
        let mut done = Vec::new();
        while done.len() < 50 {
            // A poll may leave the last ones for the next.
            if let Some(due) = timeline.next_due() {
                timeline.step(due);
            }
            queue.poll(&mut done);
        }
        (done.iter().map(|(ticket, _)| ticket.0).collect(), timeline.now().since(begin))
    }

    #[test]
    fn jobs_of_a_pool_end_in_an_order_that_the_seed_chose() {
        let (order, took) = endings(1, 4);
        assert_eq!(endings(1, 4), (order.clone(), took));
        assert_ne!(endings(2, 4).0, order);
        assert!(!order.is_sorted());
        let mut all = order;
        all.sort_unstable();
        assert_eq!(all, (1..=50).collect::<Vec<_>>());
        let (order, alone) = endings(1, 1);
        assert!(order.is_sorted(), "one thread has no choice");
        assert!(took < alone / 2, "{took} with four threads, {alone} with one");
        assert!(took * 4 >= alone, "no more than four at a time");
    }

    #[test]
    fn a_pool_wakes_the_loop_once_for_what_it_has_not_polled() {
        let timeline = Timeline::new();
        let (waker, woken) = counting();
        let mut pool = SimDiskQueue::pool(&timeline, Random::from_seed(1), 3, 100, waker);
        pool.kept_percent = 0;
        for round in 1..=3 {
            for number in 0..10_u64 {
                pool.submit(Box::new(move || Box::new(number)));
            }
            timeline.pass(100_000);
            // None is left for the next poll then.
            pool.drain();
            let mut done = Vec::new();
            pool.poll(&mut done);
            assert_eq!((done.len(), woken.load(Ordering::SeqCst)), (10, round));
        }
    }

    #[test]
    fn a_job_that_is_kept_wakes_the_loop_and_runs_once_the_pool_is_asked_again() {
        let timeline = Timeline::new();
        let (waker, woken) = counting();
        let mut pool = SimDiskQueue::pool(&timeline, Random::from_seed(1), 3, 100, waker);
        pool.kept_percent = 100;
        pool.submit(Box::new(|| Box::new(())));
        assert_eq!(woken.load(Ordering::SeqCst), 1);
        assert!(lock(&pool.jobs).queued.is_empty());
        pool.drain();
        let mut done = Vec::new();
        pool.poll(&mut done);
        assert_eq!(done.len(), 1);
    }

    #[test]
    fn outcomes_of_a_pool_that_come_late_wake_the_loop_and_come_with_the_next_polls() {
        let timeline = Timeline::new();
        let (waker, woken) = counting();
        let mut pool = SimDiskQueue::pool(&timeline, Random::from_seed(1), 3, 100, waker);
        pool.kept_percent = 0;
        let mut late = 0;
        for _ in 0..20 {
            for _ in 0..10 {
                pool.submit(Box::new(|| Box::new(())));
            }
            timeline.pass(100_000);
            let mut done = Vec::new();
            while done.len() < 10 {
                let before = woken.load(Ordering::SeqCst);
                pool.poll(&mut done);
                let is_late = done.len() < 10;
                late += usize::from(is_late);
                assert_eq!(woken.load(Ordering::SeqCst) > before, is_late);
            }
        }
        assert!(late > 3, "{late} polls left some");
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
