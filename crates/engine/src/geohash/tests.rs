//! Places against what Redis 7.0.15 says of them.

use super::*;

const PALERMO: Coordinates = Coordinates { longitude: 13.361389, latitude: 38.115556 };
const CATANIA: Coordinates = Coordinates { longitude: 15.087269, latitude: 37.502669 };

#[test]
fn places_have_the_scores_and_texts_of_redis() {
    assert_eq!(PALERMO.score(), 3479099956230698.0);
    assert_eq!(CATANIA.score(), 3479447370796909.0);
    let stored = Coordinates::of_score(PALERMO.score());
    assert_eq!(stored.longitude, 13.361389338970184);
    assert_eq!(stored.latitude, 38.1155563954963);
    assert_eq!(&stored.text(), b"sqc8b49rny0");
    let other = Coordinates::of_score(CATANIA.score());
    assert_eq!(&other.text(), b"sqdtr74hyu0");
    assert_eq!((stored.distance(other) * 10_000.0).round(), 1_662_741_516.0);
}

#[test]
fn every_place_within_a_shape_is_in_a_cell_of_its_cover() {
    let mut dice = crate::random::Random::new(3);
    let mut coordinate = |max: f64| (dice.below(2_000_001) as f64 / 1e6 - 1.0) * max;
    let mut within = 0;
    for _ in 0..200 {
        // Away from the date line and the poles, where Redis's cover has gaps.
        let middle = Coordinates { longitude: coordinate(100.0), latitude: coordinate(60.0) };
        let radius = 1.0 + coordinate(500.0).abs();
        let outline = if radius < 250.0 {
            Outline::Circle { radius }
        } else {
            Outline::Box { width: radius, height: radius / 2.0 }
        };
        let shape = Shape { outline, metres: 1000.0 };
        let cells = shape.cover(middle);
        for _ in 0..200 {
            let place = Coordinates {
                longitude: middle.longitude + coordinate(6.0),
                latitude: middle.latitude + coordinate(4.0),
            };
            let place = Coordinates::of_score(place.score());
            if shape.distance_within(middle, place).is_some() {
                within += 1;
                let score = place.score();
                assert!(cells.iter().any(|cell| cell.scores().contains(&score)), "{middle:?}");
            }
        }
    }
    assert!(within > 1_000, "{within}");
}

#[test]
fn any_score_is_some_place() {
    for score in [-1.0, -1e300, 1e300, f64::INFINITY, f64::NEG_INFINITY, 0.5, 1e19] {
        assert!(Coordinates::of_score(score).is_valid(), "{score}");
    }
}
