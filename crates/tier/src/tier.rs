//! All of a tier together: records are put, found, written, released, cleaned.

use crate::cleaning::Cleaning;
use crate::draft::Draft;
use crate::figures::Figures;
use crate::limits::{Limits, PAGE_BYTES};
use crate::pieces::{Piece, Pieces, SPARE_BUFFERS_MAX, Shared, Write, WriteId};
use crate::place::Place;
use crate::read::Read;
use crate::record::{self, HEADER_BYTES, Header};
use crate::segments::{End, Generations, Hold, Segments};
use crate::stream::{OpenPiece, OpenSegment, Stream};
use std::fmt;

/// Why a record was not put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Too many bytes in memory wait for their write. Try again after the next one. Of a draft also
    /// that it has no segment, and one may come free soon: it is being cleaned, or held.
    Behind,
    /// The tier is as full as it may become, or no segment is free for the record. Try again when
    /// records were released or a segment was cleaned.
    Full,
    /// The content is empty, or its record longer than `record_bytes_max`. Never try again.
    Length,
}

/// Values on a file: see the crate's head.
pub struct Tier {
    limits: Limits,
    segments: Segments,
    pieces: Pieces,
    spilled: Stream,
    survivors: Stream,
    /// Bytes that count as buffers of drafts.
    drafted: usize,
    /// The counters alone: the rest is asked for.
    counted: Figures,
}

/// Which records are put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Values that memory has no room for.
    Spilled,
    /// Live records of a segment that is cleaned.
    Survivor,
}

impl Tier {
    /// An empty tier whose file has `capacity_bytes`; what is less than a segment is not used.
    pub fn new(limits: Limits, capacity_bytes: u64) -> Self {
        Self::after(limits, capacity_bytes, Generations::default())
    }

    /// As [`Self::new`], on a file on which other tiers lay that had these generations.
    pub fn after(limits: Limits, capacity_bytes: u64, generations: Generations) -> Self {
        assert!(limits.are_sound(), "limits fit each other: {limits:?}");
        let mut tier = Self {
            limits,
            segments: Segments::new(limits, generations),
            pieces: Pieces::new(limits.piece_bytes),
            spilled: Stream::default(),
            survivors: Stream::default(),
            drafted: 0,
            counted: Figures::default(),
        };
        tier.set_capacity(capacity_bytes);
        tier
    }

    /// Grows or shrinks the tier. Segments beyond the new capacity are used no more, and cleaned
    /// first; meanwhile their records stay readable.
    pub fn set_capacity(&mut self, capacity_bytes: u64) {
        self.segments.set_capacity(self.limits.segments(capacity_bytes));
        for sort in [Sort::Spilled, Sort::Survivor] {
            let segment = self.stream(sort).segment.as_ref().map(|segment| segment.taken.index);
            if segment.is_some_and(|index| self.segments.is_beyond_capacity(index)) {
                self.close_piece(sort, false);
                self.close_segment(sort, false);
            }
        }
    }

    /// Whether segments beyond the capacity are in use.
    #[cfg(test)]
    pub(crate) fn is_over_capacity(&self) -> bool {
        self.segments.table_count() > self.segments.capacity() as usize
    }

