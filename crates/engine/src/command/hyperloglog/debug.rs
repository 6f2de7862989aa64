//! PFDEBUG and PFSELFTEST, for tests.

use super::{load, refusal, store};
use crate::command::{Args, Command, DataFn, Flags, Group, Outcome, write};
use crate::refusal::{Refusal, quoted};
use crate::tx::Tx;
use crate::view::View;
use resp::Reply;
use structures::hll::{self, Encoding, Registers};

pub const PFDEBUG: Command<DataFn> = write("PFDEBUG subcommand key", pfdebug)
    .key_use("RW+access")
    .doc("Internal commands for debugging HyperLogLog values.")
    .group(Group::HyperLogLog)
    .since("2.8.9")
    .cost("N/A")
    .with(Flags::ADMIN)
    .denyoom();

pub const PFSELFTEST: Command<DataFn> =
    Command::new("PFSELFTEST", DataFn::Read(pfselftest), Flags::ADMIN)
        .doc("An internal command for testing HyperLogLog values.")
        .group(Group::HyperLogLog)
        .since("2.8.9")
        .cost("N/A");

fn pfdebug(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(2);
    let Some(old) = load(tx, key)? else {
        return Err(Refusal::of("ERR The specified key does not exist"));
    };
    let encoding = hll::encoding(&old).map_err(refusal)?;
    if args.is(1, "ENCODING") {
        reply.simple(if encoding == Encoding::Sparse { "sparse" } else { "dense" });
    } else if args.is(1, "DECODE") {
        if encoding != Encoding::Sparse {
            return Err(Refusal::of("ERR HLL encoding is not sparse"));
        }
        reply.bulk(hll::describe_sparse(&old).map_err(refusal)?);
    } else if args.is(1, "TODENSE") {
        reply.integer(i64::from(to_dense(tx, key, &old)?));
    } else if args.is(1, "GETREG") {
        let mut registers = Registers::new();
        registers.merge(&old).map_err(refusal)?;
        // As in Redis, looking makes it dense.
        to_dense(tx, key, &old)?;
        reply.array(hll::REGISTERS);
        let work = tx.work();
        work.reply_each(registers.runs(), reply, |run, reply| reply.integer(i64::from(*run)));
    } else {
        return Err(Refusal::new(format!(
            "ERR Unknown PFDEBUG subcommand '{}'",
            quoted(args.at(1))
        )));
    }
    Ok(())
}

/// Whether the HyperLogLog was sparse.
fn to_dense(tx: &mut Tx<'_>, key: &[u8], old: &[u8]) -> Result<bool, Refusal> {
    let mut new = old.to_vec();
    let was_sparse = hll::make_dense(&mut new).map_err(refusal)?;
    if was_sparse {
        store(tx, key, old, &new)?;
    }
    Ok(was_sparse)
}

/// Elements added by the self test: enough for dense registers, about 20 ms. Redis adds ten
/// million, which takes a second in which nobody else is served.
const ELEMENTS: u64 = 100_000;

/// Adds elements to a sparse and a dense HyperLogLog and compares their estimates with each other
/// and with the truth, at every power of ten.
fn pfselftest(view: &mut View<'_>, _: Args<'_>, reply: &mut Reply) -> Outcome {
    let seed = view.random().word();
    let (mut sparse, mut dense) = (hll::create(), hll::create());
    hll::make_dense(&mut dense).map_err(refusal)?;
    let mut checkpoint = 1;
    for count in 1..=ELEMENTS {
        view.work().step();
        let element = (count ^ seed).to_le_bytes();
        let limit = hll::SPARSE_BYTES_MAX_DEFAULT;
        hll::add(&mut sparse, &element, limit).map_err(refusal)?;
        hll::add(&mut dense, &element, limit).map_err(refusal)?;
        if count == checkpoint {
            let estimates = [&sparse, &dense].map(|bytes| hll::count(bytes));
            judge(count, estimates[0].map_err(refusal)?, estimates[1].map_err(refusal)?)?;
            checkpoint *= 10;
        }
    }
    reply.ok();
    Ok(())
}

fn judge(count: u64, sparse: u64, dense: u64) -> Outcome {
    if sparse != dense {
        return Err(Refusal::of("ERR TESTFAILED dense/sparse disagree"));
    }
    // Six times the standard error of 1.04 / sqrt(16,384).
    let error_max = (count as f64 * 6.0 * 1.04 / 128.0).ceil() as u64;
    let error = count.abs_diff(dense);
    if error > error_max {
        return Err(Refusal::new(format!(
            "ERR TESTFAILED Too big error. card:{count} abserr:{error}"
        )));
    }
    Ok(())
}
