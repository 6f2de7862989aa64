//! Short reads through the kernel's io_uring: one thread has as many of them under way at a time as
//! the device likes, and ends those that have come together. A thread of a pool reads one, and goes
//! to sleep and is woken for it, which takes the processor as long as all else about a read.
//!
//! ```text
//! submit ─▶ todo ─▶ its thread ─▶ kernel ─▶ its thread: what follows the read ─▶ outcomes
//!             └─ begin: rings the bell if that thread waits for the kernel
//! ```
//!
//! While a read is under way the kernel writes into its buffer. So buffers are given back only once
//! the kernel has said that it is done with them, and never if this thread ends before that.

use crate::disk_pool::{Broken, Outcomes, Tries, lock, try_lock};
use base::disk::{DIRECT_BLOCK_BYTES, DiskOutcome, DiskRead, DiskTicket, block_buffer};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{self, JoinHandle};

/// A longer read would keep those behind it waiting while it is decrypted.
const READ_BYTES_MAX: usize = 2 * DIRECT_BLOCK_BYTES;

/// Reads under way at a time; more wait their turn. With the bell they fill a ring.
const READS_MAX: usize = 255;

/// Outcomes that lie with the thread before the loop is given them.
const ENDED_MAX: usize = 8;

/// The niceness of the thread. A read takes it some 10 µs, for which a client would wait a turn of
/// the loop or longer where a busy loop shares its core.
const NICE: i32 = -20;

/// Names the bell among what the kernel completes; the others are named by their slot.
const BELL: u64 = u64::MAX;

/// Whether a read can go through a ring. Short ones of a file that is read past the page cache can.
pub(crate) fn suits(read: &DiskRead) -> bool {
    let is_whole = |bytes: u64| bytes.is_multiple_of(DIRECT_BLOCK_BYTES as u64);
    (1..=READ_BYTES_MAX).contains(&read.length)
        && is_whole(read.length as u64)
        && read.file.direct_place(read.offset).is_some_and(|(_, offset)| is_whole(offset))
}

/// A ring and its thread. Dropping it lets the reads end first, unless it is detached.
pub(crate) struct Ring {
    shared: Arc<Shared>,
    /// Reads that were submitted while the thread had the queue.
    kept: Vec<(DiskTicket, DiskRead)>,
    tries: Tries,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    todo: Mutex<Todo>,
    /// Written to by who has something to do for a thread that waits for the kernel.
    bell: OwnedFd,
}

#[derive(Default)]
struct Todo {
    reads: VecDeque<(DiskTicket, DiskRead)>,
    /// The thread found nothing to do, and looks again when the bell rings.
    is_asleep: bool,
    /// The ring is dropped.
    is_closed: bool,
}

impl Ring {
    /// # Errors
    /// The system knows no io_uring, or allows none; there is no thread to be had.
    pub fn start(name: &str, outcomes: Arc<Outcomes>) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
        let shared = Arc::new(Shared { todo: Mutex::default(), bell });
        let (tell, told) = mpsc::channel();
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _broken = Broken(&outcomes);
            go_first();
            // Only the thread that makes a ring may use it, and it is cheaper for that.
            match make_ring().and_then(|ring| Reader::new(ring, its, &outcomes).tried()) {
                Ok(reader) => {
                    // Who asked waits.
                    let _ = tell.send(Ok(()));
                    reader.work();
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        })?;
        // Where no word came the thread panicked, and that was printed.
        told.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        Ok(Self { shared, kept: Vec::new(), tries: Tries::default(), thread: Some(thread) })
    }

    /// Nobody waits for its reads when it is dropped.
    pub fn detach(&mut self) {
        self.thread = None;
    }

    /// Takes a read that [suits](suits) it. It begins when another one has ended, or by
    /// [`Self::begin`] at the latest.
    pub fn submit(&mut self, ticket: DiskTicket, read: DiskRead) {
        self.kept.push((ticket, read));
        if let Some(mut todo) = try_lock(&self.shared.todo) {
            todo.reads.extend(self.kept.drain(..));
        }
    }

    /// Has those begin that were submitted; whether it did. It does not while the thread has the
    /// queue, and is called again soon then. For each read alone it would cost as much as the read.
    pub fn begin(&mut self) -> bool {
        let Some(todo) = self.tries.lock(&self.shared.todo) else { return false };
        self.shared.begin(&mut self.kept, todo);
        true
    }

    /// As [`Self::begin`], however long it takes.
    pub fn begin_all(&mut self) {
        self.shared.begin(&mut self.kept, lock(&self.shared.todo));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.begin_all();
        lock(&self.shared.todo).is_closed = true;
        self.shared.ring_bell();
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn begin(&self, kept: &mut Vec<(DiskTicket, DiskRead)>, mut todo: MutexGuard<'_, Todo>) {
        todo.reads.extend(kept.drain(..));
        let rings = !todo.reads.is_empty() && std::mem::take(&mut todo.is_asleep);
        drop(todo);
        if rings {
            self.ring_bell();
        }
    }

    fn ring_bell(&self) {
        // It counts to 2^64, and every write but an interrupted one adds 1.
        while rustix::io::write(&self.bell, &1_u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }
}

/// Lets the calling thread go before the loop, where the system lets this process say so: it needs
/// `CAP_SYS_NICE`, or a limit of `RLIMIT_NICE` that allows it. Without, reads take longer.
fn go_first() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!("the thread that reads the tier keeps its priority: {error}");
    }
}

