//! Reads the part of Vespa's schema language that decides what documents look like and how they
//! are found. Statements that only concern ranking and presentation are skipped with balanced braces; unsupported statements
//! that would change the documents are an error with its position.

mod types;

use super::lexer::{Place, Token, tokens};
use super::{FieldDef, Matching, NamedFields, Schema, SchemaError};
use crate::value::FieldType;

/// Statements of a schema that change neither documents nor matching.
const SKIPPED_IN_SCHEMA: [&str; 13] = [
    "rank-profile",
    "document-summary",
    "constant",
    "function",
    "onnx-model",
    "stemming",
    "index",
    "raw-as-base64-in-summary",
    "annotation",
    "import-from",
    "from-disk",
    "model",
    "macro",
];
/// Statements of a field that change neither documents nor matching.
const SKIPPED_IN_FIELD: [&str; 16] = [
    "rank",
    "attribute",
    "index",
    "stemming",
    "normalizing",
    "bolding",
    "summary",
    "summary-to",
    "alias",
    "struct-field",
    "sorting",
    "query-command",
    "dictionary",
    "rank-type",
    "id",
    "header",
];

type Outcome<T> = Result<T, (Place, String)>;

/// Parses one schema. The bytes may be anything.
///
/// # Errors
/// When it is not a schema, or one with parts that are not supported: file, line, column and what
/// to do.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Schema, SchemaError> {
    let error = |(place, message): (Place, String)| SchemaError::Text {
        file: file.to_owned(),
        line: place.line,
        column: place.column,
        message,
    };
    let text = std::str::from_utf8(bytes).map_err(|bad| {
        let before = &bytes[..bad.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        error((Place { line, column: 1 }, "the file is not UTF-8 text".to_owned()))
    })?;
    let mut parser = Parser { tokens: tokens(text), next: 0, fields: Vec::new(), sets: Vec::new() };
    parser.file().map_err(error)
}

/// A set of fields as it was written: the names are looked up when all fields are known.
struct WrittenSet<'a> {
    name: &'a str,
    fields: Vec<(Place, &'a str)>,
}

