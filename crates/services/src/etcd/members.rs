//! The cluster's members: one is spoken to, and left for the next one when it fails.
//!
//! The client's own balancing would hand each request to any of them, so that one that was stopped
//! holds up every third request until its connection is given up. Whoever is spoken to, the answer
//! is the quorum's.

use super::address::Address;
use etcd_client::{Client, ConnectOptions, Error};
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;

/// gRPC's numbers of those errors that say more than that a member failed.
mod code {
    pub const INVALID_ARGUMENT: i32 = 3;
    pub const PERMISSION_DENIED: i32 = 7;
    pub const RESOURCE_EXHAUSTED: i32 = 8;
    pub const OUT_OF_RANGE: i32 = 11;
    pub const UNAUTHENTICATED: i32 = 16;
}

/// The members, and which one is spoken to.
pub struct Members {
    members: Vec<Member>,
    options: ConnectOptions,
    /// How often a member was left. The remainder is the index of the one spoken to.
    turn: AtomicUsize,
}

struct Member {
    endpoint: String,
    /// It connects when it is used, and again when its connection is lost. What is waited for here
    /// is only that it proves who it is.
    client: OnceCell<Client>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The member did not answer in time.
    Late(Duration),
    /// A watch ended. Says why.
    Ended(String),
    Error(Error),
}

impl Members {
    /// # Errors
    /// A file that the URL names cannot be read.
    pub fn new(address: &Address) -> io::Result<Self> {
        let member = |endpoint| Member { endpoint, client: OnceCell::new() };
        Ok(Self {
            members: address.endpoints().into_iter().map(member).collect(),
            options: address.options()?,
            turn: AtomicUsize::new(0),
        })
    }

    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Names the member that is spoken to now, among all that were and will be.
    pub fn turn(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }

    /// Asks the member that is spoken to. One that fails is left.
    pub async fn ask<T, A>(
        &self,
        limit: Duration,
        question: impl FnOnce(Client) -> A,
    ) -> Result<T, Unanswered>
    where
        A: Future<Output = Result<T, Error>>,
    {
        let turn = self.turn();
        let answer = self.ask_one(turn, limit, question).await;
        if answer.as_ref().is_err_and(Unanswered::is_of_member) {
            self.leave(turn);
        }
        answer
    }

    /// Asks a certain member.
    pub async fn ask_one<T, A>(
        &self,
        index: usize,
        limit: Duration,
        question: impl FnOnce(Client) -> A,
    ) -> Result<T, Unanswered>
    where
        A: Future<Output = Result<T, Error>>,
    {
        let asked = async {
            let member = &self.members[index % self.members.len()];
            let connect = || Client::connect([&member.endpoint], Some(self.options.clone()));
            let client = member.client.get_or_try_init(connect).await?;
            question(client.clone()).await
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer.map_err(Unanswered::Error),
            Err(_) => Err(Unanswered::Late(limit)),
        }
    }

    /// Speaks to the next member from now on, unless that happened meanwhile.
    pub fn leave(&self, turn: usize) {
        let next = turn.wrapping_add(1);
        // Somebody else has left it already: that is as good.
        let _ = self.turn.compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Unanswered {
    fn code(&self) -> Option<i32> {
        match self {
            Self::Error(Error::GRpcStatus(status)) => Some(status.code().into()),
            _ => None,
        }
    }

    /// Whether another member may answer where this one did not.
    fn is_of_member(&self) -> bool {
        let is_of_cluster = [code::RESOURCE_EXHAUSTED, code::OUT_OF_RANGE];
        !self.is_final() && self.code().is_none_or(|code| !is_of_cluster.contains(&code))
    }

    /// Whether etcd has written nothing because its quota is used up.
    pub fn is_full(&self) -> bool {
        let Self::Error(Error::GRpcStatus(status)) = self else { return false };
        status.message().contains("database space exceeded")
    }

    /// Whether the answer was longer than this end takes.
    pub fn is_too_long(&self) -> bool {
        self.code() == Some(code::OUT_OF_RANGE)
    }

    /// Whether it is useless to ask again: who asks is not known, may not, or asks nonsense.
    pub fn is_final(&self) -> bool {
        self.kind() != io::ErrorKind::NotConnected
    }

    /// `NotConnected` if asking again may help.
    pub fn kind(&self) -> io::ErrorKind {
        match self.code() {
            // So etcd answers to a wrong password.
            Some(code::INVALID_ARGUMENT | code::PERMISSION_DENIED | code::UNAUTHENTICATED) => {
                io::ErrorKind::PermissionDenied
            }
            // So rustls says that a certificate is not to be trusted.
            _ if self.causes().any(is_mistrust) => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::NotConnected,
        }
    }

    /// What led to it, the deepest last. etcd's client does not say; what is below it does.
    fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let source = match self {
            Self::Error(Error::GRpcStatus(status)) => status.source(),
            Self::Error(Error::TransportError(error)) => error.source(),
            _ => None,
        };
        std::iter::successors(source, |&cause| cause.source())
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(limit) => write!(out, "no answer within {} s", limit.as_secs())?,
            Self::Ended(why) => write!(out, "the watch ended: {why}")?,
            Self::Error(Error::GRpcStatus(status)) => out.write_str(status.message())?,
            Self::Error(error) => write!(out, "{error}")?,
        }
        // The last cause says the most: "connection refused".
        match self.causes().last() {
            Some(cause) => write!(out, ": {cause}"),
            None => Ok(()),
        }
    }
}

fn is_mistrust(cause: &(dyn StdError + 'static)) -> bool {
    cause
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
}
