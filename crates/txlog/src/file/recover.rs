//! Opening a log directory: finding its end, telling a torn tail from damage, and taking it over.

use super::FileOptions;
use super::claim::{self, Claim, Standing};
use super::error::{LogError, LogErrorKind};
use super::history::{self, Found};
use super::layout::{self, PAGE_BYTES, SegmentHeader, put_frame};
use super::scan::{Frame, FrameReader};
use super::survey::{Segment, Survey};
use super::tenure::{Spare, Tenure, extend};
use crate::chain::Chain;
use base::disk::{Disk, create_directory_durably};
use base::{Incarnation, Sequence};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Reads which life of the log the directory holds, or begins one.
pub(crate) fn incarnation(
    disk: &dyn Disk,
    directory: &Path,
    options: &FileOptions,
) -> Result<(Incarnation, bool), LogError> {
    let path = layout::incarnation_path(directory);
    if options.must_exist || options.known.is_some() {
        return known_incarnation(disk, directory, &path);
    }
    create_directory_durably(disk, directory).map_err(LogError::io("create", directory))?;
    let damage = match read_incarnation(disk, &path)? {
        Some(Ok(incarnation)) => return Ok((incarnation, false)),
        Some(Err(what)) => Some(what),
        None => None,
    };
    let entries = disk.list(directory).map_err(LogError::io("list", directory))?;
    let is_log = |name: &str| {
        matches!(
            layout::Name::parse(name),
            layout::Name::Segment { .. } | layout::Name::Claim { .. }
        )
    };
    if entries.iter().any(|entry| is_log(&entry.name)) {
        return Err(match damage {
            Some(what) => LogError::Damaged { file: path, offset: 0, sequence: None, what },
            None => LogError::Lost("segments without an incarnation file".to_owned()),
        });
    }
    create_incarnation(disk, directory, &path, options)
}

/// Whether a log was begun in this directory. Nothing is made there.
///
/// # Errors
/// The disk's.
pub fn is_begun(disk: &dyn Disk, directory: &Path) -> Result<bool, LogError> {
    Ok(read_incarnation(disk, &layout::incarnation_path(directory))?.is_some())
}

/// The life of a log that must be there already. Nothing is made in its place, so that the next
/// start finds what this one found, and a log that was only mislaid can be put back.
fn known_incarnation(
    disk: &dyn Disk,
    directory: &Path,
    path: &Path,
) -> Result<(Incarnation, bool), LogError> {
    match read_incarnation(disk, path)? {
        Some(Ok(incarnation)) => Ok((incarnation, false)),
        Some(Err(what)) => {
            Err(LogError::Damaged { file: path.to_owned(), offset: 0, sequence: None, what })
        }
        None => {
            let directory = directory.display();
            Err(LogError::Lost(format!("there is none in {directory}, and there has been one")))
        }
    }
}

/// Two processes may begin the same log at once: the lock decides who writes, the other reads what
/// was written. The name appears only when the bytes are durable, so a failed sync leaves nothing
/// that a later process could take for an incarnation.
fn create_incarnation(
    disk: &dyn Disk,
    directory: &Path,
    path: &Path,
    options: &FileOptions,
) -> Result<(Incarnation, bool), LogError> {
    let lock_path = directory.join("creating.lock");
    match disk.create_new(&lock_path) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(LogError::io("create", &lock_path)(error)),
    }
    let _lock = match disk.lock(&lock_path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            return Err(LogError::Busy("another process is creating it".to_owned()));
        }
        Err(error) => return Err(LogError::io("lock", &lock_path)(error)),
    };
    if let Some(Ok(incarnation)) = read_incarnation(disk, path)? {
        return Ok((incarnation, false));
    }
    let incarnation = Incarnation(options.entropy);
    let draft = directory.join("incarnation.tmp");
    remove(disk, &draft)?;
    let file = disk.create_new(&draft).map_err(LogError::io("create", &draft))?;
    let bytes = layout::encode_incarnation(incarnation);
    file.write_at(0, &bytes).map_err(LogError::io("write", &draft))?;
    file.sync_data().map_err(LogError::io("sync", &draft))?;
    disk.rename(&draft, path).map_err(LogError::io("rename", &draft))?;
    disk.sync_directory(directory).map_err(LogError::io("sync", directory))?;
    Ok((incarnation, true))
}

