//! What a turn weighs on the disk, early and late in a chain.

use throughline_testkit::Rng;
use throughline_testkit::web::Client;

use crate::world::{World, create, said, turn};

/// So many chains at once, so that pages of the file do not show.
const CHAINS: usize = 8;

/// A kilobyte that does not compress to nothing.
fn kilobyte(rng: &mut Rng) -> String {
    let letter = |_| char::from(b'a' + (rng.next_u64() % 26) as u8);
    (0..1024).map(letter).collect()
}

struct Chains {
    world: World,
    last: Vec<Option<String>>,
    rng: Rng,
}

impl Chains {
    /// So many turns more in each chain; gives what the file weighs then.
    async fn grow(mut self, turns: usize) -> (Self, f64) {
        let mut client = Client::new(self.world.address());
        for _ in 0..turns {
            for last in &mut self.last {
                let body = turn("demo", &kilobyte(&mut self.rng), last.as_deref());
                *last = Some(said(&create(&mut client, &body).await).0);
            }
        }
        let (world, bytes) = self.world.weigh().await;
        self.world = world;
        (self, bytes as f64)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_weighs_as_much_at_a_thousand_as_at_ten() {
    let chains = Chains {
        world: World::start().await,
        last: vec![None; CHAINS],
        rng: Rng::new(9),
    };
    let (chains, start) = chains.grow(5).await;
    let (chains, ten) = chains.grow(10).await;
    let (chains, nearly) = chains.grow(975).await;
    let (_, thousand) = chains.grow(10).await;
    let early = (ten - start) / (10 * CHAINS) as f64;
    let late = (thousand - nearly) / (10 * CHAINS) as f64;
    let all = (nearly - ten) / (975 * CHAINS) as f64;
    println!(
        "campaign bytes of a turn: at 10 {early:.0}, at 1000 {late:.0}, between {all:.0}, said 2060"
    );
    // A file grows by whole pages, which 80 turns smooth out but for this much.
    for (what, bytes) in [("at 1,000", late), ("between", all)] {
        let ratio = bytes / early;
        assert!(
            (0.95..=1.05).contains(&ratio),
            "{what}: {bytes:.0} against {early:.0}"
        );
    }
}
