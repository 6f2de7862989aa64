//! Places on Earth as 52-bit numbers, so that a sorted set can hold them.
//!
//! ```text
//! score = longitude and latitude as 26-bit fractions of their ranges, bits interleaved:
//!         x25 y25 x24 y24 … x0 y0          places that share leading bits share a cell
//! ```
//! A search covers its area with a cell and those of its eight neighbours that matter. Each cell
//! is one range of scores. What is computed here decides replies to the last digit, so the order
//! of floating-point operations follows Redis 7.0.15 (geohash.c, geohash_helper.c).

#[cfg(test)]
mod tests;

use std::ops::Range;

/// Bits of each coordinate in a score.
pub const STEPS_MAX: u32 = 26;

pub const LONGITUDE_MAX: f64 = 180.0;
/// Web Mercator's bound (EPSG:900913): the poles cannot be told.
pub const LATITUDE_MAX: f64 = 85.05112878;

/// The mean radius that distances are computed with, in metres.
const EARTH_RADIUS: f64 = 6372797.560856;

/// Half the circumference of Web Mercator, in metres.
const MERCATOR_MAX: f64 = 20037726.37;

const EVEN_BITS: u64 = 0x5555_5555_5555_5555;

/// A position on Earth, in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Coordinates {
    pub longitude: f64,
    pub latitude: f64,
}

/// A part of the map: the first `2 · steps` bits of the scores in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub bits: u64,
    pub steps: u32,
}

/// The edges of a cell or of a search, in degrees.
#[derive(Clone, Copy, Debug)]
struct Edges {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

/// The area of a search around a position, in units of `metres` metres.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub outline: Outline,
    pub metres: f64,
}

#[derive(Clone, Copy, Debug)]
pub enum Outline {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

impl Coordinates {
    /// The place that a score stands for: the middle of its cell.
    pub fn of_score(score: f64) -> Self {
        let edges = Cell { bits: bits_of(score), steps: STEPS_MAX }.edges();
        let longitude = (edges.west + edges.east) / 2.0;
        let latitude = (edges.south + edges.north) / 2.0;
        Self {
            longitude: longitude.clamp(-LONGITUDE_MAX, LONGITUDE_MAX),
            latitude: latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX),
        }
    }

    /// Whether the place can be told by a score.
    pub fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    pub fn score(self) -> f64 {
        self.cell(STEPS_MAX, LATITUDE_MAX).bits as f64
    }

    /// Eleven characters of the geohash that other programs understand: they count latitudes from
    /// -90 to 90. The last one would need more bits than there are.
    pub fn text(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = self.cell(STEPS_MAX, 90.0).bits;
        let mut text = [ALPHABET[0]; 11];
        for (at, character) in text[..10].iter_mut().enumerate() {
            *character = ALPHABET[(bits >> (52 - (at + 1) * 5)) as usize & 31];
        }
        text
    }

