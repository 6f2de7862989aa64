//! The proof that a store keeps create-only puts apart.

use super::{Purpose, Service, explained};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult};
use std::io;

/// Puts an object that must not be there yet.
pub async fn create(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: Vec<u8>,
) -> Result<PutResult, Error> {
    store.put_opts(path, PutPayload::from(bytes), PutMode::Create.into()).await
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
    create(store, path, b"first".to_vec()).await.map_err(explained)?;
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
