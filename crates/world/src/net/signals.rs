//! SIGTERM and SIGINT as bytes in a pipe, which the loop watches like a socket.
//!
//! A handler that writes to a pipe was chosen over signalfd because signalfd asks every thread of
//! the process, also those of libraries, to keep the signals blocked. SIGPIPE needs nothing here:
//! sends ask the kernel not to raise it.

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

#[derive(Debug)]
pub struct Signals {
    receiver: UnixStream,
    handlers: [SigId; 2],
}

impl Signals {
    /// Catches the signals from now on.
    pub fn catch() -> io::Result<Self> {
        let (receiver, for_term) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        for_term.set_nonblocking(true)?;
        let for_int = for_term.try_clone()?;
        let handlers = [
            signal_hook::low_level::pipe::register(SIGTERM, for_term)?,
            signal_hook::low_level::pipe::register(SIGINT, for_int)?,
        ];
        Ok(Self { receiver, handlers })
    }

    /// Empties the pipe; whether a signal had come.
    pub fn take(&mut self) -> bool {
        let mut bytes = [0; 64];
        let mut has_come = false;
        while matches!(self.receiver.read(&mut bytes), Ok(1..)) {
            has_come = true;
        }
        has_come
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers {
            signal_hook::low_level::unregister(handler);
        }
    }
}
