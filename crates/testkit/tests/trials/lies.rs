use throughline_testkit::agent::Ledger;
use throughline_testkit::{Scratch, property};

use crate::trials::worker::Worker;

/// Every commit point, with every way to report a wrong outcome.
const PLAN: &str = "begin.pre=fail@%9,begin.post=lie@%9,call.pre=fail@%9,\
    call.commit_sent=lie@%5,call.post=lie@%9,step.pre=fail@%9,step.commit_sent=lie@%5,step.post=lie@%9,\
    tool.pre_intent=fail@%9,tool.post_intent=lie@%9,result.pre=fail@%9,result.commit_sent=lie@%5,result.post=lie@%9,\
    publish.pre=fail@%9,publish.mid=fail@%9,publish.commit_sent=lie@%5,publish.post=lie@%9,event.append=fail@%9,\
    event.flush=lie@%9,park.pre=fail@%9,park.post=lie@%9,answer.pre=fail@%9,answer.commit_sent=lie@%5,\
    answer.post=lie@%9,delete.mark=fail@%9,delete.purge=fail@%9,cancel.mark=fail@%9,cancel.close=fail@%9,\
    recover.decide=fail@%9,lease.renew=fail@%9";

/// R14: commits that are done and reported as failed, or not done at all. A repeated operation is
/// answered as the first time, and nothing is stored twice.
#[test]
fn r14_what_is_sent_again_is_done_once() {
    let mut failed = 0;
    let mut done = 0;
    let mut published = 0;
    // About 25 each: 2,000 and more at `THROUGHLINE_SCALE=20`.
    property("r14 lies", 5, |rng, _| {
        let scratch = Scratch::in_memory("lies");
        let url = scratch.sqlite("store.db");
        let log = scratch.path().join("points.log");
        let mut ledger = Ledger::default();
        let settings = [
            format!("seed={}", rng.below(1_000_000)),
            "visits=40".to_owned(),
            "agents=3".to_owned(),
            "deletes=0.05".to_owned(),
        ];
        let worker = Worker::start(&url, &settings, PLAN, &log);
        let status = worker.end(&mut ledger);
        if !status.success() {
            return Err(format!("the process ended with {status}"));
        }
        let store = super::kills::open(&url)?;
        ledger.check(&store)?;
        ledger.retry_keys(&store)?;
        for thread in 0..4 {
            Ledger::poll(&store, &format!("t{thread}"), 100_000)?;
        }
        let audit = ledger.audit();
        failed += audit.operations.2;
        done += audit.operations.0;
        published += audit.published;
        Ok(())
    });
    let rate = done as f64 / (done + failed).max(1) as f64;
    println!(
        "campaign r14 lies: ambiguous_or_failed={failed} done={done} published={published} duplicates=0 success={:.1}%",
        rate * 100.0
    );
    assert!(
        rate >= 0.3 && failed > 0,
        "void: {done} done, {failed} failed"
    );
}
