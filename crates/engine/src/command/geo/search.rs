//! What lies around a place: GEOSEARCH, GEOSEARCHSTORE, and the older GEORADIUS….

use super::{place, reply_distance, reply_place, unit};
use crate::command::sorted::copied::Copied;
use crate::command::sorted::{reply_member, store, view_sorted};
use crate::command::{Args, Command, DataFn, Group, KeySpec, KeyUse, Outcome, read, write};
use crate::geohash::{Coordinates, Outline, Shape};
use crate::number::parse_f64;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::sorted::{self, Sorted, Text};
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;
use structures::ordered::ScoreBound;

/// The key and the last destination of a GEORADIUS whose keywords make no sense. Redis does not
/// say what becomes of them.
fn radius_keys(args: Args<'_>, each: &mut dyn FnMut(usize, KeyUse)) {
    let mut destination = None;
    let mut at = 5;
    while at + 1 < args.len() {
        if args.is(at, "STORE") || args.is(at, "STOREDIST") {
            destination = Some(at + 1);
            at += 1;
        }
        at += 1;
    }
    each(1, KeyUse::NONE);
    if let Some(destination) = destination {
        each(destination, KeyUse::NONE);
    }
}

pub const GEOSEARCH: Command<DataFn> = read(
    "GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> \
     <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] \
     [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
    |view, args, reply| {
        let sorted = view_sorted(view, args.at(1))?;
        answer(sorted, args, view.work(), reply, Form::Search)
    },
)
.doc("Returns the members within a circle or a box.")
.group(Group::Geo)
.since("6.2.0")
.cost(COST)
.arity(-7);

pub const GEOSEARCHSTORE: Command<DataFn> = write(
    "GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> \
     <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] \
     [COUNT count [ANY]] [STOREDIST]",
    |tx, args, reply| answer_or_store(tx, args, reply, Form::SearchStore),
)
.key_specs(&["@1,0/1/0,OW+update", "@2,0/1/0,RO+access"])
.doc("Stores the members within a circle or a box in another key.")
.group(Group::Geo)
.since("6.2.0")
.cost(COST)
.arity(-8)
.keys(&[KeySpec::Range { first: 1, last: 2, step: 1 }])
.denyoom();

pub const GEORADIUS: Command<DataFn> = write(
    "GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
     [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]",
    |tx, args, reply| answer_or_store(tx, args, reply, Form::Radius { stores: true }),
)
.key_specs(&["@1,0/1/0,RO+access", "STORE:6,0/1/0,OW+update", "STOREDIST:6,0/1/0,OW+update"])
.doc("Returns or stores the members within a circle around a place.")
.group(Group::Geo)
.since("3.2.0")
.cost(COST)
.keys(&[
    KeySpec::Range { first: 1, last: 1, step: 1 },
    KeySpec::Keyword { word: "STORE", from: 6 },
    KeySpec::Keyword { word: "STOREDIST", from: 6 },
])
.find_keys(radius_keys)
.denyoom();

pub const GEORADIUS_RO: Command<DataFn> = read(
    "GEORADIUS_RO key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] \
     [WITHHASH] [COUNT count [ANY]] [ASC | DESC]",
    |view, args, reply| {
        let sorted = view_sorted(view, args.at(1))?;
        answer(sorted, args, view.work(), reply, Form::Radius { stores: false })
    },
)
.doc("Returns the members within a circle around a place.")
.group(Group::Geo)
.since("3.2.10")
.cost(COST);

pub const GEORADIUSBYMEMBER: Command<DataFn> = write(
    "GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
     [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]",
    |tx, args, reply| answer_or_store(tx, args, reply, Form::RadiusByMember { stores: true }),
)
.key_specs(&["@1,0/1/0,RO+access", "STORE:5,0/1/0,OW+update", "STOREDIST:5,0/1/0,OW+update"])
.doc("Returns or stores the members within a circle around one of them.")
.group(Group::Geo)
.since("3.2.0")
.cost(COST)
.keys(&[
    KeySpec::Range { first: 1, last: 1, step: 1 },
    KeySpec::Keyword { word: "STORE", from: 5 },
    KeySpec::Keyword { word: "STOREDIST", from: 5 },
])
.find_keys(radius_keys)
.denyoom();

