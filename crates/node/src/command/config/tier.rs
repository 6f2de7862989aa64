//! CONFIG SET of the tier, of a server that runs.
//!
//! A tier is opened before anything is adopted, so that CONFIG SET can still be refused. One that
//! is open goes, or is exchanged for another one, only while nothing lies on it: fetching all that
//! does could take longer than any command may.

use super::cannot_set;
use crate::server::Server;
use config::change::Proposal;
use config::settings::node_settings;
use config::settings::tier::TierSettings;
use engine::refusal::Refusal;
use shard::tiering::Tiering;
use shard::tiering::device::too_large;

/// What the new configuration makes of the tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// The same one stays, or none is there: what it may take may have changed.
    Stays,
    Opens,
    Closes,
    IsExchanged,
}

/// What the server does now, as far as the tier depends on it.
#[derive(Clone, Copy)]
struct State {
    is_loading: bool,
    /// Nothing lies on the tier, and nobody waits for what lay there.
    is_unused: bool,
}

/// Who reads a tier.
fn readers(settings: &TierSettings) -> (usize, bool) {
    (settings.read_threads, settings.takes_io_uring)
}

/// What becomes of the tier; if that cannot be, because of which directive, and why.
fn judge(
    before: &TierSettings,
    after: &TierSettings,
    state: State,
) -> Result<Change, (&'static str, &'static str)> {
    let is_same_place = before.path == after.path;
    let change = match (&before.path, &after.path) {
        (None, None) => return Ok(Change::Stays),
        (Some(_), Some(_)) if is_same_place && readers(before) == readers(after) => Change::Stays,
        (Some(_), Some(_)) => Change::IsExchanged,
        (None, Some(_)) => Change::Opens,
        (Some(_), None) => Change::Closes,
    };
    let named = match is_same_place {
        false => "tier",
        true if before.read_threads != after.read_threads => "tier-read-threads",
        true if readers(before) != readers(after) => "tier-io-uring",
        true if before.bytes_max != after.bytes_max => "tier-max",
        true if before.value_bytes_min != after.value_bytes_min => "tier-value-min",
        true if before.value_bytes_max != after.value_bytes_max => "tier-value-max",
        true => "tier-all-cold",
    };
    if state.is_loading && before != after {
        return Err((named, "The tier cannot be changed while data is loaded."));
    }
    match change {
        Change::Opens if !state.is_unused => {
            Err((named, "No tier can be opened while a snapshot is taken: try again later."))
        }
        Change::Closes | Change::IsExchanged if !state.is_unused => Err((named, IN_USE)),
        _ => Ok(change),
    }
}

const IN_USE: &str = "Values or copies of values lie on the tier, clients wait for some, or a \
    snapshot is taken. Another tier, others who read it, or none takes a restart then.";

/// A change that can be put in force.
pub(super) struct TierChange {
    change: Change,
    opened: Option<Tiering>,
}

/// Opens the tier that a proposal asks for.
///
/// # Errors
/// It cannot be opened, or the one that is open cannot go.
pub(super) fn prepare(server: &Server, proposal: &Proposal) -> Result<TierChange, Refusal> {
    let process = &server.core.process;
    let settings = node_settings(&proposal.config).tier;
    let state = State {
        is_loading: server.core.persistence.is_loading,
        is_unused: server.fetches.is_empty() && server.core.shard.engine.keyspace.can_change_cold(),
    };
    let change = judge(&process.settings.tier, &settings, state)
        .map_err(|(directive, why)| cannot_set(directive, why))?;
    if change == Change::Stays
        && let Some(tiering) = &server.core.shard.tiering
        && let room = tiering.limits().tier.file_bytes_max
        && let Some(why) = too_large(settings.bytes_max, room)
    {
        return Err(cannot_set("tier-max", &why));
    }
    let opened = match change {
        Change::Opens | Change::IsExchanged => {
            process.open_tier_of(&settings).map_err(|why| cannot_set("tier", &why))?
        }
        Change::Stays | Change::Closes => None,
    };
    Ok(TierChange { change, opened })
}

/// Puts a change in force, behind the configuration that it belongs to. What was under way on a
/// device that goes is waited for.
pub(super) fn put_in_force(server: &mut Server, TierChange { change, opened }: TierChange) {
    let settings = &server.core.process.settings.tier;
    let limits = server.core.process.cold_limits(settings);
    let shard = &mut server.core.shard;
    shard.forget_foreseen();
    let keyspace = &mut shard.engine.keyspace;
    if matches!(change, Change::Closes | Change::IsExchanged) {
        keyspace.close_cold();
        shard.tiering = None;
        tracing::info!("the tier is closed");
    }
    if let Some(tiering) = opened {
        shard.tiering.insert(tiering).serve(keyspace);
    } else if let Some(tiering) = &mut shard.tiering {
        tiering.set_capacity(keyspace, settings.bytes_max);
        tiering.set_cold_limits(keyspace, limits);
    }
}

#[cfg(test)]
mod tests;
