//! The claim: answers that are lost, holders that are frozen, two that take it over.

use super::*;
use archive::Claim;

fn take(archive: &ObjectArchive, said: &[u8]) -> Option<Box<dyn Claim>> {
    archive.claim(said).expect("the store is well")
}

fn pass_claim_silence(world: &World) {
    world.clock.pass(TIMES.claim_silence + Duration::from_secs(1));
}

#[test]
fn it_is_taken_over_from_the_silent_and_they_learn_of_it() {
    let world = World::new();
    let (one, two) = (world.open(TIMES), world.open(TIMES));
    let mut frozen = take(&one, b"one").expect("nobody has it");
    assert!(take(&two, b"two").is_none(), "it was not watched yet");
    world.clock.pass(TIMES.claim_silence - Duration::from_secs(1));
    assert!(take(&two, b"two").is_none(), "it was not watched for long enough");
    assert!(frozen.renew(b"one").expect("the store is well"), "it says the same, and lives");
    world.clock.pass(Duration::from_secs(2));
    assert!(take(&two, b"two").is_none(), "it is alive");
    pass_claim_silence(&world);
    let mut taken = take(&two, b"two").expect("it is silent");
    assert!(!frozen.renew(b"one").expect("the store is well"), "it lost it");
    assert!(!frozen.renew(b"one").expect("the store is well"), "for ever");
    assert!(taken.renew(b"two").expect("the store is well"));
    frozen.release().expect("it gives up nothing");
    assert_eq!(one.claimed().expect("the store is well").as_deref(), Some(&b"two"[..]));
}

#[test]
fn of_two_that_take_it_over_one_has_it() {
    let world = World::new();
    let (one, two, three) = (world.open(TIMES), world.open(TIMES), world.open(TIMES));
    drop(take(&one, b"one").expect("nobody has it"));
    assert!(take(&two, b"two").is_none() && take(&three, b"three").is_none());
    pass_claim_silence(&world);
    // Between the second one's look and its put the third one takes it.
    let (tell, told) = std::sync::mpsc::channel();
    world.store.interrupt(2, move || {
        let claim = take(&three, b"three");
        tell.send((claim, three)).expect("the test waits");
    });
    let taken = take(&two, b"two");
    let (faster, _three) = told.try_recv().expect("there are so many requests");
    assert!(faster.is_some());
    assert!(taken.is_none(), "the other one was faster");
    assert_eq!(two.claimed().expect("the store is well").as_deref(), Some(&b"three"[..]));
}

#[test]
fn an_answer_that_is_lost_loses_no_claim() {
    let world = World::new();
    let archive = world.open(TIMES);
    world.store.set_forgetful(true);
    let mut claim = take(&archive, b"0").expect("nobody has it");
    for said in 1..10 {
        let said = said.to_string();
        assert!(claim.renew(said.as_bytes()).expect("it is repeated"));
        assert_eq!(archive.claimed().expect("it answers").as_deref(), Some(said.as_bytes()));
    }
}

#[test]
fn a_renewal_that_is_in_doubt_does_not_end_the_claim() {
    let world = World::new();
    let archive = world.open(IMPATIENT);
    let mut claim = take(&archive, b"one").expect("nobody has it");
    world.store.set_away(true);
    claim.renew(b"two").expect_err("nobody answers");
    world.store.set_away(false);
    assert!(claim.renew(b"three").expect("the store is back"));
    claim.release().expect("the store is well");
    assert_eq!(world.objects(), [""; 0]);
}

#[test]
fn what_was_put_by_hand_is_no_claim_that_says_something() {
    let world = World::new();
    let archive = world.open(TIMES);
    assert!(world.create("claim.json", b"no line"));
    assert_eq!(archive.claimed().expect("the store is well"), None);
    assert!(take(&archive, b"one").is_none());
    pass_claim_silence(&world);
    assert!(take(&archive, b"one").is_some(), "it does not change");
}
