//! A thread that takes stock of the allocator's memory, in place of whoever asks for it: all arenas
//! and size classes take 0.3 to 0.6 ms, each 100 ms (docs/measurements/turns.md), of the loop. Its
//! price: a lock of the loop's arena that this thread has when it loses its core.

use base::heap::{Heap, Holes, Misplaced};
use std::io;
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A heap that is surveyed in the background: who asks is told what was found when somebody asked
/// last.
pub struct BackgroundSurvey {
    heap: Arc<dyn Heap>,
    found: Arc<Mutex<Holes>>,
    /// More than one waiting would find the same. The thread ends once this is gone.
    asked: SyncSender<()>,
}

impl BackgroundSurvey {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn new(heap: Arc<dyn Heap>) -> io::Result<Self> {
        let found = Arc::default();
        let (asked, asks) = sync_channel(1);
        let work = {
            let (heap, found) = (Arc::clone(&heap), Arc::clone(&found));
            move || survey_each(&*heap, &found, &asks)
        };
        thread::Builder::new().name("stocktaking".to_owned()).spawn(work)?;
        Ok(Self { heap, found, asked })
    }
}

fn survey_each(heap: &dyn Heap, found: &Mutex<Holes>, asks: &Receiver<()>) {
    for () in asks {
        let holes = heap.survey();
        *found.lock().unwrap_or_else(PoisonError::into_inner) = holes;
    }
}

impl Heap for BackgroundSurvey {
    fn survey(&self) -> Holes {
        // If one is asked for already, that will do.
        let _ = self.asked.try_send(());
        *self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_holes(&self, bytes: RangeInclusive<usize>) -> bool {
        self.heap.has_holes(bytes)
    }

    fn is_sparse(&self, address: usize) -> bool {
        self.heap.is_sparse(address)
    }

    fn wants_moves(&self) -> bool {
        self.heap.wants_moves()
    }

    fn misplaced(&self, address: usize, bytes: usize) -> Misplaced {
        self.heap.misplaced(address, bytes)
    }

    fn keep_freed(&self, millis: Option<u64>) {
        self.heap.keep_freed(millis);
    }

    fn moving(&self, work: &mut dyn FnMut()) {
        self.heap.moving(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Loses a byte more each time, and takes until the test lets it go on.
    struct Losing {
        lost: AtomicU64,
        goes_on: Mutex<Receiver<()>>,
    }

    impl Heap for Losing {
        fn survey(&self) -> Holes {
            if self.goes_on.lock().unwrap().recv().is_err() {
                // The test is over.
                return Holes::default();
            }
            let lost_bytes = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            Holes { used_bytes: 100, lost_bytes }
        }

        fn has_holes(&self, bytes: RangeInclusive<usize>) -> bool {
            bytes.contains(&32)
        }

        fn is_sparse(&self, address: usize) -> bool {
            address == 4096
        }

        fn keep_freed(&self, _: Option<u64>) {}

        fn moving(&self, work: &mut dyn FnMut()) {
            work();
        }
    }

    /// The heap beside, and what lets a survey go on.
    fn losing() -> (BackgroundSurvey, std::sync::mpsc::Sender<()>) {
        let (goes_on, may_go_on) = std::sync::mpsc::channel();
        let heap = Losing { lost: AtomicU64::new(0), goes_on: Mutex::new(may_go_on) };
        (BackgroundSurvey::new(Arc::new(heap)).unwrap(), goes_on)
    }

    #[test]
    fn who_asks_does_not_wait_and_is_told_what_was_found_before() {
        let (heap, goes_on) = losing();
        assert_eq!(heap.survey(), Holes::default());
        assert_eq!(heap.survey(), Holes::default(), "the survey has not gone on");
        goes_on.send(()).unwrap();
        goes_on.send(()).unwrap();
        while heap.survey().lost_bytes < 2 {
            thread::yield_now();
        }
    }

    #[test]
    fn what_is_asked_of_a_block_is_answered_by_the_heap_itself() {
        let (heap, _) = losing();
        assert!(heap.has_holes(16..=48) && !heap.has_holes(64..=128));
        assert!(heap.is_sparse(4096) && !heap.is_sparse(0));
        let mut ran = false;
        heap.moving(&mut || ran = true);
        assert!(ran);
    }
}
