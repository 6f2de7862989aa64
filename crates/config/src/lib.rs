//! The configuration: redis.conf, the command line and CONFIG, from one table of directives.
//!
//! | file | holds |
//! |---|---|
//! | [`arguments`] | the command line, as redis-server takes it |
//! | [`load`] | the file: lines, includes, what stops the start |
//! | [`text`] | words, quotes and sizes with units |
//! | [`table`] | every directive, one row each |
//! | [`directive`] | what a row can say |
//! | `check` | rules that single directives add to their kind |
//! | [`value`] | reading and showing one value |
//! | [`declaration`] | lines about commands and users, kept for those who know what these are |
//! | [`secrets`] | which values nobody is shown |
//! | [`settings`] | plain typed fields for the code that obeys them |
//! | [`change`] | CONFIG GET and CONFIG SET |
//! | [`rewrite`] | CONFIG REWRITE |
//! | [`operator_file`] | how such a file, or one of users, is read and replaced whole |
//!
//! The text form lives here and nowhere else: the rest of the server reads [`settings`], which are
//! derived anew after every change, so no hot path looks a directive up by name.
//!
//! Absent, on purpose: the server that obeys (a change is a proposal, which others put in force),
//! the meaning of users' rules and of commands' names, and the world: files are read and written
//! through [`base::Disk`], when the caller says so.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod change;
mod check;
pub mod declaration;
pub mod directive;
pub mod load;
pub mod operator_file;
pub mod rewrite;
pub mod secrets;
pub mod settings;
pub mod table;
pub mod text;
pub mod value;

use declaration::{Declaration, Declared};
use directive::{Kind, Meaning};
use resp::inline::split_line;
use secrets::hide_credentials;
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use table::{DIRECTIVES, row};
use value::{Refusal, Value};

/// The loop's turns per second stay within this whatever `hz` says (Redis clamps it likewise).
const HZ_MIN: i128 = 1;
const HZ_MAX: i128 = 500;

/// The row of the master's address.
const MASTER: usize = row("replicaof");

/// The value of every directive.
#[derive(Clone, Debug)]
pub struct Config {
    /// One per row of the table.
    values: Vec<Value>,
    /// The file that CONFIG REWRITE writes, absolute.
    pub file: Option<PathBuf>,
    /// Where the log and the snapshots lie unless they are named: `dir` when the file had been
    /// read. A later CONFIG SET of `dir` does not move them.
    started_in: PathBuf,
    /// Lines about commands and users, in their order.
    pub declarations: Vec<Declaration>,
    /// Rows that the file or the command line named.
    given: BTreeSet<usize>,
}

impl Config {
    /// The defaults, for a process that was started in `directory` (absolute).
    pub fn new(directory: &Path) -> Self {
        let values = DIRECTIVES.iter().map(default_value).collect();
        let mut config = Self {
            values,
            file: None,
            started_in: directory.to_path_buf(),
            declarations: Vec::new(),
            given: BTreeSet::new(),
        };
        config.set_directory(directory.to_path_buf());
        config
    }

    /// The value of a row.
    pub fn value(&self, row: usize) -> &Value {
        &self.values[row]
    }

    /// The present `dir`, absolute.
    pub fn directory(&self) -> PathBuf {
        path_of(self.text(const { row("dir") }))
    }

    /// `replicaof`: host and port.
    pub fn master(&self) -> Option<(String, u16)> {
        let text = String::from_utf8_lossy(self.text(MASTER));
        let (host, port) = text.rsplit_once(' ')?;
        Some((host.to_owned(), port.parse().ok()?))
    }

    /// What REPLICAOF asked for, for CONFIG GET and CONFIG REWRITE to show.
    pub fn set_master(&mut self, master: Option<(&str, u16)>) {
        let text = master.map_or_else(String::new, |(host, port)| format!("{host} {port}"));
        self.values[MASTER] = Value::Text(text.into_bytes());
    }

    /// The lines that declare users.
    pub fn users(&self) -> impl Iterator<Item = &Declaration> {
        self.declarations.iter().filter(|line| matches!(line.what, Declared::User { .. }))
    }

    /// The default user's password, empty for none, and whether new users may use all channels.
    pub fn acl_defaults(&self) -> (&[u8], bool) {
        let all_channels = self.word(const { row("acl-pubsub-default") }) == "allchannels";
        (self.text(const { row("requirepass") }), all_channels)
    }

    /// A toggle's value. The row must be one, as for the other accessors.
    pub(crate) fn is_on(&self, row: usize) -> bool {
        matches!(self.values[row], Value::Toggle(true))
    }

    /// A number, clamped to what the caller's type holds.
    pub(crate) fn number<N: TryFrom<i128>>(&self, row: usize) -> N {
        let number = match self.values[row] {
            Value::Integer(number) => number,
            _ => 0,
        };
        N::try_from(number).unwrap_or_else(|_| panic!("{} is out of bounds", DIRECTIVES[row].name))
    }

    pub(crate) fn text(&self, row: usize) -> &[u8] {
        match &self.values[row] {
            Value::Text(text) => text,
            _ => b"",
        }
    }

