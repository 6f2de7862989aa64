use super::*;
use std::sync::{Mutex, MutexGuard};

const LENGTH: u64 = (16 << 20) + 512;

/// A device in memory.
struct Device {
    bytes: Mutex<Vec<u8>>,
    is_read_only: bool,
}

impl Device {
    fn blank(length: u64) -> Arc<Self> {
        Arc::new(Self { bytes: Mutex::new(vec![0; length as usize]), is_read_only: false })
    }

    fn with(at: u64, content: &[u8]) -> Arc<Self> {
        let device = Self::blank(LENGTH);
        device.put(at, content);
        device
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().expect("no test panics with it")
    }

    fn put(&self, at: u64, content: &[u8]) {
        self.bytes()[at as usize..][..content.len()].copy_from_slice(content);
    }
}

impl DiskFile for Device {
    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes();
        let there = &bytes[(offset as usize).min(bytes.len())..];
        let count = into.len().min(there.len());
        into[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.is_read_only {
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.put(offset, bytes);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.bytes()[length as usize..].fill(0);
        Ok(())
    }

    fn allocate(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }

    fn stands_at(&self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

fn taken(device: &Arc<Device>) -> Result<(Arc<dyn DiskFile>, u64), String> {
    taken_for(device, 1 << 20)
}

fn taken_for(device: &Arc<Device>, bytes_max: u64) -> Result<(Arc<dyn DiskFile>, u64), String> {
    let device: Arc<dyn DiskFile> = Arc::<Device>::clone(device);
    take(device, Path::new("/dev/nvme1n1"), bytes_max).map_err(|error| error.to_string())
}

/// Why a device is not taken, on which nothing is changed then.
#[track_caller]
fn refusal(device: &Arc<Device>) -> String {
    let before = device.bytes().clone();
    let why = taken(device).err().expect("it is refused");
    assert!(*device.bytes() == before, "{why}, and something was written");
    why
}

#[test]
fn a_blank_device_is_marked_and_taken_again_with_what_is_on_it() {
    let device = Device::blank(LENGTH);
    let (file, room) = taken(&device).expect("it is blank");
    assert_eq!(room, 15 << 20, "whole blocks behind the mark");
    // All of it is used.
    file.write_at(0, &vec![7; room as usize]).expect("it is in memory");
    assert!(device.bytes()[START as usize..][..room as usize].iter().all(|byte| *byte == 7));
    let mut into = [0; 3];
    assert_eq!(file.read_at(room - 2, &mut into).expect("it is in memory"), 3);
    assert_eq!(into, [7, 7, 0]);
    assert_eq!(file.length().expect("it is in memory"), LENGTH - START);
    let before = device.bytes().clone();
    let (file, again) = taken(&device).expect("it is Kiln's");
    assert_eq!(again, room);
    assert!(*device.bytes() == before, "the mark was there");
    file.set_length(4096).expect("it is in memory");
    assert!(device.bytes()[..START as usize + 4096] == before[..START as usize + 4096]);
    assert!(device.bytes()[START as usize + 4096..].iter().all(|byte| *byte == 0));
}

#[test]
fn the_mark_is_as_documented() {
    let mark = mark();
    let golden = include_bytes!("golden-mark-1.txt");
    assert!(mark.starts_with(golden) && golden.starts_with(MAGIC));
    assert!(mark[golden.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn what_is_found_on_a_device_is_named_and_not_touched() {
    for (at, signature, what) in AT_START {
        let why = refusal(&Device::with(at as u64, signature));
        assert!(why.starts_with(&format!("{what} is on it")), "{what}: {why}");
        let command = "wipefs -a /dev/nvme1n1 && blkdiscard -z -l 4MiB /dev/nvme1n1";
        assert!(why.ends_with(command), "{why}");
    }
    for length in [LENGTH, 16 << 20, (16 << 20) - 512, (16 << 20) + 65_536, (16 << 20) - 4096] {
        for (at, signature, what) in at_end(length) {
            let device = Device::blank(length);
            device.put(at, signature);
            let why = refusal(&device);
            assert!(why.starts_with(&format!("{what} is on it")), "{length}, {what}: {why}");
        }
    }
}

#[test]
fn any_byte_in_the_first_four_mebibytes_is_somebodys() {
    for at in [0, 1, 511, 4095, 4096, 70_000, (1 << 20) - 1, 1 << 20, BLANK_BYTES as u64 - 1] {
        let why = refusal(&Device::with(at, &[1]));
        assert!(why.contains(&format!("of another program, at byte {at}, is on it")), "{why}");
    }
    taken(&Device::with(BLANK_BYTES as u64, &[1])).expect("what is behind them is not looked at");
}

#[test]
fn a_mark_is_not_believed_beside_what_was_made_later() {
    let marked = || {
        let device = Device::blank(LENGTH);
        taken(&device).expect("it is blank");
        device
    };
    // Whatever made these may have left the first block as it was.
    for (at, signature, what) in [
        (4096, &b"\xfc\x4e\x2b\xa9"[..], "a part of an md array"),
        (131_072, b"\x0c\xb1\xba\x00\x00\x00\x00\x00", "a part of a ZFS pool"),
        (65_600, b"_BHRfS_M", "a Btrfs file system"),
        (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
        (LENGTH - 512, b"EFI PART", "a partition table"),
        ((1 << 20) - 1, b"x", "something of another program, at byte 1048575,"),
        (9, b"2", "a tier of another release of Kiln"),
    ] {
        let device = marked();
        device.put(at, signature);
        let why = refusal(&device);
        assert!(why.starts_with(&format!("{what} is on it")), "{what}: {why}");
    }
}

#[test]
fn a_device_that_cannot_be_used_says_why() {
    let small = Device::blank(4 << 20);
    assert_eq!(refusal(&small), "it has only 4194304 bytes");
    let bytes = Mutex::new(vec![0; LENGTH as usize]);
    let why = refusal(&Arc::new(Device { bytes, is_read_only: true }));
    assert!(why.starts_with("it cannot be written: "), "{why}");
    let device = Device::blank(LENGTH);
    let room = (LENGTH - START) & !(DIRECT_BLOCK_BYTES as u64 - 1);
    let why = taken_for(&device, room + 1).err().expect("it is refused");
    assert_eq!(why, format!("tier-max is {}, and the device has room for {room} bytes", room + 1));
    assert!(device.bytes().iter().all(|byte| *byte == 0), "it is not marked");
    assert!(taken_for(&device, room).is_ok());
}
