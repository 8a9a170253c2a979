//! The words of a synthetic corpus: an ordinary vocabulary, and words planted far away from it.

use std::collections::HashSet;

use plimsoll_core::rng::{Rng, derive_seed};

use super::math::{exp, ln};
use super::{DISTANCES, SyntheticOptions};
use crate::edit_distance::{Myers, edit_distance};

/// Ordinary words keep this far from planted words. A typo has at most [`TYPO_EDITS_MAX`] edits, so
/// that by the triangle inequality no token that is not planted comes within 5 edits of a planted
/// word.
const BASE_MIN_DISTANCE: usize = 8;
/// Most edits of a typo.
const TYPO_EDITS_MAX: usize = 2;
/// Planted words keep this far from each other.
const PLANTED_MIN_DISTANCE: usize = 8;
/// Letters of a planted word: enough that short words are out of reach of themselves.
const PLANTED_LETTERS: usize = 14;
/// Different spellings of a planted word at each distance above 0.
const VARIANTS: usize = 6;

const CONSONANTS: &[u8] = b"bcdfghklmnprstvwzj";
const VOWELS: &[u8] = b"aeiou";
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

const _: () = assert!(BASE_MIN_DISTANCE - TYPO_EDITS_MAX >= DISTANCES);

/// A planted word with its misspellings.
#[derive(Clone, Debug)]
pub(super) struct PlantedWord {
    pub word: String,
    /// `variants[d]`: spellings at a distance of exactly `d` from the word, and over 5 from all
    /// others.
    pub variants: [Vec<String>; DISTANCES],
}

/// All words, and the odds of the ordinary ones.
#[derive(Clone, Debug)]
pub(super) struct Lexicon {
    text: String,
    ends: Vec<u32>,
    alias: Vec<(u32, u32)>,
    pub planted: Vec<PlantedWord>,
    pub phrases: Vec<(String, String)>,
}

impl Lexicon {
    pub fn new(options: &SyntheticOptions) -> Self {
        let mut rng = Rng::new(derive_seed(options.seed, "lexicon"));
        let (planted, phrases) = reserved_words(options, &mut rng);
        let far: Vec<(Myers, usize)> = planted
            .iter()
            .map(|p| (Myers::new(p.word.as_bytes()), BASE_MIN_DISTANCE))
            .chain(phrases.iter().flat_map(|(a, b)| {
                // A typo of an ordinary word must not spell a word of a phrase.
                [a, b].map(|word| (Myers::new(word.as_bytes()), TYPO_EDITS_MAX + 1))
            }))
            .collect();
        let mut seen = HashSet::new();
        let (mut text, mut ends) = (String::new(), Vec::new());
        let mut tries = 0usize;
        while ends.len() < options.vocabulary as usize {
            // Frequent words are short; when the short ones are used up, longer ones follow.
            let word = syllables(&mut rng, letters_at_rank(ends.len()) + tries / 20, 3);
            tries += 1;
            let far_enough = far.iter().all(|(m, least)| m.distance(word.as_bytes()) >= *least);
            if far_enough && seen.insert(word.clone()) {
                text.push_str(&word);
                ends.push(text.len() as u32);
                tries = 0;
            }
        }
        let alias = alias_table(options);
        Self { text, ends, alias, planted, phrases }
    }

    fn word(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.text[start..self.ends[index] as usize]
    }

    /// An ordinary word by its odds (Walker's alias method: one random number, two memory reads).
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> &str {
        let random = rng.next_u64();
        let slot = (((random >> 32) * self.alias.len() as u64) >> 32) as usize;
        let (threshold, other) = self.alias[slot];
        self.word(if (random as u32) < threshold { slot } else { other as usize })
    }

    /// An ordinary word with 1 or 2 edits, most of them never seen again: the open end of the
    /// vocabulary.
    pub fn draw_typo(&self, rng: &mut Rng, out: &mut String) {
        let word = self.draw(rng);
        if word.len() < 4 {
            out.push_str(word);
            return;
        }
        let mut bytes = word.as_bytes().to_vec();
        let edits = if rng.below(10) < 7 { 1 } else { TYPO_EDITS_MAX };
        (0..edits).for_each(|_| edit(&mut bytes, rng));
        out.extend(bytes.iter().map(|&byte| char::from(byte)));
    }
}