    /// Puts a value's bytes, with the hash of its key; tells where they lie from now on. They are
    /// copied, and can be read at once.
    ///
    /// # Errors
    /// See [`Refused`]; then nothing was put.
    pub fn put(&mut self, hash: u64, content: &[u8]) -> Result<Place, Refused> {
        let place = self.append(Sort::Spilled, hash, content)?;
        self.counted.put_records += 1;
        self.counted.put_bytes += place.length() as u64;
        Ok(place)
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The longest content of a record, in bytes.
    pub fn content_bytes_max(&self) -> usize {
        self.limits.record_bytes_max - HEADER_BYTES
    }

    /// Begins a record whose content is written bit by bit, of `content_bytes_max` at most. Its
    /// memory is one of the tier's buffers, until it is put or given up
    /// ([`Self::give_up_draft`]).
    ///
    /// # Errors
    /// See [`Refused`]: judged as if the content were as long as it may be, and were put now. So
    /// nothing is written in vain but what others take the segment from meanwhile.
    pub fn begin_draft(&mut self, content_bytes_max: usize) -> Result<Draft, Refused> {
        let length = record::length(content_bytes_max);
        if length > self.limits.record_bytes_max {
            return Err(Refused::Length);
        }
        if !self.segments.has_room_for(length) {
            return Err(Refused::Full);
        }
        let padded = length.next_multiple_of(PAGE_BYTES);
        self.check_segment(padded)?;
        self.check_buffers(Sort::Spilled, padded)?;
        let draft = Draft::reserved_for(content_bytes_max);
        self.drafted += draft.reserved;
        Ok(draft)
    }

    /// Ends a draft that is put nowhere.
    pub fn give_up_draft(&mut self, draft: Draft) {
        self.drafted -= draft.reserved;
    }

    /// As [`Self::put`], of a content that was written bit by bit: a long one is not copied.
    ///
    /// # Errors
    /// See [`Refused`]; then nothing was put, and the draft is as before.
    pub fn put_draft(&mut self, hash: u64, draft: Draft) -> Result<Place, (Refused, Draft)> {
        let place = self.append_draft(Sort::Spilled, hash, draft)?;
        self.counted.put_records += 1;
        self.counted.put_bytes += place.length() as u64;
        Ok(place)
    }

    /// As [`Self::put_survivor`], of a content that somebody else has copied.
    ///
    /// # Errors
    /// As [`Self::put_draft`].
    pub fn put_surviving_draft(
        &mut self,
        hash: u64,
        draft: Draft,
    ) -> Result<Place, (Refused, Draft)> {
        let place = self.append_draft(Sort::Survivor, hash, draft)?;
        self.counted.survivor_records += 1;
        Ok(place)
    }

    /// Puts the bytes of a live record of a segment that is cleaned: apart from other values, for
    /// they will probably live longer, and into segments that are kept free for them.
    ///
    /// # Errors
    /// See [`Refused`]; then nothing was put. [`Refused::Full`] can come while the tier shrinks, or
    /// when several segments are cleaned at once: it can be put once something else is released.
    pub fn put_survivor(&mut self, hash: u64, content: &[u8]) -> Result<Place, Refused> {
        let place = self.append(Sort::Survivor, hash, content)?;
        self.counted.survivor_records += 1;
        Ok(place)
    }

    /// A record is live no more: no key has its place. Each is released once, unless the tier was
    /// reset meanwhile.
    pub fn release(&mut self, place: Place) {
        self.segments.release(place);
    }

    /// Releases all records at once, as [`Self::release`] does each. Unlike after [`Self::reset`],
    /// their bytes stay readable for who holds.
    pub fn release_all(&mut self) {
        self.segments.release_all();
    }

    /// Replaces what is in `into` by the content of a record, if it lies in memory. If it does not,
    /// it was written to the file.
    pub fn in_memory(&self, place: Place, into: &mut Vec<u8>) -> bool {
        let Some(bytes) = self.find(place) else { return false };
        let Ok(Some(header)) = Header::of(bytes) else { return false };
        let end = HEADER_BYTES + header.content_bytes();
        let Some(content) = bytes.get(HEADER_BYTES..end) else { return false };
        debug_assert_eq!(header.record_bytes(), place.length(), "places of records are handed out");
        into.clear();
        into.extend_from_slice(content);
        true
    }

    /// The content of a record that waits for its write, without a copy. There is none of records
    /// that lie in an open piece: they are short.
    pub fn share(&self, place: Place) -> Option<Shared> {
        self.pieces.share(place)
    }

    /// What to read of the file for a record that is not in memory.
    pub fn read(&self, place: Place) -> Read {
        Read::new(place, self.segments.taken_of(place))
    }

    /// Whether the segment of a record was not taken again since [`Self::read`]. If it was, the
    /// record was released, and what is read in its place means nothing.
    pub fn is_current(&self, read: &Read) -> bool {
        self.segments.is_current(read.taken())
    }

    /// The next full piece to write, unless as many writes as allowed are under way.
    pub fn next_write(&mut self) -> Option<Write> {
        self.pieces.next_write(self.limits.writes_max)
    }

    /// A write arrived: its records are read from the file from now on.
    pub fn written(&mut self, id: WriteId) {
        if let Some(segment) = self.pieces.written(id) {
            self.segments.piece_written(segment);
        }
    }

    /// A write failed: its piece stays in memory, and is the next to be handed out again.
    pub fn failed(&mut self, id: WriteId) {
        self.pieces.failed(id);
    }

    /// Closes the open pieces, so that what they hold is written now, and open segments in which
    /// nothing is live.
    pub fn close_pieces(&mut self) {
        for sort in [Sort::Spilled, Sort::Survivor] {
            self.close_piece(sort, false);
        }
        self.close_empty_segments();
    }

    fn close_empty_segments(&mut self) {
        for sort in [Sort::Spilled, Sort::Survivor] {
            let segment = self.stream(sort).segment.as_ref().map(|segment| segment.taken.index);
            if segment.is_some_and(|index| !self.segments.has_live(index)) {
                self.close_piece(sort, false);
                self.close_segment(sort, false);
            }
        }
    }

    /// Whether all records are on the file, but for those in open pieces.
    #[cfg(test)]
    pub(crate) fn is_written(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The next segment to clean: one beyond the capacity, or, if too few are free, the one that
    /// gives most room. None while more than is free waits for holds to end.
    pub fn begin_cleaning(&mut self) -> Option<Cleaning> {
        let (taken, used) = self.segments.begin_cleaning()?;
        let offset = self.segments.offset_of(taken.index);
        Some(Cleaning::new(taken, offset, used, self.limits.piece_bytes))
    }

    /// Ends a cleaning: the segment is free if nothing in it is live; what is stays, and may be
    /// cleaned later.
    pub fn end_cleaning(&mut self, cleaning: &Cleaning) {
        self.segments.end_cleaning(cleaning.taken(), End::Moved);
    }

    /// Ends a cleaning that left records live which are to be released anyway: the segment is not
    /// cleaned again, and is free when they were.
    pub fn leave_cleaning(&mut self, cleaning: &Cleaning) {
        self.segments.end_cleaning(cleaning.taken(), End::Left);
    }

    /// Ends a cleaning that met damage: the segment is not cleaned again, and is free when all its
    /// records were released.
    pub fn give_up_cleaning(&mut self, cleaning: &Cleaning) {
        self.segments.end_cleaning(cleaning.taken(), End::GivenUp);
    }

    /// Whether records of a segment that is being cleaned are live.
    pub fn has_live(&self, cleaning: &Cleaning) -> bool {
        self.segments.has_live(cleaning.taken().index)
    }

    /// Whether a cleaning is under way: neither ended nor overtaken by a reset.
    pub fn is_being_cleaned(&self, cleaning: &Cleaning) -> bool {
        self.segments.is_being_cleaned(cleaning.taken())
    }

    /// From now on what is released stays readable, until the hold is handed back:
    /// segments that become empty are not used again.
    pub fn hold(&mut self) -> Hold {
        self.segments.hold()
    }

    /// Whether empty segments wait for holds to end.
    pub fn has_waiting(&self) -> bool {
        self.segments.waiting_count() > 0
    }

    /// Ends a hold.
    pub fn unhold(&mut self, hold: Hold) {
        self.segments.unhold(&hold);
    }

    /// Forgets all records, also for who holds. No place from before may be used any more; writes
    /// and cleanings under way may still be reported, and change nothing. The next write is handed
    /// out when the last one under way was reported.
    pub fn reset(&mut self) {
        self.pieces.reset();
        self.spilled = Stream::default();
        self.survivors = Stream::default();
        self.segments.reset();
    }

    /// Forgets the end of the file if nothing lies there, and it is a good part of the file; how
    /// long the file must be.
    pub fn drop_free_end(&mut self) -> u64 {
        // An open segment may be all that stands there.
        if self.segments.is_mostly_free() {
            self.close_empty_segments();
        }
        self.segments.drop_free_end();
        self.segments.table_count() as u64 * self.limits.segment_bytes as u64
    }

    /// Bytes of memory that the tier may come to take, which it is best counted with from the
    /// start: buffers fill when memory is short.
    pub fn reserved_bytes(&self) -> usize {
        let Limits { buffered_bytes_max, piece_bytes, .. } = self.limits;
        buffered_bytes_max + SPARE_BUFFERS_MAX * piece_bytes + self.segments.allocated_bytes()
    }

    pub fn figures(&self) -> Figures {
        let segment_bytes = self.limits.segment_bytes as u64;
        let totals = self.segments.totals();
        let buffered = self.buffered_bytes();
        Figures {
            live_records: totals.live_records,
            live_bytes: totals.live_bytes,
            occupied_bytes: totals.occupied_bytes,
            capacity_bytes: u64::from(self.segments.capacity()) * segment_bytes,
            file_bytes: self.segments.table_count() as u64 * segment_bytes,
            held_bytes: self.segments.waiting_count() as u64 * segment_bytes,
            given_up_segments: u64::from(self.segments.given_up_count()),
            buffered_bytes: buffered as u64,
            ..self.counted
        }
    }

    /// Asserts that exactly the records of `live` are accounted for.
    #[cfg(any(test, feature = "twins"))]
    pub fn check(&self, live: impl Iterator<Item = Place>) {
        self.segments.check(live);
        let buffered = self.buffered_bytes();
        assert!(buffered <= self.limits.buffered_bytes_max);
        let allocated = buffered + self.pieces.spare_bytes() + self.segments.allocated_bytes();
        assert!(allocated <= self.reserved_bytes(), "{allocated}");
    }

    /// Segments that may be taken.
    #[cfg(test)]
    pub(crate) fn free_segments(&self) -> usize {
        self.segments.free_count()
    }

    /// The bytes from a place on, if it lies in memory.
    fn find(&self, place: Place) -> Option<&[u8]> {
        let open = [&self.spilled, &self.survivors];
        let mut open = open.into_iter().filter_map(|stream| stream.piece.as_ref());
        open.find_map(|piece| piece.find(place)).or_else(|| self.pieces.find(place))
    }

    fn append(&mut self, sort: Sort, hash: u64, content: &[u8]) -> Result<Place, Refused> {
        let length = record::length(content.len());
        self.check_length(sort, content.len(), length)?;
        let (place, lost) = if self.limits.is_alone(content.len()) {
            self.append_alone(sort, hash, content, length)?
        } else {
            self.append_packed(sort, hash, content, length)?
        };
        self.segments.add(place, lost);
        Ok(place)
    }

    /// Refuses what can be no record, and what the tier is too full for.
    fn check_length(&self, sort: Sort, content_bytes: usize, length: usize) -> Result<(), Refused> {
        if content_bytes == 0 || length > self.limits.record_bytes_max {
            return Err(Refused::Length);
        }
        if sort == Sort::Spilled && !self.segments.has_room_for(length) {
            return Err(Refused::Full);
        }
        Ok(())
    }

    fn append_draft(
        &mut self,
        sort: Sort,
        hash: u64,
        mut draft: Draft,
    ) -> Result<Place, (Refused, Draft)> {
        let length = record::length(draft.content_bytes());
        if !self.limits.is_alone(draft.content_bytes()) {
            return match self.append(sort, hash, draft.content()) {
                Ok(place) => {
                    self.give_up_draft(draft);
                    Ok(place)
                }
                Err(why) => Err((why, draft)),
            };
        }
        if let Err(why) = self.make_way_for_draft(sort, &mut draft, length) {
            return Err((why, draft));
        }
        let padded = length.next_multiple_of(PAGE_BYTES);
        let (taken, offset) = self.stream(sort).reserve(padded);
        let place = Place::new(offset, length);
        self.drafted -= draft.reserved;
        let bytes = draft.into_piece(place, taken.generation, hash);
        self.push(Piece { offset, segment: taken.index, generation: taken.generation, bytes });
        self.segments.add(place, padded - length);
        Ok(place)
    }

    /// Makes sure that a draft can become a piece.
    fn make_way_for_draft(
        &mut self,
        sort: Sort,
        draft: &mut Draft,
        length: usize,
    ) -> Result<(), Refused> {
        self.check_length(sort, draft.content_bytes(), length)?;
        if draft.is_over() {
            return Err(Refused::Length);
        }
        draft.trim();
        if draft.reserved > 0 {
            // A part of it may pass to others meanwhile.
            self.drafted = self.drafted - draft.reserved + draft.allocated_bytes();
            draft.reserved = draft.allocated_bytes();
        } else {
            self.check_buffers(sort, draft.allocated_bytes())?;
        }
        self.need_segment(sort, length.next_multiple_of(PAGE_BYTES))
    }

    /// Appends a record to the open piece, or to a new one.
    fn append_packed(
        &mut self,
        sort: Sort,
        hash: u64,
        content: &[u8],
        length: usize,
    ) -> Result<(Place, usize), Refused> {
        if !self.stream(sort).fits(length) {
            // Closed even if no new one can be opened: it has to be written before there is room.
            self.close_piece(sort, true);
            self.check_buffers(sort, self.limits.piece_bytes)?;
            self.need_segment(sort, length)?;
            let Limits { segment_bytes, piece_bytes, .. } = self.limits;
            let reserved = self.stream(sort).rest(segment_bytes).min(piece_bytes);
            let (taken, offset) = self.stream(sort).reserve(reserved);
            let buffer = self.pieces.buffer();
            self.stream(sort).piece = Some(OpenPiece::new(taken, offset, reserved, buffer));
        }
        let piece = self.stream(sort).piece.as_mut().expect("a piece was opened");
        Ok(piece.append(hash, content, length))
    }

    /// Makes a record a piece of its own.
    fn append_alone(
        &mut self,
        sort: Sort,
        hash: u64,
        content: &[u8],
        length: usize,
    ) -> Result<(Place, usize), Refused> {
        let padded = length.next_multiple_of(PAGE_BYTES);
        self.check_buffers(sort, padded)?;
        self.need_segment(sort, padded)?;
        let (taken, offset) = self.stream(sort).reserve(padded);
        let place = Place::new(offset, length);
        let mut bytes = Vec::with_capacity(padded);
        record::append(&mut bytes, place, taken.generation, hash, content);
        bytes.resize(padded, 0);
        self.push(Piece { offset, segment: taken.index, generation: taken.generation, bytes });
        Ok((place, padded - length))
    }

    /// Refuses a piece for which there is no memory. To survivors one piece more is left, so that
    /// spilling cannot keep cleaning from going on.
    fn check_buffers(&self, sort: Sort, bytes: usize) -> Result<(), Refused> {
        let left = if sort == Sort::Spilled { self.limits.piece_bytes } else { 0 };
        let fits = self.buffered_bytes() + bytes + left <= self.limits.buffered_bytes_max;
        if fits { Ok(()) } else { Err(Refused::Behind) }
    }

    /// Refuses a draft of values that memory has no room for, if it would have no segment now.
    fn check_segment(&self, padded: usize) -> Result<(), Refused> {
        let Limits { segment_bytes, reserve_segments, .. } = self.limits;
        let fits = self.spilled.rest_without_piece(segment_bytes) >= padded;
        if fits || self.segments.free_count() > reserve_segments {
            return Ok(());
        }
        let comes = self.segments.cleaning_count() > 0 || self.has_waiting();
        Err(if comes { Refused::Behind } else { Refused::Full })
    }

    /// Opens a new segment if the open one has fewer than so many bytes left.
    fn need_segment(&mut self, sort: Sort, bytes: usize) -> Result<(), Refused> {
        let Limits { segment_bytes, .. } = self.limits;
        if self.stream(sort).rest(segment_bytes) >= bytes {
            return Ok(());
        }
        if self.stream(sort).rest_without_piece(segment_bytes) >= bytes {
            self.close_piece(sort, true);
            return Ok(());
        }
        let taken = match sort {
            Sort::Spilled => self.segments.take(self.limits.reserve_segments),
            Sort::Survivor => self.segments.take_for_survivors(),
        };
        let taken = taken.ok_or(Refused::Full)?;
        self.close_piece(sort, true);
        self.close_segment(sort, true);
        let offset = self.segments.offset_of(taken.index);
        self.stream(sort).segment = Some(OpenSegment { taken, offset, used: 0 });
        Ok(())
    }

    /// Closes the open piece. `is_full`: because the next record does not fit.
    fn close_piece(&mut self, sort: Sort, is_full: bool) {
        if let Some((piece, lost)) = self.stream(sort).close_piece() {
            if is_full {
                self.segments.lose(piece.segment, lost);
            }
            self.push(piece);
        }
    }

    /// Closes the open segment, which has no open piece. `is_full` as of [`Self::close_piece`].
    fn close_segment(&mut self, sort: Sort, is_full: bool) {
        if let Some(OpenSegment { taken, used, .. }) = self.stream(sort).segment.take() {
            if is_full {
                self.segments.lose(taken.index, self.limits.segment_bytes - used);
            }
            self.segments.close(taken.index, used);
        }
    }

    fn push(&mut self, piece: Piece) {
        self.segments.piece_closed(piece.segment);
        self.pieces.push(piece);
    }

    fn buffered_bytes(&self) -> usize {
        self.pieces.bytes() + self.spilled.bytes() + self.survivors.bytes() + self.drafted
    }

    fn stream(&mut self, sort: Sort) -> &mut Stream {
        match sort {
            Sort::Spilled => &mut self.spilled,
            Sort::Survivor => &mut self.survivors,
        }
    }
}

impl fmt::Debug for Tier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.figures().fmt(out)
    }
}
