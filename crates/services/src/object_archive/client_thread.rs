//! The thread on which an archive's asynchronous client works. Callers wait for it: every call of
//! an archive blocks.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc as asynchronous, oneshot};
use tokio::task::AbortHandle;

/// How long the end of an archive waits for uploads to be aborted. What is left costs its place
/// until the bucket's own rule removes it.
const LEAVING: Duration = Duration::from_secs(5);

/// How long it waits then for file operations that have begun.
const FILES: Duration = Duration::from_secs(1);

/// A runtime on a thread of its own. Dropped it ends, and with it what is under way. Nothing that
/// runs on it may hold it.
pub struct ClientThread {
    runtime: Handle,
    /// Dropped it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    /// Who holds one is waited for at the end.
    leaving: Option<asynchronous::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ClientThread {
    /// # Errors
    /// The thread cannot be had.
    pub fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (leaving, gone) = asynchronous::channel(1);
        let work = move || run(runtime, stopped, gone);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { runtime: handle, stop: Some(stop), leaving: Some(leaving), thread: Some(thread) })
    }

    /// Does something there and waits for its end.
    ///
    /// # Errors
    /// What `work` says; that the thread has ended.
    pub fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let (tell, told) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // Nobody waits any more if its thread was ended.
            let _ = tell.send(work.await);
        });
        told.recv().map_err(|_| ended())?
    }

    /// Has something done beside the caller. It ends with the thread.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.runtime.spawn(work).abort_handle()
    }

    /// Likewise, and the thread's end waits for it for a while.
    pub fn spawn_to_the_end(&self, work: impl Future<Output = ()> + Send + 'static) {
        let leaving = self.leaving.clone();
        self.runtime.spawn(async move {
            work.await;
            drop(leaving);
        });
    }
}

pub fn ended() -> io::Error {
    io::Error::other("the thread of the snapshot store's client has ended")
}

/// Until the thread is dropped, and a while longer.
fn run(runtime: Runtime, stop: oneshot::Receiver<()>, mut gone: asynchronous::Receiver<()>) {
    runtime.block_on(async {
        // It is never sent, only dropped.
        let _ = stop.await;
        let _ = tokio::time::timeout(LEAVING, gone.recv()).await;
    });
    runtime.shutdown_timeout(FILES);
}

impl Drop for ClientThread {
    fn drop(&mut self) {
        (self.stop, self.leaving) = (None, None);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the snapshot store's client ended badly");
        }
    }
}
