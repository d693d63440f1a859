//! The size of a turn in the store, at the beginning of a chain and far along it.

use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};

use super::child::{Child, stored};
use super::load::Connection;
use super::turns::create;
use super::{kilobyte, runtime};

/// Where the size is measured, and over how many turns: whole pages are counted, so there are many.
const PLACES: [usize; 2] = [10, 1_000];
const TURNS: usize = 500;

pub(super) fn reports() -> Vec<Report> {
    let scratch = Scratch::in_memory("bench-server");
    let mock = Child::mock();
    let text = kilobyte();
    let (mut previous, mut length) = (None, 0);
    let mut grown = |until: usize| {
        let server = Child::server(&mock, &scratch);
        runtime().block_on(async {
            let mut connection = Connection::to(&server.at).await;
            while length < until {
                let request = create(&text, previous.as_deref());
                previous = Some(connection.response(&request).await);
                length += 1;
            }
        });
        // Stopping the server copies the WAL to the database file.
        server.stop();
        stored(&scratch)
    };
    let each = PLACES.map(|place| {
        let before = grown(place);
        (grown(place + TURNS) - before) / TURNS as f64
    });
    let said = 2.0 * text.len() as f64;
    let mut report = Report::new("stored bytes of a turn, 1 KB messages");
    for (place, bytes) in PLACES.iter().zip(each) {
        report.push(Row {
            name: format!("turn {place}, against turn {}", PLACES[0]),
            figure: format!("{bytes:.0} B"),
            ratio: Some(bytes / each[0]),
            // Whole pages are counted.
            limit: Some(Limit::AtMost(1.05)),
        });
    }
    report.push(Row {
        name: format!("turn {}, against the bytes said", PLACES[1]),
        figure: format!("{:.0} B", each[1]),
        ratio: Some(each[1] / said),
        limit: Some(Limit::AtMost(1.3)),
    });
    vec![report]
}