fn make_ring() -> io::Result<IoUring> {
    let entries = READS_MAX as u32 + 1;
    let newest = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
    match newest {
        // Before Linux 6.1.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        made => made,
    }
}

/// The thread's own.
struct Reader<'a> {
    ring: IoUring,
    shared: Arc<Shared>,
    outcomes: &'a Outcomes,
    /// Never dropped while the kernel may write into it.
    lent: ManuallyDrop<Lent>,
    /// Slots that no read is under way in; more are made where all are in use.
    free: Vec<usize>,
    under_way: usize,
    /// Reads wait for one under way to end.
    has_more: bool,
    /// The kernel tells when the bell rings.
    hears_bell: bool,
    completed: Vec<(u64, i32)>,
    /// Taken off the queue. It has room for all: the loop may want the lock under which it fills.
    begun: Vec<(DiskTicket, DiskRead)>,
    ended: Vec<(DiskTicket, DiskOutcome)>,
}

/// Memory that the kernel writes into.
struct Lent {
    slots: Vec<Slot>,
    rung: Box<[u8; 8]>,
}

/// Room for a read: its bytes begin where they are aligned.
struct Slot {
    buffer: Vec<u8>,
    start: usize,
    read: Option<(DiskTicket, DiskRead)>,
}

impl Slot {
    fn new() -> Self {
        let mut buffer = Vec::new();
        let start = block_buffer(&mut buffer, READ_BYTES_MAX);
        buffer.resize(start + READ_BYTES_MAX, 0);
        Self { buffer, start, read: None }
    }

    fn bytes(&mut self, length: usize) -> &mut [u8] {
        &mut self.buffer[self.start..self.start + length]
    }

    /// What follows the read that was under way here, of which the kernel says this: how many bytes
    /// it has read, or less than 0, the error.
    fn end(&mut self, read: DiskRead, said: i32) -> DiskOutcome {
        match usize::try_from(said) {
            Ok(count) if count == read.length => (read.end)(Ok(self.bytes(count))),
            Err(_) if !matches!(-said, libc::EAGAIN | libc::EINTR | libc::EINVAL) => {
                (read.end)(Err(io::Error::from_raw_os_error(-said)))
            }
            // The file may end there, or not be read in this way.
            _ => read.run(),
        }
    }
}

impl<'a> Reader<'a> {
    fn new(ring: IoUring, shared: Arc<Shared>, outcomes: &'a Outcomes) -> Self {
        Self {
            ring,
            shared,
            outcomes,
            lent: ManuallyDrop::new(Lent { slots: Vec::new(), rung: Box::new([0; 8]) }),
            free: Vec::new(),
            under_way: 0,
            has_more: false,
            hears_bell: false,
            completed: Vec::new(),
            begun: Vec::with_capacity(READS_MAX),
            ended: Vec::new(),
        }
    }

