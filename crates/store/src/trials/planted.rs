//! Mistakes that tests plant to see that they are found.
//!
//! Most guards of the record stand in its statements, so most mistakes are a change of a
//! statement's text, made when it is prepared. The others are named where the code would make them.

#[cfg(not(feature = "trials"))]
use std::borrow::Cow;

/// Whether a refusal or a repair is made: when there is reason for it, unless leaving it out is
/// the mistake that is planted.
#[inline]
pub(crate) fn unless(mistake: &str, reason: bool) -> bool {
    reason && !planted(mistake)
}

/// Whether a mistake is the one that is planted.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub const fn planted(_: &str) -> bool {
    false
}

/// A statement as it is prepared.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) const fn statement(sql: &str) -> Cow<'_, str> {
    Cow::Borrowed(sql)
}

#[cfg(feature = "trials")]
pub use active::planted;
#[cfg(feature = "trials")]
pub(crate) use active::statement;

#[cfg(feature = "trials")]
mod active {
    use std::borrow::Cow;
    use std::panic::Location;
    use std::sync::LazyLock;

    use crate::trials::mistakes::{MISTAKES, Mistake};
    use crate::trials::tenants::{self, Mutant};

    /// What `THROUGHLINE_PLANTED` names.
    enum Planted {
        Mistake(&'static Mistake),
        Mutant(Mutant),
    }

    static PLANTED: LazyLock<Option<Planted>> = LazyLock::new(|| {
        let name = std::env::var("THROUGHLINE_PLANTED").ok()?;
        let found = match name.strip_prefix(tenants::PREFIX) {
            Some(mutant) => Mutant::named(mutant).map(Planted::Mutant),
            None => {
                let mistake = MISTAKES.iter().find(|mistake| mistake.name == name);
                mistake.map(Planted::Mistake)
            }
        };
        if found.is_none() && !name.is_empty() {
            // A test that plants nothing would pass for the wrong reason.
            super::super::plan::stop(&format!("THROUGHLINE_PLANTED names no mistake: {name}"));
        }
        found
    });

    /// Whether a mistake is the one that is planted.
    pub fn planted(name: &str) -> bool {
        debug_assert!(
            MISTAKES.iter().any(|mistake| mistake.name == name),
            "{name} is not in the list"
        );
        matches!(&*PLANTED, Some(Planted::Mistake(mistake)) if mistake.name == name)
    }

    /// A statement as it is prepared by the caller of this function.
    #[track_caller]
    pub(crate) fn statement(sql: &str) -> Cow<'_, str> {
        let place = Location::caller();
        tenants::record(sql, place);
        match &*PLANTED {
            None => Cow::Borrowed(sql),
            Some(Planted::Mutant(mutant)) => {
                mutant.of(sql, place).map_or(Cow::Borrowed(sql), Cow::Owned)
            }
            Some(Planted::Mistake(mistake)) => edited(sql, mistake),
        }
    }

    fn edited<'s>(sql: &'s str, mistake: &Mistake) -> Cow<'s, str> {
        let mut text = Cow::Borrowed(sql);
        for (from, to) in mistake.edits {
            if text.contains(from) {
                text = Cow::Owned(text.replace(from, to));
            }
        }
        text
    }
}
