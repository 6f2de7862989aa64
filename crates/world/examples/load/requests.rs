//! Requests, encoded before the first is sent.
//!
//! A batch is as many requests as a connection sends at once. Between two uses of a batch only the
//! twelve digits of each random number change, in place, so numbers never repeat in a round as
//! those of a fixed list would, and the batches stay in the processor's cache.
//!
//! ```text
//! *2 $3 GET $16 key:000000483920 *2 $3 GET $16 key:000000028114 …
//!                   ├─ place ──┤ │ end             ├─ place ──┤ │ end
//! ```
//! One command needs one batch. A mix has several, over which the commands are shuffled in the
//! proportion of their weights. With [`Skew`] it is known of each request whether it is a cold one.

use crate::memcached;

/// Stands for a random number in a word, as in redis-benchmark, and is as long as its digits.
pub const NUMBER: &str = "__rand_int__";

/// Stands for the value in a word.
pub const VALUE: &str = "__value__";

const DIGITS: usize = NUMBER.len();

/// Random numbers have twelve digits.
pub const KEYSPACE_MAX: u64 = 10_u64.pow(DIGITS as u32);

/// Batches of a mix, at least: enough that no connection meets the same order soon. A guess.
const MIX_BATCHES_MIN: usize = 256;

/// The sum of a mix's weights. It bounds the number of batches.
pub const WEIGHTS_MAX: usize = 1000;

/// A command and its share of a mix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    pub words: Vec<String>,
    pub weight: usize,
}

/// What else requests depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Requests in a batch.
    pub pipeline: usize,
    /// Random numbers are below it.
    pub keyspace: u64,
    pub value_bytes: usize,
    pub seed: u64,
    /// Numbers count from here on, and are not drawn.
    pub ascending: Option<u64>,
    pub skew: Option<Skew>,
    pub protocol: Protocol,
}

/// Numbers that are drawn more often than others. Both sets are drawn from evenly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Skew {
    /// Hot numbers are below it; the others are cold.
    pub hot: u64,
    /// So many of a hundred numbers are cold.
    pub cold_percent: u64,
}

/// What the server understands.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Protocol {
    #[default]
    Resp,
    /// The text protocol of memcached: `GET key` and `SET key value`.
    Memcached,
}

pub struct Requests {
    batches: Vec<Batch>,
    next: usize,
    numbers: Numbers,
    /// Of each request of the last batch whether a number of it is cold.
    are_cold: Vec<bool>,
}

/// The numbers that requests are given.
enum Numbers {
    Below(u64, Random),
    Skewed { skew: Skew, keyspace: u64, random: Random },
    From(u64),
}

impl Numbers {
    fn next(&mut self) -> u64 {
        match self {
            Self::Below(bound, random) => random.below(*bound),
            Self::Skewed { skew, keyspace, random } => {
                if random.below(100) < skew.cold_percent {
                    skew.hot + random.below(*keyspace - skew.hot)
                } else {
                    random.below(skew.hot)
                }
            }
            Self::From(next) => {
                *next += 1;
                (*next - 1) % KEYSPACE_MAX
            }
        }
    }

    fn is_cold(&self, number: u64) -> bool {
        matches!(self, Self::Skewed { skew, .. } if number >= skew.hot)
    }
}

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each request ends.
    ends: Vec<usize>,
    /// Where each random number begins.
    places: Vec<usize>,
}

impl Requests {
    /// Encodes the batches of a mix.
    ///
    /// # Errors
    /// There is no command, or one without words or that memcached does not know, or the weights
    /// are 0 or too many, or all numbers are hot.
    pub fn prepare(mix: &[Command], shape: &Shape) -> Result<Self, String> {
        let weights: usize = mix.iter().map(|command| command.weight).sum();
        if mix.is_empty() || mix.iter().any(|command| command.words.is_empty()) {
            return Err("a command needs words".to_owned());
        }
        if weights == 0 || weights > WEIGHTS_MAX {
            return Err(format!("the weights' sum is to be from 1 to {WEIGHTS_MAX}"));
        }
        let mut random = Random(shape.seed);
        let value = random.text(shape.value_bytes);
        let encoded = mix.iter().map(|command| match shape.protocol {
            Protocol::Resp => Ok(encode(&command.words, &value)),
            Protocol::Memcached => memcached::encode(&command.words, &value),
        });
        let encoded = encoded.collect::<Result<Vec<Vec<u8>>, String>>()?;
        let shares = mix.iter().zip(&encoded);
        let mut order: Vec<&[u8]> = shares
            .flat_map(|(command, bytes)| std::iter::repeat_n(bytes.as_slice(), command.weight))
            .collect();
        let mut batches = 1;
        if mix.len() > 1 {
            let rounds = MIX_BATCHES_MIN.div_ceil(weights);
            batches = weights * rounds;
            order = order.repeat(rounds * shape.pipeline);
            random.shuffle(&mut order);
        }
        let mut order = order.into_iter().cycle();
        let batches =
            (0..batches).map(|_| Batch::of(order.by_ref().take(shape.pipeline))).collect();
        let numbers = match (shape.ascending, shape.skew) {
            (Some(first), _) => Numbers::From(first),
            (None, None) => Numbers::Below(shape.keyspace, random),
            (None, Some(skew)) if skew.hot < shape.keyspace => {
                Numbers::Skewed { skew, keyspace: shape.keyspace, random }
            }
            (None, Some(_)) => return Err("there are to be cold numbers as well".to_owned()),
        };
        Ok(Self { batches, next: 0, numbers, are_cold: Vec::new() })
    }

