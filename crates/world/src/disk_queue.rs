//! One thread that runs disk jobs in order, and wakes the loop when one has ended.

use base::disk::{DiskJob, DiskOutcome, DiskQueue, DiskTicket};
use base::driver::Waker;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// The niceness of a patient thread: a tenth of a busy core's time against the loop, and preempted
/// at once when the loop wakes up.
const PATIENT_NICE: i32 = 10;

/// Who goes first when the processor is busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// Replies wait for the jobs.
    Prompt,
    /// Nobody waits: the loop goes first.
    Patient,
}

/// A thread with a queue. Dropping it lets the jobs end first, unless it is
/// [detached](Self::detached).
pub struct ThreadDiskQueue {
    jobs: Option<Sender<(DiskTicket, DiskJob)>>,
    done: Receiver<(DiskTicket, DiskOutcome)>,
    /// Outcomes received while draining, not yet polled.
    ready: Vec<(DiskTicket, DiskOutcome)>,
    submitted: u64,
    received: u64,
    thread: Option<JoinHandle<()>>,
}

impl ThreadDiskQueue {
    /// Starts the thread. `waker` is called after each job.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(name: &str, urgency: Urgency, waker: Waker) -> io::Result<Self> {
        let (jobs, todo) = channel::<(DiskTicket, DiskJob)>();
        let (ended, done) = channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            if urgency == Urgency::Patient {
                give_way();
            }
            while let Ok((ticket, job)) = todo.recv() {
                // The receiver is gone only when the queue is being dropped.
                let _ = ended.send((ticket, job()));
                waker.wake();
            }
        })?;
        Ok(Self {
            jobs: Some(jobs),
            done,
            ready: Vec::new(),
            submitted: 0,
            received: 0,
            thread: Some(thread),
        })
    }

    /// Nobody waits for its jobs when it is dropped: those that were submitted run on behind that,
    /// as long as the process lives. For jobs that may hang, and may be cut off anywhere.
    pub fn detached(mut self) -> Self {
        self.thread = None;
        self
    }
}

impl DiskQueue for ThreadDiskQueue {
    fn submit(&mut self, job: DiskJob) -> DiskTicket {
        self.submitted += 1;
        let ticket = DiskTicket(self.submitted);
        let jobs = self.jobs.as_ref().expect("the sender lives until the queue is dropped");
        jobs.send((ticket, job)).expect("the disk thread ends only after its sender, or panicked");
        ticket
    }

    fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>) {
        done.append(&mut self.ready);
        // The loop asks in every turn, and mostly nothing is under way.
        while self.received < self.submitted
            && let Ok(outcome) = self.done.try_recv()
        {
            self.received += 1;
            done.push(outcome);
        }
    }

    fn drain(&mut self) {
        while self.received < self.submitted {
            let outcome = self.done.recv().expect("a disk job panicked");
            self.received += 1;
            self.ready.push(outcome);
        }
    }
}

impl Drop for ThreadDiskQueue {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of a job was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Lets the loop go before the calling thread.
pub(crate) fn give_way() {
    if let Err(error) = rustix::process::setpriority_process(None, PATIENT_NICE) {
        // Then it competes with the loop, as it would without the attempt.
        tracing::warn!("a background thread keeps its priority: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn nobody_waits_for_a_detached_queue() {
        let (release, held) = channel::<()>();
        let (ended, has_ended) = channel();
        let queue = ThreadDiskQueue::start("detached", Urgency::Patient, Waker(Arc::new(|| {})));
        let mut queue = queue.expect("there are threads").detached();
        queue.submit(Box::new(move || {
            held.recv().expect("it is released");
            ended.send(()).expect("the test waits");
            Box::new(())
        }));
        // In a thread: who waited would do so for ever.
        let mut dropping = ThreadDiskQueue::start("drop", Urgency::Patient, Waker(Arc::new(|| {})))
            .expect("there are threads");
        let (dropped, is_dropped) = channel();
        dropping.submit(Box::new(move || {
            drop(queue);
            dropped.send(()).expect("the test waits");
            Box::new(())
        }));
        is_dropped.recv_timeout(PATIENCE).expect("nobody waits");
        release.send(()).expect("the job waits");
        has_ended.recv_timeout(PATIENCE).expect("it runs on");
    }

    #[test]
    fn jobs_run_in_order_and_wake_the_loop() {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let waker = Waker(Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        let mut queue = ThreadDiskQueue::start("disk-test", Urgency::Patient, waker).unwrap();
        let tickets: Vec<_> =
            (0..10_u32).map(|n| queue.submit(Box::new(move || Box::new(n)))).collect();
        queue.drain();
        let mut done = Vec::new();
        queue.poll(&mut done);
        let order: Vec<_> = done.iter().map(|(ticket, _)| *ticket).collect();
        assert_eq!(order, tickets);
        let values: Vec<_> = done.iter().map(|(_, o)| *o.downcast_ref::<u32>().unwrap()).collect();
        assert_eq!(values, (0..10).collect::<Vec<_>>());
        drop(queue);
        assert_eq!(woken.load(Ordering::SeqCst), 10);
    }
}
