//! The body of the fuzzer's target `tls`: arbitrary bytes sent to a port for encrypted connections.
//! It panics when something is wrong.

use super::transport::{Handshake, TlsTransport};
use crate::tls::Tls;
use crate::tls::name::common_name;
use crate::tls::test_authority::TestAuthority;
use base::driver::Received;
use base::tls::ClientAuth;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use std::sync::OnceLock;

/// Most input bytes that are sent: less than a socket's buffer, so that the send cannot block.
const SAID_BYTES_MAX: usize = 32 << 10;

/// Sends `said` to a server's handshake and closes the connection; also reads it as a certificate.
pub fn shake_hands(said: &[u8]) {
    static TLS: OnceLock<Tls> = OnceLock::new();
    let tls = TLS.get_or_init(|| {
        let (tls, authority) = (Tls::default(), TestAuthority::new("hostile"));
        tls.adopt(&authority.settings("server", ClientAuth::Optional)).expect("good certificates");
        tls
    });
    let _ = common_name(said);
    let said = &said[..said.len().min(SAID_BYTES_MAX)];
    let (ours, theirs) = pair();
    let taken = rustix::net::send(&theirs, said, SendFlags::NOSIGNAL);
    assert_eq!(taken, Ok(said.len()), "a socket has room for it");
    drop(theirs);
    let config = tls.server().expect("it is set up");
    let mut transport =
        TlsTransport::accepted(ours, config).expect("a configuration that was adopted");
    // The other end is closed, so the handshake fails by itself.
    match transport.shake() {
        Handshake::Done => panic!("nobody can end a handshake without hearing the server"),
        Handshake::Pending => panic!("the stranger is gone"),
        Handshake::Failed(_) => {}
    }
    let mut plain = Vec::new();
    assert_eq!(transport.receive(&mut plain, 100), Received::Closed);
    assert!(plain.is_empty(), "nothing was agreed on");
    transport.say_goodbye();
}

fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("descriptors")
}
