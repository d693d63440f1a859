//! Fields that are there twice: readers differ in which one counts, so nobody should guess.

use throughline_model::json::{Node as Json, Value};

use super::sink::{Kind, Place, Sink};

pub(super) fn refuse_twice(value: &Value<'_>, place: &Place<'_>, sink: &mut Sink) {
    match value.node() {
        Json::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                refuse_twice(value, &Place::Index(place, index), sink);
            }
        }
        Json::Object(members) => {
            if value.has_duplicate_keys() {
                let mut keys: Vec<_> = members.iter().map(|member| member.key.to_str()).collect();
                keys.sort_unstable();
                for pair in keys.windows(2).filter(|pair| pair[0] == pair[1]) {
                    let message = || format!("field {:?} is there twice", pair[0]);
                    sink.add(Kind::Other, place, message);
                }
            }
            for member in members {
                let key = member.key.to_str();
                refuse_twice(&member.value, &Place::Key(place, &key), sink);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number | Json::String(_) => {}
    }
}
