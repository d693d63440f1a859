//! Damage on disk, as commands report it.

use throughline_model::json::RawJson;

use super::{Place, RUN, number, text};

#[test]
fn b248_fsck_and_readers_name_the_thread_the_position_and_the_item() {
    let place = Place::with_example("damage");
    // The third message, in the file as stored.
    let file = place.file("store.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let said = b"Today, and the wind.";
    let at = bytes.windows(said.len()).position(|window| window == said);
    bytes[at.unwrap() + 4] ^= 1;
    std::fs::write(&file, &bytes).unwrap();

    let message = place.fails(&["threads", "show", "ticket-4711"], 1);
    let named = format!("thread ticket-4711, position 3, item 1 of run_{RUN}");
    assert!(
        message.contains(&format!("{named} is damaged: ")),
        "{message}"
    );
    let message = place.fails(&["threads", "show", "conversation:conv_17"], 1);
    assert!(message.contains(&named), "{message}");

    let run = place.run(&["fsck"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let line = format!("damaged: tenant local, {named}: its digest does not fit its bytes\n");
    assert!(run.out.starts_with(&line), "{}", run.out);
    let run = place.run(&["--json", "fsck"]);
    assert_eq!(run.code, 1);
    let form = RawJson::new(&run.out).unwrap();
    let value = form.value();
    let damage = value.get("damage").unwrap().as_array().unwrap();
    assert_eq!(damage.len(), 1, "{form}");
    let damage = RawJson::new(damage[0].raw()).unwrap();
    assert_eq!(text(&damage, &["thread"]), "ticket-4711");
    assert_eq!(number(&damage, &["position"]), 3);
    assert_eq!(text(&damage, &["item", "run"]), format!("run_{RUN}"));
    assert_eq!(number(&damage, &["item", "no"]), 1);
    assert_eq!(text(&damage, &["place"]), format!("item 1 of run_{RUN}"));
}
