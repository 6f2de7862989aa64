//! INFO tier: values that memory has no room for.
//!
//! Items and bytes have the names under which MemoryDB counts them; the rest is ours.

use super::{Text, ratio};
use crate::server::Server;
use base::ConnectionId;

pub(super) fn tier(server: &Server, _: ConnectionId, text: &mut Text) {
    let report = server.core.tier_report();
    let (figures, file, values) = (&report.figures, &report.file, &report.values);
    text.line("tier_enabled", u8::from(report.is_open));
    text.line("tier_io_uring", u8::from(report.has_ring));
    text.line("tier_max_bytes", report.max_bytes);
    text.line("tier_file_bytes", figures.file_bytes);
    text.line("tier_live_bytes", figures.live_bytes);
    let fill = ratio(figures.occupied_bytes, figures.capacity_bytes) * 100.0;
    text.line("tier_fill_percent", format!("{fill:.2}"));
    text.line("curr_items_memory", report.items_memory);
    text.line("curr_items_ssd", report.items_ssd);
    text.line("bytes_used_memory", report.memory_bytes);
    text.line("bytes_used_ssd", figures.live_bytes);
    text.line("num_items_read_from_disk", report.items_read());
    text.line("num_items_written_to_disk", report.items_written());
    text.line("bytes_read_from_disk", report.bytes_read());
    text.line("bytes_written_to_disk", file.written_bytes);
    text.line("tier_fetched", values.fetched.get());
    text.line("tier_looked_at", values.looked_at.get());
    text.line("tier_blocking_reads", values.blocking_reads.get());
    text.line("tier_waiting_clients", report.waiting_clients);
    text.line("tier_fetch_p50_usec", report.fetch_p50_micros);
    text.line("tier_fetch_p99_usec", report.fetch_p99_micros);
    text.line("tier_waited_for_values_usec", report.values_waited_micros);
    text.line("tier_waited_for_room_usec", report.room_waited_micros);
    text.line("tier_waited_for_snapshot_usec", report.snapshot_waited_micros);
    text.line("tier_spilled", values.spilled.get());
    text.line("tier_spilled_by_writing", values.spilled_by_writing.get());
    text.line("tier_encoded_in_vain", values.encoded_in_vain.get());
    text.line("tier_behind_millis", report.behind_millis);
    text.line("tier_buffered_bytes", figures.buffered_bytes);
    text.line("tier_held_bytes", figures.held_bytes);
    // How often each byte of what went was written.
    let amplification = ratio(file.written_bytes, figures.put_bytes);
    text.line("tier_write_amplification", format!("{amplification:.2}"));
    text.line("tier_cleaned_segments", file.cleaned_segments);
    text.line("tier_given_up_segments", figures.given_up_segments);
    text.line("tier_failed_reads", report.failed_reads());
    text.line("tier_failed_writes", file.failed_writes);
}