    /// The next `count` requests, at most a pipeline's.
    pub fn next(&mut self, count: usize) -> &[u8] {
        self.next = if self.next + 1 < self.batches.len() { self.next + 1 } else { 0 };
        let batch = &mut self.batches[self.next];
        let end = batch.ends[count - 1];
        self.are_cold.clear();
        self.are_cold.resize(count, false);
        let mut request = 0;
        for &place in &batch.places {
            if place >= end {
                break;
            }
            while batch.ends[request] <= place {
                request += 1;
            }
            let number = self.numbers.next();
            self.are_cold[request] |= self.numbers.is_cold(number);
            write_digits(&mut batch.bytes[place..place + DIGITS], number);
        }
        &batch.bytes[..end]
    }

    /// Of each request that [`Self::next`] gave last whether it is cold.
    pub fn are_cold(&self) -> &[bool] {
        &self.are_cold
    }
}

impl Batch {
    fn of<'a>(requests: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut batch = Self::default();
        for request in requests {
            let begin = batch.bytes.len();
            batch.bytes.extend_from_slice(request);
            batch.ends.push(batch.bytes.len());
            let mut at = 0;
            while let Some(found) = find(&request[at..], NUMBER.as_bytes()) {
                batch.places.push(begin + at + found);
                at += found + DIGITS;
            }
        }
        batch
    }
}

/// As RESP asks for: an array of bulk strings. Random numbers are left for later.
fn encode(words: &[String], value: &str) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        let word = word.replace(VALUE, value);
        text += &format!("${}\r\n{word}\r\n", word.len());
    }
    text.into_bytes()
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

