//! From the command line to a configuration, and what it sets up before the server starts: the
//! log's level and place.

use crate::help::{Topic, nearest};
use crate::log_lines::Lines;
use config::Config;
use config::arguments::{self, CommandLine};
use config::load::{BAD_DIRECTIVE, LoadError, load};
use config::settings::NodeSettings;
use config::table::DIRECTIVES;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tracing::Level;
use world::disk::RealDisk;
use world::net::NetOptions;
use world::tls::Tls;

/// Reads what the arguments behind `kiln server` name.
///
/// # Errors
/// What the operator must correct.
pub fn read(arguments: &[String]) -> Result<Config, Box<dyn Error>> {
    let words: Vec<Vec<u8>> = arguments.iter().map(|a| a.as_bytes().to_vec()).collect();
    hide(&words, &arguments::parse(&words).shown);
    read_quietly(arguments)
}

/// The same of arguments that are not the process's own: none are hidden from `ps`.
///
/// # Errors
/// What the operator must correct.
pub fn read_quietly(arguments: &[String]) -> Result<Config, Box<dyn Error>> {
    let arguments: Vec<Vec<u8>> = arguments.iter().map(|a| a.as_bytes().to_vec()).collect();
    let line: CommandLine = arguments::parse(&arguments);
    let mut stdin = None;
    if line.reads_stdin {
        let mut text = Vec::new();
        std::io::stdin().read_to_end(&mut text)?;
        stdin = Some(text);
    }
    let directory = std::env::current_dir()?;
    let config = load(&RealDisk, &directory, &line, stdin.as_deref()).map_err(named)?;
    node::configured(&config, node::standard().0)?;
    Ok(config)
}

/// What stopped the loading, as what it is.
fn named(error: LoadError) -> Box<dyn Error> {
    match UnknownDirective::in_line(&error) {
        Some(unknown) => unknown.into(),
        None => error.into(),
    }
}

/// A directive that does not exist: nothing about the world has to change, but the line.
#[derive(Debug)]
pub struct UnknownDirective {
    error: LoadError,
    nearest: Option<&'static str>,
}

impl UnknownDirective {
    fn in_line(error: &LoadError) -> Option<Self> {
        let LoadError::Line { text, reason, .. } = error else { return None };
        if reason != BAD_DIRECTIVE {
            return None;
        }
        let name = text.split_whitespace().next()?.to_ascii_lowercase();
        let names = DIRECTIVES.iter().map(|directive| directive.name);
        Some(Self { error: error.clone(), nearest: nearest(&name, names) })
    }
}

impl fmt::Display for UnknownDirective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.error)?;
        if let Some(nearest) = self.nearest {
            writeln!(f, "Did you mean '{nearest}'?")?;
        }
        write!(f, "'{}' shows how directives are given", Topic::Server.call())
    }
}

impl Error for UnknownDirective {}

fn hide(arguments: &[Vec<u8>], shown: &[Vec<u8>]) {
    if let Err(error) = world::process::show_arguments(arguments, shown) {
        // Whoever starts a process in a place without /proc can do nothing about it.
        eprintln!("passwords on the command line cannot be hidden from ps: {error}");
    }
}

/// Hides the passwords in the process's own arguments, behind the name of its command, from `ps`:
/// those of a server's directives, and of these options that name logs and archives.
pub fn hide_own(locations: &[&str]) {
    let own: Vec<Vec<u8>> = std::env::args_os().skip(2).map(OsString::into_encoded_bytes).collect();
    let is_location = |word: &[u8]| locations.iter().any(|name| name.as_bytes() == word);
    let directive = || b"--transaction-log".to_vec();
    let as_directives: Vec<Vec<u8>> =
        own.iter().map(|word| if is_location(word) { directive() } else { word.clone() }).collect();
    let mut shown = arguments::parse(&as_directives).shown;
    for (word, shown) in own.iter().zip(&mut shown) {
        if is_location(word) {
            shown.clone_from(word);
        }
    }
    hide(&own, &shown);
}

/// Hides the password in the last argument, the name of a log, from `ps`; what may be shown of it.
pub fn hide_password(log: &str) -> String {
    let directive = b"--transaction-log".to_vec();
    let line = arguments::parse(&[directive, log.as_bytes().to_vec()]);
    let shown = &line.shown[1..];
    hide(&[log.as_bytes().to_vec()], shown);
    String::from_utf8_lossy(&shown.concat()).into_owned()
}

/// Sends the log to where the configuration says, and writes the server's process id.
///
/// # Errors
/// A file cannot be written.
pub fn set_up_process(settings: &NodeSettings) -> Result<(), Box<dyn Error>> {
    set_up_log(settings)?;
    if let Some(path) = &settings.pidfile {
        write_pid(path);
    }
    Ok(())
}

/// Sends the log to where the configuration says.
///
/// # Errors
/// The file cannot be written.
pub fn set_up_log(settings: &NodeSettings) -> Result<(), Box<dyn Error>> {
    let level = match settings.loglevel {
        "debug" => Level::TRACE,
        "verbose" => Level::DEBUG,
        "warning" => Level::WARN,
        _ => Level::INFO,
    };
    let subscriber =
        tracing_subscriber::fmt().with_target(false).with_ansi(false).with_max_level(level);
    match &settings.logfile {
        Some(path) => {
            let file = world::process::open_log(path)
                .map_err(|error| format!("Can't open the log file: {}: {error}", path.display()))?;
            subscriber.with_writer(Mutex::new(Lines(file))).init();
        }
        None => subscriber.with_writer(|| Lines(std::io::stderr())).init(),
    }
    Ok(())
}

/// A missing file of the process's id does not keep the server from starting, as in Redis.
fn write_pid(path: &Path) {
    if let Err(error) = world::process::write_pid(path) {
        tracing::warn!("cannot write the process's id to {}: {error}", path.display());
    }
}

/// What to listen on.
pub fn net_options(settings: &NodeSettings, tls: &Arc<Tls>) -> NetOptions {
    NetOptions {
        bind: settings.bind.clone(),
        port: (settings.port != 0).then_some(settings.port),
        tls_port: (settings.tls_port != 0).then_some(settings.tls_port),
        tls: Arc::clone(tls),
        backlog: settings.tcp_backlog,
        keepalive_seconds: settings.tcp_keepalive,
        unix_socket: settings.unixsocket.clone(),
        unix_socket_permissions: (settings.unixsocketperm != 0).then_some(settings.unixsocketperm),
        room: None,
        catch_signals: true,
    }
}
