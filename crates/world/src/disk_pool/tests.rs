//! Jobs, the loop that submits them, and threads that have a lock when it wants one.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn idle() -> Waker {
    Waker(Arc::new(|| {}))
}

fn pool(threads: usize) -> ThreadDiskPool {
    ThreadDiskPool::start("pool-test", threads, idle()).expect("there are threads")
}

/// Submits a job that is not kept: nobody polls.
fn submit_now(pool: &mut ThreadDiskPool, job: DiskJob) {
    pool.submit(job);
    pool.hand_over();
}

/// Tells when a thread of the pool wakes the loop, and not of the loop that wakes itself.
fn waker_of_others(woken: Sender<()>) -> Waker {
    let own = thread::current().id();
    Waker(Arc::new(move || {
        if thread::current().id() != own {
            woken.send(()).expect("the test listens");
        }
    }))
}

#[test]
fn who_submits_and_polls_waits_for_no_thread_and_is_woken_to_try_again() {
    let (wake, has_woken) = channel();
    let wake = Mutex::new(wake);
    let waker = Waker(Arc::new(move || lock(&wake).send(()).expect("the test listens")));
    let mut pool = ThreadDiskPool::start("pool-test", 2, waker).expect("there are threads");
    let shared = Arc::clone(&pool.shared);
    let todo = lock(&shared.todo);
    let tickets: Vec<_> =
        (0..3_u64).map(|number| pool.submit(Box::new(move || Box::new(number)))).collect();
    assert_eq!(has_woken.try_iter().count(), 3);
    drop(todo);
    let mut done = Vec::new();
    let ended = lock(&shared.outcomes.done);
    pool.poll(&mut done);
    assert!(done.is_empty());
    assert!(has_woken.try_iter().count() > 0);
    drop(ended);
    while done.len() < 3 {
        pool.poll(&mut done);
        let is_all = done.len() == 3;
        assert!(is_all || has_woken.recv_timeout(PATIENCE).is_ok(), "nobody wakes the loop");
    }
    let mut got: Vec<_> = done.iter().map(|(ticket, _)| *ticket).collect();
    got.sort_unstable();
    assert_eq!(got, tickets);
}

#[test]
fn jobs_that_were_kept_are_handed_over_before_the_loop_does_something_long() {
    let (wake, has_woken) = channel();
    let wake = Mutex::new(wake);
    let waker = Waker(Arc::new(move || lock(&wake).send(()).expect("the test listens")));
    let mut pool = ThreadDiskPool::start("pool-test", 1, waker).expect("there are threads");
    let shared = Arc::clone(&pool.shared);
    let (ran, has_run) = channel();
    let todo = lock(&shared.todo);
    pool.submit(Box::new(move || {
        ran.send(()).expect("the test waits");
        Box::new(())
    }));
    let before = has_woken.try_iter().count();
    pool.begin_reads();
    assert_eq!((before, has_woken.try_iter().count()), (1, 1));
    drop(todo);
    pool.begin_reads();
    has_run.recv_timeout(PATIENCE).expect("the job runs although nobody polls");
}

#[test]
fn who_tries_often_waits_in_the_end() {
    let mutex = Mutex::new(());
    let failures = AtomicUsize::new(0);
    let held = lock(&mutex);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut tries = Tries::default();
            while tries.lock(&mutex).is_none() {
                failures.fetch_add(1, Ordering::SeqCst);
            }
        });
        while failures.load(Ordering::SeqCst) < TRIES_MAX as usize {
            thread::yield_now();
        }
        // One that tries for ever would be seen here.
        (0..100).for_each(|_| thread::yield_now());
        drop(held);
    });
    assert_eq!(failures.into_inner(), TRIES_MAX as usize);
}

#[test]
fn jobs_that_were_kept_run_when_the_pool_is_dropped() {
    let mut pool = pool(1);
    let shared = Arc::clone(&pool.shared);
    let (ended, has_ended) = channel();
    let todo = lock(&shared.todo);
    pool.submit(Box::new(move || {
        ended.send(()).expect("the test waits");
        Box::new(())
    }));
    drop(todo);
    drop(pool);
    has_ended.try_recv().expect("it has run");
}

#[test]
fn jobs_run_at_a_time_and_each_has_its_own_outcome() {
    let mut pool = pool(4);
    // None of the four goes on before all of them run.
    let all = Arc::new(Barrier::new(4));
    let mut expected = Vec::new();
    for number in 0..4_u64 {
        let all = Arc::clone(&all);
        let job = move || -> DiskOutcome {
            all.wait();
            Box::new(number)
        };
        expected.push((pool.submit(Box::new(job)), number));
    }
    for number in 4..1000_u64 {
        expected.push((pool.submit(Box::new(move || Box::new(number))), number));
    }
    pool.drain();
    let mut done = Vec::new();
    pool.poll(&mut done);
    let value = |outcome: &DiskOutcome| *outcome.downcast_ref::<u64>().expect("a number");
    let mut got: Vec<_> = done.iter().map(|(ticket, it)| (*ticket, value(it))).collect();
    got.sort_unstable();
    assert_eq!(got, expected);
    done.clear();
    pool.poll(&mut done);
    assert!(done.is_empty());
}

