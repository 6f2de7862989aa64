//! A directive's value: read from words, kept in bounds, shown, and written back.
//!
//! The refusals are Redis's texts, because clients and test suites compare them.

use crate::directive::{Directive, Kind};
use crate::text::{parse_integer, parse_lenient_integer, parse_size};
use engine::master::Master;
use engine::notify::{format_classes, parse_classes};
use std::borrow::Cow;

/// Why a value is refused, without an error code.
pub type Refusal = Cow<'static, str>;

/// Bytes and seconds after which a client that does not read is disconnected. 0: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferLimit {
    /// In bytes: disconnected at once.
    pub hard: u64,
    /// In bytes: disconnected when held for `soft_seconds`.
    pub soft: u64,
    pub soft_seconds: u64,
}

/// Names of the classes of `client-output-buffer-limit`, in their order.
pub const BUFFER_CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// The most addresses that `bind` takes.
const ADDRESSES_MAX: usize = 16;

/// The value of one directive.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Toggle(bool),
    Integer(i128),
    /// A share of `maxmemory`.
    Percent(i128),
    /// An index into the words of the row.
    Choice(usize),
    /// Bit `n` stands for word `n + 1` of the row.
    Flags(u32),
    Text(Vec<u8>),
    /// The path of `file:PATH`; `None` for the row's folder.
    Location(Option<Vec<u8>>),
    /// A location that is none of this machine.
    Url(String),
    /// Seconds and changes.
    SavePoints(Vec<(i64, i64)>),
    BufferLimits([BufferLimit; 3]),
    OomScores([i64; 3]),
    /// One number to another.
    Ratio(u32, u32),
    /// Bits of [`engine::notify::Class`].
    Events(u32),
    Addresses(Vec<Vec<u8>>),
    Percentiles(Vec<f64>),
}

/// Reads a value. `before` is the present one, which some kinds change only in part.
///
/// # Errors
/// Why the words are refused.
pub fn parse(
    directive: &Directive,
    words: &[Vec<u8>],
    before: Option<&Value>,
) -> Result<Value, Refusal> {
    let first = words.first().map_or(&b""[..], Vec::as_slice);
    if let Some(check) = directive.check {
        check(first)?;
    }
    Ok(match directive.kind {
        Kind::Toggle => parse_toggle(first)?,
        Kind::Integer { min, max } => parse_bounded(first, min, max)?,
        Kind::Size { min, max } => {
            let size = parse_size(first).ok_or("argument must be a memory value")?;
            within(i128::from(size), min, max)?
        }
        Kind::SizeOrPercent => parse_size_or_percent(first)?,
        Kind::Octal { max } => parse_octal(first, max)?,
        Kind::Choice(choices) => match words {
            [word] => Value::Choice(choice_index(choices, word)?),
            _ => return Err(choices_refusal(choices)),
        },
        Kind::Flags(choices) => parse_flags(choices, words)?,
        Kind::Text | Kind::Directory => Value::Text(first.to_vec()),
        Kind::Location { urls, .. } => parse_location(first, urls)?,
        Kind::SavePoints => parse_save_points(words)?,
        Kind::BufferLimits => parse_buffer_limits(words, before)?,
        Kind::OomScores => parse_oom_scores(words)?,
        Kind::Ratio => parse_ratio(words)?,
        Kind::Events => {
            let classes = std::str::from_utf8(first).ok().and_then(parse_classes);
            Value::Events(classes.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?)
        }
        Kind::Addresses => parse_addresses(words)?,
        Kind::Percentiles => parse_percentiles(words)?,
        Kind::Primary => parse_primary(words)?,
    })
}

