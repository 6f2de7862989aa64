//! What clients did to one key and learned of it, held against the order in which the log says
//! that its values followed each other.
//!
//! The order is known, so no search is needed: each operation must have an instant between its
//! request and its reply, such that the instants are in that order. Going through the values, each
//! instant is taken as early as may be; if one does not fit then, it never does.
//!
//! ```text
//! value      1               2                    3
//! write   ├──x──────┤   ├───────x──┤         ├───x────  no reply: any time later, or never
//! read          ├─x──┤             ├─x──┤ ├──┤ a read of 2 here is stale: 3 was acknowledged
//! ```
//! A write that nobody was answered may have happened at any time after its request.

/// When something was asked and answered, in nanoseconds of true time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub asked: u64,
    /// `None`: never.
    pub answered: Option<u64>,
}

/// All that was done with one value of a key.
#[derive(Clone, Default, Debug)]
pub struct Version {
    /// Its name, for messages.
    pub name: String,
    /// Who wrote it; nobody wrote the first, which is nothing. `None` also if it is not known who.
    pub write: Option<Span>,
    pub reads: Vec<Span>,
}

/// Whether the operations on a key may have happened in the order of its values.
///
/// # Errors
/// What cannot have been.
pub fn check(versions: &[Version]) -> Result<(), String> {
    let mut at = 0;
    for version in versions {
        let name = &version.name;
        if let Some(write) = version.write {
            at = at.max(write.asked);
            if let Some(answered) = write.answered.filter(|answered| *answered < at) {
                let late = at - answered;
                return Err(format!(
                    "{name} was acknowledged {late} ns before it can have been written: what it \
                     replaced was read or acknowledged later"
                ));
            }
        }
        let mut until = at;
        for read in &version.reads {
            let instant = at.max(read.asked);
            if let Some(answered) = read.answered.filter(|answered| *answered < instant) {
                let late = instant - answered;
                return Err(format!("{name} was read {late} ns before it can have been there"));
            }
            until = until.max(instant);
        }
        at = until;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(asked: u64, answered: u64) -> Span {
        Span { asked, answered: Some(answered) }
    }

    fn never(asked: u64) -> Span {
        Span { asked, answered: None }
    }

    fn version(write: Option<Span>, reads: &[Span]) -> Version {
        Version { name: "x".to_owned(), write, reads: reads.to_vec() }
    }

    #[test]
    fn what_overlaps_may_have_been_in_any_order() {
        let first = version(None, &[span(0, 1), span(2, 12)]);
        let second = version(Some(span(5, 10)), &[span(6, 11)]);
        assert_eq!(check(&[first, second]), Ok(()));
    }

    #[test]
    fn a_read_of_a_value_that_was_overwritten_before_it_was_asked_is_stale() {
        let first = version(Some(span(0, 1)), &[span(21, 22)]);
        let second = version(Some(span(10, 20)), &[]);
        assert!(check(&[first, second]).is_err());
    }

    #[test]
    fn a_read_that_another_read_has_overtaken_is_stale() {
        let first = version(None, &[span(30, 31)]);
        let second = version(Some(never(10)), &[span(20, 25)]);
        assert!(check(&[first, second]).is_err());
    }

    #[test]
    fn a_value_is_not_read_before_it_is_written() {
        let first = version(None, &[]);
        let second = version(Some(span(10, 20)), &[span(5, 8)]);
        assert!(check(&[first, second]).is_err());
    }

    #[test]
    fn an_unanswered_write_may_happen_late() {
        let first = version(Some(never(0)), &[]);
        let second = version(Some(span(1, 2)), &[]);
        assert_eq!(check(&[second, first]), Ok(()));
        let (early, late) = (version(Some(span(0, 1)), &[]), version(Some(span(2, 3)), &[]));
        assert!(check(&[late, early]).is_err());
    }
}
