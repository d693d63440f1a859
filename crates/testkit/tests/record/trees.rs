use std::cell::Cell;

use throughline_store::TenantScope;
use throughline_testkit::property;
use throughline_testkit::record::{Tree, block_on};

use crate::record::common::engines;

/// R7: a branch sees exactly its ancestors. A tenth of the trees goes to SQLite.
#[test]
fn r7_random_trees_equal_a_plain_reference() {
    let scope = TenantScope::local();
    for ((engine, store, _scratch), cases) in engines("trees").into_iter().zip([450, 50]) {
        let nodes = Cell::new(0);
        let compared = Cell::new(0);
        property(&format!("r7 trees on {engine}"), cases, |rng, size| {
            let grown = block_on(Tree::grow(&store, &scope, rng, 1 + size / 5))?;
            nodes.set(nodes.get() + grown.len());
            let equal = block_on(grown.compare(&store, &scope, rng))?;
            compared.set(compared.get() + equal);
            Ok(())
        });
        let checked = block_on(store.check(&mut |_| {})).unwrap();
        assert_eq!(checked.damage, []);
        let (nodes, compared) = (nodes.get(), compared.get());
        assert!(compared > 0);
        println!("table r7 {engine}: nodes={nodes} branches_compared={compared} damage=0");
        // Deleted data can be purged without harm to the rest.
        while block_on(store.purge(1000)).unwrap().more {}
        let checked = block_on(store.check(&mut |_| {})).unwrap();
        assert_eq!(checked.damage, []);
    }
}
