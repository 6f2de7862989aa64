//! How long an archive's client waits, for what.

use archive::CLAIM_SILENCE;
use std::time::Duration;

/// How long something is tried.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// One attempt, with the client's own repetitions.
    pub attempt: Duration,
    /// All of them.
    pub all: Duration,
    /// Before the second attempt; twice as long before each further one, but at most ten times.
    pub pause: Duration,
}

/// The waits of an archive. Tests have short ones.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Between two renewals of a sign. Several may fail in a row before its writer counts as dead.
    pub renewal: Duration,
    /// A sign that was watched for so long and did not change is a dead writer's; a guess: longer
    /// than a store is usually away, and what a dead one leaves costs nothing but its place.
    pub silence: Duration,
    /// A tombstone that stood alone for so long is removed: by then no request of the writer that
    /// it holds off is on its way any more, however often the client repeats it.
    pub tombstone: Duration,
    /// A claim that was watched for so long and did not change is free.
    pub claim_silence: Duration,
    /// Small objects, listings and deletions.
    pub small: Patience,
    /// Up to a piece of a part.
    pub large: Patience,
}

impl Times {
    pub const DEFAULT: Self = Self {
        renewal: Duration::from_secs(10),
        silence: Duration::from_secs(60),
        tombstone: Duration::from_secs(600),
        claim_silence: CLAIM_SILENCE,
        small: Patience {
            attempt: Duration::from_secs(10),
            all: Duration::from_secs(60),
            pause: Duration::from_millis(100),
        },
        large: Patience {
            attempt: Duration::from_secs(90),
            all: Duration::from_secs(120),
            pause: Duration::from_millis(200),
        },
    };
}

const _: () = {
    let Times { renewal, silence, tombstone, small, large, .. } = Times::DEFAULT;
    assert!(renewal.as_secs() + small.attempt.as_secs() < silence.as_secs());
    assert!(tombstone.as_secs() > 2 * large.all.as_secs());
};
