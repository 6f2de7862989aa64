//! The second look: whether the log is still this one, and where its floor is.
//!
//! The floor is the highest number among the objects below `floor/`. It is raised by adding an
//! object, never by changing one: so it cannot go back, whoever raises it and however late, and
//! the store needs no conditional overwriting, which fewer of them offer.

use super::names::{Life, sequence_of};
use super::{Objects, found};
use base::Sequence;
use futures_util::TryStreamExt;
use futures_util::future::try_join;
use object_store::{Error, ObjectStoreExt};
use txlog::remote::store::Outcome;

/// Listings of the floors that may be overtaken by trimming before it is called a failure.
const LISTINGS_MAX: usize = 5;

/// Floors that trimming leaves, the highest ones: as many can be added while somebody reads them.
pub const FLOORS_KEPT: usize = 8;

/// Why a question has no answer.
#[derive(Debug)]
pub enum Failure {
    /// The log is not the one that was opened. Says why.
    Lost(String),
    /// The store did not answer, or not with what was asked for.
    Unanswered(Error),
}

impl Failure {
    /// What a question that changes nothing ends with.
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Lost(why) => Outcome::Lost(why),
            Self::Unanswered(error) => Outcome::Failed(error.to_string()),
        }
    }

    /// What a put ends with that may have written.
    pub fn into_doubt(self) -> Outcome {
        match self {
            Self::Lost(why) => Outcome::Lost(why),
            Self::Unanswered(error) => Outcome::InDoubt(error.to_string()),
        }
    }

    /// A failure that the store does not know of.
    pub fn of(what: impl Into<String>) -> Self {
        Self::Unanswered(Error::Generic { store: "log", source: what.into().into() })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Unanswered(error)
    }
}

impl Objects {
    /// Looks at identity and floor; returns the floor. What it finds was so after it was called,
    /// or later.
    pub(super) async fn look(&self) -> Result<Sequence, Failure> {
        let asked = self.now();
        let (changed, floor) = try_join(self.changed(), self.read_floor()).await?;
        if let Some(why) = changed {
            return Err(Failure::Lost(why));
        }
        let Some(floor) = floor else {
            return Err(Failure::Lost("its floor objects were deleted".to_owned()));
        };
        let mut known = self.known();
        known.saw_life(asked);
        known.saw_floor(floor);
        Ok(floor)
    }

    /// Why the log is not the one that was opened.
    async fn changed(&self) -> Result<Option<String>, Failure> {
        let path = self.names.incarnation();
        let Some(object) = found(self.store.get(&path).await)? else {
            return Ok(Some(format!("the object {path} is gone")));
        };
        Ok(match Life::decode(&object.bytes().await?) {
            Ok(life) if life == self.life => None,
            Ok(_) => Some("it was deleted, and another one was begun in its place".to_owned()),
            Err(what) => Some(format!("the object {path}: {what}")),
        })
    }

    /// The highest floor, if there is any.
    ///
    /// A listing need not be a picture of one moment: while it runs, floors that it has not come
    /// to may be replaced by ones that it has passed. But [`FLOORS_KEPT`] are always there, or the
    /// first, and they are deleted in ascending order. So a listing that is shorter, or whose
    /// highest floor is gone afterwards, was overtaken.
    async fn read_floor(&self) -> Result<Option<Sequence>, Failure> {
        for _ in 0..LISTINGS_MAX {
            let floors = self.floors().await?;
            let (Some(first), Some(&last)) = (floors.first(), floors.last()) else {
                return Ok(None);
            };
            let is_long = floors.len() >= FLOORS_KEPT || *first == Sequence::ZERO;
            let path = self.names.floor(self.life, last);
            if is_long && found(self.store.head(&path).await)?.is_some() {
                return Ok(Some(last));
            }
        }
        Err(Failure::of("the log's floor rises faster than it can be read"))
    }

    /// All floors, ascending.
    pub(super) async fn floors(&self) -> Result<Vec<Sequence>, Error> {
        let listed = self.store.list(Some(&self.names.floors(self.life)));
        let numbers = listed.try_filter_map(async |meta| Ok(sequence_of(&meta.location)));
        let mut floors: Vec<Sequence> = numbers.try_collect().await?;
        floors.sort_unstable();
        Ok(floors)
    }
}
