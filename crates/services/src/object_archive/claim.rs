//! The claim in an object store: one object, which its holder goes on replacing.
//!
//! ```text
//! claim.json:  {"holder":"0123456789abcdef","renewal":7}      a line of the archive's
//!              …                                              what the holder says
//! ```
//! The line makes the bytes of two holders differ, and those of two renewals. A holder whose bytes
//! were watched for [`archive::CLAIM_SILENCE`] and did not change is dead, and whoever watched
//! replaces them, as long as they are still the same.

use super::bucket::{Bucket, Created, Updated};
use super::client_thread::ClientThread;
use super::sign::Writer;
use super::tidy::{Look, Watch};
use archive::{CLAIM_BYTES_MAX, Claim};
use base::Clock;
use bytes::Bytes;
use object_store::UpdateVersion;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The name under which the claim is watched: no snapshot has it.
const WATCHED: &str = "claim";

pub(super) fn content(holder: Writer, renewal: u64, said: &[u8]) -> io::Result<Bytes> {
    if said.len() > CLAIM_BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the claim says too much"));
    }
    let line = format!("{{\"holder\":\"{:016x}\",\"renewal\":{renewal}}}\n", holder.0);
    Ok([line.as_bytes(), said].concat().into())
}

fn is_of(holder: Writer, bytes: &[u8]) -> bool {
    bytes.starts_with(format!("{{\"holder\":\"{:016x}\",", holder.0).as_bytes())
}

/// What the holder says; `None` if no line stands above it.
fn said(bytes: &Bytes) -> Option<Vec<u8>> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some(bytes[end + 1..].to_vec())
}

pub struct ObjectClaim {
    thread: Arc<ClientThread>,
    bucket: Arc<Bucket>,
    holder: Writer,
    renewals: u64,
    version: UpdateVersion,
    is_lost: bool,
}

/// Takes the claim if it is free, or if its holder has been silent for long enough.
pub fn take(
    thread: &Arc<ClientThread>,
    bucket: &Arc<Bucket>,
    clock: &Arc<dyn Clock>,
    watch: &Arc<Watch>,
    holder: Writer,
    said: &[u8],
) -> io::Result<Option<ObjectClaim>> {
    let bytes = content(holder, 0, said)?;
    let (asked, clock, watch) = (Arc::clone(bucket), Arc::clone(clock), Arc::clone(watch));
    let taken = thread.wait(async move {
        let told = |error| asked.told("the claim", error);
        take_over(&asked, &*clock, &watch, holder, &bytes).await.map_err(told)
    })?;
    let (thread, bucket) = (Arc::clone(thread), Arc::clone(bucket));
    Ok(taken.map(|version| ObjectClaim {
        thread,
        bucket,
        holder,
        renewals: 0,
        version,
        is_lost: false,
    }))
}

async fn take_over(
    bucket: &Bucket,
    clock: &dyn Clock,
    watch: &Watch,
    holder: Writer,
    bytes: &Bytes,
) -> Result<Option<UpdateVersion>, object_store::Error> {
    let path = bucket.names.claim();
    let began = clock.monotonic();
    let Some((there, version)) = bucket.fetch(&path).await? else {
        return Ok(match bucket.create(&path, bytes).await? {
            Created::Done(version) => Some(version),
            Created::Exists(_) => None,
        });
    };
    let look = Look { began, ended: clock.monotonic() };
    if watch.unchanged(WATCHED, there.clone(), look) < bucket.times.claim_silence {
        return Ok(None);
    }
    // Whoever says something new meanwhile keeps it.
    let replaceable = |now: &[u8]| now == there || is_of(holder, now);
    Ok(match bucket.update(&path, bytes, &version, replaceable).await? {
        Updated::Done(version) => Some(version),
        Updated::Lost => None,
    })
}

/// What the claim's holder said last.
pub async fn claimed(bucket: &Bucket) -> io::Result<Option<Vec<u8>>> {
    let there = bucket.fetch(&bucket.names.claim()).await;
    let there = there.map_err(|error| bucket.told("the claim", error))?;
    Ok(there.and_then(|(bytes, _)| said(&bytes)))
}

impl Claim for ObjectClaim {
    fn renew(&mut self, said: &[u8]) -> io::Result<bool> {
        if self.is_lost {
            return Ok(false);
        }
        self.renewals += 1;
        let bytes = content(self.holder, self.renewals, said)?;
        let (bucket, holder, version) =
            (Arc::clone(&self.bucket), self.holder, self.version.clone());
        let updated = self.thread.wait(async move {
            let path = bucket.names.claim();
            let updated = bucket.update(&path, &bytes, &version, |now| is_of(holder, now)).await;
            updated.map_err(|error| bucket.told("the claim", error))
        })?;
        match updated {
            Updated::Done(version) => self.version = version,
            Updated::Lost => self.is_lost = true,
        }
        Ok(!self.is_lost)
    }

    fn release(self: Box<Self>) -> io::Result<()> {
        let (bucket, holder) = (Arc::clone(&self.bucket), self.holder);
        self.thread.wait(async move {
            let told = |error| bucket.told("the claim", error);
            let path = bucket.names.claim();
            match bucket.fetch(&path).await.map_err(told)? {
                Some((there, _)) if is_of(holder, &there) => {
                    bucket.delete(&path).await.map_err(told)
                }
                _ => Ok(()),
            }
        })
    }
}