struct Parser<'a> {
    tokens: Vec<(Place, Token<'a>)>,
    next: usize,
    fields: Vec<FieldDef>,
    sets: Vec<WrittenSet<'a>>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).map_or(Token::End, |(_, token)| *token)
    }

    fn place(&self) -> Place {
        let last = self.tokens.len() - 1;
        self.tokens[self.next.min(last)].0
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn fail<T>(&self, message: impl Into<String>) -> Outcome<T> {
        Err((self.place(), message.into()))
    }

    fn expected<T>(&self, what: &str) -> Outcome<T> {
        let found = match self.peek() {
            Token::Word(word) => format!("'{word}'"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Symbol(symbol) => format!("'{symbol}'"),
            Token::Newline => "the end of the line".to_owned(),
            Token::End => "the end of the file".to_owned(),
        };
        self.fail(format!("expected {what}, found {found}"))
    }

    fn accept(&mut self, symbol: char) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: char) -> Outcome<()> {
        if self.accept(symbol) { Ok(()) } else { self.expected(&format!("'{symbol}'")) }
    }

    fn lines(&mut self) {
        while self.peek() == Token::Newline {
            self.next += 1;
        }
    }

    fn word(&mut self, what: &str) -> Outcome<&'a str> {
        match self.peek() {
            Token::Word(word) => {
                self.next += 1;
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    /// A name for a field or a type.
    fn name(&mut self, what: &str) -> Outcome<&'a str> {
        let place = self.place();
        let name = self.word(what)?;
        if name.contains('-') || name.starts_with(|c: char| c.is_ascii_digit()) || name.len() > 200
        {
            let message = format!("'{name}' is no name: use letters, digits and '_'");
            return Err((place, message));
        }
        Ok(name)
    }

    /// `{`, on the same line or a later one.
    fn open(&mut self) -> Outcome<()> {
        self.lines();
        self.expect('{')
    }

    /// Calls `statement` for each statement up to the closing brace.
    fn block(&mut self, statement: impl Fn(&mut Self, &'a str) -> Outcome<()>) -> Outcome<()> {
        self.open()?;
        loop {
            self.lines();
            if self.accept('}') {
                return Ok(());
            }
            let word = self.word("a statement or '}'")?;
            statement(self, word)?;
        }
    }

    fn file(&mut self) -> Outcome<Schema> {
        self.lines();
        let start = self.place();
        let document = match self.word("'schema NAME {' or 'document NAME {'")? {
            "schema" | "search" => {
                let name = self.name("the name of the schema")?;
                self.refuse_inheritance()?;
                self.schema(name)?
            }
            "document" => Some(self.document(None)?),
            other => {
                let message =
                    format!("expected 'schema NAME {{' or 'document NAME {{', found '{other}'");
                return Err((start, message));
            }
        };
        self.lines();
        if self.peek() != Token::End {
            return self.expected("the end of the file");
        }
        let Some((place, name)) = document else {
            return Err((start, "the schema has no 'document' block".to_owned()));
        };
        let sets = self.named_sets()?;
        let fields = std::mem::take(&mut self.fields);
        Schema::new(name, fields, sets).map_err(|message| (place, message))
    }

    fn schema(&mut self, schema: &'a str) -> Outcome<Option<(Place, &'a str)>> {
        let mut document = None;
        self.open()?;
        loop {
            self.lines();
            if self.accept('}') {
                return Ok(document);
            }
            let place = self.place();
            match self.word("a statement or '}'")? {
                "document" if document.is_some() => {
                    return Err((place, "a schema has one 'document' block".to_owned()));
                }
                "document" => document = Some(self.document(Some(schema))?),
                "fieldset" => self.field_set()?,
                "field" => {
                    let message = "fields outside of 'document' are computed by indexing \
                         statements, which this server does not run: move the field into the \
                         document block and feed its value";
                    return Err((place, message.to_owned()));
                }
                "struct" => return Err((place, STRUCTS.to_owned())),
                "import" => {
                    let message = "imported fields are not supported: this server has no \
                         references between documents";
                    return Err((place, message.to_owned()));
                }
                word if SKIPPED_IN_SCHEMA.contains(&word) => self.skip()?,
                word => return Err((place, format!("'{word}' is not known in a schema"))),
            }
        }
    }

    fn refuse_inheritance(&mut self) -> Outcome<()> {
        if self.peek() == Token::Word("inherits") {
            return self.fail("inheritance is not supported: write the fields out in this schema");
        }
        Ok(())
    }

    fn document(&mut self, schema: Option<&'a str>) -> Outcome<(Place, &'a str)> {
        let place = self.place();
        let name = match (self.peek(), schema) {
            (Token::Word(word), _) if word != "inherits" => self.name("the document's name")?,
            (_, Some(schema)) => schema,
            _ => return self.expected("the name of the document type"),
        };
        self.refuse_inheritance()?;
        self.block(|parser, word| {
            let place = parser.tokens[parser.next - 1].0;
            match word {
                "field" => parser.field(),
                "fieldset" => parser.field_set(),
                "struct" => Err((place, STRUCTS.to_owned())),
                "compression" | "annotation" | "header" | "body" => parser.skip(),
                word => Err((place, format!("'{word}' is not known in a document"))),
            }
        })?;
        Ok((place, name))
    }

    fn field(&mut self) -> Outcome<()> {
        let place = self.place();
        let name = self.name("the name of the field")?;
        if matches!(name, "sddocname" | "documentid" | "default") {
            return Err((place, format!("'{name}' is reserved: give the field another name")));
        }
        if self.fields.iter().any(|field| field.name == name) {
            return Err((place, format!("the field '{name}' is there twice")));
        }
        if self.word("'type'")? != "type" {
            self.next -= 1;
            return self.expected("'type'");
        }
        let mut field = FieldDef::new(name, FieldType::Bool);
        // `tag` is an old name for a weighted set that counts.
        if self.peek() == Token::Word("tag") {
            field.create_missing = true;
            field.remove_zero = true;
        }
        field.kind = self.kind(0)?;
        let field = std::cell::RefCell::new((field, None));
        self.block(|parser, word| {
            let (field, matching) = &mut *field.borrow_mut();
            parser.field_statement(word, field, matching)
        })?;
        let (mut field, matching) = field.into_inner();
        // An attribute matches its text as a whole, an index by words, unless the schema says.
        let default = if field.index { Matching::Words } else { Matching::Exact };
        field.matching = matching.unwrap_or(default);
        self.fields.push(field);
        Ok(())
    }

    fn field_statement(
        &mut self,
        word: &'a str,
        field: &mut FieldDef,
        matching: &mut Option<Matching>,
    ) -> Outcome<()> {
        let place = self.tokens[self.next - 1].0;
        match word {
            "indexing" => self.each_setting(|parser, place, word| {
                match word {
                    "index" => field.index = true,
                    "attribute" => field.attribute = true,
                    "summary" => field.summary = true,
                    word => {
                        let message = format!(
                            "the indexing step '{word}' is not supported: \
                             use index, attribute and summary"
                        );
                        return Err((place, message));
                    }
                }
                parser.step()
            }),
            "match" => self.each_setting(|parser, place, word| {
                match word {
                    "text" | "token" => *matching = Some(Matching::Words),
                    "word" | "exact" => *matching = Some(Matching::Exact),
                    // These say nothing new here: prefixes always work, case never counts.
                    "prefix" | "uncased" => {}
                    "exact-terminator" | "max-length" | "max-occurrences" => {
                        parser.expect(':')?;
                        parser.next += 1;
                    }
                    word => {
                        let message = format!(
                            "match '{word}' is not supported: use text, word, exact or prefix"
                        );
                        return Err((place, message));
                    }
                }
                Ok(())
            }),
            "weightedset" => self.each_setting(|_, place, word| {
                match word {
                    "create-if-nonexistent" => field.create_missing = true,
                    "remove-if-zero" => field.remove_zero = true,
                    word => return Err((place, format!("weightedset '{word}' is not known"))),
                }
                Ok(())
            }),
            word if SKIPPED_IN_FIELD.contains(&word) => self.skip(),
            word => Err((place, format!("'{word}' is not known in a field"))),
        }
    }

    /// `: word word` up to the end of the line, or `{ word` lines `}`.
    fn each_setting(
        &mut self,
        mut setting: impl FnMut(&mut Self, Place, &'a str) -> Outcome<()>,
    ) -> Outcome<()> {
        let braces = self.peek() == Token::Symbol('{');
        self.next += 1;
        if !braces && self.tokens.get(self.next - 1).map(|(_, t)| *t) != Some(Token::Symbol(':')) {
            self.next -= 1;
            return self.expected("':' or '{'");
        }
        loop {
            let place = self.place();
            match self.peek() {
                Token::Newline | Token::Symbol(';' | ',') if braces => self.next += 1,
                Token::Symbol('}') if braces => {
                    self.next += 1;
                    return Ok(());
                }
                Token::Newline | Token::Symbol('}') if !braces => return Ok(()),
                Token::Word(word) => {
                    self.next += 1;
                    setting(self, place, word)?;
                }
                _ => return self.expected("a word"),
            }
        }
    }

    /// The separator between two steps of an indexing statement.
    fn step(&mut self) -> Outcome<()> {
        if self.accept('|') {
            return match self.peek() {
                Token::Word(_) => Ok(()),
                _ => self.expected("index, attribute or summary"),
            };
        }
        match self.peek() {
            Token::Newline | Token::Symbol('}' | ';') => Ok(()),
            _ => self.expected("'|' or the end of the line"),
        }
    }

    fn field_set(&mut self) -> Outcome<()> {
        let name = self.name("the name of the field set")?;
        let fields = std::cell::RefCell::new(Vec::new());
        self.block(|parser, word| {
            if word != "fields" {
                return parser.skip();
            }
            parser.expect(':')?;
            loop {
                let place = parser.place();
                let name = parser.name("the name of a field")?;
                fields.borrow_mut().push((place, name));
                if !parser.accept(',') {
                    return Ok(());
                }
                parser.lines();
            }
        })?;
        self.sets.push(WrittenSet { name, fields: fields.into_inner() });
        Ok(())
    }

    fn named_sets(&self) -> Outcome<Vec<NamedFields>> {
        let number = |(place, name): &(Place, &str)| {
            let found = self.fields.iter().position(|field| field.name == *name);
            found.ok_or_else(|| (*place, format!("there is no field '{name}' in the document")))
        };
        let named = |set: &WrittenSet<'_>| {
            let fields = set.fields.iter().map(number).collect::<Outcome<Vec<_>>>()?;
            Ok(NamedFields { name: set.name.to_owned(), fields })
        };
        self.sets.iter().map(named).collect()
    }

    /// Skips a statement: up to the end of the line, or the block that it opens.
    fn skip(&mut self) -> Outcome<()> {
        let start = self.place();
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Token::End if depth == 0 => return Ok(()),
                Token::End => {
                    return Err((start, "the '{' of this block is not closed".to_owned()));
                }
                // A closing brace on the same line belongs to the block around.
                Token::Symbol('}') if depth == 0 => return Ok(()),
                Token::Symbol('}') => {
                    self.next += 1;
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Token::Symbol('{') => {
                    self.next += 1;
                    depth += 1;
                }
                Token::Newline if depth == 0 => {
                    let line = self.next;
                    self.lines();
                    if self.peek() != Token::Symbol('{') {
                        self.next = line;
                        return Ok(());
                    }
                }
                _ => self.next += 1,
            }
        }
    }
}

const STRUCTS: &str = "structs are not supported: use fields of their own, or a map";
