//! Writers that died, writers that wake, and those that tidy up after them, at every step of each
//! other.

use super::*;

fn manifest() -> String {
    format!("{NAME}/manifest.json")
}

fn sign() -> String {
    format!("{NAME}.writing")
}

fn tidy(archive: &ObjectArchive) {
    archive.remove_unpublished(Unfinished::Signed).expect("the store is well");
}

/// Tidies up for so long that everything is gone that goes at all.
fn tidy_to_the_end(world: &World) {
    let archive = world.open(TIMES);
    for _ in 0..3 {
        tidy(&archive);
        world.clock.pass(TIMES.tombstone + Duration::from_secs(1));
    }
    tidy(&archive);
}

#[test]
fn a_frozen_writer_that_wakes_can_neither_publish_nor_harm() {
    let world = World::new();
    let (own, other) = (world.open(FROZEN), world.open(TIMES));
    let mut draft = own.begin(NAME).expect("nobody has it");
    write(&mut *draft, 0, b"part").expect("the store is well");
    tidy(&other);
    world.clock.pass(TIMES.silence - Duration::from_secs(1));
    tidy(&other);
    assert_eq!(world.objects().len(), 2, "it was not watched for long enough");
    world.clock.pass(Duration::from_secs(2));
    tidy(&other);
    assert_eq!(world.objects(), [manifest()]);
    assert_eq!(world.get(&manifest()).as_deref(), Some(TOMBSTONE));
    assert_eq!(
        names(&other.list(archive::Content::Snapshots).expect("it answers")),
        [(NAME, false)]
    );
    let why = other.manifest(NAME, 100).expect_err("it is no manifest");
    assert_eq!(why.kind(), ErrorKind::NotFound);
    let taken = other.begin(NAME).err().expect("the name is not free yet");
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);

    // It wakes, and does not know yet. What it uploads lies under the tombstone.
    write(&mut *draft, 1, b"late").expect("the store takes it");
    assert_eq!(world.objects().len(), 2);
    let why = draft.publish(b"manifest").expect_err("it was tidied away");
    assert!(why.to_string().contains("was tidied away"), "{why}");
    tidy(&other);
    assert_eq!(world.objects(), [manifest()]);
    world.clock.pass(TIMES.tombstone + Duration::from_secs(1));
    tidy(&other);
    assert_eq!(world.objects(), [manifest()], "it was not seen alone yet");
    world.clock.pass(TIMES.tombstone + Duration::from_secs(1));
    tidy(&other);
    assert_eq!(world.objects(), [""; 0], "it stood alone for long enough");
    write(&mut *draft, 2, b"later").expect("the store takes it");
    draft.publish(b"manifest").expect_err("its sign is gone");
    drop(draft);
    tidy_to_the_end(&world);
    assert_eq!(world.objects(), [""; 0]);
    other.begin(NAME).expect("the name is free");
}

#[test]
fn a_writer_learns_of_it_by_its_next_renewal() {
    let world = World::new();
    let slow = Times { renewal: Duration::from_millis(300), ..TIMES };
    let (own, other) = (world.open(slow), world.open(TIMES));
    let mut draft = own.begin(NAME).expect("nobody has it");
    tidy(&other);
    world.pass_silence();
    tidy(&other);
    let mut index = 0;
    until("the writer stops", || {
        index += 1;
        draft.part(&draft.part_name(index)).is_err()
    });
    let why = draft.part("another").err().expect("it is lost");
    assert_eq!(why.kind(), ErrorKind::NotFound);
    assert_eq!(world.objects(), [manifest()], "it did not put its sign back");
}

#[test]
fn a_writer_that_lives_is_left_alone_however_long_it_takes() {
    let world = World::new();
    let (own, other) = (world.open(TIMES), world.open(TIMES));
    let mut draft = own.begin(NAME).expect("nobody has it");
    write(&mut *draft, 0, b"part").expect("the store is well");
    for _ in 0..5 {
        tidy(&other);
        let before = world.get(&sign());
        until("a renewal", || world.get(&sign()) != before);
        world.pass_silence();
    }
    tidy(&other);
    draft.publish(b"manifest").expect("it lives");
    assert_eq!(
        names(&other.list(archive::Content::Snapshots).expect("it answers")),
        [(NAME, true)]
    );
    assert!(!world.objects().contains(&sign()));
}