pub const GEORADIUSBYMEMBER_RO: Command<DataFn> = read(
    "GEORADIUSBYMEMBER_RO key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
     [COUNT count [ANY]] [ASC | DESC]",
    |view, args, reply| {
        let sorted = view_sorted(view, args.at(1))?;
        answer(sorted, args, view.work(), reply, Form::RadiusByMember { stores: false })
    },
)
.doc("Returns the members within a circle around one of them.")
.group(Group::Geo)
.since("3.2.10")
.cost(COST);

const COST: &str = "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box \
                    area around the shape provided as the filter and M is the number of items \
                    inside the shape";

/// The command that searches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Search,
    SearchStore,
    Radius { stores: bool },
    RadiusByMember { stores: bool },
}

impl Form {
    fn is_search(self) -> bool {
        matches!(self, Self::Search | Self::SearchStore)
    }

    /// Whether STORE and STOREDIST may name a key.
    fn may_store(self) -> bool {
        matches!(self, Self::Radius { stores: true } | Self::RadiusByMember { stores: true })
    }

    fn options_at(self) -> usize {
        match self {
            Self::Search => 2,
            Self::SearchStore => 3,
            Self::Radius { .. } => 6,
            Self::RadiusByMember { .. } => 5,
        }
    }
}

/// A whole request.
struct Request<'a> {
    /// The middle of the search; unknown if it is a member of a sorted set that is not there.
    middle: Option<Coordinates>,
    shape: Option<Shape>,
    with_distance: bool,
    with_score: bool,
    with_place: bool,
    /// Nearest first, farthest first, or as found.
    order: Option<Order>,
    /// 0: all.
    count: u64,
    /// As soon as there are `count`, the rest need not be looked at.
    any: bool,
    destination: Option<&'a [u8]>,
    stores_distance: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Nearest,
    Farthest,
}

/// One member found.
struct Found<'a> {
    member: Text<'a>,
    score: f64,
    place: Coordinates,
    /// In metres.
    distance: f64,
}

impl<'a> Request<'a> {
    fn parse(args: Args<'a>, form: Form, sorted: Option<&Sorted>) -> Result<Self, Refusal> {
        let mut request = Self {
            middle: None,
            shape: None,
            with_distance: false,
            with_score: false,
            with_place: false,
            order: None,
            count: 0,
            any: false,
            destination: (form == Form::SearchStore).then(|| args.at(1)),
            stores_distance: false,
        };
        match form {
            Form::Radius { .. } => {
                request.middle = Some(place(args, 2)?);
                request.shape = Some(circle(args, 4)?);
            }
            // Without the sorted set not even the radius is read, as in Redis.
            Form::RadiusByMember { .. } if sorted.is_some() => {
                request.middle = member_place(sorted, args.at(2))?;
                request.shape = Some(circle(args, 3)?);
            }
            _ => {}
        }
        let (mut from_member, mut from_place) = (false, false);
        let mut at = form.options_at();
        while at < args.len() {
            let left = args.len() - at - 1;
            let searches = form.is_search();
            if searches && !from_place && left >= 1 && args.is(at, "FROMMEMBER") {
                request.middle = member_place(sorted, args.at(at + 1))?;
                from_member = true;
                at += 2;
            } else if searches && !from_member && left >= 2 && args.is(at, "FROMLONLAT") {
                request.middle = Some(place(args, at + 1)?);
                from_place = true;
                at += 3;
            } else {
                at += request.take(args, at, form)?;
            }
        }
        request.check(args, form, from_member || from_place)?;
        Ok(request)
    }

