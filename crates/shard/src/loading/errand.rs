//! One question to an archive, which may be far away: a thread asks it, and the loop goes on.

use base::disk::{DiskOutcome, DiskQueue, DiskTicket};

/// A job of a thread that reads; done at once, by whoever begins it, where there is no thread.
pub(super) enum Errand<T> {
    UnderWay(Box<dyn DiskQueue>),
    Done(T),
}

impl<T: Send + 'static> Errand<T> {
    /// The queue must have nothing else to do; it comes back by [`Self::take`].
    pub fn begin(
        queue: Option<Box<dyn DiskQueue>>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        match queue {
            Some(mut queue) => {
                queue.submit(Box::new(move || -> DiskOutcome { Box::new(job()) }));
                Self::UnderWay(queue)
            }
            None => Self::Done(job()),
        }
    }

    /// What came of it, and the thread.
    ///
    /// # Errors
    /// The thread is at it: the same again, for later.
    pub fn take(self) -> Result<(T, Option<Box<dyn DiskQueue>>), Self> {
        match self {
            Self::Done(done) => Ok((done, None)),
            Self::UnderWay(mut queue) => {
                let mut polled: Vec<(DiskTicket, DiskOutcome)> = Vec::new();
                queue.poll(&mut polled);
                match polled.pop() {
                    None => Err(Self::UnderWay(queue)),
                    Some((_, outcome)) => {
                        let done = outcome.downcast::<T>().expect("the only job returns this");
                        Ok((*done, Some(queue)))
                    }
                }
            }
        }
    }

    /// The thread, which has nothing left to do.
    pub fn into_queue(self) -> Option<Box<dyn DiskQueue>> {
        let Self::UnderWay(mut queue) = self else { return None };
        queue.drain();
        // Nobody wants what was found. Whoever gets the thread next must not meet it.
        queue.poll(&mut Vec::new());
        Some(queue)
    }
}
