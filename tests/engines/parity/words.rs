//! The same words: text in many scripts, cut by both, and asked for word by word.

use super::{Numbers, Pair};
use serde_json::{Value, json};

/// How many texts.
const TEXTS: usize = 600;

/// Characters that the rules treat apart, by what they have in common.
const KINDS: [&str; 22] = [
    "abcXYZ",
    "0123",
    "_.,:;'\"-’·״",
    "éüßÄÖİıſΣς",
    "漢字日本語",
    "ひらがな",
    "カタカナー",
    "한국어",
    "ภาษาไทย",
    "ລາວ",
    "ខ្មែរ",
    "မြန်မာ",
    "عربي",
    "עברית״׳",
    "हिन्दी",
    "\u{301}\u{308}\u{200d}\u{200c}\u{ad}\u{2060}",
    "🙂👍🏽👨👩👧🇩🇪️⃣©®™#*",
    "²½①Ⅷ٣４",
    "𝒳𠀀𐐷",
    "\u{200b}\u{a0}\u{3000} \n\u{feff}",
    "／＿．ａｂ０ｶﾅ",
    "ªºʼ‿ﬁŉ$#@+=/",
];

/// Texts of one to four kinds of characters, in any order.
fn texts() -> Vec<String> {
    let mut numbers = Numbers::new(7);
    let text = |_| {
        let count = 1 + numbers.below(4);
        let kinds: Vec<Vec<char>> =
            (0..count).map(|_| numbers.of(&KINDS).chars().collect()).collect();
        let length = 1 + numbers.below(14);
        let mut text = String::new();
        for _ in 0..length {
            let kind = numbers.below(count);
            text.push(*numbers.of(&kinds[kind]));
        }
        text
    };
    (0..TEXTS).map(text).collect()
}

/// Every word that OpenSearch finds in a text must be one of ours, at the same place, and no more.
pub fn compare(pair: &mut Pair) {
    let texts = texts();
    let settings = json!({"settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"properties": {"body": {"type": "text"}}}});
    let documents: Vec<(String, Value)> = (0..)
        .zip(&texts)
        .map(|(n, text): (usize, _)| (n.to_string(), json!({ "body": text })))
        .collect();
    for peer in [&mut pair.real, &mut pair.ours] {
        peer.ok("PUT", "/words", &settings);
        peer.load("words", &documents);
    }
    let mut asked: Vec<(usize, Value)> = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let cut = pair.real.ok("POST", "/_analyze", &json!({"analyzer": "standard", "text": text}));
        let words: Vec<&str> = cut["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|token| token["token"].as_str())
            .collect();
        asked.extend(words.iter().map(|word| (number, json!({"term": {"body": word}}))));
        // Neighbours: a word that only we find would stand between them.
        let phrase = |two: &[&str]| json!({"match_phrase": {"body": two.join("\n")}});
        asked.extend(words.windows(2).map(|two| (number, phrase(two))));
        let whole = json!({"match": {"body": {"query": text, "operator": "and"}}});
        asked.extend([(number, whole), (number, json!({"match_phrase": {"body": text}}))]);
    }
    let queries: Vec<Value> = asked.iter().map(|(_, query)| query.clone()).collect();
    let answers = pair.all("words", &queries, TEXTS as u64);
    let wrong: Vec<String> = asked
        .iter()
        .zip(&answers)
        .filter(|(_, (real, ours))| real.ids != ours.ids)
        .map(|((number, query), (real, ours))| {
            format!("{:?}: {query}: {:?} and {:?}", texts[*number], real.ids, ours.ids)
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        asked.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}
