//! The command line of `kiln server`, as redis-server 7.0 takes its own.
//!
//! `[path/to/redis.conf] [-] [--directive value …]`. The options become lines that are read after
//! the file and after the standard input, so the last word is theirs. A directive takes every
//! argument up to the next one that begins with `--`, and at least one: `--requirepass --x` sets
//! the password to `--x`. Two corners are Redis's too: `--save` followed by nothing or by another
//! directive means `save ""`, and `--port 6380` may come as one argument.

use crate::secrets::mask_directive;
use crate::text::quote;
use resp::inline::split_line;

/// What the command line asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommandLine {
    /// The configuration file as it was named.
    pub file: Option<Vec<u8>>,
    /// `-`: more configuration comes on the standard input.
    pub reads_stdin: bool,
    /// The options as lines of a configuration file.
    pub options: Vec<u8>,
    /// The arguments as `ps` may show them: each of the same length, with asterisks for secrets.
    pub shown: Vec<Vec<u8>>,
}

/// Reads the arguments behind `kiln server`.
pub fn parse(arguments: &[Vec<u8>]) -> CommandLine {
    let mut line = CommandLine { shown: arguments.to_vec(), ..CommandLine::default() };
    let mut first = 0;
    if let Some(name) = arguments.first()
        && !name.starts_with(b"-")
    {
        line.file = Some(name.clone());
        first = 1;
    }
    // False while the latest directive still needs its first argument.
    let mut is_complete = true;
    let mut directive = &b""[..];
    for (at, argument) in arguments.iter().enumerate().skip(first) {
        let is_last = at + 1 == arguments.len();
        if argument == b"-" && (at == 0 || is_last) {
            line.reads_stdin = true;
        } else if let Some(name) = argument.strip_prefix(b"--")
            && is_complete
        {
            if !line.options.is_empty() {
                line.options.push(b'\n');
            }
            line.options.extend_from_slice(name);
            line.options.push(b' ');
            let end = name.iter().position(u8::is_ascii_whitespace).unwrap_or(name.len());
            directive = &name[..end];
            mask_directive(directive, &mut line.shown[at][2 + end..]);
            let is_alone = split_line(argument).is_some_and(|words| words.len() == 1);
            let next_is_directive = arguments.get(at + 1).is_some_and(|a| a.starts_with(b"--"));
            let is_save = argument.eq_ignore_ascii_case(b"--save");
            if is_save && (is_last || next_is_directive) {
                line.options.extend_from_slice(b"\"\"");
            }
            is_complete = !is_alone || is_save && next_is_directive;
        } else {
            mask_directive(directive, &mut line.shown[at]);
            quote(argument, &mut line.options);
            line.options.push(b' ');
            is_complete = true;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], file: Option<&str>, options: &str) {
        let arguments: Vec<Vec<u8>> = arguments.iter().map(|a| a.as_bytes().to_vec()).collect();
        let line = parse(&arguments);
        assert_eq!(line.file.as_deref(), file.map(str::as_bytes), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&line.options), options, "{arguments:?}");
    }

    #[test]
    fn directives_become_lines() {
        check(&["--port", "7777"], None, "port \"7777\" ");
        check(
            &["a.conf", "--port", "1", "--dir", "/x"],
            Some("a.conf"),
            "port \"1\" \ndir \"/x\" ",
        );
        check(&["--port 7777", "--hz", "20"], None, "port 7777 \nhz \"20\" ");
        check(
            &["--client-output-buffer-limit", "normal", "0", "0", "0"],
            None,
            "client-output-buffer-limit \"normal\" \"0\" \"0\" \"0\" ",
        );
    }

    #[test]
    fn the_first_argument_of_a_directive_may_begin_with_dashes() {
        check(
            &["--requirepass", "--secret", "--port", "1"],
            None,
            "requirepass \"--secret\" \nport \"1\" ",
        );
    }

    #[test]
    fn save_without_arguments_means_no_save_points() {
        check(&["--save", "--port", "1"], None, "save \"\"\nport \"1\" ");
        check(&["--port", "1", "--save"], None, "port \"1\" \nsave \"\"");
        check(&["--save", ""], None, "save \"\" ");
        check(&["--save", "60", "1000"], None, "save \"60\" \"1000\" ");
    }

    #[test]
    fn a_dash_at_either_end_means_the_standard_input() {
        let line = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|a| a.as_bytes().to_vec()).collect();
            parse(&arguments)
        };
        assert!(line(&["-", "--port", "1"]).reads_stdin);
        assert!(line(&["a.conf", "--port", "1", "-"]).reads_stdin);
        assert!(!line(&["--port", "-", "--hz", "1"]).reads_stdin);
    }

    #[test]
    fn secrets_are_not_shown_by_ps() {
        let shown = |line: &str| {
            let arguments: Vec<_> = line.split(' ').map(|a| a.as_bytes().to_vec()).collect();
            let shown = parse(&arguments).shown.join(&b' ');
            String::from_utf8(shown).expect("asterisks and text")
        };
        for (line, expected) in [
            ("a.conf --requirepass secret --port 1", "a.conf --requirepass ****** --port 1"),
            ("--requirepass --x --masterauth y", "--requirepass *** --masterauth *"),
            ("--user u on >p --hz 1", "--user * ** ** --hz 1"),
            (
                "--transaction-log etcd://u:p@a/x?tls=true",
                "--transaction-log etcd://***@a/x?tls=true",
            ),
            ("--transaction-log file:/a@b", "--transaction-log file:/a@b"),
            (
                "--transaction-log s3://b?endpoint=https://u:p@h&region=r",
                "--transaction-log s3://b?endpoint=https://***@h&region=r",
            ),
            ("--port 6379", "--port 6379"),
        ] {
            assert_eq!(shown(line), expected);
        }
        let joined = parse(&[b"--requirepass secret".to_vec()]).shown;
        assert_eq!(joined, [b"--requirepass*******".to_vec()]);
    }
}
