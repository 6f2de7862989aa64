//! Threads that run disk jobs at a time, and wake the loop when some have ended.
//!
//! A device serves many reads at once, and one thread asks for one. So several threads take jobs
//! from one queue, each the oldest that nobody has taken, and the outcomes lie together until the
//! loop polls them. The loop is woken by the first outcome that lies there, and not by those that
//! join it.
//!
//! The loop does not wait at once for a lock that one of these threads has: one that was taken off
//! its core amid the few instructions under it may not have it back for milliseconds, where threads
//! are many and cores are few. What the loop could not hand over or take then it tries again in its
//! next turn, for which it wakes itself. After some tries it does wait ([`Tries`]): that thread may
//! want the core that the loop turns on.
//!
//! Short reads can go past these threads: see [`crate::disk_ring`].

use crate::disk_ring::{self, Ring};
use base::disk::{DiskJob, DiskOutcome, DiskQueue, DiskRead, DiskTicket};
use base::driver::Waker;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

/// Threads with one queue, a pool in the sense of [`DiskQueue`]. Replies wait for their jobs, so
/// they are as urgent as the loop. Dropping it lets the jobs end first, unless it is
/// [detached](Self::detached).
pub struct ThreadDiskPool {
    shared: Arc<Shared>,
    ring: Option<Ring>,
    /// Reads were submitted to the ring and not begun.
    keeps_back: bool,
    submitted: u64,
    received: u64,
    /// Jobs that were submitted while a thread had the queue.
    kept: Vec<(DiskTicket, DiskJob)>,
    todo_tries: Tries,
    done_tries: Tries,
    /// Outcomes received while draining, not yet polled.
    ready: Vec<(DiskTicket, DiskOutcome)>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    todo: Mutex<Todo>,
    /// There is a job, or there will be no more.
    has_todo: Condvar,
    outcomes: Arc<Outcomes>,
}

/// What has ended, until the loop polls it.
pub(crate) struct Outcomes {
    done: Mutex<Done>,
    /// The loop is woken when more lie there than this. It sets this without the lock.
    sleeps_until: AtomicUsize,
    /// There is an outcome.
    has_done: Condvar,
    waker: Waker,
}

#[derive(Default)]
struct Todo {
    jobs: VecDeque<(DiskTicket, DiskJob)>,
    /// The pool is dropped.
    is_closed: bool,
}

#[derive(Default)]
struct Done {
    outcomes: Vec<(DiskTicket, DiskOutcome)>,
    /// A job panicked: its outcome never comes.
    is_broken: bool,
    /// Somebody waits for an outcome.
    is_awaited: bool,
}

impl ThreadDiskPool {
    /// Starts so many threads of this name. `waker` is called when there are outcomes where there
    /// were none.
    ///
    /// # Errors
    /// The system does not have so many threads to give.
    ///
    /// # Panics
    /// No threads are asked for.
    pub fn start(name: &str, threads: usize, waker: Waker) -> io::Result<Self> {
        assert!(threads > 0, "nobody would run the jobs");
        let shared = Arc::new(Shared {
            todo: Mutex::default(),
            has_todo: Condvar::new(),
            outcomes: Arc::new(Outcomes {
                done: Mutex::default(),
                sleeps_until: AtomicUsize::new(0),
                has_done: Condvar::new(),
                waker,
            }),
        });
        let mut pool = Self {
            shared,
            ring: None,
            keeps_back: false,
            submitted: 0,
            received: 0,
            kept: Vec::new(),
            todo_tries: Tries::default(),
            done_tries: Tries::default(),
            ready: Vec::new(),
            threads: Vec::new(),
        };
        for _ in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name(name.to_owned());
            // If there is none, those before it end with the pool.
            pool.threads.push(thread.spawn(move || shared.work())?);
        }
        Ok(pool)
    }

    /// Has the kernel's io_uring read what is short, with one more thread of this name.
    ///
    /// # Errors
    /// The system knows no io_uring, or allows none; there is no thread to be had. The pool reads
    /// as before.
    pub fn read_by_ring(&mut self, name: &str) -> io::Result<()> {
        self.ring = Some(Ring::start(name, Arc::clone(&self.shared.outcomes))?);
        Ok(())
    }

    /// Nobody waits for its jobs when it is dropped: those that were submitted run on behind that,
    /// as long as the process lives. For jobs that may hang, and may be cut off anywhere.
    pub fn detached(mut self) -> Self {
        self.threads.clear();
        if let Some(ring) = &mut self.ring {
            ring.detach();
        }
        self
    }

    /// Hands over the jobs that were kept, however long it takes.
    fn hand_over(&mut self) {
        self.shared.give(&mut self.kept, lock(&self.shared.todo));
    }
}