/// The last record that is known to be durable beside what the marks say: the one that
/// [`FileOptions::known`] names, if marks do not reach it. They need not, after a loss of power.
///
/// # Errors
/// `Lost` if the log ends before that record; as a survey.
pub(crate) fn floor(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
    options: &FileOptions,
    mark: Sequence,
) -> Result<Sequence, LogError> {
    let known = options.known.map_or(Sequence::ZERO, |known| known.sequence);
    if known > mark && options.trusts_marks {
        return Err(too_short(known, mark));
    }
    if known > mark {
        demand(disk, directory, incarnation, known)?;
    }
    Ok(known)
}

/// Makes sure that the log reaches a record that was durable once.
///
/// # Errors
/// `Lost` if it ends before it; as a survey.
pub(crate) fn demand(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
    known: Sequence,
) -> Result<(), LogError> {
    match history::look(disk, directory, incarnation, known)? {
        Found::Chain(_) | Found::Trimmed => Ok(()),
        Found::Short(tail) => Err(too_short(known, tail)),
    }
}

fn too_short(known: Sequence, end: Sequence) -> LogError {
    LogError::Lost(format!("record {known} was applied, the log ends at {end}"))
}

/// Whether the directory still holds this life of the log.
pub(crate) fn is_there(disk: &dyn Disk, directory: &Path, incarnation: Incarnation) -> bool {
    let found = read_incarnation(disk, &layout::incarnation_path(directory));
    matches!(found, Ok(Some(Ok(found))) if found == incarnation)
}

pub(crate) fn read_incarnation(
    disk: &dyn Disk,
    path: &Path,
) -> Result<Option<Result<Incarnation, String>>, LogError> {
    let file = match disk.open_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LogError::io("open", path)(error)),
    };
    let mut bytes = [0; 32];
    let count = file.read_at(0, &mut bytes).map_err(LogError::io("read", path))?;
    Ok(Some(layout::decode_incarnation(&bytes[..count])))
}

/// The end of a log as its newest segment tells it.
pub(crate) struct End {
    /// The last whole record.
    pub tail: Sequence,
    pub chain: Chain,
    /// Everything through here is known to be durable.
    pub durable: Sequence,
    /// Where the chain stands at `durable`.
    pub durable_chain: Chain,
    /// Records past `durable`.
    pub undurable: VecDeque<Bytes>,
    /// Where the newest segment's durable records end, in bytes.
    pub durable_offset: u64,
    /// A torn record was found behind the tail.
    pub is_torn: bool,
}

/// Reads the newest segment to its end.
pub(crate) fn find_end(
    disk: &dyn Disk,
    survey: &Survey,
    incarnation: Incarnation,
) -> Result<End, LogError> {
    let Some(segment) = survey.segments.last() else {
        return empty_end(survey, incarnation);
    };
    let file = disk.open_read(&segment.path).map_err(LogError::io("open", &segment.path))?;
    let mut frames = FrameReader::new(file, segment.header.salt, segment.first());
    let mut end = End {
        tail: Sequence(segment.first().0 - 1),
        chain: segment.header.chain,
        durable: survey.mark,
        durable_chain: segment.header.chain,
        undurable: VecDeque::new(),
        durable_offset: PAGE_BYTES as u64,
        is_torn: false,
    };
    let mut looked_again = None;
    loop {
        match frames.next().map_err(LogError::io("read", &segment.path))? {
            Frame::Record { sequence, header, bytes, .. } => {
                end.durable = end.durable.max(header.durable.min(end.tail));
                end.tail = sequence;
                extend(&mut end.chain, &bytes);
                end.undurable.push_back(bytes);
                end.settle();
            }
            Frame::Empty { offset } => {
                let what = "zeroes where a record was";
                let judged = judge(&mut end, segment, &frames, offset, what);
                if must_look_again(&judged, &mut looked_again, offset) {
                    continue;
                }
                return judged.map(|()| end);
            }
            Frame::Invalid { offset, what } => {
                let judged = judge(&mut end, segment, &frames, offset, &what);
                if must_look_again(&judged, &mut looked_again, offset) {
                    continue;
                }
                judged?;
                end.is_torn = true;
                return Ok(end);
            }
        }
    }
}

