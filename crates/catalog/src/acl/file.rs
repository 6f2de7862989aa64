//! The ACL file: one line for each user, read at the start and by ACL LOAD, written by ACL SAVE.
//!
//! It is taken as a whole or not at all: with a single mistake in it the users stay as they were.

use super::rule::{RuleError, is_one_word, join_selectors};
use super::user::User;
use super::{Acl, Terms};
use crate::commands::Catalog;
use crate::secrets::shown_rule;
use std::fmt::Write;
use std::path::Path;

/// Reads the text of a file. `shown` is the file's name as the configuration gives it.
///
/// # Errors
/// Everything that is wrong with it, in one line, as Redis says it.
pub fn parse(text: &[u8], shown: &Path, terms: Terms<'_>) -> Result<Vec<User>, String> {
    let mut users: Vec<User> = Vec::new();
    let mut errors = String::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let place = format!("{}:{}", shown.display(), index + 1);
        match parse_line(line, &place, &users, terms) {
            Ok(user) => users.push(user),
            Err(error) => errors.push_str(&error),
        }
    }
    if errors.is_empty() {
        return Ok(users);
    }
    errors.push_str(
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    );
    Err(errors)
}

fn parse_line(line: &[u8], place: &str, users: &[User], terms: Terms<'_>) -> Result<User, String> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [b"user", name, words @ ..] = &words[..] else {
        return Err(format!("{place} should start with user keyword followed by the username. "));
    };
    let shown = String::from_utf8_lossy(name);
    if !is_one_word(name) {
        return Err(format!("'{place}: username '{shown}' contains invalid characters. "));
    }
    if users.iter().any(|user| user.name == *name) {
        let (_, number) = place.rsplit_once(':').unwrap_or_default();
        return Err(format!("WARNING: Duplicate user '{shown}' found on line {number}. "));
    }
    let rules = join_selectors(words)
        .map_err(|_| format!("{place}: Unmatched parenthesis in selector definition."))?;
    let mut user = User::new(name, terms);
    let mut errors = String::new();
    let mut is_told = false;
    for rule in rules {
        let rule = rule.trim_ascii();
        match user.apply(rule, terms) {
            Ok(()) => {}
            // What may be a password is hidden also in a selector beside an unknown command.
            Err(error @ RuleError::UnknownCommand) => {
                let rule = shown_rule(rule);
                let rule = String::from_utf8_lossy(&rule);
                let why = error.text();
                let _ = write!(errors, "{place}: Error in applying operation '{rule}': {why}. ");
            }
            Err(error) if !is_told => {
                let _ = write!(errors, "{place}: {}. ", error.text());
                is_told = true;
            }
            Err(_) => {}
        }
    }
    if errors.is_empty() { Ok(user) } else { Err(errors) }
}

/// The text of a file that makes these users.
pub fn write(acl: &Acl, catalog: &Catalog) -> Vec<u8> {
    let mut text = acl.lines(catalog).join(&b'\n');
    text.push(b'\n');
    text
}