impl DiskQueue for ThreadDiskPool {
    fn submit(&mut self, job: DiskJob) -> DiskTicket {
        self.submitted += 1;
        let ticket = DiskTicket(self.submitted);
        self.kept.push((ticket, job));
        match try_lock(&self.shared.todo) {
            Some(todo) => self.shared.give(&mut self.kept, todo),
            None => self.shared.outcomes.waker.wake(),
        }
        ticket
    }

    fn submit_read(&mut self, read: DiskRead) -> DiskTicket {
        match &mut self.ring {
            Some(ring) if disk_ring::suits(&read) => {
                self.submitted += 1;
                let ticket = DiskTicket(self.submitted);
                ring.submit(ticket, read);
                self.keeps_back = true;
                ticket
            }
            _ => self.submit(Box::new(move || read.run())),
        }
    }

    fn begin_reads(&mut self) {
        if !self.kept.is_empty()
            && let Some(todo) = self.todo_tries.lock(&self.shared.todo)
        {
            self.shared.give(&mut self.kept, todo);
        }
        if self.keeps_back
            && let Some(ring) = &mut self.ring
        {
            self.keeps_back = !ring.begin();
        }
        if self.keeps_back || !self.kept.is_empty() {
            self.shared.outcomes.waker.wake();
        }
    }

    fn wake_from(&mut self, outcomes: usize) {
        self.shared.outcomes.wake_from(outcomes);
    }

    fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>) {
        self.begin_reads();
        done.append(&mut self.ready);
        // The loop asks in every turn, and mostly nothing is under way.
        if self.received == self.submitted {
            return;
        }
        let Some(mut ended) = self.done_tries.lock(&self.shared.outcomes.done) else {
            return self.shared.outcomes.waker.wake();
        };
        assert!(!ended.is_broken, "a disk job panicked");
        self.received += ended.outcomes.len() as u64;
        done.append(&mut ended.outcomes);
    }

    fn drain(&mut self) {
        self.hand_over();
        if std::mem::take(&mut self.keeps_back)
            && let Some(ring) = &mut self.ring
        {
            ring.begin_all();
        }
        while self.received < self.submitted {
            let outcomes = &self.shared.outcomes;
            let mut done = lock(&outcomes.done);
            assert!(!done.is_broken, "a disk job panicked");
            while done.outcomes.is_empty() {
                done.is_awaited = true;
                done = outcomes.has_done.wait(done).unwrap_or_else(PoisonError::into_inner);
                assert!(!done.is_broken, "a disk job panicked");
            }
            done.is_awaited = false;
            self.received += done.outcomes.len() as u64;
            self.ready.append(&mut done.outcomes);
        }
    }
}

