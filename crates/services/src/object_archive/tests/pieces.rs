//! Parts on their way: pieces that are lost, answers that are lost, reads that end early.

use super::super::download::BLOCK_BYTES;
use super::super::upload::PIECE_BYTES;
use super::*;

fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn read_all(part: &dyn StoredPart, length: usize) -> io::Result<Vec<u8>> {
    let mut into = vec![0; length + 1];
    let count = part.read_at(0, &mut into)?;
    into.truncate(count);
    Ok(into)
}

#[test]
fn up_to_a_piece_is_one_put_and_more_is_an_upload() {
    for (length, uploads) in [(PIECE_BYTES, 0), (PIECE_BYTES + 1, 1), (3 * PIECE_BYTES, 1)] {
        let world = World::new();
        let archive = world.open(FROZEN);
        let mut draft = archive.begin(NAME).expect("nobody has it");
        let written = bytes(length);
        let before = world.store.requests();
        let name = write(&mut *draft, 0, &written).expect("the store is well");
        assert_eq!(world.store.requests() - before, 1, "{length} bytes");
        let (under_way, max) =
            (&world.store.uploads().under_way, &world.store.uploads().under_way_max);
        assert_eq!(under_way.load(Ordering::Relaxed), 0);
        assert_eq!(max.load(Ordering::Relaxed).min(1), uploads, "{length} bytes");
        let part = draft.read_back(&name).expect("it is there");
        assert!(read_all(&*part, length).expect("it can be read") == written);
    }
}

#[test]
fn no_more_pieces_are_under_way_than_memory_is_meant_for() {
    let world = World::new();
    let archive = world.open(FROZEN);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    // Far longer than it takes to make a piece.
    world.store.set_slow(Duration::from_millis(200));
    write(&mut *draft, 0, &bytes(8 * PIECE_BYTES)).expect("the store is well");
    assert_eq!(world.store.uploads().under_way_max.load(Ordering::Relaxed), 3);
}

#[test]
fn an_upload_whose_last_answer_is_lost_is_done() {
    let world = World::new();
    let archive = world.open(FROZEN);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    world.store.uploads().lost_answers.store(1, Ordering::Relaxed);
    let written = bytes(2 * PIECE_BYTES);
    let name = write(&mut *draft, 0, &written).expect("it is there");
    let part = draft.read_back(&name).expect("it is there");
    assert!(read_all(&*part, written.len()).expect("it can be read") == written);
}

#[test]
fn an_upload_that_fails_or_is_dropped_is_aborted_and_leaves_nothing() {
    let world = World::new();
    let archive = world.open(FROZEN);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    world.store.uploads().lost_pieces.store(1, Ordering::Relaxed);
    let why = write(&mut *draft, 0, &bytes(4 * PIECE_BYTES)).expect_err("a piece is lost");
    assert!(why.to_string().contains("the piece was lost"), "{why}");
    let aborted = || world.store.uploads().aborted.load(Ordering::Relaxed);
    assert_eq!(aborted(), 1);
    let mut part = draft.part(&draft.part_name(1)).expect("a part can be begun");
    part.append(&bytes(3 * PIECE_BYTES)).expect("the store is well");
    drop(part);
    until("the abort", || aborted() == 2);
    // The end of the archive waits for what is to be aborted.
    let mut part = draft.part(&draft.part_name(2)).expect("a part can be begun");
    part.append(&bytes(3 * PIECE_BYTES)).expect("the store is well");
    drop((part, draft, archive));
    assert_eq!((aborted(), world.store.uploads().open.load(Ordering::Relaxed)), (3, 0));
    assert_eq!(world.objects(), [format!("{NAME}.writing")]);
}

#[test]
fn a_read_that_ends_early_or_fails_is_repeated() {
    let world = World::new();
    let archive = world.open(FROZEN);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    let written = bytes(BLOCK_BYTES as usize * 2 + 100);
    let name = write(&mut *draft, 0, &written).expect("the store is well");
    let part = draft.read_back(&name).expect("it is there");
    world.store.cut_reads(3);
    assert!(read_all(&*part, written.len()).expect("it is repeated") == written);
    let part = draft.read_back(&name).expect("it is there");
    world.store.set_busy(3);
    assert!(read_all(&*part, written.len()).expect("it is repeated") == written);
}

#[test]
fn a_read_that_always_fails_says_so_and_the_next_one_tries_again() {
    let world = World::new();
    let archive = world.open(IMPATIENT);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    let written = bytes(1000);
    let name = write(&mut *draft, 0, &written).expect("the store is well");
    let part = draft.read_back(&name).expect("it is there");
    world.store.cut_reads(usize::MAX);
    let why = read_all(&*part, 1000).expect_err("it always ends early");
    assert!(why.to_string().contains("500 of 1000 bytes came"), "{why}");
    assert!(!matches!(why.kind(), ErrorKind::NotFound | ErrorKind::InvalidData), "{why}");
    world.store.cut_reads(0);
    assert!(read_all(&*part, 1000).expect("it is well again") == written);
}

#[test]
fn the_next_block_is_on_its_way_before_it_is_asked_for() {
    let world = World::new();
    let archive = world.open(FROZEN);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    let name = write(&mut *draft, 0, &bytes(BLOCK_BYTES as usize * 4)).expect("it is well");
    let part = draft.read_back(&name).expect("it is there");
    let before = world.store.requests();
    let requests = || world.store.requests() - before;
    let mut into = vec![0; 100];
    for (block, expected) in [(0, 2), (0, 2), (1, 3), (2, 4), (3, 4), (3, 4)] {
        part.read_at(block * BLOCK_BYTES, &mut into).expect("it is there");
        until("the request", || requests() == expected);
    }
    draft.abandon().expect("the store is well");
    let part = archive.open(NAME, &name).err().expect("it is gone");
    assert_eq!(part.kind(), ErrorKind::NotFound);
}

#[test]
fn a_store_that_is_away_for_a_while_costs_a_part_nothing() {
    let world = World::new();
    let archive = world.open(FROZEN);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    world.store.set_away(true);
    let store = Arc::clone(&world.store);
    at_once(vec![
        Box::new(move || {
            pause(Duration::from_millis(100));
            store.set_away(false);
        }),
        Box::new(|| {
            write(&mut *draft, 0, b"part").expect("it came back");
        }),
    ]);
}