/// Two digits at a time, from the last.
fn write_digits(place: &mut [u8], mut number: u64) {
    for pair in place.rchunks_exact_mut(2) {
        let two = (number % 100) as u8;
        number /= 100;
        pair[0] = b'0' + two / 10;
        pair[1] = b'0' + two % 10;
    }
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): a
/// few instructions a number, from any seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The high half of a product: uneven by less than one part in 2²⁴, since bounds are below 2⁴⁰.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Letters and digits, as redis-benchmark's values are: a server that compresses finds little.
    fn text(&mut self, bytes: usize) -> String {
        const LETTERS: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let letter = |at: u64| char::from(LETTERS[at as usize]);
        (0..bytes).map(|_| letter(self.below(LETTERS.len() as u64))).collect()
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str, weight: usize) -> Command {
        Command { words: text.split(' ').map(str::to_owned).collect(), weight }
    }

    fn prepared(mix: &[Command], pipeline: usize, keyspace: u64) -> Requests {
        Requests::prepare(mix, &shape(pipeline, keyspace)).expect("the mix is good")
    }

    fn shape(pipeline: usize, keyspace: u64) -> Shape {
        Shape {
            pipeline,
            keyspace,
            value_bytes: 5,
            seed: 1,
            ascending: None,
            skew: None,
            protocol: Protocol::Resp,
        }
    }

    fn text(requests: &mut Requests, count: usize) -> String {
        String::from_utf8(requests.next(count).to_vec()).expect("it is ASCII")
    }

    #[test]
    fn a_request_is_an_array_of_its_words_with_the_value_in_its_place() {
        let mut requests = prepared(&[command("SET key:1 <__value__>", 1)], 2, 1);
        let both = text(&mut requests, 2);
        let (one, other) = both.split_at(both.len() / 2);
        assert_eq!(one, other);
        assert!(one.starts_with("*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$7\r\n<"), "{one}");
        assert!(one.ends_with(">\r\n") && !one.contains('_'), "{one}");
        assert_eq!(text(&mut requests, 1), one);
    }

    #[test]
    fn numbers_are_drawn_anew_below_the_keyspace() {
        let mix = [command("ZADD set __rand_int__ element:__rand_int__", 1)];
        let mut requests = prepared(&mix, 3, 20);
        let mut seen = [0; 20];
        for _ in 0..1000 {
            let batch = text(&mut requests, 3);
            assert!(!batch.contains(NUMBER), "{batch}");
            for line in batch.lines() {
                let digits = line.strip_prefix("element:").unwrap_or(line);
                if digits.len() == DIGITS {
                    seen[digits.parse::<usize>().expect("twelve digits")] += 1;
                }
            }
        }
        assert_eq!(seen.iter().sum::<u32>(), 6000);
        assert!(seen.iter().all(|times| (200..400).contains(times)), "{seen:?}");
    }

    #[test]
    fn ascending_numbers_leave_none_out_and_repeat_none() {
        let mix = [command("SET key:__rand_int__ x", 1)];
        let shape = Shape { ascending: Some(98), ..shape(3, 1) };
        let mut requests = Requests::prepare(&mix, &shape).expect("the mix is good");
        let all: String = [3, 1, 2].map(|count| text(&mut requests, count)).concat();
        let keys: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("key:")).collect();
        let wanted: Vec<String> = (98..104).map(|number| format!("{number:012}")).collect();
        assert_eq!(keys, wanted);
    }

    #[test]
    fn digits_are_decimal_and_padded() {
        for number in [0, 7, 10, 99, 123_456, KEYSPACE_MAX - 1] {
            let mut place = *NUMBER.as_bytes().first_chunk::<DIGITS>().expect("as long");
            write_digits(&mut place, number);
            assert_eq!(place, *format!("{number:012}").as_bytes());
        }
    }

    #[test]
    fn a_mix_has_its_weights_to_the_last_request() {
        for pipeline in [1, 16] {
            let mix = [command("GET a", 80), command("SET a b", 15), command("DEL a", 5)];
            let mut requests = prepared(&mix, pipeline, 1);
            let batches = requests.batches.len();
            let all: String = (0..batches).map(|_| text(&mut requests, pipeline)).collect();
            let times = ["GET", "SET", "DEL"].map(|name| all.matches(name).count());
            let sum = batches * pipeline;
            assert_eq!(times, [sum * 80 / 100, sum * 15 / 100, sum * 5 / 100]);
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_requests() {
        let mix = [command("GET __rand_int__", 1), command("SET __rand_int__ __value__", 1)];
        let (mut one, mut other) = (prepared(&mix, 4, 1000), prepared(&mix, 4, 1000));
        for count in [4, 1, 3, 4] {
            assert_eq!(one.next(count), other.next(count));
        }
    }

    #[test]
    fn a_mix_without_words_or_weights_is_refused() {
        let wordless = Command { words: Vec::new(), weight: 1 };
        for mix in [&[][..], &[wordless], &[command("GET a", 0)], &[command("GET a", 1001)]] {
            assert!(Requests::prepare(mix, &shape(1, 1)).is_err(), "{mix:?}");
        }
    }

    #[test]
    fn cold_requests_have_their_share_and_are_told_from_hot_ones() {
        let skew = Some(Skew { hot: 10, cold_percent: 20 });
        let mix = [command("GET key:__rand_int__", 1), command("SET key:__rand_int__ x", 1)];
        let shape = Shape { skew, ..shape(4, 100) };
        let mut requests = Requests::prepare(&mix, &shape).expect("the mix is good");
        let (mut cold, mut seen) = (0, [0; 100]);
        for _ in 0..1000 {
            let batch = text(&mut requests, 4);
            let numbers: Vec<usize> =
                batch.lines().filter_map(|line| line.strip_prefix("key:")?.parse().ok()).collect();
            let are_cold: Vec<bool> = numbers.iter().map(|&number| number >= 10).collect();
            assert_eq!(requests.are_cold(), are_cold, "{batch}");
            cold += are_cold.iter().filter(|&&is_cold| is_cold).count();
            numbers.iter().for_each(|&number| seen[number] += 1);
        }
        assert!((720..880).contains(&cold), "{cold} of 4000");
        assert!(seen.iter().all(|&times| times > 0), "{seen:?}");
        let all_hot = Shape { skew: Some(Skew { hot: 100, cold_percent: 20 }), ..shape };
        assert!(Requests::prepare(&mix, &all_hot).is_err());
    }
}
