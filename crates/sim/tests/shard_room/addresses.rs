//! Where a server tells others that it is.

use crate::three::{ADDRESS, ADDRESS_V6, Three};

#[test]
fn others_are_told_an_address_that_they_can_reach() {
    for (line, told) in [
        // Nobody from elsewhere would be let in.
        (&[][..], "127.0.0.1"),
        (&["--requirepass", "x"], ADDRESS),
        (&["--protected-mode", "no"], ADDRESS),
        (&["--protected-mode", "no", "--bind", "::"], ADDRESS_V6),
        (&["--protected-mode", "no", "--bind", "127.0.0.9"], "127.0.0.9"),
        (&["--protected-mode", "no", "--bind", "*", "10.9.9.9"], "10.9.9.9"),
        (&["--requirepass", "x", "--replica-announce-ip", "here"], "here"),
    ] {
        let mut three = Three::new(line);
        assert_eq!(three.leader_after(3), Some(0));
        assert_eq!(three.primary_of(1).as_deref(), Some(told), "{line:?}");
    }
}
