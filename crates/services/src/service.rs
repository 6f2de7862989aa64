//! The thread on which a service's asynchronous client works: operations go there by a bounded
//! queue, outcomes come back and wake the loop.

use base::driver::Waker;
use base::{Incarnation, Sequence};
use bytes::Bytes;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{self as asynchronous, Sender, error::TrySendError};
use txlog::Refusal;
use txlog::remote::store::{Operation, OperationId, Outcome, RecordStore, StoreLimits};

/// Operations on their way to the thread beside puts. More than [`txlog::remote::RemoteLog`] ever
/// has: one reading, one trim, and questions that a person or a timer asks.
const QUESTIONS_MAX: usize = 64;

/// An operation on its way.
type Begun = (OperationId, Operation);

/// Something that will end some time.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A client of a service that keeps records.
pub trait Service: Send + Sync + 'static {
    /// Sends a record. Until the outer future is ready no later put is begun: what keeps the order
    /// happens there. The inner one waits for the answer, for a limited time.
    fn put(self: Arc<Self>, sequence: Sequence, record: Bytes) -> Later<Later<Outcome>>;

    /// Does anything but a put.
    fn answer(self: Arc<Self>, question: Operation) -> Later<Outcome>;
}

/// What a service says of its log when it is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub incarnation: Incarnation,
    pub limits: StoreLimits,
}

/// Why no writes should be accepted now: shared by a client, which says it, and its store.
#[derive(Clone, Default, Debug)]
pub struct Trouble(Arc<Mutex<Option<Refusal>>>);

impl Trouble {
    pub fn set(&self, trouble: Option<Refusal>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub fn get(&self) -> Option<Refusal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The store in front of a service's thread. Dropping it ends the thread; what was under way is
/// then in doubt.
pub struct ServiceStore {
    facts: Facts,
    operations: Option<Sender<Begun>>,
    outcomes: Receiver<(OperationId, Outcome)>,
    /// Outcomes of operations that never reached the thread.
    refused: Vec<(OperationId, Outcome)>,
    trouble: Trouble,
    begun: u64,
    thread: Option<JoinHandle<()>>,
}

impl ServiceStore {
    /// Starts the thread and waits until `connect` has found the log or made one; for how long is
    /// for `connect` to limit. `waker` is called when an outcome has come.
    ///
    /// # Errors
    /// The thread cannot be had, or whatever `connect` says.
    pub fn start<S, C>(name: &str, waker: Waker, trouble: Trouble, connect: C) -> io::Result<Self>
    where
        S: Service,
        C: Future<Output = io::Result<(Arc<S>, Facts)>> + Send + 'static,
    {
        let (tell, outcomes) = mpsc::channel();
        let (connected, connecting) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let reports = Reports { tell, waker };
        let work = move || {
            runtime.block_on(async move {
                // Whoever started this thread waits to be told, unless the process is ending.
                match connect.await {
                    Ok((service, facts)) => {
                        let (operations, begun) = asynchronous::channel(queue_length(facts));
                        let _ = connected.send(Ok((facts, operations)));
                        serve(service, queue_length(facts), begun, reports).await;
                    }
                    Err(error) => {
                        let _ = connected.send(Err(error));
                    }
                }
            });
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        let gone = || io::Error::other("the thread of the transaction log's client ended");
        let (facts, operations) = connecting.recv().map_err(|_| gone())??;
        Ok(Self {
            facts,
            operations: Some(operations),
            outcomes,
            refused: Vec::new(),
            trouble,
            begun: 0,
            thread: Some(thread),
        })
    }

    /// Ends an operation that the thread does not take: nothing was sent.
    fn refuse(&mut self, id: OperationId, error: &TrySendError<Begun>) {
        let why = match error {
            TrySendError::Full(_) => "too much is under way already",
            TrySendError::Closed(_) => "the client's thread has ended",
        };
        self.refused.push((id, Outcome::Failed(why.to_owned())));
    }
}

impl RecordStore for ServiceStore {
    fn limits(&self) -> StoreLimits {
        self.facts.limits
    }

    fn incarnation(&self) -> Incarnation {
        self.facts.incarnation
    }

    fn begin(&mut self, operation: Operation) -> OperationId {
        self.begun += 1;
        let id = OperationId(self.begun);
        if let Some(operations) = &self.operations
            && let Err(error) = operations.try_send((id, operation))
        {
            self.refuse(id, &error);
        }
        id
    }

    fn poll(&mut self, outcomes: &mut Vec<(OperationId, Outcome)>) {
        outcomes.append(&mut self.refused);
        outcomes.extend(self.outcomes.try_iter());
    }

    fn trouble(&self) -> Option<Refusal> {
        self.trouble.get()
    }
}

impl Drop for ServiceStore {
    fn drop(&mut self) {
        self.operations = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the transaction log's client ended badly");
        }
    }
}

fn queue_length(facts: Facts) -> usize {
    facts.limits.puts_max + QUESTIONS_MAX
}

/// Hands operations to the service until the store is dropped. Puts go their own way, in order: a
/// service that takes none for a while still answers questions.
async fn serve<S: Service>(
    service: Arc<S>,
    queue_length: usize,
    mut begun: asynchronous::Receiver<Begun>,
    reports: Reports,
) {
    let (puts, queue) = asynchronous::channel(queue_length);
    tokio::spawn(put_in_order(Arc::clone(&service), queue));
    while let Some((id, operation)) = begun.recv().await {
        let mut promise = reports.promise(id);
        match operation {
            Operation::Put { sequence, record } => {
                if let Err(error) = puts.try_send((promise, sequence, record)) {
                    let (TrySendError::Full(put) | TrySendError::Closed(put)) = error;
                    put.0.keep(Outcome::Failed(BROKEN_OFF.to_owned()));
                }
            }
            question => {
                promise.otherwise = Outcome::Failed(BROKEN_OFF.to_owned());
                let ends = Arc::clone(&service).answer(question);
                tokio::spawn(async move { promise.keep(ends.await) });
            }
        }
    }
}

async fn put_in_order<S: Service>(
    service: Arc<S>,
    mut queue: asynchronous::Receiver<(Promise, Sequence, Bytes)>,
) {
    while let Some((promise, sequence, record)) = queue.recv().await {
        let ends = Arc::clone(&service).put(sequence, record).await;
        tokio::spawn(async move { promise.keep(ends.await) });
    }
}

/// What a reader is told where there is no log: it begins none.
pub const NO_LOG: &str = "there is no log at this URL";

const BROKEN_OFF: &str = "the client's thread broke it off";

/// The way back to the loop.
#[derive(Clone)]
struct Reports {
    tell: mpsc::Sender<(OperationId, Outcome)>,
    waker: Waker,
}

impl Reports {
    fn promise(&self, id: OperationId) -> Promise {
        let otherwise = Outcome::InDoubt(BROKEN_OFF.to_owned());
        Promise { id, otherwise, reports: self.clone() }
    }
}

/// One outcome that will be told, whatever becomes of the task that works for it: a log waits for
/// every put that it has begun.
struct Promise {
    id: OperationId,
    /// What is told when this is dropped.
    otherwise: Outcome,
    reports: Reports,
}

impl Promise {
    fn keep(mut self, outcome: Outcome) {
        self.otherwise = outcome;
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.otherwise, Outcome::Failed(String::new()));
        if self.reports.tell.send((self.id, outcome)).is_ok() {
            self.reports.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