    /// Metres to another place along a great circle (haversine).
    pub fn distance(self, other: Self) -> f64 {
        let v = ((other.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        if v == 0.0 {
            return self.distance_north(other);
        }
        let (from, to) = (self.latitude.to_radians(), other.latitude.to_radians());
        let u = ((to - from) / 2.0).sin();
        let a = u * u + from.cos() * to.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    /// Metres to another place's latitude.
    fn distance_north(self, other: Self) -> f64 {
        EARTH_RADIUS * (other.latitude.to_radians() - self.latitude.to_radians()).abs()
    }

    /// The cell of this size that the place is in, latitudes counted between `±latitude_max`.
    fn cell(self, steps: u32, latitude_max: f64) -> Cell {
        let scale = (1_u64 << steps) as f64;
        let north = (self.latitude + latitude_max) / (latitude_max + latitude_max);
        let east = (self.longitude + LONGITUDE_MAX) / (LONGITUDE_MAX + LONGITUDE_MAX);
        let bits = spread((north * scale) as u32) | spread((east * scale) as u32) << 1;
        Cell { bits, steps }
    }
}

/// An angle as degrees. Not the standard library's, which multiplies: the last bit differs.
fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

/// Any score as bits, as an x86-64 processor converts it: nothing keeps a client from searching
/// a sorted set that holds no places.
fn bits_of(score: f64) -> u64 {
    const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;
    if score < 0.0 {
        score as i64 as u64
    } else if score < TOO_LARGE {
        score as u64
    } else {
        0
    }
}

/// Puts a zero before each bit.
fn spread(half: u32) -> u64 {
    let mut bits = u64::from(half);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, EVEN_BITS),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// Every second bit, from the lowest on.
fn gather(bits: u64) -> u32 {
    let mut half = bits & EVEN_BITS;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        half = (half | half >> shift) & mask;
    }
    half as u32
}

impl Cell {
    /// The scores in the cell.
    pub fn scores(self) -> Range<f64> {
        let shift = 52 - self.steps * 2;
        (self.bits << shift) as f64..((self.bits + 1) << shift) as f64
    }

    fn edges(self) -> Edges {
        let scale = (1_u64 << self.steps) as f64;
        let (y, x) = (gather(self.bits), gather(self.bits >> 1));
        let at = |index: u32, max: f64| -max + (f64::from(index) / scale) * (max + max);
        Edges {
            west: at(x, LONGITUDE_MAX),
            east: at(x.wrapping_add(1), LONGITUDE_MAX),
            south: at(y, LATITUDE_MAX),
            north: at(y.wrapping_add(1), LATITUDE_MAX),
        }
    }

    /// The cell so many steps away; the map's ends meet. A place on the very end lies one cell
    /// beyond the last: that is put right only in the direction of the step.
    fn neighbour(self, east: i64, north: i64) -> Self {
        let mask = (1_u64 << self.steps) - 1;
        let step = |at: u32, by: i64| match by {
            0 => at,
            by => (u64::from(at).wrapping_add(by as u64) & mask) as u32,
        };
        let x = step(gather(self.bits >> 1), east);
        let y = step(gather(self.bits), north);
        Self { bits: spread(y) | spread(x) << 1, ..self }
    }
}

impl Shape {
    /// The distance in metres from the middle, if a place is within the shape around it.
    pub fn distance_within(self, middle: Coordinates, place: Coordinates) -> Option<f64> {
        match self.outline {
            Outline::Circle { radius } => {
                let distance = middle.distance(place);
                (distance <= radius * self.metres).then_some(distance)
            }
            Outline::Box { width, height } => {
                if place.distance_north(middle) > height * self.metres / 2.0 {
                    return None;
                }
                let beside = Coordinates { longitude: middle.longitude, ..place };
                if place.distance(beside) > width * self.metres / 2.0 {
                    return None;
                }
                Some(middle.distance(place))
            }
        }
    }

    /// The cells that cover the shape around a place, in the order in which Redis looks at them.
    pub fn cover(self, middle: Coordinates) -> Vec<Cell> {
        let bounds = self.bounds(middle);
        let mut steps = self.steps(middle);
        let mut cell = middle.cell(steps, LATITUDE_MAX);
        if steps > 1 && !neighbours_reach(cell, bounds) {
            steps -= 1;
            cell = middle.cell(steps, LATITUDE_MAX);
        }
        let edges = cell.edges();
        // What lies beyond an edge is of no use if the search ends before it.
        let skips = |east: i64, north: i64| {
            steps >= 2
                && (north < 0 && edges.south < bounds.south
                    || north > 0 && edges.north > bounds.north
                    || east < 0 && edges.west < bounds.west
                    || east > 0 && edges.east > bounds.east)
        };
        let mut cells = vec![cell];
        // A neighbour equal to the one before it is left out, but the first cell is not compared.
        let mut last = None;
        for (east, north) in [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)]
        {
            let neighbour = cell.neighbour(east, north);
            if !skips(east, north) && last != Some(neighbour) {
                cells.push(neighbour);
                last = Some(neighbour);
            }
        }
        cells
    }

    /// A box in degrees around the shape.
    fn bounds(self, middle: Coordinates) -> Edges {
        let (width, height) = match self.outline {
            Outline::Circle { radius } => (self.metres * radius, self.metres * radius),
            Outline::Box { width, height } => {
                (self.metres * (width / 2.0), self.metres * (height / 2.0))
            }
        };
        let Coordinates { longitude, latitude } = middle;
        let north = degrees(height / EARTH_RADIUS);
        // Meridians are closest at the end away from the equator.
        let widest = if latitude < 0.0 { latitude - north } else { latitude + north };
        let east = degrees(width / EARTH_RADIUS / widest.to_radians().cos());
        Edges {
            west: longitude - east,
            east: longitude + east,
            south: latitude - north,
            north: latitude + north,
        }
    }

    /// How fine the cells may be: three of them, side by side, about cover the shape.
    fn steps(self, middle: Coordinates) -> u32 {
        let radius = match self.outline {
            Outline::Circle { radius } => radius,
            Outline::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        };
        let mut range = radius * self.metres;
        if range == 0.0 {
            return STEPS_MAX;
        }
        let mut steps = 1_i32;
        while range < MERCATOR_MAX {
            range *= 2.0;
            steps += 1;
        }
        steps -= 2;
        // Cells are narrower towards the poles.
        let latitude = middle.latitude.abs();
        steps -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        steps.clamp(1, STEPS_MAX as i32) as u32
    }
}

/// Whether a cell and its neighbours reach beyond the bounds of a search.
fn neighbours_reach(cell: Cell, bounds: Edges) -> bool {
    cell.neighbour(0, 1).edges().north >= bounds.north
        && cell.neighbour(0, -1).edges().south <= bounds.south
        && cell.neighbour(1, 0).edges().east >= bounds.east
        && cell.neighbour(-1, 0).edges().west <= bounds.west
}
