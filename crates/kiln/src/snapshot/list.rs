//! `kiln snapshot list`: a line for each snapshot, newest first, how far the log goes behind the
//! newest one, and what a worker is doing.

use archive::{Candidate, Extent, Snapshot, SnapshotStore};
use base::{Clock, Incarnation, Sequence};
use std::error::Error;
use std::io::{self, Write};

/// Where a log ends.
pub struct LogEnd {
    pub log: Incarnation,
    pub last: Sequence,
}

/// Asks the log where it ends, which may take as long as its service does.
pub type AskLog<'a> = &'a dyn Fn() -> Result<LogEnd, Box<dyn Error>>;

/// Prints the snapshots of a store. A log that does not say where it ends is no error.
///
/// # Errors
/// The archive's, or the output's.
pub fn show(store: &SnapshotStore, log: AskLog, clock: &dyn Clock) -> Result<(), Box<dyn Error>> {
    let mut output = io::BufWriter::new(io::stdout().lock());
    let now = clock.unix_millis().0;
    writeln!(output, "snapshots in {}", store.location())?;
    let candidates = store.list()?;
    for candidate in &candidates {
        writeln!(output, "{}", line(candidate, now))?;
    }
    output.flush()?;
    match log() {
        Ok(end) => writeln!(output, "{}", freshness(&candidates, &end))?,
        Err(why) => writeln!(output, "log cannot be asked: {}", plain(&why.to_string()))?,
    }
    if let Some(archived) = archived(&store.log().list()?) {
        writeln!(output, "{archived}")?;
    }
    let said = store.claimed().map_err(|why| format!("the claim cannot be read: {why}"))?;
    if let Some(said) = said {
        writeln!(output, "worker {}", plain(&String::from_utf8_lossy(&said)))?;
    }
    Ok(output.flush()?)
}

/// Without control characters: names and words are the archive's, and anybody who can write there
/// may have chosen them for the terminal that shows them.
fn plain(text: &str) -> String {
    let escape = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(escape).collect()
}

fn line(candidate: &Candidate, now: i64) -> String {
    plain(&match candidate {
        Candidate::Whole(snapshot) => whole(snapshot, now),
        Candidate::Damaged { name, why, may_be_whole: true } => {
            format!("{name} cannot be read: {why}")
        }
        Candidate::Damaged { name, why, .. } => format!("{name} is damaged: {why}"),
    })
}

/// A line for what a start would apply behind the newest snapshot of this log.
fn freshness(candidates: &[Candidate], end: &LogEnd) -> String {
    let last = end.last;
    let of_log = |it: &&Snapshot| it.point.position.incarnation == end.log;
    match candidates.iter().filter_map(Candidate::whole).find(of_log) {
        Some(newest) => {
            let behind = last.0.saturating_sub(newest.point.position.sequence.0);
            format!("log through record {last}: {behind} behind the newest snapshot")
        }
        None => format!("log through record {last}: none of it is in a snapshot"),
    }
}

/// A line for what is archived of the log, and how many records of it are missing.
fn archived(extents: &[Extent]) -> Option<String> {
    let first = extents.first()?.first;
    let (mut next, mut missing) = (first, 0);
    for extent in extents {
        missing += extent.first.0.saturating_sub(next.0);
        next = next.max(extent.last.next());
    }
    let gaps = if missing > 0 { format!(", but for {missing}") } else { String::new() };
    let (last, stretches) = (next.0 - 1, extents.len());
    let again = match extents.iter().filter(|it| it.attempt > 0).count() {
        0 => String::new(),
        count => format!(", {count} of them archived again"),
    };
    Some(format!("archived log: records {first} to {last}{gaps}, in {stretches} stretches{again}"))
}