    /// Reads the option at `at`; how many arguments it takes.
    fn take(&mut self, args: Args<'a>, at: usize, form: Form) -> Result<usize, Refusal> {
        let left = args.len() - at - 1;
        let is_box = self.shape.is_some_and(|shape| matches!(shape.outline, Outline::Box { .. }));
        let is_circle = self.shape.is_some() && !is_box;
        if args.is(at, "WITHDIST") {
            self.with_distance = true;
        } else if args.is(at, "WITHHASH") {
            self.with_score = true;
        } else if args.is(at, "WITHCOORD") {
            self.with_place = true;
        } else if args.is(at, "ANY") {
            self.any = true;
        } else if args.is(at, "ASC") {
            self.order = Some(Order::Nearest);
        } else if args.is(at, "DESC") {
            self.order = Some(Order::Farthest);
        } else if args.is(at, "COUNT") && left >= 1 {
            let count = parse_i64(args.at(at + 1)).ok_or(Refusal::NOT_AN_INTEGER)?;
            let count = u64::try_from(count).ok().filter(|count| *count > 0);
            self.count = count.ok_or(Refusal::of("ERR COUNT must be > 0"))?;
            return Ok(2);
        } else if form.may_store() && left >= 1 && (args.is(at, "STORE") || stores(args, at)) {
            self.destination = args.get(at + 1);
            self.stores_distance = stores(args, at);
            return Ok(2);
        } else if form == Form::SearchStore && stores(args, at) {
            self.stores_distance = true;
        } else if form.is_search() && !is_box && left >= 2 && args.is(at, "BYRADIUS") {
            self.shape = Some(circle(args, at + 1)?);
            return Ok(3);
        } else if form.is_search() && !is_circle && left >= 3 && args.is(at, "BYBOX") {
            self.shape = Some(box_shape(args, at + 1)?);
            return Ok(4);
        } else {
            return Err(Refusal::SYNTAX);
        }
        Ok(1)
    }

