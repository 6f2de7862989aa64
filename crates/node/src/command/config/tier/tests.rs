//! What CONFIG SET may make of a tier.

use super::*;

const AT_REST: State = State { is_loading: false, is_unused: true };
const IN_USE_NOW: State = State { is_loading: false, is_unused: false };
const LOADING: State = State { is_loading: true, is_unused: true };

fn settings(path: &str, read_threads: usize) -> TierSettings {
    TierSettings {
        path: (!path.is_empty()).then(|| path.into()),
        bytes_max: 1 << 30,
        read_threads,
        takes_io_uring: true,
        value_bytes_min: 64,
        value_bytes_max: 256 << 10,
        is_all_cold: false,
    }
}

#[test]
fn the_longest_value_that_may_be_named_is_the_longest_that_fits() {
    let longest = tier::Limits::default().record_bytes_max as u64;
    assert_eq!(config::settings::tier::TIER_VALUE_BYTES_MAX, longest);
}

#[test]
fn a_tier_opens_closes_and_is_exchanged_while_nothing_lies_on_it() {
    let (none, one, other) = (settings("", 4), settings("/one", 4), settings("/other", 4));
    assert_eq!(judge(&none, &one, AT_REST), Ok(Change::Opens));
    assert_eq!(judge(&one, &none, AT_REST), Ok(Change::Closes));
    assert_eq!(judge(&one, &other, AT_REST), Ok(Change::IsExchanged));
    assert_eq!(judge(&one, &settings("/one", 8), AT_REST), Ok(Change::IsExchanged));
}

#[test]
fn a_tier_with_values_stays_where_it_is() {
    let (none, one) = (settings("", 4), settings("/one", 4));
    assert_eq!(judge(&one, &none, IN_USE_NOW), Err(("tier", IN_USE)));
    assert_eq!(judge(&one, &settings("/other", 4), IN_USE_NOW), Err(("tier", IN_USE)));
    let threads = judge(&one, &settings("/one", 8), IN_USE_NOW);
    assert_eq!(threads, Err(("tier-read-threads", IN_USE)));
    let by_threads = TierSettings { takes_io_uring: false, ..one.clone() };
    assert_eq!(judge(&one, &by_threads, IN_USE_NOW), Err(("tier-io-uring", IN_USE)));
    assert_eq!(judge(&one, &by_threads, AT_REST), Ok(Change::IsExchanged));
}

#[test]
fn what_a_tier_takes_changes_at_any_time_but_while_loading() {
    let one = settings("/one", 4);
    let larger = TierSettings { bytes_max: 2 << 30, value_bytes_min: 1024, ..one.clone() };
    assert_eq!(judge(&one, &larger, IN_USE_NOW), Ok(Change::Stays));
    assert!(judge(&one, &larger, LOADING).is_err_and(|(named, _)| named == "tier-max"));
    let shorter = TierSettings { value_bytes_max: 1024, ..one.clone() };
    assert!(judge(&one, &shorter, LOADING).is_err_and(|(named, _)| named == "tier-value-max"));
    assert_eq!(judge(&one, &one, LOADING), Ok(Change::Stays));
}

#[test]
fn no_tier_opens_amid_a_snapshot_or_a_loading() {
    let (none, one) = (settings("", 4), settings("/one", 4));
    assert!(judge(&none, &one, IN_USE_NOW).is_err_and(|(_, why)| why.contains("snapshot")));
    assert!(judge(&none, &one, LOADING).is_err_and(|(_, why)| why.contains("loaded")));
    assert_eq!(judge(&none, &settings("", 8), LOADING), Ok(Change::Stays));
}
