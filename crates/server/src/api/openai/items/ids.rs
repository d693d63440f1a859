//! Ids of items: each says which run it belongs to and where it stands there.

use std::fmt;
use std::str::FromStr;

use throughline_store::{BadId, RunId};

/// Where in a run an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemPlace {
    /// Said in a model call.
    Output {
        /// Which model call.
        step: u32,
        /// Which item of its kind, from 0. Kinds are counted apart: a call may be shown after words
        /// that stand behind it, and must have the same name all the same.
        number: u32,
        /// How often the call had been made before, as readers saw it. Only an answer that was
        /// begun and broke off counts, so this is nearly always 0.
        again: u32,
    },
    /// A call of an earlier run that ran in this one, by number.
    Taken(u32),
    /// The tools of a server, by number.
    Listed(u32),
    /// Input that came without an id, by its number in the input.
    Input(u32),
}

/// The id of an item that we name: a prefix that says what it is, the run, and the place in it.
///
/// The same content of the same run always has the same id, for every reader, streamed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemId {
    /// What it is: `msg`, `rs`, `fc`, …
    pub prefix: &'static str,
    /// The run.
    pub run: RunId,
    /// Where in the run.
    pub place: ItemPlace,
}

/// The prefixes of item ids, by type.
pub(crate) const PREFIXES: [(&str, &str); 26] = [
    ("message", "msg"),
    ("reasoning", "rs"),
    ("function_call", "fc"),
    ("function_call_output", "fco"),
    ("custom_tool_call", "ctc"),
    ("custom_tool_call_output", "ctco"),
    ("mcp_call", "mcp"),
    ("mcp_list_tools", "mcpl"),
    ("mcp_approval_request", "mcpr"),
    ("mcp_approval_response", "mcpa"),
    ("web_search_call", "ws"),
    ("file_search_call", "fs"),
    ("code_interpreter_call", "ci"),
    ("image_generation_call", "ig"),
    ("computer_call", "cu"),
    ("computer_call_output", "cuo"),
    ("local_shell_call", "lsh"),
    ("local_shell_call_output", "lsho"),
    ("shell_call", "sh"),
    ("shell_call_output", "sho"),
    ("apply_patch_call", "apc"),
    ("apply_patch_call_output", "apco"),
    ("tool_search_call", "tsc"),
    ("tool_search_output", "tso"),
    ("compaction", "cmp"),
    ("item_reference", "ref"),
];

/// The prefix of a type that has none.
const OTHER: &str = "item";

/// The prefix of the ids of a type.
pub(crate) fn prefix_of(tag: &str) -> &'static str {
    let found = PREFIXES.iter().find(|(known, _)| *known == tag);
    found.map_or(OTHER, |(_, prefix)| prefix)
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_", self.prefix, self.run.to_hex())?;
        match self.place {
            ItemPlace::Output {
                step,
                number,
                again: 0,
            } => write!(f, "{step}_{number}"),
            ItemPlace::Output {
                step,
                number,
                again,
            } => write!(f, "{step}_{number}r{again}"),
            ItemPlace::Taken(number) => write!(f, "t{number}"),
            ItemPlace::Listed(number) => write!(f, "l{number}"),
            ItemPlace::Input(number) => write!(f, "i{number}"),
        }
    }
}

impl FromStr for ItemId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let read = || {
            let (prefix, rest) = text.split_once('_')?;
            let (run, place) = rest.split_once('_')?;
            let known = PREFIXES.iter().map(|(_, known)| *known);
            let mut known = known.chain([OTHER]);
            Some(Self {
                prefix: known.find(|known| *known == prefix)?,
                run: format!("run_{run}").parse().ok()?,
                place: place_of(place)?,
            })
        };
        // A second spelling would be a second name.
        let id = read().filter(|id| id.to_string() == text);
        id.ok_or_else(|| BadId {
            kind: "item id",
            expected: "one of ours is a prefix, the digits of a response id and a place",
            text: text.chars().take(48).collect(),
        })
    }
}

fn place_of(text: &str) -> Option<ItemPlace> {
    if let Some((step, number)) = text.split_once('_') {
        let (number, again) = number.split_once('r').unwrap_or((number, "0"));
        return Some(ItemPlace::Output {
            step: step.parse().ok()?,
            number: number.parse().ok()?,
            again: again.parse().ok()?,
        });
    }
    let number = text.get(1..)?.parse().ok()?;
    match text.get(..1)? {
        "t" => Some(ItemPlace::Taken(number)),
        "l" => Some(ItemPlace::Listed(number)),
        "i" => Some(ItemPlace::Input(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ItemId, ItemPlace, RunId};

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let places = [
            ItemPlace::Output {
                step: 0,
                number: 12,
                again: 0,
            },
            ItemPlace::Output {
                step: 3,
                number: 0,
                again: 2,
            },
            ItemPlace::Taken(1),
            ItemPlace::Listed(0),
            ItemPlace::Input(7),
        ];
        for (prefix, place) in ["msg", "rs", "fc", "mcp", "item"].into_iter().zip(places) {
            let run = RunId::from_bytes([0xab; 16]);
            let id = ItemId { prefix, run, place };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn other_spellings_are_no_ids() {
        let run = RunId::from_bytes([1; 16]).to_hex();
        for text in [
            format!("msg_{run}_01_2"),
            format!("msg_{run}_1_2r0"),
            format!("msg_{run}_x2"),
            format!("msg_{run}_"),
            format!("nope_{run}_1_2"),
            format!("msg_{}_1_2", run.to_uppercase().replace('0', "A")),
            "msg_1".to_owned(),
            String::new(),
        ] {
            assert!(text.parse::<ItemId>().is_err(), "{text}");
        }
    }
}
