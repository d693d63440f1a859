//! Names of models with `*` for anything.

/// Whether a name fits a pattern. Takes time in proportion to the product of the lengths at worst.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        // No star: the name must be the pattern.
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a pattern is just a name.
pub(super) fn is_exact(pattern: &str) -> bool {
    !pattern.contains('*')
}

/// How much of a name a pattern says.
pub(super) fn literal_length(pattern: &str) -> usize {
    pattern.chars().filter(|letter| *letter != '*').count()
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_anything() {
        for (pattern, name) in [
            ("a", "a"),
            ("*", ""),
            ("*", "x/y"),
            ("gpt-*", "gpt-5"),
            ("gpt-*", "gpt-"),
            ("*-mini", "o9-mini"),
            ("a*b*c", "a1b2c"),
            ("a*b*c", "abbc"),
            ("a**c", "ac"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a", "ab"),
            ("a", "A"),
            ("gpt-*", "gpt5"),
            ("*-mini", "o9-mini-2"),
            ("a*b*c", "acb"),
            ("a*a", "a"),
            ("", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
