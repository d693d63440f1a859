//! Reports what a format cannot express and what was changed for it.

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_wire::Loss;
use throughline_wire::render::Repair;

use crate::output;

/// Print them on standard error.
pub(crate) fn print(losses: &[Loss], repairs: &[Repair]) {
    for loss in losses {
        output::note(&format!("lost: {loss}"));
    }
    for repair in repairs {
        output::note(&format!("repaired: {repair}"));
    }
}

/// Write the members `losses` and `repairs`.
pub(crate) fn write(object: &mut ObjectWriter<'_>, losses: &[Loss], repairs: &[Repair]) {
    let mut array = ArrayWriter::new(object.key("losses"));
    for loss in losses {
        loss.write_json(array.slot());
    }
    array.end();
    let mut array = ArrayWriter::new(object.key("repairs"));
    for repair in repairs {
        repair.write_json(array.slot());
    }
    array.end();
}
