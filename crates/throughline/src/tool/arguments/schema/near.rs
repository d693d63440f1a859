//! Which name may have been meant.

/// Names longer than this are not compared: the work grows with the product of the lengths.
const LONGEST: usize = 64;

/// The name closest to another, if one is close.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let plain = plain(name);
    if plain.is_empty() || plain.len() > LONGEST {
        return None;
    }
    let allowed = (plain.len() / 3).clamp(1, 3);
    known
        .map(|candidate| (distance(&plain, &self::plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `portName`, `port_name` and `Port-Name` are the same here.
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