    fn check(&mut self, args: Args<'_>, form: Form, has_middle: bool) -> Outcome {
        if self.destination.is_some() && (self.with_distance || self.with_score || self.with_place)
        {
            let what = if form == Form::SearchStore {
                "GEOSEARCHSTORE"
            } else {
                "STORE option in GEORADIUS"
            };
            return Err(Refusal::new(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let missing = if !form.is_search() {
            None
        } else if !has_middle {
            Some("FROMMEMBER or FROMLONLAT")
        } else if self.shape.is_none() {
            Some("BYRADIUS and BYBOX")
        } else {
            None
        };
        if let Some(missing) = missing {
            let name = String::from_utf8_lossy(args.at(0));
            return Err(Refusal::new(format!(
                "ERR exactly one of {missing} can be specified for {name}"
            )));
        }
        if self.any && self.count == 0 {
            return Err(Refusal::of("ERR the ANY argument requires COUNT argument"));
        }
        // The nearest so many are wanted, unless any will do.
        if self.count > 0 && !self.any && self.order.is_none() {
            self.order = Some(Order::Nearest);
        }
        Ok(())
    }

    /// The members that the request asks for.
    fn find<'s>(&self, sorted: &'s Sorted, work: &Work) -> Vec<Found<'s>> {
        let (Some(middle), Some(shape)) = (self.middle, self.shape) else { return Vec::new() };
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        let enough = if self.any { count } else { usize::MAX };
        let mut found = Vec::new();
        for cell in shape.cover(middle) {
            let scores = cell.scores();
            let (min, max) = (scores.start, scores.end);
            let ranks =
                sorted.ranks_by_score(ScoreBound::Inclusive(min), ScoreBound::Exclusive(max));
            for (member, score) in sorted.ascending(ranks) {
                work.step();
                if found.len() >= enough {
                    break;
                }
                let place = Coordinates::of_score(score);
                if let Some(distance) = shape.distance_within(middle, place) {
                    found.push(Found { member, score, place, distance });
                }
            }
        }
        // Stable, so that equal distances stay as found.
        if let Some(order) = self.order {
            found.sort_by(|a, b| {
                work.step();
                match order {
                    Order::Nearest => a.distance.total_cmp(&b.distance),
                    Order::Farthest => b.distance.total_cmp(&a.distance),
                }
            });
        }
        if self.count > 0 {
            found.truncate(count);
        }
        found
    }

    fn reply(&self, found: &[Found<'_>], work: &Work, reply: &mut Reply) {
        let metres = self.shape.map_or(1.0, |shape| shape.metres);
        let extras = [self.with_distance, self.with_score, self.with_place];
        let extras = extras.iter().filter(|with| **with).count();
        reply.array(found.len());
        work.reply_each(found, reply, |found, reply| {
            if extras > 0 {
                reply.array(1 + extras);
            }
            reply_member(found.member, reply);
            if self.with_distance {
                reply_distance(found.distance / metres, reply);
            }
            if self.with_score {
                reply.integer(found.score as i64);
            }
            if self.with_place {
                reply_place(found.place, reply);
            }
        });
    }
}

fn stores(args: Args<'_>, at: usize) -> bool {
    args.is(at, "STOREDIST")
}

/// The place of a member; nothing if there is no sorted set.
fn member_place(sorted: Option<&Sorted>, member: &[u8]) -> Result<Option<Coordinates>, Refusal> {
    let Some(sorted) = sorted else { return Ok(None) };
    match sorted.score(member) {
        Some(score) => Ok(Some(Coordinates::of_score(score))),
        None => Err(Refusal::of("ERR could not decode requested zset member")),
    }
}

/// Reads a radius and its unit.
fn circle(args: Args<'_>, at: usize) -> Result<Shape, Refusal> {
    let radius = parse_f64(args.at(at)).ok_or(Refusal::of("ERR need numeric radius"))?;
    if radius < 0.0 {
        return Err(Refusal::of("ERR radius cannot be negative"));
    }
    Ok(Shape { outline: Outline::Circle { radius }, metres: unit(args, at + 1)? })
}

/// Reads a width, a height and their unit.
fn box_shape(args: Args<'_>, at: usize) -> Result<Shape, Refusal> {
    let width = parse_f64(args.at(at)).ok_or(Refusal::of("ERR need numeric width"))?;
    let height = parse_f64(args.at(at + 1)).ok_or(Refusal::of("ERR need numeric height"))?;
    if width < 0.0 || height < 0.0 {
        return Err(Refusal::of("ERR height or width cannot be negative"));
    }
    Ok(Shape { outline: Outline::Box { width, height }, metres: unit(args, at + 2)? })
}

fn answer(
    sorted: Option<&Sorted>,
    args: Args<'_>,
    work: &Work,
    reply: &mut Reply,
    form: Form,
) -> Outcome {
    let request = Request::parse(args, form, sorted)?;
    match sorted {
        Some(sorted) => request.reply(&request.find(sorted, work), work, reply),
        None => reply.array(0),
    }
    Ok(())
}

fn answer_or_store(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, form: Form) -> Outcome {
    let source = if form == Form::SearchStore { 2 } else { 1 };
    let work = tx.work();
    let sorted = tx.find_read(args.at(source)).map(sorted::of).transpose()?;
    let request = Request::parse(args, form, sorted)?;
    let Some(destination) = request.destination else {
        return answer(sorted, args, &work, reply, form);
    };
    let metres = request.shape.map_or(1.0, |shape| shape.metres);
    let mut members = Copied::new(work.clone());
    for found in sorted.map(|sorted| request.find(sorted, &work)).unwrap_or_default() {
        let distance = found.distance / metres;
        let score = if request.stores_distance { distance } else { found.score };
        members.push_text(found.member, score);
    }
    let event = if form.is_search() { "geosearchstore" } else { "georadiusstore" };
    store(tx, destination, &members, event, reply)
}
