//! The command line.

use crate::pace::Pace;
use crate::requests::{Command, KEYSPACE_MAX, Protocol, Shape, Skew};
use std::path::PathBuf;
use std::str::FromStr;

pub const USAGE: &str = "\
usage: load --port N [option…] COMMAND [WORD…]
       load --port N [option…] --command 'COMMAND WORD…' --weight N …
  --connections N   connections at once (1)
  --pipeline N      requests that a connection sends at once (1)
  --requests N      send so many, each connection its next batch once the last is answered (100000)
  --rate R          send R requests a second instead, whether or not the server keeps up, and count
                    latency from when each was due
  --seconds S       for so long (10); without --rate: send no more after so long, and no bound of
                    --requests unless it is given
  --keyspace N      random numbers are below N (1000000)
  --hot N           random numbers are below N, but for those that are cold. Latencies of hot and
                    of cold requests are told apart
  --cold PERCENT    so many of a hundred are cold: from --hot on (10)
  --value BYTES     length of the value (100)
  --seed N          of random numbers and of the value (1)
  --ascending N     numbers from N on, each one more than the last, in place of random ones
  --memcached       speak memcached's text protocol; the commands are GET and SET
  --go-on           count errors of the server, and go on
  --by-second       print a line of JSON for each second as well
  --ca FILE         speak TLS 1.3 with a server whose certificate the file's authority has signed
In a word __rand_int__ is a random number of 12 digits, and __value__ is the value.";

/// What is asked for.
#[derive(Debug)]
pub struct Wanted {
    pub port: u16,
    pub connections: usize,
    pub requests: u64,
    pub pace: Pace,
    pub seconds: Option<f64>,
    pub shape: Shape,
    pub authority: Option<PathBuf>,
    pub by_second: bool,
    pub goes_on: bool,
    pub mix: Vec<Command>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            port: 0,
            connections: 1,
            requests: 100_000,
            pace: Pace::Closed,
            seconds: None,
            shape: Shape {
                pipeline: 1,
                keyspace: 1_000_000,
                value_bytes: 100,
                seed: 1,
                ascending: None,
                skew: None,
                protocol: Protocol::Resp,
            },
            authority: None,
            by_second: false,
            goes_on: false,
            mix: Vec::new(),
        }
    }
}

impl Wanted {
    /// When a closed loop ends by time, in nanoseconds after its start.
    pub fn until_nanos(&self) -> Option<u64> {
        let seconds = self.seconds.filter(|_| self.pace == Pace::Closed);
        seconds.map(|seconds| (seconds * 1e9) as u64)
    }
}

/// Seconds of an open loop for which no time is given.
const OPEN_SECONDS: f64 = 10.0;

/// # Errors
/// What is wrong with the arguments.
pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    let (mut requests, mut cold_percent) = (None, 10);
    while let Some(name) = arguments.next() {
        if !name.starts_with("--") {
            if !wanted.mix.is_empty() {
                return Err("a command is given with --command or without, not both".to_owned());
            }
            let words = std::iter::once(name).chain(arguments).collect();
            wanted.mix.push(Command { words, weight: 1 });
            break;
        }
        match name.as_str() {
            "--by-second" => wanted.by_second = true,
            "--memcached" => wanted.shape.protocol = Protocol::Memcached,
            "--go-on" => wanted.goes_on = true,
            _ => {
                let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
                match name.as_str() {
                    "--requests" => requests = Some(number(&name, &value, 1, u64::MAX)?),
                    "--cold" => cold_percent = number(&name, &value, 0, 100)?,
                    _ => take(&mut wanted, &name, &value)?,
                }
            }
        }
    }
    if wanted.port == 0 || wanted.mix.is_empty() {
        return Err("a port and a command are needed".to_owned());
    }
    if let Some(skew) = &mut wanted.shape.skew {
        skew.cold_percent = cold_percent;
    }
    wanted.requests = match (requests, wanted.pace, wanted.seconds) {
        (_, Pace::Open { rate }, seconds) => {
            ((rate as f64 * seconds.unwrap_or(OPEN_SECONDS)) as u64).max(1)
        }
        (Some(requests), Pace::Closed, _) => requests,
        (None, Pace::Closed, Some(_)) => u64::MAX,
        (None, Pace::Closed, None) => wanted.requests,
    };
    Ok(wanted)
}

