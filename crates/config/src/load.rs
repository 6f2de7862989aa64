//! Reads the configuration when the server starts, and says what stops it.
//!
//! The file, the standard input and the options of the command line are one text, read line by
//! line; the last word about a directive wins, except that lines of `save` add up. `include` reads
//! another file at its place. A start with a directive that is not understood would be a start
//! with something else than what was asked for, so every mistake is fatal and names its line. What
//! `rename-command` and `user` say is kept as declarations ([`crate::declaration`]).

use crate::arguments::CommandLine;
use crate::declaration::{Declaration, Declared};
use crate::operator_file::{FILE_BYTES_MAX, read_bounded};
use crate::secrets::{hide_credentials, hide_directive};
use crate::table::{DIRECTIVES, RETIRED, find, row};
use crate::value::{Refusal, Value};
use crate::{Config, describe, path_of, resolve};
use base::Disk;
use engine::glob;
use engine::work::Work;
use resp::inline::split_line;
use std::fmt;
use std::path::{Path, PathBuf};

/// How deep files may include files. Redis has no limit and dies of a file that includes itself.
const INCLUDE_DEPTH_MAX: usize = 16;

/// What stops the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// A file could not be read.
    Unreadable { path: PathBuf, reason: String },
    /// A line was not understood.
    Line { number: usize, text: String, reason: String },
    /// The declared users make no sense together.
    Users(String),
    /// The directives about the tier make no sense together.
    Tier(String),
}

/// The reason why a line is refused whose directive there is not, in Redis's words.
pub const BAD_DIRECTIVE: &str = "Bad directive or wrong number of arguments";

/// Redis refuses it with the same reason.
const BOTH_SOURCES: &str = "users are declared in the configuration file and an ACL file is set as \
                            well: declare them in one of the two, as either would hide the other";

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, reason } => {
                // A URL that was meant for a directive may stand in its place.
                let path = hide_credentials(&path.display().to_string());
                write!(f, "Fatal error, can't open config file '{path}': {reason}")
            }
            Self::Line { number, text, reason } => {
                let version = env!("CARGO_PKG_VERSION");
                writeln!(f, "\n*** FATAL CONFIG FILE ERROR (Kiln {version}) ***")?;
                writeln!(f, "Reading the configuration file, at line {number}")?;
                write!(f, ">>> '{text}'\n{reason}")
            }
            Self::Users(reason) | Self::Tier(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads everything the command line names. `directory` is where the process was started
/// (absolute), `stdin` what came on the standard input if it was asked for.
///
/// # Errors
/// The first thing that was not understood, or a file that could not be read.
pub fn load(
    disk: &dyn Disk,
    directory: &Path,
    line: &CommandLine,
    stdin: Option<&[u8]>,
) -> Result<Config, LoadError> {
    let mut config = Config::new(directory);
    let mut text = Vec::new();
    if let Some(name) = &line.file {
        let path = resolve(directory, name);
        text = read(disk, &path)?;
        config.file = Some(path);
    }
    text.extend_from_slice(stdin.unwrap_or_default());
    if line.file.is_some() || stdin.is_some() || !line.options.is_empty() {
        text.push(b'\n');
        text.extend_from_slice(&line.options);
    }
    let mut loader = Loader { config, disk, has_save_points: false };
    loader.read_text(&text, 0)?;
    let mut config = loader.config;
    config.started_in = config.directory();
    let declares_users = config.users().next().is_some();
    if declares_users && !config.text(const { row("aclfile") }).is_empty() {
        return Err(LoadError::Users(BOTH_SOURCES.to_owned()));
    }
    if let Some(reason) = config.tier_refusal() {
        return Err(LoadError::Tier(reason.into_owned()));
    }
    Ok(config)
}

/// The whole of a file.
fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, LoadError> {
    let unreadable = |reason| LoadError::Unreadable { path: path.to_path_buf(), reason };
    let bytes = read_bounded(disk, path).map_err(|error| unreadable(describe(&error)))?;
    bytes.ok_or_else(|| unreadable(format!("longer than {FILE_BYTES_MAX} bytes")))
}

struct Loader<'a> {
    config: Config,
    disk: &'a dyn Disk,
    /// Whether a line of `save` was read: the first one replaces the default.
    has_save_points: bool,
}

