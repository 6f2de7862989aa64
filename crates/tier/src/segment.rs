//! What is known of one segment.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Free,
    /// Records are added.
    Open,
    /// Full, or given up; some of its pieces may not be written yet.
    Closed,
    /// Nothing in it is live, but someone may read what was.
    Waiting,
}

/// One segment, in 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) generation: u32,
    pub(crate) live_bytes: u32,
    /// Bytes of all its records, live or not.
    pub(crate) put_bytes: u32,
    /// Bytes that its records could not use: ends of pages and pieces into which the next one did
    /// not fit. Written elsewhere, they would lose about as many again.
    pub(crate) lost_bytes: u32,
    /// Pages of its pieces; known once it is closed.
    pub(crate) used_pages: u16,
    pub(crate) unwritten_pieces: u16,
    pub(crate) state: State,
    pub(crate) is_being_cleaned: bool,
    /// Cleaning it failed: it is not chosen again.
    pub(crate) is_given_up: bool,
    /// What is live of it will be released without cleaning: it is not chosen again.
    pub(crate) is_left: bool,
}

impl Segment {
    pub(crate) fn opened(generation: u32) -> Self {
        Self {
            generation,
            live_bytes: 0,
            put_bytes: 0,
            lost_bytes: 0,
            used_pages: 0,
            unwritten_pieces: 0,
            state: State::Open,
            is_being_cleaned: false,
            is_given_up: false,
            is_left: false,
        }
    }

    /// Bytes that its live records take wherever they lie: their own, and their part of what was
    /// lost. What is live alone would promise room where records fill pages badly, and cleaning
    /// would go on for ever without gain.
    pub(crate) fn occupied_bytes(&self) -> u64 {
        let (live, lost) = (u64::from(self.live_bytes), u64::from(self.lost_bytes));
        if lost == 0 { live } else { live + lost * live / u64::from(self.put_bytes).max(1) }
    }

    /// Whether it may be cleaned: nothing is added to it, and all of it is on disk.
    pub(crate) fn can_be_cleaned(&self) -> bool {
        self.state == State::Closed
            && self.unwritten_pieces == 0
            && !self.is_being_cleaned
            && !self.is_given_up
            && !self.is_left
    }
}

/// A segment that someone holds: its number, and the generation that it had then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