/// Whether a place must be read once more before it counts as damaged, and notes that it was: a
/// live writer may have written the record after it was looked for, and the proof after that. What
/// is still missing now that the proof is there is damage.
fn must_look_again(
    judged: &Result<(), LogError>,
    looked_again: &mut Option<u64>,
    offset: u64,
) -> bool {
    let is_damage = matches!(judged, Err(LogError::Damaged { .. }));
    is_damage && looked_again.replace(offset) != Some(offset)
}

impl End {
    /// Forgets records that turned out to be durable.
    fn settle(&mut self) {
        while self.tail.0 - (self.undurable.len() as u64) < self.durable.0 {
            let Some(record) = self.undurable.pop_front() else { return };
            extend(&mut self.durable_chain, &record);
            self.durable_offset += layout::framed_bytes(record.len()) as u64;
        }
    }
}

fn empty_end(survey: &Survey, incarnation: Incarnation) -> Result<End, LogError> {
    if survey.mark > Sequence::ZERO {
        let what = format!("record {} was durable, and no segment is left", survey.mark);
        return Err(LogError::Lost(what));
    }
    Ok(End {
        tail: Sequence::ZERO,
        chain: Chain::start(incarnation),
        durable: Sequence::ZERO,
        durable_chain: Chain::start(incarnation),
        undurable: VecDeque::new(),
        durable_offset: 0,
        is_torn: false,
    })
}

/// A record that is missing at or below a known durable mark is damage; above, a torn tail.
fn judge(
    end: &mut End,
    segment: &Segment,
    frames: &FrameReader,
    offset: u64,
    what: &str,
) -> Result<(), LogError> {
    let missing = end.tail.next();
    let proof = if missing <= end.durable {
        Some(format!("record {} was published as durable", end.durable))
    } else {
        let later = frames.later_proof().map_err(LogError::io("read", &segment.path))?;
        later.map(|sequence| format!("record {sequence} behind it says that it was durable"))
    };
    match proof {
        None => Ok(()),
        Some(proof) => Err(LogError::Damaged {
            file: segment.path.clone(),
            offset,
            sequence: Some(missing),
            what: format!("{what}; {proof}"),
        }),
    }
}

/// What a successful take-over yields.
pub(crate) struct TakenOver {
    pub tenure: Tenure,
    pub segments: Vec<Segment>,
    pub is_torn: bool,
}

impl TakenOver {
    /// The claim by which it was taken.
    pub(crate) fn claim(&self) -> u64 {
        self.tenure.claim.number
    }
}

/// Takes the log over if none of its writers lives; `None` if one does, or another process was
/// quicker.
pub(crate) fn take_free(
    disk: &Arc<dyn Disk>,
    directory: &Path,
    incarnation: Incarnation,
    options: &FileOptions,
    survey: &Survey,
) -> Result<Option<TakenOver>, LogError> {
    // Held until the log is taken over: a process that opens at the same time then reads.
    let dead = claim::lock_dead(&**disk, directory, incarnation, &survey.claims, u64::MAX)?;
    if dead.is_none() {
        return Ok(None);
    }
    match take_over(disk, directory, incarnation, options, &survey.claims) {
        // A challenger asks nobody's lock.
        Err(LogError::Busy(_)) => Ok(None),
        other => other.map(Some),
    }
}