/// At each request of the one that tidies up, the writer wakes and publishes. Either it is told
/// that it did, and then all of it is there, or it is told that it did not.
#[test]
fn publication_and_tidying_meet_at_every_request() {
    let mut published = 0;
    for at in 1.. {
        let world = World::new();
        let (own, other) = (world.open(FROZEN), world.open(TIMES));
        let mut draft = own.begin(NAME).expect("nobody has it");
        let part = write(&mut *draft, 0, b"part").expect("the store is well");
        tidy(&other);
        world.pass_silence();
        let (tell, told) = std::sync::mpsc::channel();
        let store = Arc::clone(&world.store);
        // As it is behind the look at its sign: what is left is one create-only put.
        world.store.interrupt(at, move || {
            let is_published = create(&store, &manifest(), b"manifest");
            tell.send(is_published).expect("the test waits");
        });
        tidy(&other);
        let Ok(is_published) = told.try_recv() else { break };
        let expected = if is_published { b"manifest" } else { TOMBSTONE };
        assert_eq!(world.get(&manifest()).as_deref(), Some(expected), "request {at}");
        assert_eq!(world.get(&format!("{NAME}/{part}")).is_some(), is_published, "request {at}");
        assert!(world.get(&sign()).is_none() || is_published, "request {at}");
        drop(draft);
        tidy_to_the_end(&world);
        assert_eq!(world.objects().len(), if is_published { 2 } else { 0 }, "request {at}");
        published += usize::from(is_published);
    }
    assert!((2..6).contains(&published), "{published}");
}

/// Who tidies up dies at each of its requests, and another one goes on.
#[test]
fn whoever_dies_while_it_tidies_up_leaves_nothing_that_stays() {
    for at in 1.. {
        let world = World::new();
        let (own, dying) = (world.open(FROZEN), world.open(IMPATIENT));
        let mut draft = own.begin(NAME).expect("nobody has it");
        for index in 0..3 {
            write(&mut *draft, index, b"part").expect("the store is well");
        }
        tidy(&dying);
        world.pass_silence();
        let store = Arc::clone(&world.store);
        world.store.interrupt(at, move || store.set_away(true));
        let died = dying.remove_unpublished(Unfinished::All).is_err();
        world.store.interrupt(usize::MAX, || {});
        world.store.set_away(false);
        tidy_to_the_end(&world);
        assert_eq!(world.objects(), [""; 0], "request {at}");
        draft.publish(b"manifest").expect_err("it was tidied away");
        if !died {
            assert!(at > 5, "{at}");
            break;
        }
    }
}

/// Two tidy up, one wholly within each request of the other.
#[test]
fn two_that_tidy_up_do_not_disturb_each_other() {
    let mut met = 0;
    for at in 1..20 {
        let world = World::new();
        let (own, one, two) = (world.open(FROZEN), world.open(TIMES), world.open(TIMES));
        let mut draft = own.begin(NAME).expect("nobody has it");
        write(&mut *draft, 0, b"part").expect("the store is well");
        tidy(&one);
        tidy(&two);
        world.pass_silence();
        let (tell, told) = std::sync::mpsc::channel();
        world.store.interrupt(at, move || {
            let outcome = two.remove_unpublished(Unfinished::Signed);
            tell.send(outcome).expect("the test waits");
        });
        tidy(&one);
        if let Ok(outcome) = told.try_recv() {
            outcome.expect("the store is well");
            met += 1;
        }
        assert_eq!(world.objects(), [manifest()], "request {at}");
        draft.publish(b"manifest").expect_err("it was tidied away");
    }
    assert!(met > 5, "{met}");
}

#[test]
fn what_a_removal_left_half_done_goes_after_a_while() {
    let world = World::new();
    let archive = world.open(TIMES);
    assert!(world.create(&format!("{NAME}/part-0000-00.rdb"), b"part"));
    assert_eq!(
        names(&archive.list(archive::Content::Snapshots).expect("it answers")),
        [(NAME, false)]
    );
    tidy(&archive);
    tidy(&archive);
    assert_eq!(world.objects().len(), 1, "it may be somebody's");
    world.pass_silence();
    tidy(&archive);
    assert_eq!(world.objects(), [manifest()]);
    tidy_to_the_end(&world);
    assert_eq!(world.objects(), [""; 0]);
}

#[test]
fn a_sign_beside_a_manifest_is_removed_and_the_snapshot_stays() {
    let world = World::new();
    let archive = world.open(TIMES);
    assert!(world.create(&sign(), b"whoever"));
    assert!(world.create(&manifest(), b"manifest"));
    tidy(&archive);
    assert_eq!(world.objects(), [manifest()]);
    // A manifest that is as long as a tombstone is none.
    let long = vec![b'x'; TOMBSTONE.len()];
    let name = NAME.replace("-000", "-001");
    assert!(world.create(&format!("{name}/manifest.json"), &long));
    tidy_to_the_end(&world);
    assert_eq!(archive.manifest(&name, 100).expect("it is there"), long);
}

#[test]
fn what_cannot_be_tidied_up_does_not_keep_the_rest() {
    let world = World::new();
    let archive = world.open(IMPATIENT);
    for number in 0..3 {
        let name = NAME.replace("-000", &format!("-00{number}"));
        assert!(world.create(&format!("{name}.writing"), b"dead"));
    }
    tidy(&archive);
    world.pass_silence();
    // The first one's sign is not told, for as long as it is asked for.
    let store = Arc::clone(&world.store);
    world.store.interrupt(2, move || store.set_away(true));
    archive.remove_unpublished(Unfinished::Signed).expect_err("nobody answers");
    world.store.set_away(false);
    tidy_to_the_end(&world);
    assert_eq!(world.objects(), [""; 0]);
}