impl Drop for ThreadDiskPool {
    fn drop(&mut self) {
        self.hand_over();
        lock(&self.shared.todo).is_closed = true;
        self.shared.has_todo.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of a job was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Puts jobs into the queue, and wakes as many threads.
    fn give(&self, kept: &mut Vec<(DiskTicket, DiskJob)>, mut todo: MutexGuard<'_, Todo>) {
        let count = kept.len();
        todo.jobs.extend(kept.drain(..));
        drop(todo);
        (0..count).for_each(|_| self.has_todo.notify_one());
    }

    /// What a thread does until the pool is dropped and nothing is left to do.
    fn work(&self) {
        let _broken = Broken(&self.outcomes);
        while let Some((ticket, job)) = self.take() {
            self.outcomes.put([(ticket, job())]);
        }
    }

    fn take(&self) -> Option<(DiskTicket, DiskJob)> {
        let mut todo = lock(&self.todo);
        loop {
            if let Some(job) = todo.jobs.pop_front() {
                return Some(job);
            }
            if todo.is_closed {
                return None;
            }
            todo = self.has_todo.wait(todo).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Outcomes {
    /// Lays outcomes there, and wakes the loop if there are enough now and were not before.
    pub fn put(&self, outcomes: impl IntoIterator<Item = (DiskTicket, DiskOutcome)>) {
        let mut done = lock(&self.done);
        let sleeps_until = self.sleeps_until.load(Ordering::SeqCst);
        let slept = done.outcomes.len() <= sleeps_until;
        done.outcomes.extend(outcomes);
        let wakes = slept && done.outcomes.len() > sleeps_until;
        let is_awaited = done.is_awaited;
        drop(done);
        // A call of the system, whether or not anybody waits.
        if is_awaited {
            self.has_done.notify_one();
        }
        if wakes {
            self.waker.wake();
        }
    }

    /// From now on the loop is woken when so many outcomes lie there; now, if they may.
    fn wake_from(&self, outcomes: usize) {
        let sleeps_until = outcomes.saturating_sub(1);
        self.sleeps_until.store(sleeps_until, Ordering::SeqCst);
        // Whoever has the outcomes now may have gone by what was there before.
        let lie_there = try_lock(&self.done).map(|done| done.outcomes.len());
        if lie_there.is_none_or(|count| count > sleeps_until) {
            self.waker.wake();
        }
    }

    /// Says that an outcome never comes: nobody waits for it for ever.
    pub fn lose_one(&self) {
        lock(&self.done).is_broken = true;
        self.has_done.notify_one();
        self.waker.wake();
    }
}

/// Says at a thread's end if a job panicked: nobody waits for its outcome for ever.
pub(crate) struct Broken<'a>(pub &'a Outcomes);

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lose_one();
        }
    }
}

/// No job runs under a lock, so a panic leaves nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often in a row the loop found that a thread had a lock.
#[derive(Default)]
pub(crate) struct Tries(u32);

/// After so many the loop waits. A thread that is on its core has a lock for less time than a turn
/// of the loop takes, in which there are some tries. A guess.
const TRIES_MAX: u32 = 16;

impl Tries {
    /// As [`lock`]; `None` if somebody has it, and it was not so for long.
    pub fn lock<'a, T>(&mut self, mutex: &'a Mutex<T>) -> Option<MutexGuard<'a, T>> {
        let found = try_lock(mutex).or_else(|| (self.0 >= TRIES_MAX).then(|| lock(mutex)));
        self.0 = if found.is_some() { 0 } else { self.0 + 1 };
        found
    }
}

