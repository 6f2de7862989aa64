//! What a process holds: its master keys, which can be replaced while it runs, and the data keys
//! that it made and met.

use crate::data_key::{DataKey, NONCE_BYTES};
use crate::envelope;
use crate::error::KeyError;
use crate::masters::{DATA_KEY_BYTES, MasterKeys, Wrapped};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Fills a buffer with bits that nobody can guess.
pub type Entropy = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Data keys that are remembered, so that master keys are not asked for each record. A reader meets
/// one of each writer's life, in order.
const MET_MAX: usize = 32;

/// Payloads encrypted with one data key, after which another one is made. Nonces of 96 random bits
/// may not repeat: NIST (SP 800-38D, 8.3) allows 2^32 with one key. They are random, and not
/// counted, because a machine that is restored from an image would count from the same number
/// again.
const USES_SOFT_MAX: u64 = 1 << 31;
const USES_MAX: u64 = 1 << 32;

/// Uses between two attempts to make the next data key, while a service of master keys fails.
const ATTEMPT_USES: u64 = 1 << 20;

/// The keys of a process, or none. Clones share them.
#[derive(Clone, Default)]
pub struct Keys(Option<Arc<Held>>);

struct Held {
    entropy: Entropy,
    state: Mutex<State>,
}

struct State {
    masters: Arc<dyn MasterKeys>,
    /// Encrypts payloads.
    own: Own,
    /// Data keys that were opened, by their envelopes; the one used last comes first.
    met: VecDeque<(Vec<u8>, Arc<DataKey>)>,
}

/// A data key of this process, and the envelope that goes with what it encrypts.
#[derive(Clone)]
pub struct Own {
    pub key: Arc<DataKey>,
    pub envelope: Arc<[u8]>,
    uses: u64,
}

impl fmt::Debug for Keys {
    /// Shows the current key's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.current()).finish()
    }
}

impl Keys {
    /// No keys: nothing is encrypted, and nothing encrypted can be read.
    pub fn none() -> Self {
        Self(None)
    }

    /// These master keys.
    ///
    /// # Errors
    /// [`KeyError::Service`]: no data key can be wrapped.
    pub fn new(masters: Arc<dyn MasterKeys>, entropy: Entropy) -> Result<Self, KeyError> {
        let own = make(&*masters, &entropy)?;
        let state = Mutex::new(State { masters, own, met: VecDeque::new() });
        Ok(Self(Some(Arc::new(Held { entropy, state }))))
    }

    /// Whether what is written is encrypted.
    pub fn are_there(&self) -> bool {
        self.0.is_some()
    }

    /// The name of the master key under which everything is written from now on.
    pub fn current(&self) -> Option<String> {
        self.0.as_ref().map(|held| held.state().masters.current().to_owned())
    }

    /// Replaces the master keys, for this handle and its clones; those of before. Everything that
    /// is encrypted from now on has a new data key, wrapped by the new current one.
    ///
    /// # Errors
    /// [`KeyError::Service`]; then everything stays as it was. There were no keys before: whoever
    /// reserved no room for encryption cannot begin with it. A current key, of before or from now
    /// on, has other bytes among the others: then nobody could ever read both.
    pub fn replace(&self, masters: Arc<dyn MasterKeys>) -> Result<Arc<dyn MasterKeys>, KeyError> {
        let Some(held) = &self.0 else {
            return Err(KeyError::Service("the process began without encryption".to_owned()));
        };
        let own = make(&*masters, &held.entropy)?;
        let before = Arc::clone(&held.state().masters);
        for (giver, taker) in [(&before, &masters), (&masters, &before)] {
            // A service that is away is no reason to keep its keys.
            let Ok(wrapped) = giver.wrap(&[0; DATA_KEY_BYTES], &*held.entropy) else { continue };
            if let Err(KeyError::Wrong { name }) = taker.unwrap(&wrapped) {
                let what = format!("the key '{name}' is another one than before: name it anew");
                return Err(KeyError::Service(what));
            }
        }
        // What is forgotten is opened again, by the keys that are there now.
        *held.state() = State { masters, own, met: VecDeque::new() };
        Ok(before)
    }

    /// A data key for one object.
    pub(crate) fn make(&self) -> Result<Own, KeyError> {
        let held = self.0.as_ref().expect("only a process that has keys encrypts");
        let masters = Arc::clone(&held.state().masters);
        make(&*masters, &held.entropy)
    }