/// An option that has a value.
fn take(wanted: &mut Wanted, name: &str, value: &str) -> Result<(), String> {
    let shape = &mut wanted.shape;
    match name {
        "--port" => wanted.port = number(name, value, 1, u16::MAX)?,
        "--connections" => wanted.connections = number(name, value, 1, 60_000)?,
        "--pipeline" => shape.pipeline = number(name, value, 1, 100_000)?,
        "--rate" => wanted.pace = Pace::Open { rate: number(name, value, 1, 1 << 32)? },
        "--seconds" => wanted.seconds = Some(number(name, value, 0.001, 1e6)?),
        "--keyspace" => shape.keyspace = number(name, value, 1, KEYSPACE_MAX)?,
        "--hot" => {
            let hot = number(name, value, 1, KEYSPACE_MAX)?;
            shape.skew = Some(Skew { hot, cold_percent: 0 });
        }
        "--value" => shape.value_bytes = number(name, value, 0, 512 << 20)?,
        "--seed" => shape.seed = number(name, value, 0, u64::MAX)?,
        "--ascending" => shape.ascending = Some(number(name, value, 0, KEYSPACE_MAX - 1)?),
        "--ca" => wanted.authority = Some(value.into()),
        "--command" => {
            let words = value.split_whitespace().map(str::to_owned).collect();
            wanted.mix.push(Command { words, weight: 1 });
        }
        "--weight" => {
            let last = wanted.mix.last_mut().ok_or("--weight follows a --command")?;
            last.weight = number(name, value, 1, usize::MAX)?;
        }
        _ => return Err(format!("unknown argument {name}")),
    }
    Ok(())
}

fn number<T: FromStr + PartialOrd>(name: &str, text: &str, min: T, max: T) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("{name}: {text} is no number, or out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Wanted, String> {
        parse(line.split('|').map(str::to_owned))
    }

    #[test]
    fn words_behind_the_options_are_one_command() {
        let wanted = parsed("--port|7000|--pipeline|16|EVAL|return 1|0|--x").expect("it is good");
        assert_eq!((wanted.port, wanted.shape.pipeline, wanted.pace), (7000, 16, Pace::Closed));
        assert_eq!(wanted.mix[0].words, ["EVAL", "return 1", "0", "--x"]);
    }

    #[test]
    fn a_mix_has_weights_and_a_rate_makes_the_number_of_requests() {
        let line = "--port|1|--command|GET a|--weight|80|--command|SET a b|--rate|500|--seconds|3";
        let wanted = parsed(line).expect("it is good");
        let weights: Vec<usize> = wanted.mix.iter().map(|command| command.weight).collect();
        assert_eq!((weights, wanted.requests), (vec![80, 1], 1500));
        assert_eq!(wanted.pace, Pace::Open { rate: 500 });
    }

    #[test]
    fn a_word_without_a_value_stands_anywhere_before_the_command() {
        let wanted =
            parsed("--by-second|--port|1|--ascending|7|GET|--by-second").expect("it is good");
        assert!(wanted.by_second && wanted.shape.ascending == Some(7));
        assert_eq!(wanted.mix[0].words, ["GET", "--by-second"]);
    }

    #[test]
    fn a_closed_loop_with_a_time_has_no_other_bound_unless_it_is_given() {
        let wanted = parsed("--port|1|--seconds|2|GET|a").expect("it is good");
        assert_eq!((wanted.requests, wanted.until_nanos()), (u64::MAX, Some(2_000_000_000)));
        let wanted = parsed("--port|1|--seconds|2|--requests|7|GET|a").expect("it is good");
        assert_eq!((wanted.requests, wanted.until_nanos()), (7, Some(2_000_000_000)));
        let wanted = parsed("--port|1|--seconds|2|--rate|5|GET|a").expect("it is good");
        assert_eq!((wanted.requests, wanted.until_nanos()), (10, None));
        let wanted = parsed("--port|1|GET|a").expect("it is good");
        assert_eq!((wanted.requests, wanted.until_nanos()), (100_000, None));
    }

    #[test]
    fn hot_numbers_and_the_share_of_cold_ones_come_in_any_order() {
        for line in ["--port|1|--hot|5|--cold|20|GET|a", "--port|1|--cold|20|--hot|5|GET|a"] {
            let skew = parsed(line).expect("it is good").shape.skew;
            assert_eq!(skew, Some(Skew { hot: 5, cold_percent: 20 }), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            "--port|1",
            "GET|a",
            "--port|0|GET|a",
            "--port|1|--pipeline|0|GET|a",
            "--port|1|--weight|3|GET|a",
            "--port|1|--command|GET a|GET|a",
            "--port|1|--colour|1|GET|a",
            "--port|1|--requests",
            "--port|1|--ascending|x|GET|a",
            "--port|1|--cold|101|GET|a",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
