//! The repository's text files, read once and handed to every rule.

use std::io;
use std::path::Path;

/// One file. `path` is relative to the repository's root, with `/` between names.
pub struct TextFile {
    pub path: String,
    pub text: String,
}

/// The files that rules look at.
#[derive(Default)]
pub struct Tree {
    pub files: Vec<TextFile>,
}

/// Folders that hold nothing written here, or of another's hand.
const SKIPPED: &[&str] = &[
    "target",
    ".git",
    ".cache",
    "__pycache__",
    "node_modules",
    "proptest-regressions",
    "tikv-jemalloc-sys",
];

const EXTENSIONS: &[&str] = &["rs", "toml", "md", "txt"];

impl Tree {
    /// Reads the sources, manifests and documents below `root`, in the order of their paths. What
    /// goes while it reads, as a test's files do, was not of the repository.
    ///
    /// # Errors
    /// A folder or file that cannot be read, or is not UTF-8.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        tree.files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        let named =
            |path: &str, error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
        let entries = match folder.read_dir() {
            Err(error) if has_gone(&error) && !prefix.is_empty() => return Ok(()),
            entries => entries.map_err(|error| named(prefix, error))?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() && has_extension(&name) {
                match std::fs::read_to_string(entry.path()) {
                    Ok(text) => self.files.push(TextFile { path, text }),
                    Err(error) if has_gone(&error) => {}
                    Err(error) => return Err(named(&path, error)),
                }
            }
        }
        Ok(())
    }

    pub fn get(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files.
    pub fn sources(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The names of the crates below `crates/`.
    pub fn crates(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter_map(|file| {
            let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some(name)
        })
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        Self { files: files.iter().map(file).collect() }
    }
}

fn has_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

impl TextFile {
    /// Whether the whole file is test code: a test, a bench, an example, or a module of tests.
    pub fn is_test(&self) -> bool {
        let folders = ["/tests/", "/benches/", "/examples/", "/fuzz/"];
        folders.iter().any(|folder| self.path.contains(folder))
            || self.path.starts_with("tests/")
            || self.path.ends_with("/tests.rs")
    }

    /// The lines before the module of tests at the file's end, numbered from 1; none of a test.
    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let starts_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{');
        let end = match self.is_test() {
            true => 0,
            false => lines.windows(2).position(starts_tests).unwrap_or(lines.len()),
        };
        lines.into_iter().take(end).enumerate().map(|(index, line)| (index + 1, line))
    }

    /// All lines, numbered from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}