    /// The data key for the next payload, and a nonce that was never used with it.
    pub(crate) fn for_payload(&self) -> (Own, [u8; NONCE_BYTES]) {
        let held = self.0.as_ref().expect("only a process that has keys encrypts");
        let mut nonce = [0; NONCE_BYTES];
        (held.entropy)(&mut nonce);
        let mut state = held.state();
        state.own.uses += 1;
        let uses = state.own.uses;
        if uses >= USES_SOFT_MAX && (uses - USES_SOFT_MAX).is_multiple_of(ATTEMPT_USES) {
            // A service that fails now is asked again, two thousand times before it matters.
            if let Ok(own) = make(&*state.masters, &held.entropy) {
                state.own = own;
            }
        }
        assert!(state.own.uses <= USES_MAX, "no nonce may repeat, and no new data key can be had");
        (state.own.clone(), nonce)
    }

    /// Opens the data key of an envelope.
    pub(crate) fn open(&self, wrapped: &Wrapped) -> Result<Arc<DataKey>, KeyError> {
        let Some(held) = &self.0 else {
            return Err(KeyError::None { needed: wrapped.name.clone() });
        };
        let envelope = envelope::encode(wrapped)?;
        let mut state = held.state();
        if let Some(at) = state.met.iter().position(|(known, _)| *known == envelope) {
            let met = state.met.remove(at).expect("it was just found");
            let key = Arc::clone(&met.1);
            // Behind it all others stay in their order: the last one is always the longest unused.
            state.met.push_front(met);
            return Ok(key);
        }
        let masters = Arc::clone(&state.masters);
        drop(state);
        let key = Arc::new(DataKey::new(&masters.unwrap(wrapped)?));
        let mut state = held.state();
        state.met.truncate(MET_MAX - 1);
        state.met.push_front((envelope, Arc::clone(&key)));
        Ok(key)
    }
}

impl Held {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that panics leaves it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(masters: &dyn MasterKeys, entropy: &Entropy) -> Result<Own, KeyError> {
    let mut bytes = [0; DATA_KEY_BYTES];
    entropy(&mut bytes);
    let wrapped = masters.wrap(&bytes, &**entropy)?;
    let envelope = envelope::encode(&wrapped)?.into();
    Ok(Own { key: Arc::new(DataKey::new(&bytes)), envelope, uses: 0 })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::keyring::Keyring;
    use bytes::BytesMut;
    use std::sync::atomic::{AtomicU64, Ordering};

    pub const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    pub const TWO: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    pub fn ring(text: &str) -> Arc<Keyring> {
        Arc::new(Keyring::parse(text.as_bytes()).expect("the keys are right"))
    }

    /// Bytes that never repeat, and that are the same in each run.
    pub fn entropy() -> Entropy {
        let count = AtomicU64::new(0);
        Arc::new(move |bytes: &mut [u8]| {
            for piece in bytes.chunks_mut(8) {
                let next = count.fetch_add(1, Ordering::Relaxed).to_le_bytes();
                piece.copy_from_slice(&next[..piece.len()]);
            }
        })
    }

    pub fn keys(text: &str) -> Keys {
        Keys::new(ring(text), entropy()).expect("the keys are local")
    }

    fn encrypted(keys: &Keys) -> BytesMut {
        let mut payload = BytesMut::from(&b"some effects"[..]);
        keys.encrypt_payload(b"", &mut payload, 0);
        payload
    }

    #[test]
    fn keys_are_replaced_and_what_was_encrypted_before_is_read() {
        let keys = keys(&format!("one {ONE}"));
        let reader = keys.clone();
        let before = encrypted(&keys);
        keys.replace(ring(&format!("two {TWO}\none {ONE}"))).expect("they are local");
        assert_eq!(reader.current().as_deref(), Some("two"));
        let behind = encrypted(&keys);
        for (payload, name) in [(&before, "one"), (&behind, "two")] {
            assert_eq!(crate::key_name_of_payload(payload).as_deref(), Some(name));
            assert_eq!(reader.decrypt_payload(b"", payload).expect("it is there"), "some effects");
        }
        keys.replace(ring(&format!("two {TWO}"))).expect("they are local");
        let lost = Err(KeyError::Unknown { needed: "one".to_owned() });
        assert_eq!(reader.decrypt_payload(b"", &before), lost, "nothing is remembered of it");
        let none = Keys::none();
        assert_eq!(
            none.decrypt_payload(b"", &behind),
            Err(KeyError::None { needed: "two".to_owned() })
        );
        assert!(none.replace(ring(&format!("two {TWO}"))).is_err());
        assert!(!none.are_there() && none.current().is_none());
    }

