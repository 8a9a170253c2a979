//! The corpus inside the program: WordNet's glosses, made by `corpora/make-wordnet.py`.

use std::io::{BufRead, BufReader};

use serde::Deserialize;
use zstd::Decoder;

use super::{CorpusError, Document, Documents};

static PACKED: &[u8] = include_bytes!("../../corpora/wordnet.tsv.zst");

/// The first line of the packed file.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub corpus: String,
    pub documents: u64,
    pub licence: String,
    pub origin: String,
}

type Lines = std::io::Lines<BufReader<Decoder<'static, BufReader<&'static [u8]>>>>;

fn open() -> Result<(Header, Lines), CorpusError> {
    let damaged = |error: std::io::Error| CorpusError::Bundled(error.to_string());
    let mut lines = BufReader::new(Decoder::new(PACKED).map_err(damaged)?).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new())).map_err(damaged)?;
    let header = serde_json::from_str(&first);
    Ok((header.map_err(|error| CorpusError::Bundled(error.to_string()))?, lines))
}

pub(super) fn header() -> Result<Header, CorpusError> {
    open().map(|(header, _)| header)
}

/// At most `limit` documents, at even distances.
pub(super) fn documents(available: Option<u64>, limit: u64) -> Result<Documents, CorpusError> {
    let (header, lines) = open()?;
    let available = u128::from(available.unwrap_or(header.documents).max(1));
    let wanted = u128::from(limit).min(available);
    let chosen = lines.enumerate().filter(move |(number, _)| {
        let number = *number as u128;
        (number + 1) * wanted / available > number * wanted / available
    });
    Ok(Box::new(chosen.map(|(number, line)| {
        let line = line.map_err(|error| CorpusError::Bundled(error.to_string()))?;
        parse(&line).ok_or_else(|| CorpusError::Bundled(format!("document {number}")))
    })))
}

fn parse(line: &str) -> Option<Document> {
    let mut columns = line.split('\t').map(str::to_owned);
    Some(Document {
        id: columns.next()?,
        category: columns.next()?,
        author: columns.next()?,
        score: columns.next()?.parse().ok()?,
        title: columns.next()?,
        body: columns.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn it_is_small_licensed_and_holds_what_it_says() {
        assert!(PACKED.len() <= 3_000_000);
        let header = header().unwrap();
        assert!(header.documents >= 10_000);
        assert!(header.licence.contains("without fee or\nroyalty is hereby granted"));
        assert!(header.origin.contains("Princeton University"));
        let all: Vec<Document> =
            documents(None, u64::MAX).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(all.len() as u64, header.documents);
        assert_eq!(all.iter().map(|d| &d.id).collect::<HashSet<_>>().len(), all.len());
        assert!(all.iter().all(|d| !d.title.is_empty() && !d.body.is_empty() && d.score >= 0));
        let categories = all.iter().map(|d| d.category.as_str()).collect::<HashSet<_>>();
        assert_eq!(categories.len(), 45);
        assert!(categories.contains("noun.animal"));
    }

    #[test]
    fn a_limit_takes_evenly() {
        let some: Vec<Document> = documents(None, 1000).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(some.len(), 1000);
        assert!(some.iter().map(|d| d.category.as_str()).collect::<HashSet<_>>().len() > 30);
    }
}
