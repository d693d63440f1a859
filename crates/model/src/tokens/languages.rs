//! Short words that tell languages in Latin letters apart from English.

use super::class::Class;

/// Which languages have a word, if English and code have none such: articles, prepositions and
/// forms of *to be* that are seen in nearly every sentence. They are what shows that a sentence
/// without a marked letter is not English.
pub(super) fn of_word(word: &[u8]) -> Option<Class> {
    match word {
        // French, Spanish, Portuguese, Italian.
        b"de" | b"la" | b"el" | b"las" | b"los" | b"que" | b"del" | b"por" | b"una" | b"con"
        | b"le" | b"les" | b"des" | b"du" | b"et" | b"est" | b"pas" | b"em" | b"um" | b"uma"
        | b"ao" | b"os" | b"com" | b"para" | b"di" | b"il" | b"che" | b"per" | b"non" | b"sono"
        | b"nel" => Some(Class::West),
        // German, Dutch, and what Swedish shares with neither.
        b"der" | b"die" | b"das" | b"und" | b"den" | b"mit" | b"ist" | b"von" | b"ein" | b"zu"
        | b"wird" | b"nicht" | b"het" | b"een" | b"van" | b"dat" | b"voor" | b"och" | b"att"
        | b"det" => Some(Class::West),
        // Indonesian.
        b"yang" | b"dan" | b"ini" | b"itu" | b"untuk" | b"tidak" | b"dari" | b"pada" => {
            Some(Class::West)
        }
        // Polish, Czech, Hungarian, Turkish.
        b"nie" | b"jest" | b"na" | b"je" | b"az" | b"egy" | b"nem" | b"hogy" | b"vagy" | b"bir"
        | b"ve" | b"bu" | b"ile" => Some(Class::East),
        _ => None,
    }
}
