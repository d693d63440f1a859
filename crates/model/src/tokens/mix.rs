//! What the units of texts are made of.

use super::class::{CLASSES, Class};
use super::pieces::Pieces;
use crate::Message;

/// Units by class: what is needed to guess how another vocabulary counts the same texts.
///
/// ```
/// use throughline_model::tokens::{Class, Mix};
///
/// let mix = Mix::of_text("Прилив в десять, отлив в четыре");
/// assert!(mix.share(Class::Cyrillic) > 0.8);
/// assert_eq!(mix.share(Class::Han), 0.0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// In thousandths.
    units: [u64; CLASSES],
}

impl Mix {
    pub(super) fn new(units: [u64; CLASSES]) -> Self {
        Self { units }
    }

    /// What a text is made of.
    pub fn of_text(text: &str) -> Self {
        Pieces::of(text).mix()
    }

    /// What the texts of a message are made of.
    pub fn of_message(message: &Message) -> Self {
        let mut mix = Self::default();
        super::for_each_text(message, &mut |text| mix.add(&Self::of_text(text)));
        mix
    }

    /// Adds what another mix is made of.
    pub fn add(&mut self, other: &Self) {
        for (units, more) in self.units.iter_mut().zip(other.units) {
            *units = units.saturating_add(more);
        }
    }

    /// All units.
    pub fn units(&self) -> f64 {
        self.units.iter().map(|units| *units as f64).sum::<f64>() / 1_000.0
    }

    /// The units of a class.
    pub fn units_of(&self, class: Class) -> f64 {
        self.units[class.index()] as f64 / 1_000.0
    }

    /// The share of a class in all units; none of an empty mix.
    pub fn share(&self, class: Class) -> f64 {
        match self.units() {
            all if all > 0.0 => self.units_of(class) / all,
            _ => 0.0,
        }
    }
}
