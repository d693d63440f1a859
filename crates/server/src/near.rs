//! Which names may have been meant.

/// Names longer than this are not compared: the work grows with the product of the lengths.
const LONGEST: usize = 64;

/// The names close to another, the closest first, three at most.
pub(crate) fn near<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let plain = plain(name);
    if plain.is_empty() || plain.len() > LONGEST {
        return Vec::new();
    }
    let allowed = (plain.len() / 3).clamp(1, 3);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .map(|candidate| (distance(&plain, &self::plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// A question to put behind a complaint; nothing if nothing is near.
pub(crate) fn did_you_mean(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("{:?}", name.as_ref()))
        .collect();
    match quoted.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", quoted.join(" or ")),
    }
}

/// `base_url`, `baseUrl` and `Base-URL` are the same here.
fn plain(name: &str) -> Vec<char> {
    name.chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .take(LONGEST + 1)
        .collect()
}

/// How many letters must be changed, added or dropped, or swapped with the next.
fn distance(one: &[char], two: &[char]) -> usize {
    if two.len() > LONGEST {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=two.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in two.iter().enumerate() {
            let mut best = (last[column] + usize::from(letter != other))
                .min(last[column + 1] + 1)
                .min(line[column] + 1);
            let swapped =
                row > 0 && column > 0 && one[row - 1] == *other && *letter == two[column - 1];
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut last, line);
    }
    last[two.len()]
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, near};

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["listen", "store", "base_url", "claude-fable-5"];
        assert_eq!(near("listn", known), ["listen"]);
        assert_eq!(near("baseUrl", known), ["base_url"]);
        assert_eq!(near("claude-fable5", known), ["claude-fable-5"]);
        assert_eq!(near("colour", known), [""; 0]);
        assert_eq!(near("", known), [""; 0]);
        assert_eq!(near(&"x".repeat(1000), known), [""; 0]);
    }

    #[test]
    fn a_question_names_what_is_near() {
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean \"a\" or \"b\"?");
        assert_eq!(did_you_mean(&[""; 0]), "");
    }
}