fn parse_toggle(word: &[u8]) -> Result<Value, Refusal> {
    match word {
        word if word.eq_ignore_ascii_case(b"yes") => Ok(Value::Toggle(true)),
        word if word.eq_ignore_ascii_case(b"no") => Ok(Value::Toggle(false)),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

fn parse_bounded(word: &[u8], min: i128, max: i128) -> Result<Value, Refusal> {
    let number = parse_integer(word).ok_or("argument couldn't be parsed into an integer")?;
    within(i128::from(number), min, max)
}

fn within(number: i128, min: i128, max: i128) -> Result<Value, Refusal> {
    if (min..=max).contains(&number) {
        return Ok(Value::Integer(number));
    }
    Err(format!("argument must be between {min} and {max} inclusive").into())
}

fn parse_size_or_percent(word: &[u8]) -> Result<Value, Refusal> {
    if let Some(size) = parse_size(word) {
        return within(i128::from(size), -100, i128::from(i64::MAX));
    }
    let percent = word.strip_suffix(b"%").and_then(parse_integer).filter(|percent| *percent >= 0);
    match percent {
        Some(0) => Ok(Value::Integer(0)),
        Some(percent @ 1..=100) => Ok(Value::Percent(i128::from(percent))),
        Some(_) => Err("percentage argument must be less or equal to 100".into()),
        None => Err("argument must be a memory or percent value".into()),
    }
}

fn parse_octal(word: &[u8], max: i128) -> Result<Value, Refusal> {
    let number = std::str::from_utf8(word).ok().and_then(|text| i64::from_str_radix(text, 8).ok());
    let number = number.ok_or("argument couldn't be parsed as an octal number")?;
    if (0..=max).contains(&i128::from(number)) {
        return Ok(Value::Integer(i128::from(number)));
    }
    Err(format!("argument must be between 0 and {max:o} inclusive").into())
}

fn choice_index(choices: &'static [&'static str], word: &[u8]) -> Result<usize, Refusal> {
    let index = choices.iter().position(|choice| word.eq_ignore_ascii_case(choice.as_bytes()));
    index.ok_or_else(|| choices_refusal(choices))
}

fn choices_refusal(choices: &'static [&'static str]) -> Refusal {
    format!("argument(s) must be one of the following: {}", choices.join(", ")).into()
}

fn parse_flags(choices: &'static [&'static str], words: &[Vec<u8>]) -> Result<Value, Refusal> {
    if words.is_empty() {
        return Err(choices_refusal(choices));
    }
    let mut flags = 0;
    for word in words {
        let index = choice_index(choices, word)?;
        flags |= (1 << index) >> 1;
    }
    // Words 1 and 2 of the only such list are `save` and `nosave`.
    if flags & 0b11 == 0b11 {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    Ok(Value::Flags(flags))
}

fn parse_location(word: &[u8], urls: &[&str]) -> Result<Value, Refusal> {
    if urls.iter().any(|url| word.starts_with(url.as_bytes())) {
        let url = std::str::from_utf8(word).map_err(|_| "argument must be text")?;
        return Ok(Value::Url(url.to_owned()));
    }
    match word.strip_prefix(b"file:") {
        Some(path) if !path.is_empty() => Ok(Value::Location(Some(path.to_vec()))),
        None if word.is_empty() => Ok(Value::Location(None)),
        _ if urls.is_empty() => Err("argument must be file:PATH".into()),
        _ => Err(format!("argument must be file:PATH or {}…", urls.join("…, ")).into()),
    }
}

fn parse_save_points(words: &[Vec<u8>]) -> Result<Value, Refusal> {
    if let [word] = words
        && word.is_empty()
    {
        return Ok(Value::SavePoints(Vec::new()));
    }
    let (pairs, []) = words.as_chunks::<2>() else {
        return Err("Invalid save parameters".into());
    };
    let points = pairs.iter().map(|[seconds, changes]| {
        let seconds = parse_lenient_integer(seconds).filter(|seconds| *seconds >= 1)?;
        let changes = parse_lenient_integer(changes).filter(|changes| *changes >= 0)?;
        Some((seconds, changes))
    });
    let points: Option<Vec<_>> = points.collect();
    Ok(Value::SavePoints(points.ok_or("Invalid save parameters")?))
}

fn parse_buffer_limits(words: &[Vec<u8>], before: Option<&Value>) -> Result<Value, Refusal> {
    let mut limits = match before {
        Some(Value::BufferLimits(limits)) => *limits,
        _ => [BufferLimit::default(); 3],
    };
    let (classes, []) = words.as_chunks::<4>() else {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    };
    for [class, hard, soft, seconds] in classes {
        let is_replica = class.eq_ignore_ascii_case(b"replica");
        let class = BUFFER_CLASSES.iter().position(|name| {
            class.eq_ignore_ascii_case(name.as_bytes()) || is_replica && *name == "slave"
        });
        let class = class.ok_or("Invalid client class specified in buffer limit configuration.")?;
        let limit = (|| {
            Some(BufferLimit {
                hard: parse_size(hard)?,
                soft: parse_size(soft)?,
                soft_seconds: u64::try_from(parse_lenient_integer(seconds)?).ok()?,
            })
        })();
        limits[class] = limit
            .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
    }
    Ok(Value::BufferLimits(limits))
}

fn parse_oom_scores(words: &[Vec<u8>]) -> Result<Value, Refusal> {
    let [a, b, c] = words else { return Err("wrong number of arguments".into()) };
    let score = |word: &Vec<u8>| {
        parse_lenient_integer(word)
            .filter(|score| (-2000..=2000).contains(score))
            .ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
    };
    Ok(Value::OomScores([score(a)?, score(b)?, score(c)?]))
}

fn parse_ratio(words: &[Vec<u8>]) -> Result<Value, Refusal> {
    let [left, right] = words else { return Err("argument must be two numbers".into()) };
    let part = |word: &Vec<u8>| {
        let number =
            parse_integer(word).filter(|number| (1..=i64::from(i32::MAX)).contains(number));
        number.ok_or("both numbers must be between 1 and 2147483647")
    };
    Ok(Value::Ratio(part(left)? as u32, part(right)? as u32))
}

fn parse_addresses(words: &[Vec<u8>]) -> Result<Value, Refusal> {
    if words.len() > ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".into());
    }
    let none = matches!(words, [word] if word.is_empty());
    Ok(Value::Addresses(if none { Vec::new() } else { words.to_vec() }))
}

