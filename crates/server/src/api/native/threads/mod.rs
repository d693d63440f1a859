//! Threads: one operation per file.

mod compact;
mod create;
mod delete;
mod export;
mod find;
mod fork;
mod get;
mod hand_over;
mod import;
mod leave;
mod list;
mod messages;
mod patch;
mod pin;
mod redact;
mod tail;
mod tree;
mod uncompact;
mod view;

use super::request::Route;

/// All of them.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        list::route(),
        create::route(),
        import::route(),
        get::route(),
        patch::route(),
        delete::route(),
        fork::route(),
        tree::route(),
        export::route(),
        messages::route(),
        tail::route(),
        view::route(),
        compact::route(),
        uncompact::route(),
        redact::route(),
        hand_over::route(),
        leave::route(),
    ];
    routes.extend(pin::routes());
    routes
}