#[test]
fn outcomes_come_as_jobs_end() {
    let mut pool = pool(2);
    let (release, held) = channel::<()>();
    let slow = pool.submit(Box::new(move || {
        held.recv().expect("it is released");
        Box::new(())
    }));
    let quick = pool.submit(Box::new(|| Box::new(())));
    let mut done = Vec::new();
    while done.is_empty() {
        pool.poll(&mut done);
        thread::yield_now();
    }
    release.send(()).expect("the job waits");
    pool.drain();
    pool.poll(&mut done);
    assert_eq!(done.iter().map(|(ticket, _)| *ticket).collect::<Vec<_>>(), [quick, slow]);
}

#[test]
fn the_loop_is_woken_once_for_what_it_has_not_polled() {
    let (woken, wakes) = channel();
    let waker = waker_of_others(woken);
    let mut pool = ThreadDiskPool::start("pool-test", 4, waker).expect("there are threads");
    for round in 0..3 {
        let ended = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let ended = Arc::clone(&ended);
            let job = move || -> DiskOutcome { Box::new(ended.fetch_add(1, Ordering::SeqCst)) };
            submit_now(&mut pool, Box::new(job));
        }
        wakes.recv_timeout(PATIENCE).expect("the loop is woken");
        // All outcomes lie there once the last of them does.
        while lock(&pool.shared.outcomes.done).outcomes.len() < 100 {
            thread::yield_now();
        }
        assert!(wakes.try_recv().is_err(), "in round {round}");
        let mut done = Vec::new();
        pool.poll(&mut done);
        assert_eq!(done.len(), 100);
    }
}

#[test]
fn the_loop_is_woken_by_as_many_outcomes_as_it_wants() {
    let (woken, wakes) = channel();
    let waker = Waker(Arc::new(move || woken.send(()).expect("the test listens")));
    let mut pool = ThreadDiskPool::start("pool-test", 1, waker).expect("there are threads");
    // Each job tells that it has begun, and so that all is done about the one before it.
    let (began, has_begun) = channel();
    let begin = |pool: &mut ThreadDiskPool| {
        let (release, held) = channel::<()>();
        let began = began.clone();
        let job = move || -> DiskOutcome {
            began.send(()).expect("the test waits");
            held.recv().expect("it is released");
            Box::new(())
        };
        submit_now(pool, Box::new(job));
        release
    };
    pool.wake_from(3);
    let releases: Vec<_> = (0..5).map(|_| begin(&mut pool)).collect();
    // It may have woken itself, to hand over again.
    wakes.try_iter().for_each(drop);
    for release in &releases[..2] {
        has_begun.recv_timeout(PATIENCE).expect("it runs");
        release.send(()).expect("it waits");
    }
    has_begun.recv_timeout(PATIENCE).expect("it runs");
    assert!(wakes.try_recv().is_err(), "two are too few");
    releases[2].send(()).expect("it waits");
    wakes.recv_timeout(PATIENCE).expect("three are enough");
    pool.poll(&mut Vec::new());
    has_begun.recv_timeout(PATIENCE).expect("it runs");
    releases[3].send(()).expect("it waits");
    has_begun.recv_timeout(PATIENCE).expect("it runs");
    assert!(wakes.try_recv().is_err(), "one is too few");
    pool.wake_from(1);
    wakes.recv_timeout(PATIENCE).expect("one is enough now, and it lies there");
    releases[4].send(()).expect("it waits");
}

#[test]
fn dropping_a_pool_lets_its_jobs_end() {
    let mut pool = pool(3);
    let ended = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let ended = Arc::clone(&ended);
        pool.submit(Box::new(move || Box::new(ended.fetch_add(1, Ordering::SeqCst))));
    }
    drop(pool);
    assert_eq!(ended.load(Ordering::SeqCst), 100);
}

#[test]
fn nobody_waits_for_a_detached_pool() {
    let (release, held) = channel::<()>();
    let (ended, has_ended) = channel();
    let mut detached = pool(2).detached();
    let job = move || -> DiskOutcome {
        held.recv().expect("it is released");
        ended.send(()).expect("the test waits");
        Box::new(())
    };
    submit_now(&mut detached, Box::new(job));
    // In a thread: who waited would do so for ever.
    let (dropped, is_dropped) = channel();
    let mut dropping = pool(1);
    let job = move || -> DiskOutcome {
        drop(detached);
        dropped.send(()).expect("the test waits");
        Box::new(())
    };
    submit_now(&mut dropping, Box::new(job));
    is_dropped.recv_timeout(PATIENCE).expect("nobody waits");
    release.send(()).expect("the job waits");
    has_ended.recv_timeout(PATIENCE).expect("it runs on");
}

#[test]
fn nobody_waits_for_ever_for_a_job_that_panicked() {
    let mut pool = pool(2);
    pool.submit(Box::new(|| panic!("this one is meant")));
    assert!(catch_unwind(AssertUnwindSafe(|| pool.drain())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| pool.poll(&mut Vec::new()))).is_err());
}