/// One insertion, deletion or substitution.
fn edit(word: &mut Vec<u8>, rng: &mut Rng) {
    let letter = LETTERS[rng.below(26) as usize];
    let at = rng.below(word.len() as u64) as usize;
    match rng.below(3) {
        0 => word.insert(at, letter),
        1 if word.len() > 1 => drop(word.remove(at)),
        _ => word[at] = letter,
    }
}

fn letters_at_rank(rank: usize) -> usize {
    match rank {
        0..60 => 2,
        60..600 => 3,
        600..6000 => 5,
        _ => 6,
    }
}

/// A word of at least `letters` letters and at most `more` further ones.
fn syllables(rng: &mut Rng, letters: usize, more: u64) -> String {
    let length = letters + rng.below(more + 1) as usize;
    let mut word = String::with_capacity(length);
    let pick = |from: &[u8], rng: &mut Rng| char::from(from[rng.below(from.len() as u64) as usize]);
    let mut vowel = rng.below(4) == 0;
    while word.len() < length {
        word.push(pick(if vowel { VOWELS } else { CONSONANTS }, rng));
        // Clusters such as "st" and "ea" now and then.
        vowel = if rng.below(8) == 0 { vowel } else { !vowel };
    }
    word
}

/// Planted words with their misspellings, and the pairs of words that phrases are made of.
fn reserved_words(
    options: &SyntheticOptions,
    rng: &mut Rng,
) -> (Vec<PlantedWord>, Vec<(String, String)>) {
    let wanted = (options.planted_words + 2 * options.planted_phrases) as usize;
    let mut words: Vec<String> = Vec::new();
    while words.len() < wanted {
        let word = syllables(rng, PLANTED_LETTERS, 0);
        let far = |other: &String| {
            edit_distance(word.as_bytes(), other.as_bytes()) >= PLANTED_MIN_DISTANCE
        };
        if words.iter().all(far) {
            words.push(word);
        }
    }
    let pairs = words.split_off(options.planted_words as usize);
    let phrases = pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let planted = (0..words.len())
        .map(|which| PlantedWord {
            word: words[which].clone(),
            variants: std::array::from_fn(|distance| {
                variants(&words, &pairs, which, distance, rng)
            }),
        })
        .collect();
    (planted, phrases)
}

fn variants(
    words: &[String],
    phrase_words: &[String],
    which: usize,
    distance: usize,
    rng: &mut Rng,
) -> Vec<String> {
    if distance == 0 {
        return vec![words[which].clone()];
    }
    let mut found: Vec<String> = Vec::new();
    while found.len() < VARIANTS {
        let mut bytes = words[which].as_bytes().to_vec();
        (0..distance).for_each(|_| edit(&mut bytes, rng));
        let exact = edit_distance(&bytes, words[which].as_bytes()) == distance;
        let others = words.iter().enumerate().filter(|(i, _)| *i != which).map(|(_, word)| word);
        let apart = others.clone().all(|word| edit_distance(&bytes, word.as_bytes()) >= DISTANCES);
        let variant: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        if exact && apart && !found.contains(&variant) && !phrase_words.contains(&variant) {
            found.push(variant);
        }
    }
    found
}

/// Vose's construction of the alias table for Zipf and Mandelbrot's law: odds 1 / (rank + q)^s.
fn alias_table(options: &SyntheticOptions) -> Vec<(u32, u32)> {
    let count = options.vocabulary as usize;
    let weight =
        |rank: usize| exp(-options.zipf_exponent * ln((rank + 1) as f64 + options.zipf_shift));
    let mut odds: Vec<f64> = (0..count).map(weight).collect();
    let total: f64 = odds.iter().sum();
    odds.iter_mut().for_each(|odd| *odd *= count as f64 / total);
    let mut table = vec![(u32::MAX, 0); count];
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..count).partition(|&i| odds[i] < 1.0);
    while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
        small.pop();
        table[low] = ((odds[low] * 4_294_967_296.0) as u32, high as u32);
        odds[high] -= 1.0 - odds[low];
        if odds[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    // What rounding left over has odds of 1, and an alias to itself for the one value above the
    // threshold.
    small.into_iter().chain(large).for_each(|rest| table[rest] = (u32::MAX, rest as u32));
    table
}
