//! Which snapshots a restore window needs.
//!
//! To go back to a moment takes the newest snapshot before it, and the archived log between the
//! two. So of a window the newest snapshot before its beginning stays, and within it some, so that
//! no moment is far from one.

use crate::limits::Limits;
use crate::store::Snapshot;
use base::UnixMillis;

/// The names of those that the window needs of these, which are newest first.
pub fn in_window<'a>(whole: &[&'a Snapshot], limits: &Limits, now: UnixMillis) -> Vec<&'a str> {
    let Limits { window_seconds, window_spacing_seconds, .. } = *limits;
    if window_seconds == 0 {
        return Vec::new();
    }
    // All that is there, if nothing is older.
    let base = whole
        .iter()
        .position(|it| limits.is_window_reached(it.point.clock, now))
        .map_or(whole.len(), |at| at + 1);
    let mut kept: Vec<&Snapshot> = Vec::new();
    for &snapshot in whole[..base].iter().rev() {
        // A clock that was set back makes any distance.
        let since = |before: &&Snapshot| snapshot.point.clock.0.abs_diff(before.point.clock.0);
        let spacing = window_spacing_seconds.saturating_mul(1000);
        if kept.last().is_none_or(|it| since(it) >= spacing) {
            kept.push(snapshot);
        }
    }
    kept.into_iter().map(|it| it.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, Manifest, SnapshotPoint};
    use base::{Epoch, Incarnation, Position, Sequence};

    fn snapshot(second: i64) -> Snapshot {
        let sequence = Sequence(second.unsigned_abs());
        let point = SnapshotPoint {
            position: Position { incarnation: Incarnation(1), sequence },
            chain: 0,
            epoch: Epoch(1),
            log_sum: None,
            clock: UnixMillis(second * 1000),
            began: UnixMillis(second * 1000),
        };
        let manifest = Manifest::new(&Facts::unproven(point, 0, 10), Vec::new(), 2);
        Snapshot { name: second.to_string(), point, manifest: Box::new(manifest) }
    }

    fn kept(seconds: &[i64], window: u64, spacing: u64, now: i64) -> Vec<i64> {
        let all: Vec<Snapshot> = seconds.iter().rev().map(|it| snapshot(*it)).collect();
        let whole: Vec<&Snapshot> = all.iter().collect();
        let limits =
            Limits { window_seconds: window, window_spacing_seconds: spacing, ..Limits::default() };
        let names = in_window(&whole, &limits, UnixMillis(now * 1000));
        names.into_iter().map(|name| name.parse::<i64>().expect("a second")).collect()
    }

    #[test]
    fn the_newest_before_the_window_stays_and_some_within_it() {
        let hours: Vec<i64> = (0..=100).collect();
        assert!(kept(&hours, 0, 10, 100).is_empty());
        assert_eq!(kept(&hours, 50, 10, 100), [50, 60, 70, 80, 90, 100]);
        assert_eq!(kept(&hours, 45, 10, 100), [55, 65, 75, 85, 95]);
        assert_eq!(kept(&[10, 90, 95], 50, 10, 100), [10, 90], "10 is before it");
        assert_eq!(kept(&[90, 95], 50, 10, 100), [90], "nothing is");
        assert_eq!(kept(&[10, 20], 50, 0, 100), [20]);
        assert!(kept(&[], 50, 0, 100).is_empty());
        assert_eq!(kept(&[5, 10], u64::MAX, u64::MAX, 100), [5]);
    }

    #[test]
    fn what_stays_once_goes_on_staying_while_the_window_moves() {
        let mut there: Vec<i64> = Vec::new();
        for now in 0..500 {
            there.push(now);
            let stays = kept(&there, 100, 24, now);
            let newest = now - 1;
            there.retain(|it| stays.contains(it) || *it >= newest);
            let oldest = there[0];
            assert!(now < 124 || (now - 124..=now - 100).contains(&oldest), "{now}: {oldest}");
            let gaps = there.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(gaps.max().unwrap_or(0) <= 25, "{there:?}");
        }
        assert!(there.len() <= 8, "{there:?}");
    }
}
