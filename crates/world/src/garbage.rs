//! Frees big values on a thread of its own, so that deleting one does not hold up the loop.

use std::any::Any;
use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// Values waiting to be freed. When they pile up, the loop frees its own: memory that is due back
/// must not be held by a queue. A guess.
const WAITING_MAX: usize = 1024;

/// The thread. Dropping it lets it free what waits first.
#[derive(Debug)]
pub struct GarbageCollector {
    waiting: Option<SyncSender<Box<dyn Any + Send>>>,
    thread: Option<JoinHandle<()>>,
}

impl GarbageCollector {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start() -> io::Result<Self> {
        let (waiting, taken) = sync_channel(WAITING_MAX);
        let free = move || taken.into_iter().for_each(drop::<Box<dyn Any + Send>>);
        let thread = thread::Builder::new().name("garbage".to_owned()).spawn(free)?;
        Ok(Self { waiting: Some(waiting), thread: Some(thread) })
    }

    /// Drops `garbage` on the thread, or here if the thread has fallen behind.
    pub fn discard(&self, garbage: Box<dyn Any + Send>) {
        let Some(waiting) = &self.waiting else { return };
        if let Err(TrySendError::Full(garbage) | TrySendError::Disconnected(garbage)) =
            waiting.try_send(garbage)
        {
            drop(garbage);
        }
    }
}

impl Drop for GarbageCollector {
    fn drop(&mut self) {
        // Without a sender the thread ends once the queue is empty.
        drop(self.waiting.take());
        if let Some(thread) = self.thread.take() {
            // Its panic, from some value's drop, has been reported already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    /// Counts its drops, and those on the thread `here`.
    struct Counted {
        drops: Arc<AtomicUsize>,
        drops_here: Arc<AtomicUsize>,
        here: thread::ThreadId,
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.drops.fetch_add(1, Ordering::SeqCst);
            if thread::current().id() == self.here {
                self.drops_here.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    #[test]
    fn garbage_is_dropped_elsewhere_and_here_only_when_the_queue_is_full() {
        let collector = GarbageCollector::start().expect("a thread");
        let (drops, drops_here) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let counted = || {
            let (drops, drops_here) = (Arc::clone(&drops), Arc::clone(&drops_here));
            Box::new(Counted { drops, drops_here, here: thread::current().id() })
        };

        // Holds the thread up until `release` is dropped.
        struct Blocker(std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>);
        impl Drop for Blocker {
            fn drop(&mut self) {
                let _ = self.1.send(());
                let _ = self.0.recv();
            }
        }
        let (release, released) = channel();
        let (held, is_held) = channel();
        collector.discard(Box::new(Blocker(released, held)));
        is_held.recv().expect("the thread took the blocker");

        for _ in 0..WAITING_MAX + 3 {
            collector.discard(counted());
        }
        assert_eq!(drops.load(Ordering::SeqCst), 3);
        assert_eq!(drops_here.load(Ordering::SeqCst), 3);
        drop(release);
        drop(collector);
        assert_eq!(drops.load(Ordering::SeqCst), WAITING_MAX + 3);
        assert_eq!(drops_here.load(Ordering::SeqCst), 3);
    }
}
