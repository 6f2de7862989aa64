//! Declarations of a configuration's lines: what is refused, where, and without secrets.

use super::*;
use crate::command::standard;
use base::disk::DiskEntry;
use base::{Disk, DiskFile};
use config::arguments::CommandLine;
use config::load::load;
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A disk without files: the text comes on the standard input.
struct NoDisk;

fn none<T>() -> io::Result<T> {
    Err(io::ErrorKind::NotFound.into())
}

impl Disk for NoDisk {
    fn create_new(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        none()
    }
    fn exists(&self, _: &Path) -> io::Result<bool> {
        Ok(false)
    }
    fn open_read(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        none()
    }
    fn open_write(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        none()
    }
    fn list(&self, _: &Path) -> io::Result<Vec<DiskEntry>> {
        none()
    }
    fn create_directory(&self, _: &Path) -> io::Result<()> {
        none()
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        none()
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        none()
    }
    fn remove_directory(&self, _: &Path) -> io::Result<()> {
        none()
    }
    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        none()
    }
    fn lock(&self, _: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        none()
    }
}

/// What a start with this text declares, or why it is stopped.
fn start(text: &str) -> Result<Configured, String> {
    let line = CommandLine { reads_stdin: true, ..CommandLine::default() };
    let config = load(&NoDisk, Path::new("/etc"), &line, Some(text.as_bytes()));
    configured(&config.expect("its directives are right"), standard().0)
        .map_err(|error| error.to_string())
}

#[test]
fn a_wrong_declaration_stops_the_start_and_names_its_line() {
    let check = |text: &str, line: usize, reason: &str| {
        let error = start(text).expect_err(text);
        assert!(error.contains("*** FATAL CONFIG FILE ERROR (Kiln "), "{error}");
        assert!(error.contains(&format!("at line {line}\n>>> '")), "{error}");
        assert!(error.ends_with(reason), "{error}");
    };
    check("user alice on\nuser alice off", 2, "A user can only be defined once in config files");
    check("user alice on +nosuch", 1, "'+nosuch': Unknown command or category name in ACL");
    check("user alice (+get", 1, "'(+get': Unmatched parenthesis");
    check("user \"a b\" on", 1, "'a b': Spaces not allowed in ACL usernames");
    check("hz 10\nrename-command nosuch x", 2, "No such command in rename-command");
    check("rename-command get set", 1, "Target command name already exists");
    check("rename-command get a\nrename-command get b", 2, "No such command in rename-command");
}

#[test]
fn passwords_are_shown_in_no_error() {
    for line in ["user alice on marker", "user alice on >marker nonsense", "user alice on #marker"]
    {
        let error = start(line).expect_err(line);
        assert!(error.contains("user") && error.contains(">>>"), "{error}");
        assert!(!error.contains("marker"), "{line}: {error}");
    }
}

#[test]
fn what_comes_later_in_the_file_may_make_a_rule_impossible() {
    let error = start("user alice &a\nacl-pubsub-default allchannels").expect_err("impossible");
    assert!(error.starts_with("Error loading ACL rule '&a' for the user named 'alice': Adding"));
}

#[test]
fn names_and_users_are_taken_in_their_order() {
    let configured = start("rename-command get fetch\nuser alice on\nrename-command set \"\"");
    let configured = configured.expect("they make sense");
    let catalog = configured.renamed.expect("two commands are renamed");
    let found = |name: &str| catalog.find(name.as_bytes(), None).map(|command| command.name());
    assert_eq!([found("fetch"), found("get"), found("set")], [Some("get"), None, None]);
    assert!(configured.acl.find(b"alice").is_some());
}
