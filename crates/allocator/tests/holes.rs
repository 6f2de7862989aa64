//! What a survey of the allocator finds where values have many sizes, and each loses little.

use allocator::{Jemalloc, JemallocHeap};
use base::heap::Heap;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Bytes of each size that are allocated, of which three quarters are freed.
const BYTES: usize = 900 << 10;

#[test]
fn holes_are_found_in_many_sizes_of_which_each_has_few() {
    let heap = JemallocHeap::new().expect("jemalloc tells");
    // Each is a size of its own.
    let sizes = || (128..=1024).step_by(16);
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut freed: Vec<Vec<u8>> = Vec::new();
    for size in sizes() {
        for number in 0..BYTES / size {
            let block = vec![1; size];
            if number % 4 == 0 { kept.push(block) } else { freed.push(block) }
        }
    }
    drop(freed);
    let holes = heap.survey();
    assert!(holes.lost_bytes > 30 << 20, "{holes:?}");
    let without: Vec<_> = sizes().filter(|size| !heap.has_holes(*size..=*size)).collect();
    assert!(without.is_empty(), "nothing would be won back of {without:?}");
    let sparse = kept.iter().filter(|block| heap.is_sparse(block.as_ptr().addr())).count();
    assert!(sparse * 2 > kept.len(), "{sparse} of {} would move", kept.len());
}
