//! The command line.

use crate::pace::Pace;
use crate::requests::{Command, KEYSPACE_MAX, Shape};
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
  --seconds S       for so long (10)
  --keyspace N      random numbers are below N (1000000)
  --value BYTES     length of the value (100)
  --seed N          of random numbers and of the value (1)
  --ascending N     numbers from N on, each one more than the last, in place of random ones
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
    pub shape: Shape,
    pub authority: Option<PathBuf>,
    pub by_second: bool,
    pub mix: Vec<Command>,
}

/// # Errors
/// What is wrong with the arguments.
pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        port: 0,
        connections: 1,
        requests: 100_000,
        pace: Pace::Closed,
        shape: Shape {
            pipeline: 1,
            keyspace: 1_000_000,
            value_bytes: 100,
            seed: 1,
            ascending: None,
        },
        authority: None,
        by_second: false,
        mix: Vec::new(),
    };
    let mut seconds: f64 = 10.0;
    while let Some(name) = arguments.next() {
        if !name.starts_with("--") {
            if !wanted.mix.is_empty() {
                return Err("a command is given with --command or without, not both".to_owned());
            }
            let words = std::iter::once(name).chain(arguments).collect();
            wanted.mix.push(Command { words, weight: 1 });
            break;
        }
        if name == "--by-second" {
            wanted.by_second = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--port" => wanted.port = number(&name, &value, 1, u16::MAX)?,
            "--connections" => wanted.connections = number(&name, &value, 1, 60_000)?,
            "--pipeline" => wanted.shape.pipeline = number(&name, &value, 1, 100_000)?,
            "--requests" => wanted.requests = number(&name, &value, 1, u64::MAX)?,
            "--rate" => wanted.pace = Pace::Open { rate: number(&name, &value, 1, 1 << 32)? },
            "--seconds" => seconds = number(&name, &value, 0.001, 1e6)?,
            "--keyspace" => wanted.shape.keyspace = number(&name, &value, 1, KEYSPACE_MAX)?,
            "--value" => wanted.shape.value_bytes = number(&name, &value, 0, 512 << 20)?,
            "--seed" => wanted.shape.seed = number(&name, &value, 0, u64::MAX)?,
            "--ascending" => {
                wanted.shape.ascending = Some(number(&name, &value, 0, KEYSPACE_MAX - 1)?);
            }
            "--ca" => wanted.authority = Some(value.into()),
            "--command" => {
                let words = value.split_whitespace().map(str::to_owned).collect();
                wanted.mix.push(Command { words, weight: 1 });
            }
            "--weight" => {
                let last = wanted.mix.last_mut().ok_or("--weight follows a --command")?;
                last.weight = number(&name, &value, 1, usize::MAX)?;
            }
            _ => return Err(format!("unknown argument {name}")),
        }
    }
    if wanted.port == 0 || wanted.mix.is_empty() {
        return Err("a port and a command are needed".to_owned());
    }
    if let Pace::Open { rate } = wanted.pace {
        wanted.requests = ((rate as f64 * seconds) as u64).max(1);
    }
    Ok(wanted)
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
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
