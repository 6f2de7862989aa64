//! The figures of the tier. Items and bytes have MemoryDB's names.

use super::{Read, counter, gauge};
use crate::core::tier_report::TierReport;

pub(super) const FIGURES: [Read<TierReport>; 33] = [
    gauge("kiln_tier_enabled", "1 while values can be moved to a tier.", |t| u64::from(t.is_open)),
    gauge("kiln_tier_max_bytes", "tier-max.", |t| t.max_bytes),
    gauge("kiln_tier_file_bytes", "Size of the file of the tier.", |t| t.figures.file_bytes),
    gauge("kiln_tier_occupied_bytes", "Space that values take, unused gaps included.", |t| {
        t.figures.occupied_bytes
    }),
    gauge("kiln_tier_capacity_bytes", "tier-max in whole segments.", |t| t.figures.capacity_bytes),
    gauge("kiln_tier_curr_items_memory", "Keys with their value in memory.", |t| t.items_memory),
    gauge("kiln_tier_curr_items_ssd", "Keys with their value on the tier.", |t| t.items_ssd),
    gauge("kiln_tier_bytes_used_memory", "Memory of the data, clients not counted.", |t| {
        t.memory_bytes
    }),
    gauge("kiln_tier_bytes_used_ssd", "Bytes of values on the tier, copies included.", |t| {
        t.figures.live_bytes
    }),
    counter("kiln_tier_num_items_read_from_disk_total", "Reads of values.", |t| t.items_read()),
    counter("kiln_tier_num_items_written_to_disk_total", "Values written.", |t| t.items_written()),
    counter("kiln_tier_bytes_read_from_disk_total", "Bytes read for values.", |t| t.bytes_read()),
    counter("kiln_tier_bytes_written_to_disk_total", "Bytes written.", |t| t.file.written_bytes),
    counter(
        "kiln_tier_put_bytes_total",
        "Bytes of values that were moved out, written once.",
        |t| t.figures.put_bytes,
    ),
    counter("kiln_tier_fetched_total", "Values that came back into memory.", |t| {
        t.values.fetched.get()
    }),
    counter("kiln_tier_looked_at_total", "Values read that stayed on the tier.", |t| {
        t.values.looked_at.get()
    }),
    counter("kiln_tier_blocking_reads_total", "Reads for which everything waited.", |t| {
        t.values.blocking_reads.get()
    }),
    gauge("kiln_tier_waiting_clients", "Clients that wait for values.", |t| t.waiting_clients),
    gauge("kiln_tier_fetch_p50_usec", "Half of the waits for values were at most so long.", |t| {
        t.fetch_p50_micros
    }),
    gauge("kiln_tier_fetch_p99_usec", "99 of 100 waits for values were at most so long.", |t| {
        t.fetch_p99_micros
    }),
    counter(
        "kiln_tier_waited_for_values_usec_total",
        "Time in which one request or more waited for values.",
        |t| t.values_waited_micros,
    ),
    counter(
        "kiln_tier_waited_for_room_usec_total",
        "Time in which one request or more waited until values have left memory.",
        |t| t.room_waited_micros,
    ),
    counter(
        "kiln_tier_waited_for_snapshot_usec_total",
        "Time in which one request or more waited for a snapshot that is behind.",
        |t| t.snapshot_waited_micros,
    ),
    counter("kiln_tier_spilled_total", "Values that were moved out of memory.", |t| {
        t.values.spilled.get()
    }),
    counter("kiln_tier_spilled_by_writing_total", "Those of them that were written for it.", |t| {
        t.values.spilled_by_writing.get()
    }),
    counter(
        "kiln_tier_encoded_in_vain_total",
        "Long values that were encoded and stayed: changed, needed, too long, or the tier full.",
        |t| t.values.encoded_in_vain.get(),
    ),
    gauge("kiln_tier_behind_millis", "How long writes have been waiting for the tier.", |t| {
        t.behind_millis
    }),
    gauge("kiln_tier_buffered_bytes", "Bytes in memory that wait to be written.", |t| {
        t.figures.buffered_bytes
    }),
    gauge("kiln_tier_held_bytes", "Empty segments that a snapshot holds.", |t| {
        t.figures.held_bytes
    }),
    counter("kiln_tier_cleaned_segments_total", "Segments cleaned.", |t| t.file.cleaned_segments),
    gauge("kiln_tier_given_up_segments", "Segments that cannot be cleaned.", |t| {
        t.figures.given_up_segments
    }),
    counter("kiln_tier_failed_reads_total", "Reads that failed, or brought wrong bytes.", |t| {
        t.failed_reads()
    }),
    counter("kiln_tier_failed_writes_total", "Writes that failed.", |t| t.file.failed_writes),
];
