//! The JSON forms of what a store holds, which the native API of the server shares.

pub(super) use throughline_server::api::native::forms::record::{
    array, journal, listing, object, opt_node, opt_number, run, run_kind, thread, tree_node,
};