/// As [`lock`], unless somebody has it now.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn idle() -> Waker {
        Waker(Arc::new(|| {}))
    }

    fn pool(threads: usize) -> ThreadDiskPool {
        ThreadDiskPool::start("pool-test", threads, idle()).expect("there are threads")
    }

    /// Submits a job that is not kept: nobody polls.
    fn submit_now(pool: &mut ThreadDiskPool, job: DiskJob) {
        pool.submit(job);
        pool.hand_over();
    }

    /// Tells when a thread of the pool wakes the loop, and not of the loop that wakes itself.
    fn waker_of_others(woken: Sender<()>) -> Waker {
        let own = thread::current().id();
        Waker(Arc::new(move || {
            if thread::current().id() != own {
                woken.send(()).expect("the test listens");
            }
        }))
    }

    #[test]
    fn who_submits_and_polls_waits_for_no_thread_and_is_woken_to_try_again() {
        let (wake, has_woken) = channel();
        let wake = Mutex::new(wake);
        let waker = Waker(Arc::new(move || lock(&wake).send(()).expect("the test listens")));
        let mut pool = ThreadDiskPool::start("pool-test", 2, waker).expect("there are threads");
        let shared = Arc::clone(&pool.shared);
        let todo = lock(&shared.todo);
        let tickets: Vec<_> =
            (0..3_u64).map(|number| pool.submit(Box::new(move || Box::new(number)))).collect();
        assert_eq!(has_woken.try_iter().count(), 3);
        drop(todo);
        let mut done = Vec::new();
        let ended = lock(&shared.outcomes.done);
        pool.poll(&mut done);
        assert!(done.is_empty());
        assert!(has_woken.try_iter().count() > 0);
        drop(ended);
        while done.len() < 3 {
            pool.poll(&mut done);
            let is_all = done.len() == 3;
            assert!(is_all || has_woken.recv_timeout(PATIENCE).is_ok(), "nobody wakes the loop");
        }
        let mut got: Vec<_> = done.iter().map(|(ticket, _)| *ticket).collect();
        got.sort_unstable();
        assert_eq!(got, tickets);
    }

    #[test]
    fn jobs_that_were_kept_are_handed_over_before_the_loop_does_something_long() {
        let (wake, has_woken) = channel();
        let wake = Mutex::new(wake);
        let waker = Waker(Arc::new(move || lock(&wake).send(()).expect("the test listens")));
        let mut pool = ThreadDiskPool::start("pool-test", 1, waker).expect("there are threads");
        let shared = Arc::clone(&pool.shared);
        let (ran, has_run) = channel();
        let todo = lock(&shared.todo);
        pool.submit(Box::new(move || {
            ran.send(()).expect("the test waits");
            Box::new(())
        }));
        let before = has_woken.try_iter().count();
        pool.begin_reads();
        assert_eq!((before, has_woken.try_iter().count()), (1, 1));
        drop(todo);
        pool.begin_reads();
        has_run.recv_timeout(PATIENCE).expect("the job runs although nobody polls");
    }

    #[test]
    fn who_tries_often_waits_in_the_end() {
        let mutex = Mutex::new(());
        let failures = AtomicUsize::new(0);
        let held = lock(&mutex);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut tries = Tries::default();
                while tries.lock(&mutex).is_none() {
                    failures.fetch_add(1, Ordering::SeqCst);
                }
            });
            while failures.load(Ordering::SeqCst) < TRIES_MAX as usize {
                thread::yield_now();
            }
            // One that tries for ever would be seen here.
            (0..100).for_each(|_| thread::yield_now());
            drop(held);
        });
        assert_eq!(failures.into_inner(), TRIES_MAX as usize);
    }

    #[test]
    fn jobs_that_were_kept_run_when_the_pool_is_dropped() {
        let mut pool = pool(1);
        let shared = Arc::clone(&pool.shared);
        let (ended, has_ended) = channel();
        let todo = lock(&shared.todo);
        pool.submit(Box::new(move || {
            ended.send(()).expect("the test waits");
            Box::new(())
        }));
        drop(todo);
        drop(pool);
        has_ended.try_recv().expect("it has run");
    }

    #[test]
    fn jobs_run_at_a_time_and_each_has_its_own_outcome() {
        let mut pool = pool(4);
        // None of the four goes on before all of them run.
        let all = Arc::new(Barrier::new(4));
        let mut expected = Vec::new();
        for number in 0..4_u64 {
            let all = Arc::clone(&all);
            let job = move || -> DiskOutcome {
                all.wait();
                Box::new(number)
            };
            expected.push((pool.submit(Box::new(job)), number));
        }
        for number in 4..1000_u64 {
            expected.push((pool.submit(Box::new(move || Box::new(number))), number));
        }
        pool.drain();
        let mut done = Vec::new();
        pool.poll(&mut done);
        let value = |outcome: &DiskOutcome| *outcome.downcast_ref::<u64>().expect("a number");
        let mut got: Vec<_> = done.iter().map(|(ticket, it)| (*ticket, value(it))).collect();
        got.sort_unstable();
        assert_eq!(got, expected);
        done.clear();
        pool.poll(&mut done);
        assert!(done.is_empty());
    }

    #[test]
    fn outcomes_come_as_jobs_end() {
        let mut pool = pool(2);
        let (release, held) = channel::<()>();
        let slow = pool.submit(Box::new(move || {
            held.recv().expect("it is released");
            Box::new(())
        }));
        let quick = pool.submit(Box::new(|| Box::new(())));
        let mut done = Vec::new();
        while done.is_empty() {
            pool.poll(&mut done);
            thread::yield_now();
        }
        release.send(()).expect("the job waits");
        pool.drain();
        pool.poll(&mut done);
        assert_eq!(done.iter().map(|(ticket, _)| *ticket).collect::<Vec<_>>(), [quick, slow]);
    }

    #[test]
    fn the_loop_is_woken_once_for_what_it_has_not_polled() {
        let (woken, wakes) = channel();
        let waker = waker_of_others(woken);
        let mut pool = ThreadDiskPool::start("pool-test", 4, waker).expect("there are threads");
        for round in 0..3 {
            let ended = Arc::new(AtomicUsize::new(0));
            for _ in 0..100 {
                let ended = Arc::clone(&ended);
                let job = move || -> DiskOutcome { Box::new(ended.fetch_add(1, Ordering::SeqCst)) };
                submit_now(&mut pool, Box::new(job));
            }
            wakes.recv_timeout(PATIENCE).expect("the loop is woken");
            // All outcomes lie there once the last of them does.
            while lock(&pool.shared.outcomes.done).outcomes.len() < 100 {
                thread::yield_now();
            }
            assert!(wakes.try_recv().is_err(), "in round {round}");
            let mut done = Vec::new();
            pool.poll(&mut done);
            assert_eq!(done.len(), 100);
        }
    }

    #[test]
    fn the_loop_is_woken_by_as_many_outcomes_as_it_wants() {
        let (woken, wakes) = channel();
        let waker = Waker(Arc::new(move || woken.send(()).expect("the test listens")));
        let mut pool = ThreadDiskPool::start("pool-test", 1, waker).expect("there are threads");
        // Each job tells that it has begun, and so that all is done about the one before it.
        let (began, has_begun) = channel();
        let begin = |pool: &mut ThreadDiskPool| {
            let (release, held) = channel::<()>();
            let began = began.clone();
            let job = move || -> DiskOutcome {
                began.send(()).expect("the test waits");
                held.recv().expect("it is released");
                Box::new(())
            };
            submit_now(pool, Box::new(job));
            release
        };
        pool.wake_from(3);
        let releases: Vec<_> = (0..5).map(|_| begin(&mut pool)).collect();
        // It may have woken itself, to hand over again.
        wakes.try_iter().for_each(drop);
        for release in &releases[..2] {
            has_begun.recv_timeout(PATIENCE).expect("it runs");
            release.send(()).expect("it waits");
        }
        has_begun.recv_timeout(PATIENCE).expect("it runs");
        assert!(wakes.try_recv().is_err(), "two are too few");
        releases[2].send(()).expect("it waits");
        wakes.recv_timeout(PATIENCE).expect("three are enough");
        pool.poll(&mut Vec::new());
        has_begun.recv_timeout(PATIENCE).expect("it runs");
        releases[3].send(()).expect("it waits");
        has_begun.recv_timeout(PATIENCE).expect("it runs");
        assert!(wakes.try_recv().is_err(), "one is too few");
        pool.wake_from(1);
        wakes.recv_timeout(PATIENCE).expect("one is enough now, and it lies there");
        releases[4].send(()).expect("it waits");
    }

    #[test]
    fn dropping_a_pool_lets_its_jobs_end() {
        let mut pool = pool(3);
        let ended = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let ended = Arc::clone(&ended);
            pool.submit(Box::new(move || Box::new(ended.fetch_add(1, Ordering::SeqCst))));
        }
        drop(pool);
        assert_eq!(ended.load(Ordering::SeqCst), 100);
    }

    #[test]
    fn nobody_waits_for_a_detached_pool() {
        let (release, held) = channel::<()>();
        let (ended, has_ended) = channel();
        let mut detached = pool(2).detached();
        let job = move || -> DiskOutcome {
            held.recv().expect("it is released");
            ended.send(()).expect("the test waits");
            Box::new(())
        };
        submit_now(&mut detached, Box::new(job));
        // In a thread: who waited would do so for ever.
        let (dropped, is_dropped) = channel();
        let mut dropping = pool(1);
        let job = move || -> DiskOutcome {
            drop(detached);
            dropped.send(()).expect("the test waits");
            Box::new(())
        };
        submit_now(&mut dropping, Box::new(job));
        is_dropped.recv_timeout(PATIENCE).expect("nobody waits");
        release.send(()).expect("the job waits");
        has_ended.recv_timeout(PATIENCE).expect("it runs on");
    }

    #[test]
    fn nobody_waits_for_ever_for_a_job_that_panicked() {
        let mut pool = pool(2);
        pool.submit(Box::new(|| panic!("this one is meant")));
        assert!(catch_unwind(AssertUnwindSafe(|| pool.drain())).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| pool.poll(&mut Vec::new()))).is_err());
    }
}
