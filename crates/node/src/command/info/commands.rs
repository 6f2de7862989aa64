//! INFO commandstats, errorstats, latencystats.

use super::Text;
use crate::server::Server;
use base::ConnectionId;
use config::value::show_percentile;

pub(super) fn counts(server: &Server, _: ConnectionId, text: &mut Text) {
    for (command, counted) in
        server.core.process.catalog.iter().zip(&server.core.process.statistics.commands)
    {
        if counted.calls == 0 && counted.rejected == 0 {
            continue;
        }
        let micros = counted.nanos / 1000;
        let each = micros as f64 / counted.calls.max(1) as f64;
        let line = format!(
            "calls={},usec={micros},usec_per_call={each:.2},rejected_calls={},failed_calls={}",
            counted.calls, counted.rejected, counted.failed
        );
        text.line(&format!("cmdstat_{}", command.name()), line);
    }
}

pub(super) fn errors(server: &Server, _: ConnectionId, text: &mut Text) {
    for (code, count) in &server.core.process.statistics.errors {
        // A script chooses its errors; these have a meaning in INFO.
        let shown = code.replace(['#', ':'], "_");
        text.line(&format!("errorstat_{shown}"), format!("count={count}"));
    }
}

pub(super) fn latencies(server: &Server, _: ConnectionId, text: &mut Text) {
    if !server.core.process.settings.latency_tracking {
        return;
    }
    let percents = &server.core.process.settings.latency_tracking_info_percentiles;
    for (command, counted) in
        server.core.process.catalog.iter().zip(&server.core.process.statistics.commands)
    {
        let Some(durations) = &counted.durations else { continue };
        let percentiles: Vec<String> = percents
            .iter()
            .map(|percent| {
                let micros = durations.percentile(*percent) as f64 / 1000.0;
                format!("p{}={micros:.3}", show_percentile(*percent))
            })
            .collect();
        text.line(&format!("latency_percentiles_usec_{}", command.name()), percentiles.join(","));
    }
}
