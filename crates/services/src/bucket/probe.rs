//! The proof that a store keeps create-only puts apart, and what else it can do.

use super::{Purpose, Service, explained};
use object_store::path::Path;
use object_store::{
    Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult, UpdateVersion,
};
use std::io;

/// Times that a store is asked what it can do, if it fails meanwhile. The client repeats what may
/// be repeated, so few failures come here.
const TRIES_MAX: usize = 3;

/// Puts an object that must not be there yet.
pub async fn create(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: Vec<u8>,
) -> Result<PutResult, Error> {
    store.put_opts(path, PutPayload::from(bytes), PutMode::Create.into()).await
}

/// Puts an object whose name nobody else has. "Exists already" may mean this one: the client
/// repeats a put whose answer was lost, and meets what it has done.
async fn create_own(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: &'static [u8],
) -> Result<UpdateVersion, Error> {
    match create(store, path, bytes.to_vec()).await {
        Ok(put) => Ok(put.into()),
        Err(error @ Error::AlreadyExists { .. }) => {
            let (there, version) = fetch(store, path).await?;
            if there == bytes { Ok(version) } else { Err(error) }
        }
        Err(error) => Err(error),
    }
}

async fn fetch(store: &dyn ObjectStore, path: &Path) -> Result<(Vec<u8>, UpdateVersion), Error> {
    let object = store.get(path).await?;
    let ObjectMeta { e_tag, version, .. } = object.meta.clone();
    Ok((object.bytes().await?.to_vec(), UpdateVersion { e_tag, version }))
}

/// Proves it with the object at `path`, which is deleted. A store that ignores the condition would
/// let two writers overwrite each other's objects, and say yes to both.
///
/// # Errors
/// The store's, in an operator's words; that it does not keep its word (`Unsupported`).
pub async fn probe(
    store: &dyn ObjectStore,
    path: &Path,
    service: Service,
    purpose: &Purpose,
) -> io::Result<()> {
    let explained = |error| explained(error, service);
    create_own(store, path, b"first").await.map_err(explained)?;
    let second = create(store, path, b"second".to_vec()).await;
    let kept = async { store.get(path).await?.bytes().await }.await;
    if let Err(error) = store.delete(path).await {
        tracing::warn!(%error, "the object that a put was tried with could not be deleted");
    }
    match second {
        Err(Error::AlreadyExists { .. }) => {}
        Ok(_) => {
            let content = purpose.content;
            let what = format!(
                "the object store ignores If-None-Match, so it cannot hold {content}: it replaced \
                 the object {path}"
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        Err(error) => return Err(explained(error)),
    }
    if kept.map_err(explained)? != b"first"[..] {
        let what = format!("the object store did not keep the object {path} as it was written");
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    Ok(())
}

/// Whether the store replaces an object only if it is the one that was named. The object at `path`
/// comes and goes. Of one that goes on failing it is not assumed.
pub async fn keeps_versions(store: &dyn ObjectStore, path: &Path) -> bool {
    for _ in 0..TRIES_MAX {
        let told = tell_versions(store, path).await;
        if let Err(error) = store.delete(path).await {
            tracing::warn!(%error, "the object that an update was tried with could not be deleted");
        }
        match told {
            Ok(keeps) => return keeps,
            Err(error) => tracing::warn!(%error, "an update could not be tried"),
        }
    }
    false
}

async fn tell_versions(store: &dyn ObjectStore, path: &Path) -> Result<bool, Error> {
    let first = create_own(store, path, b"first").await?;
    let update = |bytes: &'static [u8]| {
        let mode = PutMode::Update(first.clone());
        store.put_opts(path, PutPayload::from_static(bytes), mode.into())
    };
    match update(b"second").await {
        Ok(_) => {}
        // Its repetition may have met what it has done, as above.
        Err(Error::Precondition { .. }) => {
            if fetch(store, path).await?.0 != b"second" {
                return Ok(false);
            }
        }
        Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => return Ok(false),
        Err(error) => return Err(error),
    }
    match update(b"third").await {
        Ok(_) => Ok(false),
        Err(Error::Precondition { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
