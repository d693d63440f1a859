//! What a turn weighs on the disk, early and late in a chain.

use throughline_testkit::Rng;
use throughline_testkit::web::Client;

use crate::clients::world::{World, create, said, turn};

/// So many chains at once, so that pages of the file do not show.
const CHAINS: usize = 8;

/// So many turns are weighed, early and late.
const TURNS: usize = 100;

/// What is said in a turn: words that do not compress to nothing, always as many.
fn words(rng: &mut Rng) -> String {
    let letter = |_| char::from(b'a' + (rng.next_u64() % 26) as u8);
    (0..120).map(letter).collect()
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
                let body = turn("demo", &words(&mut self.rng), last.as_deref());
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
    let (chains, ten) = chains.grow(10).await;
    let (chains, early) = chains.grow(TURNS).await;
    let (chains, nearly) = chains.grow(990 - 2 * TURNS).await;
    let (_, thousand) = chains.grow(TURNS).await;
    let weighed = (TURNS * CHAINS) as f64;
    let (early, late) = ((early - ten) / weighed, (thousand - nearly) / weighed);
    println!("campaign bytes of a turn: after 10 turns {early:.0}, before 1000 {late:.0}");
    // A file grows by whole pages, which so many turns smooth out but for this much.
    assert!((0.95..=1.05).contains(&(late / early)), "{late} / {early}");
}
