//! Opens the snapshots that `snapshot-store` names.

use archive::{Access, DirectoryArchive, Limits, OpenArchive, SnapshotStore};
use config::settings::{Location, NodeSettings, Retention};
use encryption::Keys;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use world::clock::RealClock;
use world::disk::RealDisk;

/// Opens them, or makes the place where they will lie. Blocks, where a service keeps them until it
/// answers. `entropy` must be unpredictable.
///
/// # Errors
/// What the operator must correct, or wait for.
pub fn open(
    settings: &NodeSettings,
    keys: Keys,
    entropy: u64,
) -> Result<SnapshotStore, Box<dyn Error>> {
    let limits = limits(settings);
    limits.check(false, keys.are_there())?;
    let store = open_place(&settings.snapshot_store, entropy)?.with_limits(limits);
    Ok(store.with_parents(parents(entropy)).with_keys(keys))
}

/// What a configuration says of the snapshots that are written and that stay.
pub fn limits(settings: &NodeSettings) -> Limits {
    let Retention { snapshots, window, spacing, format_max } = settings.retention;
    Limits {
        retained: snapshots,
        window_seconds: window,
        window_spacing_seconds: spacing,
        format_max,
        ..Limits::default()
    }
}

/// How archives are opened that branches name.
fn parents(entropy: u64) -> OpenArchive {
    let opened = AtomicU64::new(0);
    Arc::new(move |name, access| {
        let place = place(name).map_err(|why| io::Error::other(why.to_string()))?;
        // Writers of two archives of one process must not have one name.
        let entropy = entropy.wrapping_add(1 + opened.fetch_add(1, Ordering::Relaxed));
        let store = match access {
            Access::Read => open_to_read(&place),
            Access::Write => match &place {
                // Of one that is not mounted nothing could be taken back.
                Location::Folder(folder) if !folder.is_dir() => {
                    let what = format!("{} is not there", folder.display());
                    return Err(io::Error::new(io::ErrorKind::NotFound, what));
                }
                place => open_place(place, entropy),
            },
        };
        store.map(|store| store.archive()).map_err(|why| io::Error::other(why.to_string()))
    })
}

fn open_place(place: &Location, entropy: u64) -> Result<SnapshotStore, Box<dyn Error>> {
    match place {
        Location::Folder(folder) => {
            let opened = SnapshotStore::open(Arc::new(RealDisk), folder);
            opened.map_err(|error| {
                let folder = folder.display();
                format!("cannot make the directory of snapshots {folder}: {error}").into()
            })
        }
        Location::Url(url) => {
            let opened = services::open_archive(&absolute(url)?, Arc::new(RealClock), entropy);
            let archive = opened.map_err(|error| format!("cannot open snapshot-store: {error}"))?;
            Ok(SnapshotStore::over(archive))
        }
    }
}

/// The same URL, of which a directory is named from the root: a branch keeps its parent's, and is
/// opened elsewhere.
fn absolute(url: &str) -> io::Result<String> {
    match url.strip_prefix(DIRECTORY) {
        Some(directory) if !directory.is_empty() && !directory.starts_with(['/', '?']) => {
            let (path, options) =
                directory.split_at(directory.find('?').unwrap_or(directory.len()));
            let path = std::path::absolute(path)?;
            Ok(format!("{DIRECTORY}{}{options}", path.display()))
        }
        _ => Ok(url.to_owned()),
    }
}

/// What the URL of an object store in a directory begins with.
const DIRECTORY: &str = "file-object:";

/// Opens them to read: nothing is written there.
///
/// # Errors
/// What the operator must correct, or wait for.
pub fn open_to_read(place: &Location) -> Result<SnapshotStore, Box<dyn Error>> {
    let store = match place {
        Location::Folder(folder) => {
            let archive = DirectoryArchive::open_to_read(Arc::new(RealDisk), folder);
            SnapshotStore::over(Arc::new(archive))
        }
        Location::Url(url) => {
            let opened = services::open_archive_to_read(&absolute(url)?, Arc::new(RealClock));
            let archive = opened.map_err(|error| format!("cannot open snapshot-store: {error}"))?;
            SnapshotStore::over(archive)
        }
    };
    // What is only read of it needs no writers' names of its parents.
    Ok(store.with_parents(parents(0)))
}

/// Opens those that a name on the command line means, to read them.
///
/// # Errors
/// As [`open_to_read`].
pub fn open_named(name: &str) -> Result<SnapshotStore, Box<dyn Error>> {
    open_to_read(&place(name)?)
}

fn place(name: &str) -> Result<Location, Box<dyn Error>> {
    if services::archive_schemes().any(|scheme| name.starts_with(scheme)) {
        return Ok(Location::Url(name.to_owned()));
    }
    if let Some(folder) = name.strip_prefix("file:") {
        return Ok(Location::Folder(folder.into()));
    }
    // What is taken for a directory is shown in errors, with a password that stands in it.
    if name.split('/').next().is_some_and(|first| first.contains(':')) {
        let schemes: Vec<&str> = services::archive_schemes().collect();
        let known = schemes.join("…, ");
        let what = "the name of a place of snapshots is a directory, file:PATH, or";
        return Err(format!("{what} {known}…").into());
    }
    Ok(Location::Folder(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::directive::Kind;
    use config::table::DIRECTIVES;

    #[test]
    fn the_directive_takes_the_formats_that_are_written() {
        let row = DIRECTIVES.iter().find(|row| row.name == "snapshot-format");
        let row = row.expect("it is there");
        let Kind::Integer { min, max } = row.kind else { panic!("it is a number") };
        let formats = (i128::from(archive::FORMAT_MIN), i128::from(archive::FORMAT_MAX));
        assert_eq!((min, max), formats);
        assert_eq!(row.default, archive::FORMAT_MAX.to_string());
    }

    #[test]
    fn the_directive_takes_the_urls_of_every_archive() {
        let row = DIRECTIVES.iter().find(|row| row.name == "snapshot-store");
        let Some(Kind::Location { urls, .. }) = row.map(|row| row.kind) else {
            panic!("snapshot-store names a location");
        };
        assert!(services::archive_schemes().eq(urls.iter().copied()), "{urls:?}");
    }
    #[test]
    fn a_directory_of_objects_is_named_from_the_root() {
        let here = std::env::current_dir().expect("it is there");
        let of = |url: &str| absolute(url).expect("there is a directory");
        assert_eq!(of("file-object:a/b?x=1"), format!("file-object:{}/a/b?x=1", here.display()));
        for same in ["file-object:/a?x=1", "file-object:", "file-object:?x", "s3://bucket/prefix"] {
            assert_eq!(of(same), same);
        }
    }

    #[test]
    fn a_url_of_no_archive_is_no_directory() {
        let folder = |name: &str| Location::Folder(name.into());
        assert_eq!(place("file:a:b/c").expect("it says so"), folder("a:b/c"));
        assert_eq!(place("a/b:c").expect("behind a slash"), folder("a/b:c"));
        let url = "s3://bucket/prefix";
        assert_eq!(place(url).ok(), Some(Location::Url(url.to_owned())));
        for wrong in ["s4://user:secret@host/x", "nats:secret"] {
            let why = place(wrong).expect_err("there is no such archive").to_string();
            assert!(why.contains("file:PATH") && !why.contains("secret"), "{why}");
        }
    }
}