fn whole(snapshot: &Snapshot, now: i64) -> String {
    let Snapshot { name, point, manifest } = snapshot;
    let ago = |at: i64| now.saturating_sub(at).max(0) / 1000;
    let age = ago(point.began.0);
    let proof = match manifest.proof {
        Some(proof) => {
            let through = proof.checked.map(|record| format!(" through record {record}"));
            format!("proven{}, {} s ago", through.unwrap_or_default(), ago(proof.at_ms))
        }
        None => "not proven".to_owned(),
    };
    format!(
        "{name} record {} age {age} s keys {} bytes {} parts {} {proof}",
        point.position.sequence,
        manifest.keys,
        manifest.bytes(),
        manifest.parts.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::{FORMAT, Facts, Manifest, Part, Proof, SnapshotPoint};
    use base::{Epoch, Position, UnixMillis};

    #[test]
    fn the_archived_log_is_one_line_that_shows_what_is_missing() {
        let of = |extents: &[(u64, u64)]| {
            let extent = |&(first, last): &(u64, u64)| Extent::of(Sequence(first), Sequence(last));
            archived(&extents.iter().map(extent).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), None);
        let whole = of(&[(3, 9), (3, 12), (13, 20)]);
        assert_eq!(whole.as_deref(), Some("archived log: records 3 to 20, in 3 stretches"));
        let again = Extent { attempt: 1, ..Extent::of(Sequence(3), Sequence(9)) };
        let again = archived(&[Extent { attempt: 0, ..again }, again]);
        let expected = "archived log: records 3 to 9, in 2 stretches, 1 of them archived again";
        assert_eq!(again.as_deref(), Some(expected));
        let gap = of(&[(3, 9), (15, 20)]);
        let expected = "archived log: records 3 to 20, but for 5, in 2 stretches";
        assert_eq!(gap.as_deref(), Some(expected));
    }

    #[test]
    fn the_freshness_is_that_of_the_newest_whole_snapshot_of_the_log() {
        let of = |log, sequence| {
            let (incarnation, sequence) = (Incarnation(log), Sequence(sequence));
            let position = Position { incarnation, sequence };
            let point = SnapshotPoint {
                position,
                chain: 0,
                epoch: Epoch(1),
                log_sum: None,
                clock: UnixMillis(0),
                began: UnixMillis(0),
            };
            let facts = Facts::unproven(point, 7, 10);
            let manifest = Box::new(Manifest::new(&facts, Vec::new(), FORMAT));
            Candidate::Whole(Snapshot { name: format!("snapshot-{sequence}"), point, manifest })
        };
        let damaged = Candidate::Damaged { name: "x".into(), why: "y".into(), may_be_whole: false };
        let end = LogEnd { log: Incarnation(1), last: Sequence(50) };
        let all = [damaged, of(2, 60), of(1, 42), of(1, 30)];
        let expected = "log through record 50: 8 behind the newest snapshot";
        assert_eq!(freshness(&all, &end), expected);
        let expected = "log through record 50: none of it is in a snapshot";
        assert_eq!(freshness(&all[..2], &end), expected);
    }

    #[test]
    fn a_snapshot_is_one_line_with_its_age_and_proof() {
        let position = Position { incarnation: Incarnation(1), sequence: Sequence(42) };
        let (clock, began) = (UnixMillis(0), UnixMillis(5_000));
        let point =
            SnapshotPoint { position, chain: 0, epoch: Epoch(1), log_sum: None, clock, began };
        let of = |proven| {
            let facts = Facts { point, keys: 7, rdb: 10, proven };
            let parts = vec![Part::new("part-0000.rdb", 119, 1)];
            let manifest = Box::new(Manifest::new(&facts, parts, FORMAT));
            line(
                &Candidate::Whole(Snapshot { name: "snapshot-42".to_owned(), point, manifest }),
                65_000,
            )
        };
        let start = "snapshot-42 record 42 age 60 s keys 7 bytes 119 parts 1";
        assert_eq!(of(None), format!("{start} not proven"));
        let proof = |checked, at_ms| of(Some((1, Proof { checked, at_ms })));
        let expected = format!("{start} proven through record 50, 58 s ago");
        assert_eq!(proof(Some(50), 7_000), expected);
        assert_eq!(proof(None, 70_000), format!("{start} proven, 0 s ago"), "another's clock");
        let damaged = |may_be_whole| {
            line(&Candidate::Damaged { name: "x".into(), why: "gone".into(), may_be_whole }, 0)
        };
        assert_eq!(damaged(false), "x is damaged: gone");
        assert_eq!(damaged(true), "x cannot be read: gone");
        let (name, why) = ("snapshot-\u{1b}[2J\n".to_owned(), "\r\u{9b}é".to_owned());
        let hostile = line(&Candidate::Damaged { name, why, may_be_whole: false }, 0);
        assert_eq!(hostile, r"snapshot-\u{1b}[2J\n is damaged: \r\u{9b}é");
    }
}