impl Loader<'_> {
    fn read_text(&mut self, text: &[u8], depth: usize) -> Result<(), LoadError> {
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let shown = || hide_directive(&String::from_utf8_lossy(line));
            let failed = |reason: Refusal| LoadError::Line {
                number: index + 1,
                text: shown(),
                reason: reason.into_owned(),
            };
            let words = split_line(line)
                .ok_or_else(|| failed("Unbalanced quotes in configuration line".into()))?;
            let Some((name, words)) = words.split_first() else { continue };
            if name.eq_ignore_ascii_case(b"include")
                && let [path] = words
            {
                if depth == INCLUDE_DEPTH_MAX {
                    return Err(failed("too many files include each other".into()));
                }
                self.include(path, depth + 1)?;
            } else if let Some((row, _)) = find(name) {
                self.read_directive(row, words).map_err(failed)?;
            } else if let Some(what) = self.read_other(name, words).map_err(failed)? {
                self.config.declarations.push(Declaration::new(what, index + 1, shown()));
            }
        }
        Ok(())
    }

    /// Reads a line that is no directive of the table: what it declares, if anything.
    fn read_other(&self, name: &[u8], words: &[Vec<u8>]) -> Result<Option<Declared>, Refusal> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match words {
            [_] if RETIRED.iter().any(|retired| is(retired)) => Ok(None),
            [command, name] if is("rename-command") => {
                Ok(Some(Declared::Name { command: command.clone(), name: name.clone() }))
            }
            [name, rules @ ..] if is("user") => {
                let (_, all_channels) = self.config.acl_defaults();
                Ok(Some(Declared::User { name: name.clone(), rules: rules.to_vec(), all_channels }))
            }
            [_, ..] if is("loadmodule") => Err("modules are not supported".into()),
            [_, ..] if is("sentinel") => {
                Err("sentinel directive while not in sentinel mode".into())
            }
            _ => Err(BAD_DIRECTIVE.into()),
        }
    }

    fn read_directive(&mut self, row: usize, words: &[Vec<u8>]) -> Result<(), Refusal> {
        let takes_words = DIRECTIVES[row].takes_words();
        if !takes_words && words.len() != 1 {
            return Err("wrong number of arguments".into());
        }
        // `--bind "a b"` is one argument that holds several words.
        let split = match words {
            [word] if takes_words && !word.is_empty() => split_line(word),
            _ => None,
        };
        let words = split.as_deref().unwrap_or(words);
        let save = const { self::row("save") };
        let earlier = match &self.config.values[save] {
            Value::SavePoints(points) if row == save && self.has_save_points => points.clone(),
            _ => Vec::new(),
        };
        self.config.assign(row, words, self.disk)?;
        if row == save {
            self.has_save_points = true;
            if let Value::SavePoints(points) = &mut self.config.values[save]
                && !points.is_empty()
            {
                points.splice(0..0, earlier);
            }
        }
        self.config.given.insert(row);
        Ok(())
    }

    /// Reads another file at this place. A name with wildcards may match none; a plain one must
    /// exist.
    fn include(&mut self, name: &[u8], depth: usize) -> Result<(), LoadError> {
        let path = resolve(&self.config.directory(), name);
        if !name.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
            let text = read(self.disk, &path)?;
            return self.read_text(&text, depth);
        }
        let (Some(folder), Some(pattern)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        let Ok(entries) = self.disk.list(folder) else { return Ok(()) };
        let pattern = pattern.as_encoded_bytes();
        // Nobody is served yet, so nobody counts.
        let work = Work::default();
        let mut text = Vec::new();
        for entry in entries {
            // As in a shell, a wildcard does not match a leading dot.
            let is_hidden = entry.name.starts_with('.') && !pattern.starts_with(b".");
            let is_match = glob::matches(pattern, entry.name.as_bytes(), &work);
            if is_match && !is_hidden && !entry.is_directory {
                text.extend(read(self.disk, &folder.join(path_of(entry.name.as_bytes())))?);
                text.push(b'\n');
            }
        }
        self.read_text(&text, depth)
    }
}
