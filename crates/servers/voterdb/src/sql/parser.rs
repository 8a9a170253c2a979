//! From words to statements.

mod expression;

use super::lexer::{Token, tokens};
use super::syntax::{Delete, Expr, From, Insert, Item, Order, Select, Statement, Update};

/// Statements of one call, at most.
const STATEMENTS_MAX: usize = 100;

/// Words that end an expression or a table's name, and so are no alias.
const RESERVED: [&str; 24] = [
    "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "INNER",
    "LEFT", "RIGHT", "FULL", "CROSS", "ON", "USING", "UNION", "AND", "OR", "NOT", "ASC", "DESC",
    "SET", "VALUES",
];

/// Reads statements divided by semicolons.
pub(super) fn parse(text: &str) -> Result<Vec<Statement>, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, params: 0, depth: 0, sums: 0 };
    let mut statements = Vec::new();
    while parser.skip_semicolons() {
        if statements.len() == STATEMENTS_MAX {
            return Err(format!("more than {STATEMENTS_MAX} statements in one call"));
        }
        (parser.params, parser.sums) = (0, 0);
        statements.push(parser.statement()?);
        if parser.at < parser.tokens.len() && !parser.is_sign(";") {
            return Err(parser.unexpected("the end of the statement"));
        }
    }
    if statements.is_empty() {
        return Err("no statement is given".to_owned());
    }
    Ok(statements)
}

/// State of the reading.
struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// The `?` of this statement so far.
    params: usize,
    /// Brackets and the like that are open.
    depth: usize,
    /// Operators of this statement so far that nest to the left.
    sums: usize,
}

impl Parser {
    /// Returns true if something follows the semicolons.
    fn skip_semicolons(&mut self) -> bool {
        while self.take_sign(";") {}
        self.at < self.tokens.len()
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect_word(&mut self, word: &str) -> Result<(), String> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), String> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.peek() {
            Some(token) => format!("unexpected token: {}, expected: {wanted}", token.shown()),
            None => format!("unexpected end of statement, expected: {wanted}"),
        }
    }

    fn name(&mut self, wanted: &str) -> Result<String, String> {
        match self.peek() {
            Some(Token::Quoted(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            Some(Token::Word(name)) if !RESERVED.contains(&name.as_str()) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn statement(&mut self) -> Result<Statement, String> {
        if self.take_word("SELECT") {
            return self.select().map(Statement::Select);
        }
        if self.take_word("INSERT") {
            return self.insert().map(Statement::Insert);
        }
        if self.take_word("UPDATE") {
            return self.update().map(Statement::Update);
        }
        if self.take_word("DELETE") {
            self.expect_word("FROM")?;
            let table = self.name("a table")?;
            let filter = self.filter()?;
            return Ok(Statement::Delete(Delete { table, filter, params: self.params }));
        }
        if self.take_word("TRUNCATE") {
            self.expect_word("TABLE")?;
            let table = self.name("a table")?;
            return Ok(Statement::Delete(Delete { table, filter: None, params: 0 }));
        }
        Err(self.unexpected("SELECT, INSERT, UPDATE, DELETE or TRUNCATE TABLE"))
    }

    fn select(&mut self) -> Result<Select, String> {
        let mut select = Select { is_distinct: self.take_word("DISTINCT"), ..Select::default() };
        if !select.is_distinct {
            self.take_word("ALL");
        }
        loop {
            select.items.push(self.item()?);
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_word("FROM")?;
        let mut conditions = Vec::new();
        select.from.push(self.from()?);
        loop {
            if self.take_sign(",") || self.take_words(&["CROSS", "JOIN"]) {
                select.from.push(self.from()?);
            } else if self.take_words(&["INNER", "JOIN"]) || self.take_word("JOIN") {
                select.from.push(self.from()?);
                self.expect_word("ON")?;
                conditions.push(self.condition()?);
            } else {
                break;
            }
        }
        conditions.extend(self.filter()?);
        select.filter = match conditions.len() {
            0 | 1 => conditions.pop(),
            _ => Some(Expr::And(conditions)),
        };
        if self.take_words(&["GROUP", "BY"]) {
            select.groups = self.list(Self::value)?;
        }
        if self.take_word("HAVING") {
            select.having = Some(self.condition()?);
        }
        if self.take_words(&["ORDER", "BY"]) {
            select.order = self.list(Self::order)?;
        }
        // In either order, as people type them.
        while select.limit.is_none() || select.offset.is_none() {
            if select.limit.is_none() && self.take_word("LIMIT") {
                select.limit = Some(self.value()?);
            } else if select.offset.is_none() && self.take_word("OFFSET") {
                select.offset = Some(self.value()?);
            } else {
                break;
            }
        }
        select.params = self.params;
        Ok(select)
    }

    fn take_words(&mut self, words: &[&str]) -> bool {
        let is_there = words.iter().enumerate().all(|(place, word)| {
            matches!(self.tokens.get(self.at + place), Some(Token::Word(found)) if found == word)
        });
        self.at += if is_there { words.len() } else { 0 };
        is_there
    }

    fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut all = vec![one(self)?];
        while self.take_sign(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn item(&mut self) -> Result<Item, String> {
        if self.take_sign("*") {
            return Ok(Item::All);
        }
        if let [Token::Word(table) | Token::Quoted(table), Token::Sign("."), Token::Sign("*"), ..] =
            &self.tokens[self.at..]
        {
            let table = table.clone();
            self.at += 3;
            return Ok(Item::AllOf(table));
        }
        let value = self.value()?;
        Ok(Item::Expr(value, self.alias()?))
    }

    /// `AS name`, or the name alone.
    fn alias(&mut self) -> Result<Option<String>, String> {
        if self.take_word("AS") {
            return self.name("a name").map(Some);
        }
        match self.peek() {
            Some(Token::Quoted(_)) => self.name("a name").map(Some),
            Some(Token::Word(word)) if !RESERVED.contains(&word.as_str()) => {
                self.name("a name").map(Some)
            }
            _ => Ok(None),
        }
    }

    fn from(&mut self) -> Result<From, String> {
        if self.is_sign("(") {
            return Err("sub-queries are not supported".to_owned());
        }
        let table = self.name("a table")?;
        Ok(From { table, alias: self.alias()? })
    }

    fn order(&mut self) -> Result<Order, String> {
        let by = self.value()?;
        let is_descending = self.take_word("DESC");
        if !is_descending {
            self.take_word("ASC");
        }
        Ok(Order { by, is_descending })
    }

    fn filter(&mut self) -> Result<Option<Expr>, String> {
        if self.take_word("WHERE") { self.condition().map(Some) } else { Ok(None) }
    }

    fn insert(&mut self) -> Result<Insert, String> {
        self.expect_word("INTO")?;
        let table = self.name("a table")?;
        let mut columns = Vec::new();
        if self.take_sign("(") {
            columns = self.list(|parser| parser.name("a column"))?;
            self.expect_sign(")")?;
        }
        self.expect_word("VALUES")?;
        self.expect_sign("(")?;
        let values = self.list(Self::value)?;
        self.expect_sign(")")?;
        Ok(Insert { table, columns, values, params: self.params })
    }

    fn update(&mut self) -> Result<Update, String> {
        let table = self.name("a table")?;
        self.expect_word("SET")?;
        let sets = self.list(|parser| {
            let column = parser.name("a column")?;
            parser.expect_sign("=")?;
            Ok((column, parser.value()?))
        })?;
        let filter = self.filter()?;
        Ok(Update { table, sets, filter, params: self.params })
    }
}
