//! Opens the snapshots that `snapshot-store` names.

use archive::{DirectoryArchive, Limits, SnapshotStore};
use config::settings::{Location, NodeSettings, Retention};
use std::error::Error;
use std::sync::Arc;
use world::clock::RealClock;
use world::disk::RealDisk;

/// Opens them, or makes the place where they will lie. Blocks, where a service keeps them until it
/// answers. `entropy` must be unpredictable.
///
/// # Errors
/// What the operator must correct, or wait for.
pub fn open(settings: &NodeSettings, entropy: u64) -> Result<SnapshotStore, Box<dyn Error>> {
    let Retention { snapshots, window, spacing } = settings.retention;
    let limits = Limits {
        retained: snapshots,
        window_seconds: window,
        window_spacing_seconds: spacing,
        ..Limits::default()
    };
    Ok(open_place(&settings.snapshot_store, entropy)?.with_limits(limits))
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
            let opened = services::open_archive(url, Arc::new(RealClock), entropy);
            let archive = opened.map_err(|error| format!("cannot open snapshot-store: {error}"))?;
            Ok(SnapshotStore::over(archive))
        }
    }
}

/// Opens them to read: nothing is written there.
///
/// # Errors
/// What the operator must correct, or wait for.
pub fn open_to_read(place: &Location) -> Result<SnapshotStore, Box<dyn Error>> {
    match place {
        Location::Folder(folder) => {
            let archive = DirectoryArchive::open_to_read(Arc::new(RealDisk), folder);
            Ok(SnapshotStore::over(Arc::new(archive)))
        }
        Location::Url(url) => {
            let opened = services::open_archive_to_read(url, Arc::new(RealClock));
            let archive = opened.map_err(|error| format!("cannot open snapshot-store: {error}"))?;
            Ok(SnapshotStore::over(archive))
        }
    }
}

/// Opens those that a name on the command line means, to read them.
///
/// # Errors
/// As [`open_to_read`].
pub fn open_named(name: &str) -> Result<SnapshotStore, Box<dyn Error>> {
    let is_url = services::archive_schemes().any(|scheme| name.starts_with(scheme));
    let folder = || name.strip_prefix("file:").unwrap_or(name).into();
    open_to_read(&if is_url { Location::Url(name.to_owned()) } else { Location::Folder(folder()) })
}

#[cfg(test)]
mod tests {
    use config::directive::Kind;
    use config::table::DIRECTIVES;

    #[test]
    fn the_directive_takes_the_urls_of_every_archive() {
        let row = DIRECTIVES.iter().find(|row| row.name == "snapshot-store");
        let Some(Kind::Location { urls, .. }) = row.map(|row| row.kind) else {
            panic!("snapshot-store names a location");
        };
        assert!(services::archive_schemes().eq(urls.iter().copied()), "{urls:?}");
    }
}
