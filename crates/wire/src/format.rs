use std::fmt;
use std::str::FromStr;

use throughline_model::Wire;

use crate::vendors;

/// A format of transcript files: our own, or a vendor's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// The stored form of this library's own messages.
    Neutral,
    /// The format of a vendor's API.
    Vendor(Wire),
}

/// A name that is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {name:?}; the formats are {}", Format::names().join(", "))]
pub struct UnknownFormat {
    /// The name that was given.
    pub name: String,
}

impl Format {
    /// The names of all formats.
    pub fn names() -> Vec<&'static str> {
        let mut names = vec!["neutral"];
        names.extend(vendors::all().map(|vendor| vendor.wire.as_str()));
        names
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        if name == "neutral" {
            return Ok(Self::Neutral);
        }
        let wire = Wire::named(name);
        match crate::codec(&wire) {
            Some(_) => Ok(Self::Vendor(wire)),
            None => Err(UnknownFormat {
                name: name.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Neutral => f.write_str("neutral"),
            Self::Vendor(wire) => wire.fmt(f),
        }
    }
}
