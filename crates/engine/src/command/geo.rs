//! Places in sorted sets (Redis documentation, "Commands", group geo).
//!
//! | module | holds |
//! |---|---|
//! | `geo` | adding places, and asking for those of members |
//! | `search` | GEOSEARCH, GEOSEARCHSTORE and the older GEORADIUS… |

mod search;
#[cfg(test)]
mod tests;

use super::sorted::add::Options;
use super::sorted::view_sorted;
use super::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::geohash::Coordinates;
use crate::number::parse_f64;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::view::View;
use resp::{Protocol, Reply};

pub const COMMANDS: &[Command<DataFn>] = &[
    write(
        "GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
        geoadd,
    )
    .doc("Adds places to a sorted set, which is created if absent.")
    .group(Group::Geo)
    .since("3.2.0")
    .cost("O(log(N)) for each item added, where N is the number of elements in the sorted set.")
    .denyoom(),
    read("GEOPOS key [member [member ...]]", geopos)
        .doc("Returns the longitudes and latitudes of members.")
        .group(Group::Geo)
        .since("3.2.0")
        .cost("O(N) where N is the number of members requested."),
    read("GEOHASH key [member [member ...]]", geohash)
        .doc("Returns the places of members as geohashes.")
        .group(Group::Geo)
        .since("3.2.0")
        .cost("O(log(N)) for each member requested, where N is the number of elements."),
    read("GEODIST key member1 member2 [M | KM | FT | MI]", geodist)
        .doc("Returns the distance between two members.")
        .group(Group::Geo)
        .since("3.2.0")
        .cost("O(log(N))"),
    search::GEOSEARCH,
    search::GEOSEARCHSTORE,
    search::GEORADIUS,
    search::GEORADIUS_RO,
    search::GEORADIUSBYMEMBER,
    search::GEORADIUSBYMEMBER_RO,
];

fn geoadd(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let mut options = Options::default();
    let mut first = 2;
    loop {
        if args.is(first, "NX") {
            options.new_only = true;
        } else if args.is(first, "XX") {
            options.present_only = true;
        } else if args.is(first, "CH") {
            options.counts_changed = true;
        } else {
            break;
        }
        first += 1;
    }
    let words = args.len() - first;
    let excluded = options.new_only && options.present_only;
    if excluded || words == 0 || !words.is_multiple_of(3) {
        return Err(Refusal::SYNTAX);
    }
    let places = (first..args.len()).step_by(3);
    for at in places.clone() {
        place(args, at)?;
    }
    let pairs = places.map(|at| Ok((place(args, at)?.score(), args.at(at + 2))));
    options.change(tx, args.at(1), pairs, reply)
}

/// Reads a longitude and the latitude behind it.
fn place(args: Args<'_>, at: usize) -> Result<Coordinates, Refusal> {
    let longitude = parse_f64(args.at(at)).ok_or(Refusal::NOT_A_FLOAT)?;
    let latitude = parse_f64(args.at(at + 1)).ok_or(Refusal::NOT_A_FLOAT)?;
    let place = Coordinates { longitude, latitude };
    if !place.is_valid() {
        return Err(Refusal::new(format!(
            "ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
        )));
    }
    Ok(place)
}

/// Reads a unit, in metres.
fn unit(args: Args<'_>, at: usize) -> Result<f64, Refusal> {
    let units = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let unit = units.into_iter().find(|(word, _)| args.is(at, word));
    unit.map(|(_, metres)| metres)
        .ok_or(Refusal::of("ERR unsupported unit provided. please use M, KM, FT, MI"))
}

fn geopos(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let sorted = view_sorted(view, args.at(1))?;
    reply.array(args.len() - 2);
    view.work().reply_each(args.from(2), reply, |member, reply| {
        match sorted.and_then(|sorted| sorted.score(member)) {
            Some(score) => reply_place(Coordinates::of_score(score), reply),
            None => reply.null_array(),
        }
    });
    Ok(())
}

fn geohash(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let sorted = view_sorted(view, args.at(1))?;
    reply.array(args.len() - 2);
    view.work().reply_each(args.from(2), reply, |member, reply| {
        match sorted.and_then(|sorted| sorted.score(member)) {
            Some(score) => reply.bulk(Coordinates::of_score(score).text()),
            None => reply.null(),
        }
    });
    Ok(())
}

fn geodist(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let metres = match args.len() {
        4 => 1.0,
        5 => unit(args, 4)?,
        _ => return Err(Refusal::SYNTAX),
    };
    let sorted = view_sorted(view, args.at(1))?;
    let place = |at| Some(Coordinates::of_score(sorted?.score(args.at(at))?));
    match (place(2), place(3)) {
        (Some(from), Some(to)) => reply_distance(from.distance(to) / metres, reply),
        _ => reply.null(),
    }
    Ok(())
}

/// Appends a distance with four digits behind the point, always as a bulk string.
fn reply_distance(distance: f64, reply: &mut Reply) {
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    let (whole, fraction) = (scaled / 10_000, scaled % 10_000);
    reply.bulk(format!("{whole}.{fraction:04}"));
}

/// Appends a longitude and a latitude: up to 17 digits behind the point, no exponent.
fn reply_place(place: Coordinates, reply: &mut Reply) {
    reply.array(2);
    for degrees in [place.longitude, place.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        match reply.protocol() {
            Protocol::Resp2 => reply.bulk(text),
            Protocol::Resp3 => reply.raw(format!(",{text}\r\n").as_bytes()),
        }
    }
}