/// Claims the log and seals what was there. Works against a live writer too: see [`claim`].
/// `locked` are the claims whose locks the caller holds: their writers are dead.
pub(crate) fn take_over(
    disk: &Arc<dyn Disk>,
    directory: &Path,
    incarnation: Incarnation,
    options: &FileOptions,
    locked: &[u64],
) -> Result<TakenOver, LogError> {
    let before = Survey::take(&**disk, directory, incarnation)?;
    let token = options.entropy.rotate_left(17) ^ before.mark.0;
    let claim = Claim::acquire(&**disk, directory, incarnation, &before, token)?;
    // Only now is the old end read: whatever its writer counts from here on, it will not count.
    let survey = Survey::take(&**disk, directory, incarnation)?;
    let end = find_end(&**disk, &survey, incarnation)?;
    let salt = options.entropy ^ claim.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = end.durable.next();
    let header =
        SegmentHeader { incarnation, claim: claim.number, first, chain: end.durable_chain, salt };
    let mut frames = Vec::new();
    for (sequence, record) in (first.0..).zip(&end.undurable) {
        put_frame(&mut frames, Sequence(sequence), salt, record);
    }
    let spare = first_segment(&**disk, directory, claim.number, options, frames.len())?;
    let active = Spare::publish(spare, &**disk, directory, header, &frames)?;
    let standing = claim.standing(&**disk).map_err(LogError::io("look into", directory))?;
    if standing != Standing::Held {
        return Err(LogError::Busy("another process claimed it meanwhile".to_owned()));
    }
    claim.publish(end.tail).map_err(LogError::io("write", directory))?;
    tidy(&**disk, directory, &survey, &claim, &end, locked)?;
    let segments = Survey::take(&**disk, directory, incarnation)?.segments;
    let tenure = Tenure {
        disk: Arc::clone(disk),
        directory: directory.to_owned(),
        incarnation,
        claim,
        active,
        rolled: None,
        tail: end.tail,
        chain: end.chain,
        salt,
        buffer: Vec::new(),
        skips_sync: options.acknowledges_before_sync,
        skips_look: options.writes_nameless,
    };
    Ok(TakenOver { tenure, segments, is_torn: end.is_torn })
}

/// The zeroes of a tenure's first segment. On a full disk a small one does: the server starts,
/// serves reads, and its gate refuses writes until there is space for more.
fn first_segment(
    disk: &dyn Disk,
    directory: &Path,
    claim: u64,
    options: &FileOptions,
    copied_bytes: usize,
) -> Result<Spare, LogError> {
    let needed = (PAGE_BYTES + copied_bytes) as u64;
    let two_batches = 2 * options.batch_bytes_max as u64;
    let full = options.first_segment_bytes.max(needed + two_batches);
    match Spare::prepare(disk, layout::spare_path(directory, claim, 0), full) {
        Err(error) if error.kind() == LogErrorKind::Retry => {
            let small = needed + options.first_segment_bytes / 8;
            Spare::prepare(disk, layout::spare_path(directory, claim, 0), small)
        }
        other => other,
    }
}

/// Removes what a dead writer left: bytes past the seal, segments that speak for nothing, files it
/// was preparing, and its claims. While one of the earlier writers may be alive nothing is
/// touched: a paused writer must find the claim that ended it when it wakes up.
fn tidy(
    disk: &dyn Disk,
    directory: &Path,
    survey: &Survey,
    claim: &Claim,
    end: &End,
    locked: &[u64],
) -> Result<(), LogError> {
    let incarnation = claim.incarnation;
    let mut unlocked = survey.claims.clone();
    unlocked.retain(|number| !locked.contains(number));
    let locks = claim::lock_dead(disk, directory, incarnation, &unlocked, claim.number)?;
    if locks.is_none() {
        return Ok(());
    }
    if let Some(last) = survey.segments.last() {
        if last.first() > end.durable {
            remove(disk, &last.path)?;
        } else if last.length > end.durable_offset {
            let file = disk.open_write(&last.path).map_err(LogError::io("open", &last.path))?;
            let cut = file.set_length(end.durable_offset);
            cut.map_err(LogError::io("cut", &last.path))?;
        }
    }
    for path in survey.superseded.iter().chain(&survey.spares) {
        remove(disk, path)?;
    }
    for dead in survey.claims.iter().filter(|number| **number < claim.number) {
        remove(disk, &layout::claim_path(directory, *dead, incarnation))?;
    }
    Ok(())
}

pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> Result<(), LogError> {
    match disk.remove(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(LogError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