    #[test]
    fn another_key_under_the_name_of_one_that_was_current_is_refused() {
        let keys = keys(&format!("one {ONE}"));
        for text in [format!("one {TWO}"), format!("two {ONE}\none {TWO}")] {
            let why = keys.replace(ring(&text)).map(|_| ()).expect_err("nobody could read both");
            assert!(why.to_string().contains("'one' is another one than before"), "{why}");
        }
        assert_eq!(crate::key_name_of_payload(&encrypted(&keys)).as_deref(), Some("one"));
        keys.replace(ring(&format!("two {TWO}\none {ONE}"))).expect("they are local");
        let why = keys.replace(ring(&format!("one {TWO}"))).map(|_| ()).expect_err("likewise");
        assert!(why.to_string().contains("'one' is another one than before"), "{why}");
    }

    #[test]
    fn a_service_that_fails_changes_nothing() {
        struct Fails;
        impl MasterKeys for Fails {
            fn current(&self) -> &str {
                "far"
            }
            fn wrap(&self, _: &[u8; 32], _: &dyn Fn(&mut [u8])) -> Result<Wrapped, KeyError> {
                Err(KeyError::Service("it is away".to_owned()))
            }
            fn unwrap(&self, _: &Wrapped) -> Result<[u8; 32], KeyError> {
                Err(KeyError::Service("it is away".to_owned()))
            }
        }
        assert!(Keys::new(Arc::new(Fails), entropy()).is_err());
        let keys = keys(&format!("one {ONE}"));
        assert!(keys.replace(Arc::new(Fails)).is_err());
        assert_eq!(keys.current().as_deref(), Some("one"));
        assert_eq!(crate::key_name_of_payload(&encrypted(&keys)).as_deref(), Some("one"));
    }

    #[test]
    fn a_data_key_is_used_for_so_many_payloads_and_no_more() {
        let keys = keys(&format!("one {ONE}"));
        let held = keys.0.as_ref().expect("there are keys");
        let (first, nonce) = keys.for_payload();
        let (second, other) = keys.for_payload();
        assert!(Arc::ptr_eq(&first.key, &second.key));
        assert_ne!(nonce, other);
        held.state().own.uses = USES_SOFT_MAX - 1;
        let (third, _) = keys.for_payload();
        assert!(!Arc::ptr_eq(&first.key, &third.key));
        assert_ne!(first.envelope, third.envelope);
        assert_eq!(held.state().own.uses, 0);
    }

    #[test]
    fn data_keys_are_remembered_up_to_a_number() {
        let writers: Vec<BytesMut> = (0..MET_MAX + 3)
            .map(|writer: usize| {
                let own = keys(&format!("one {ONE}"));
                // Each has another data key.
                (0..writer).for_each(|_| drop(own.make()));
                own.replace(ring(&format!("one {ONE}"))).expect("they are local");
                encrypted(&own)
            })
            .collect();
        let reader = keys(&format!("one {ONE}"));
        for _ in 0..2 {
            for payload in &writers {
                assert!(reader.decrypt_payload(b"", payload).is_ok());
                assert!(reader.decrypt_payload(b"", payload).is_ok());
            }
            let held = reader.0.as_ref().expect("there are keys");
            assert_eq!(held.state().met.len(), MET_MAX);
        }
    }
    #[test]
    fn the_data_key_that_is_forgotten_is_the_one_that_was_unused_for_longest() {
        let reader = keys(&format!("one {ONE}"));
        let held = reader.0.as_ref().expect("there are keys");
        let wrapped = |number: usize| {
            let masters = Arc::clone(&held.state().masters);
            masters.wrap(&[number as u8; DATA_KEY_BYTES], &*held.entropy).expect("it is local")
        };
        let all: Vec<Wrapped> = (0..=MET_MAX).map(wrapped).collect();
        let is_known = |number: usize| {
            let envelope = envelope::encode(&all[number]).expect("it has a short name");
            held.state().met.iter().any(|(known, _)| *known == envelope)
        };
        // The oldest is used once more; then one more than there is room for comes.
        for number in (0..MET_MAX).chain([0, MET_MAX]) {
            reader.open(&all[number]).expect("the key is there");
        }
        assert!(!is_known(1), "unused for longest");
        assert!([0, 2, MET_MAX - 1, MET_MAX].into_iter().all(is_known));
    }
}