    /// Has the bell read through the ring once. A kernel, or what filters its calls, may know of
    /// rings and not of this.
    fn tried(mut self) -> io::Result<Self> {
        self.shared.ring_bell();
        self.listen();
        while self.hears_bell {
            match self.ring.submit_and_wait(1) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => {}
            }
            for entry in self.ring.completion() {
                self.hears_bell = false;
                if entry.result() < 0 {
                    return Err(io::Error::from_raw_os_error(-entry.result()));
                }
            }
        }
        Ok(self)
    }

    /// What the thread does until the ring is dropped and nothing is left to do.
    fn work(mut self) {
        loop {
            let is_closed = self.begin_reads();
            if is_closed && !self.has_more && self.under_way == 0 && !self.hears_bell {
                break;
            }
            if !self.ended.is_empty() {
                self.outcomes.put(self.ended.drain(..));
            }
            if self.has_more && self.under_way == 0 {
                continue;
            }
            // Dropping the ring rings the bell once more, which it need not hear any more.
            if !is_closed && !self.hears_bell {
                self.listen();
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => panic!("io_uring has ended: {error}"),
            }
            self.take_completed();
        }
        // SAFETY: nothing is under way, so the kernel has no use for it; and nothing follows.
        unsafe { ManuallyDrop::drop(&mut self.lent) };
    }

    /// Begins as many reads as there is room for; whether none will be submitted any more.
    fn begin_reads(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut begun = std::mem::take(&mut self.begun);
        let mut todo = lock(&shared.todo);
        while self.under_way + begun.len() < READS_MAX
            && let Some(next) = todo.reads.pop_front()
        {
            begun.push(next);
        }
        // What is left is begun when a read has ended and made room: nobody need ring for it.
        self.has_more = !todo.reads.is_empty();
        todo.is_asleep = !self.has_more;
        let is_closed = todo.is_closed;
        drop(todo);
        for (ticket, read) in begun.drain(..) {
            self.begin(ticket, read);
        }
        self.begun = begun;
        is_closed
    }

    fn begin(&mut self, ticket: DiskTicket, read: DiskRead) {
        let Some((descriptor, offset)) = read.file.direct_place(read.offset) else {
            // Every read that suits has one.
            return self.keep(ticket, caught(|| read.run()));
        };
        let index = self.free.last().copied().unwrap_or_else(|| {
            self.lent.slots.push(Slot::new());
            self.free.push(self.lent.slots.len() - 1);
            self.lent.slots.len() - 1
        });
        let bytes = self.lent.slots[index].bytes(read.length);
        let entry =
            opcode::Read::new(types::Fd(descriptor), bytes.as_mut_ptr(), bytes.len() as u32)
                .offset(offset)
                .build()
                .user_data(index as u64);
        // SAFETY: the bytes belong to a slot that is given to nobody else before the kernel has
        // completed this read, and that `work` alone drops, when nothing is under way. The slot
        // keeps the file open until then. A slot that moves when others are added leaves its bytes
        // where they are.
        if unsafe { self.push(&entry) }.is_err() {
            return self.keep(ticket, caught(|| read.run()));
        }
        self.lent.slots[index].read = Some((ticket, read));
        self.free.pop();
        self.under_way += 1;
    }

    /// Asks the kernel to tell when the bell rings.
    fn listen(&mut self) {
        let bell = types::Fd(self.shared.bell.as_raw_fd());
        let rung = &mut *self.lent.rung;
        let entry =
            opcode::Read::new(bell, rung.as_mut_ptr(), rung.len() as u32).build().user_data(BELL);
        // SAFETY: the bytes are dropped by `work` alone, once the bell is not listened to, and read
        // by nobody. `shared` keeps the bell open.
        self.hears_bell = unsafe { self.push(&entry) }.is_ok();
    }

    /// Puts an entry into the ring, to be handed over with the next wait. There is room: it has
    /// as many as reads and the bell can be.
    ///
    /// # Safety
    /// What the entry points to must stay until the kernel has completed it.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<(), squeue::PushError> {
        // SAFETY: as the caller says.
        unsafe { self.ring.submission().push(entry) }
    }

    /// Ends what the kernel has completed.
    fn take_completed(&mut self) {
        let mut completed = std::mem::take(&mut self.completed);
        completed.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result())));
        for (name, said) in completed.drain(..) {
            if name == BELL {
                assert!(said > 0, "io_uring reads no more: {said}");
                self.hears_bell = false;
                continue;
            }
            let index = name as usize;
            let Some(slot) = self.lent.slots.get_mut(index) else { continue };
            let Some((ticket, read)) = slot.read.take() else { continue };
            self.under_way -= 1;
            self.free.push(index);
            let outcome = caught(|| slot.end(read, said));
            self.keep(ticket, outcome);
        }
        self.completed = completed;
        self.outcomes.put(self.ended.drain(..));
    }

    /// Keeps an outcome for the loop; `None` never comes.
    fn keep(&mut self, ticket: DiskTicket, outcome: Option<DiskOutcome>) {
        match outcome {
            Some(outcome) => self.ended.push((ticket, outcome)),
            None => self.outcomes.lose_one(),
        }
        if self.ended.len() >= ENDED_MAX {
            self.outcomes.put(self.ended.drain(..));
        }
    }
}

/// Whether the next wait may do: this one was interrupted, what has completed must be taken first,
/// or the kernel is short of memory.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

/// The outcome of what follows a read, unless it panics: this thread goes on, as the kernel writes
/// into its buffers.
fn caught(end: impl FnOnce() -> DiskOutcome) -> Option<DiskOutcome> {
    catch_unwind(AssertUnwindSafe(end)).ok()
}

#[cfg(test)]
mod tests;