    /// The chosen word.
    pub(crate) fn word(&self, row: usize) -> &'static str {
        match (&self.values[row], DIRECTIVES[row].kind) {
            (Value::Choice(index), Kind::Choice(choices)) => choices[*index],
            _ => "",
        }
    }

    /// The path of a `file:` location.
    pub(crate) fn location(&self, row: usize) -> PathBuf {
        match (&self.values[row], DIRECTIVES[row].kind) {
            (Value::Location(Some(path)), _) => resolve(&self.started_in, path),
            (_, Kind::Location { folder, .. }) => self.started_in.join(folder),
            _ => self.started_in.clone(),
        }
    }

    /// The URL of a location that is none of this machine.
    pub(crate) fn url(&self, row: usize) -> Option<&str> {
        match &self.values[row] {
            Value::Url(url) => Some(url),
            _ => None,
        }
    }

    /// The value of a row as CONFIG GET shows it: a URL without its credentials.
    pub fn show(&self, row: usize) -> Vec<u8> {
        if let Some(url) = self.url(row) {
            return hide_credentials(url).into_bytes();
        }
        match DIRECTIVES[row].kind {
            Kind::Location { .. } => {
                [b"file:", self.location(row).as_os_str().as_encoded_bytes()].concat()
            }
            _ => value::show(&DIRECTIVES[row], &self.values[row]),
        }
    }

    /// Gives a row a new value; whether it differs from the old one.
    ///
    /// # Errors
    /// Why the words are refused; nothing has changed then.
    fn assign(
        &mut self,
        row: usize,
        words: &[Vec<u8>],
        disk: &dyn base::Disk,
    ) -> Result<bool, Refusal> {
        let directive = &DIRECTIVES[row];
        let mut value = value::parse(directive, words, Some(&self.values[row]))?;
        if let (Kind::Directory, Value::Text(path)) = (directive.kind, &mut value) {
            let directory = resolve(&self.directory(), path);
            disk.list(&directory).map_err(|error| describe(&error))?;
            *path = directory.as_os_str().as_encoded_bytes().to_vec();
        }
        if let (table::HZ, Value::Integer(hz)) = (row, &mut value) {
            *hz = (*hz).clamp(HZ_MIN, HZ_MAX);
        }
        let differs = self.values[row] != value;
        self.values[row] = value;
        Ok(differs)
    }

    fn set_directory(&mut self, directory: PathBuf) {
        let bytes = directory.into_os_string().into_encoded_bytes();
        self.values[const { row("dir") }] = Value::Text(bytes);
    }

    /// What to tell the operator at the start: directives that were given a value and that change
    /// nothing. One line about durability, one about the rest.
    pub fn warnings(&self) -> Vec<String> {
        let durability = const { [row("save"), row("appendonly"), row("appendfsync")] };
        let mut warnings = Vec::new();
        if durability.iter().any(|row| self.given.contains(row) && self.is_changed(*row)) {
            warnings.push(
                "save, appendonly and appendfsync are accepted and shown, and none of them \
                 weakens durability: every acknowledged write is durable in the transaction log"
                    .to_owned(),
            );
        }
        if self.keeps_snapshots_private() {
            warnings.push(
                "snapshot-store is not set: other machines reach the transaction log, and not the \
                 snapshots of this one, so nothing is ever trimmed from the log; name a directory \
                 or a bucket that all servers of the shard reach"
                    .to_owned(),
            );
        }
        let idle: Vec<&str> = self
            .given
            .iter()
            .filter(|row| !durability.contains(row) && self.is_changed(**row))
            .filter(|row| matches!(DIRECTIVES[**row].meaning, Meaning::Shown(_)))
            .map(|row| DIRECTIVES[*row].name)
            .collect();
        if !idle.is_empty() {
            warnings.push(format!("accepted and without effect: {}", idle.join(", ")));
        }
        warnings
    }

    /// Whether a service keeps the log, and nobody has said where the snapshots go.
    pub(crate) fn keeps_snapshots_private(&self) -> bool {
        let snapshots = &self.values[const { row("snapshot-store") }];
        self.url(const { row("transaction-log") }).is_some()
            && matches!(snapshots, Value::Location(None))
    }

    /// Why there can be no tier as the directives say together. Asked when all of a start, or of a
    /// CONFIG SET, has been read: a single directive cannot know those that follow.
    pub(crate) fn tier_refusal(&self) -> Option<Refusal> {
        let number = |row: usize| self.number::<u64>(row);
        if self.text(const { row("tier") }).is_empty() {
            return None;
        }
        if number(const { row("tier-max") }) == 0 {
            let why =
                "tier needs tier-max: the bytes that it may take, for instance tier-max 100gb";
            return Some(why.into());
        }
        let (least, most) =
            (number(const { row("tier-value-min") }), number(const { row("tier-value-max") }));
        (least > most).then(|| "tier-value-min must not be more than tier-value-max".into())
    }

    fn is_changed(&self, row: usize) -> bool {
        self.values[row] != default_value(&DIRECTIVES[row])
    }
}

/// The value that the row's default describes.
fn default_value(directive: &directive::Directive) -> Value {
    let words = if directive.takes_words() {
        split_line(directive.default.as_bytes()).unwrap_or_default()
    } else {
        vec![directive.default.as_bytes().to_vec()]
    };
    value::parse(directive, &words, None)
        .unwrap_or_else(|refusal| panic!("default of {}: {refusal}", directive.name))
}

/// An absolute path: `path` as seen from `directory`, without `.` and `..`.
fn resolve(directory: &Path, path: &[u8]) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in directory.join(path_of(path)).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            other => resolved.push(other),
        }
    }
    resolved
}

/// Bytes of the configuration as a path. Bytes that are not UTF-8 are replaced, so such a path is
/// reported as not found rather than opened under another name.
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// An operating system's error in its own words, without the number that Rust adds.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
