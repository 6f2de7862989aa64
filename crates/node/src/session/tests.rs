use super::*;

#[test]
fn a_session_occupies_the_same_while_it_executes() {
    let mut session = Session::new(ConnectionId(1), 1, MonotonicNanos(0));
    session.input.bytes = Vec::with_capacity(5000);
    let before = session.memory_bytes();
    let bytes = std::mem::take(&mut session.input.bytes);
    session.input.executing = (bytes.len(), bytes.capacity());
    assert_eq!(session.memory_bytes(), before);
}
