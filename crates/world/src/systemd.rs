//! Tells the service manager how far the start is: the `sd_notify` protocol, one datagram to the
//! socket that `NOTIFY_SOCKET` names (`man 3 sd_notify`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says that the server takes requests. Whether a service manager was there to be told.
///
/// # Errors
/// `NOTIFY_SOCKET` names something that takes no datagrams.
pub fn notify_ready() -> io::Result<bool> {
    notify(std::env::var_os("NOTIFY_SOCKET"), "READY=1")
}

/// Says that the server is shutting down.
///
/// # Errors
/// As [`notify_ready`].
pub fn notify_stopping() -> io::Result<bool> {
    notify(std::env::var_os("NOTIFY_SOCKET"), "STOPPING=1")
}

fn notify(socket_name: Option<OsString>, message: &str) -> io::Result<bool> {
    let Some(name) = socket_name.filter(|name| !name.is_empty()) else { return Ok(false) };
    let address = socket_address(&name)?;
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold up the server.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message.as_bytes(), &address)?;
    Ok(true)
}

/// A path, or after `@` a name in the abstract namespace.
fn socket_address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', abstract_name @ ..] => SocketAddr::from_abstract_name(abstract_name),
        _ => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_manager_nothing_is_sent() {
        assert!(!notify(None, "READY=1").expect("no socket, no error"));
        assert!(!notify(Some(OsString::new()), "READY=1").expect("no socket, no error"));
    }

    #[test]
    fn readiness_reaches_a_path_and_an_abstract_name() {
        let path = std::env::temp_dir().join(format!("kiln-notify-{}.sock", std::process::id()));
        let at_path = UnixDatagram::bind(&path).expect("binds");
        assert!(notify(Some(path.clone().into()), "READY=1").expect("is sent"));
        let abstract_name = format!("kiln-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a short name");
        let at_name = UnixDatagram::bind_addr(&address).expect("binds");
        assert!(notify(Some(format!("@{abstract_name}").into()), "READY=1").expect("is sent"));
        for socket in [at_path, at_name] {
            let mut bytes = [0; 64];
            let count = socket.recv(&mut bytes).expect("came");
            assert_eq!(&bytes[..count], b"READY=1");
        }
        std::fs::remove_file(path).expect("was there");
    }

    #[test]
    fn a_manager_that_is_gone_is_an_error() {
        assert!(notify(Some("/nonexistent/kiln.sock".into()), "READY=1").is_err());
    }
}
