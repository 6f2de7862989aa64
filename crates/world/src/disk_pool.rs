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
mod tests;