fn parse_percentiles(words: &[Vec<u8>]) -> Result<Value, Refusal> {
    if matches!(words, [word] if word.is_empty()) {
        return Ok(Value::Percentiles(Vec::new()));
    }
    let mut percentiles = Vec::with_capacity(words.len());
    for word in words {
        let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
        let number = number.ok_or("Invalid latency-tracking-info-percentiles parameters")?;
        if !(0.0..=100.0).contains(&number) {
            return Err("latency-tracking-info-percentiles parameters should sit between \
                        [0.0,100.0]"
                .into());
        }
        percentiles.push(number);
    }
    Ok(Value::Percentiles(percentiles))
}

fn parse_primary(words: &[Vec<u8>]) -> Result<Value, Refusal> {
    let [host, port] = words else { return Err("wrong number of arguments".into()) };
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        return Ok(Value::Text(Vec::new()));
    }
    if !std::str::from_utf8(host).is_ok_and(|host| Master::new(host, 0).is_some()) {
        return Err("Invalid master host".into());
    }
    match parse_lenient_integer(port) {
        Some(0..=65535) => Ok(Value::Text([host, &b" "[..], port].concat())),
        _ => Err("Invalid master port".into()),
    }
}

/// The value as CONFIG GET shows it.
pub fn show(directive: &Directive, value: &Value) -> Vec<u8> {
    let join = |parts: Vec<String>| parts.join(" ").into_bytes();
    match (value, directive.kind) {
        (Value::Toggle(on), _) => {
            if *on {
                b"yes".to_vec()
            } else {
                b"no".to_vec()
            }
        }
        (Value::Integer(number), Kind::Octal { .. }) => format!("{number:o}").into_bytes(),
        (Value::Integer(number), _) => number.to_string().into_bytes(),
        (Value::Percent(percent), _) => format!("{percent}%").into_bytes(),
        (Value::Choice(index), Kind::Choice(choices)) => choices[*index].as_bytes().to_vec(),
        (Value::Flags(flags), Kind::Flags(choices)) => show_flags(choices, *flags).into_bytes(),
        (Value::Text(text), _) => text.clone(),
        (Value::Location(path), _) => match path {
            Some(path) => [b"file:", &path[..]].concat(),
            None => Vec::new(),
        },
        (Value::Url(url), _) => url.clone().into_bytes(),
        (Value::SavePoints(points), _) => {
            join(points.iter().map(|(seconds, changes)| format!("{seconds} {changes}")).collect())
        }
        (Value::BufferLimits(limits), _) => join(
            BUFFER_CLASSES
                .iter()
                .zip(limits)
                .map(|(class, l)| format!("{class} {} {} {}", l.hard, l.soft, l.soft_seconds))
                .collect(),
        ),
        (Value::OomScores(scores), _) => join(scores.iter().map(i64::to_string).collect()),
        (Value::Ratio(left, right), _) => format!("{left} {right}").into_bytes(),
        (Value::Events(classes), _) => format_classes(*classes).into_bytes(),
        (Value::Addresses(addresses), _) => addresses.join(&b' '),
        (Value::Percentiles(percentiles), _) => {
            join(percentiles.iter().map(|number| show_percentile(*number)).collect())
        }
        (Value::Choice(_) | Value::Flags(_), _) => unreachable!("made by `parse` of this row"),
    }
}

/// The words of set flags, or the first word if none is set.
fn show_flags(choices: &[&str], flags: u32) -> String {
    let set: Vec<&str> = (1..choices.len())
        .filter(|index| flags & ((1 << index) >> 1) != 0)
        .map(|index| choices[index])
        .collect();
    if set.is_empty() { choices[0].to_owned() } else { set.join(" ") }
}

/// Six decimals at most, without trailing zeroes.
pub fn show_percentile(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
