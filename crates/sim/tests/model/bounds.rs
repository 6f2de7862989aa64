//! How large a world the model checks, and what may be broken in it on purpose.

/// The bounds of one check. Every one is a limit on how much of something may happen in a run;
/// within them, everything that can happen does.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub nodes: u8,
    /// Writes executed, over all nodes.
    pub writes: u8,
    pub renews: u8,
    pub yields: u8,
    /// Crashes, each followed by a restart with nothing.
    pub crashes: u8,
    /// How often a machine is frozen, for any time, and its clock with it.
    pub freezes: u8,
    /// The last epoch that anybody may begin.
    pub epochs: u8,
    /// Records of one node in flight at a time.
    pub in_flight: usize,
    /// Places in the log.
    pub records: usize,
    /// Whether the primary may hold a reply while other things happen. It always answers reads of
    /// what is durable, at once.
    pub holds_replies: bool,
    /// Whether replicas answer linearizable reads.
    pub replica_reads: bool,
    /// Whether the log is empty at first. Otherwise node 0 leads it and everybody has read that.
    pub begins_empty: bool,
    pub clocks: Clocks,
    pub broken: Option<Broken>,
}

/// Durations in ticks. A tick is whatever the reader likes: only the ratios matter.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// The lease's length as every record of a holder grants it.
    pub lease: u8,
    /// A holder stops serving this much before the lease is over, and a challenger stands this
    /// much later.
    pub margin: u8,
    /// By how much one clock may gain on another, in any interval, in either direction.
    pub drift: u8,
}

impl Bounds {
    /// A holder uses 2 ticks of its lease of 3, so that it can renew while time passes, and a
    /// challenger waits 4, on clocks that gain or lose up to 1 against each other.
    pub const CLOCKS: Clocks = Clocks { lease: 3, margin: 1, drift: 1 };

    /// The smallest clocks: a holder serves only in the tick in which it renewed. For checks whose
    /// point is not time.
    pub const COARSE: Clocks = Clocks { lease: 2, margin: 1, drift: 1 };

    /// From this age of its newest grant on, a holder serves nothing.
    pub fn served_ticks(&self) -> u8 {
        self.clocks.lease - self.clocks.margin
    }

    /// From this age of the newest record on, anybody may stand.
    pub fn waited_ticks(&self) -> u8 {
        match self.broken {
            Some(Broken::ChallengerWaitsOnlyTheLease) => self.clocks.lease,
            _ => self.clocks.lease + self.clocks.margin,
        }
    }

    /// By how much one clock may gain on another.
    pub fn drift(&self) -> u8 {
        self.clocks.drift + u8::from(self.is_broken(Broken::DriftBeyondMargin))
    }

    pub fn is_broken(&self, how: Broken) -> bool {
        self.broken == Some(how)
    }
}

/// A rule left out on purpose. Each must be noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Replies leave without a look at the clock.
    LeaseUnchecked,
    /// A read position is told without a look at the clock.
    PositionWithoutLease,
    /// A read position is what the primary knows to be durable, not what it has sent.
    PositionOnlyDurable,
    /// A grant counts from when its record was acknowledged, not from before it was sent.
    LeaseFromAcknowledgement,
    /// Whoever wakes from a freeze goes by the clock that stood still.
    FreezeUnnoticed,
    /// Whoever wakes from a freeze knows that its lease is over, but a record that was under way
    /// renews it.
    FreezeForgottenByRecords,
    /// The clock is read before a command is executed, and not again before its reply leaves.
    ClockReadBeforeExecution,
    /// A challenger leaves no room for the clocks to differ.
    ChallengerWaitsOnlyTheLease,
    /// Clocks differ by more than the margin is for: the one assumption that no code can keep.
    DriftBeyondMargin,
    /// Every record counts.
    VoidRuleOff,
    /// A record counts for its writer when it is acknowledged, whatever became of earlier ones.
    EarlierFailuresIgnored,
    /// An acknowledgement counts for its record wherever that was stored.
    PlaceIgnored,
    /// A reply reveals what was executed, durable or not.
    AcknowledgedBeforeDurable,
    /// A record in doubt is replaced by other bytes under its counter.
    CounterReused,
    /// A restarted writer keeps its name, and counts from 1 again.
    WriterReused,
    /// A writer goes on behind a foreign Lead, as it does behind any stranger.
    ForeignLeadIgnored,
    /// A candidate stands at a tail that it has not read.
    TailUnread,
    /// Who was deposed goes on as a replica with what it had executed.
    DeposedKeepsState,
    /// Who yields goes on serving until its Yield is acknowledged.
    ServesAfterYield,
    /// A replica takes a read position from a log node that may be cut off.
    StaleTailTrusted,
}
