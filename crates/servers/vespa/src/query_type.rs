//! Meaning of free text: the request parameter `type` and the annotation `grammar`.

/// The way the words of a text combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Composite {
    And,
    Or,
    Phrase,
    /// Any word makes a document a candidate; the score orders them.
    WeakAnd,
    Near,
    ONear,
}

/// Set of signs with a meaning in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// `+a -b "a b" (a b) field:a a*`
    Simple,
    /// As [`Syntax::Simple`] without parentheses, and `OR` between words.
    Web,
    /// None of them: only words count.
    None,
}

/// The way a text is read, and how its words combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryType {
    pub(crate) composite: Composite,
    pub(crate) syntax: Syntax,
    /// Words are what the linguistics module says; only without syntax.
    linguistics: bool,
}

/// The properties of a query type as the client names them. Missing ones are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryTypeParts {
    /// The name of a type, which sets all parts.
    pub(crate) name: Option<String>,
    pub(crate) composite: Option<String>,
    pub(crate) syntax: Option<String>,
    pub(crate) tokenization: Option<String>,
}

impl Default for QueryType {
    /// `weakAnd`, as in Vespa 8.
    fn default() -> Self {
        Self { composite: Composite::WeakAnd, syntax: Syntax::Simple, linguistics: false }
    }
}

impl QueryType {
    /// Any of the words, without regard to signs.
    pub(crate) fn only_words() -> Self {
        Self { composite: Composite::WeakAnd, syntax: Syntax::None, linguistics: true }
    }

    /// The type `any`, which is also that of filters.
    pub(crate) const fn any() -> Self {
        Self { composite: Composite::Or, syntax: Syntax::Simple, linguistics: false }
    }

    /// The type with the parts that were named.
    ///
    /// # Errors
    /// When a name is unknown or not supported, or the parts exclude each other.
    pub(crate) fn with(self, parts: &QueryTypeParts) -> Result<Self, String> {
        let mut kind = match &parts.name {
            Some(name) => named(name)?,
            None => self,
        };
        if let Some(name) = &parts.composite {
            kind.composite = composite(name)?;
        }
        if let Some(name) = &parts.syntax {
            kind.syntax = syntax(name)?;
        }
        match parts.tokenization.as_deref() {
            None => {}
            Some("internal") => kind.linguistics = false,
            Some("linguistics") => kind.linguistics = true,
            Some(other) => {
                return Err(format!("no tokenization '{other}': use internal or linguistics"));
            }
        }
        if kind.linguistics && kind.syntax != Syntax::None {
            return Err("tokenization linguistics needs syntax none".to_owned());
        }
        Ok(kind)
    }
}

fn named(name: &str) -> Result<QueryType, String> {
    let (composite, syntax) = match name {
        "all" => (Composite::And, Syntax::Simple),
        "any" => (Composite::Or, Syntax::Simple),
        "weakAnd" => (Composite::WeakAnd, Syntax::Simple),
        "near" => (Composite::Near, Syntax::Simple),
        "onear" => (Composite::ONear, Syntax::Simple),
        "web" => (Composite::And, Syntax::Web),
        "phrase" => (Composite::Phrase, Syntax::None),
        "tokenize" | "linguistics" => (Composite::WeakAnd, Syntax::None),
        "adv" | "prog" | "yql" | "select" => {
            return Err(format!("the query type '{name}' is not supported by this server"));
        }
        _ => {
            return Err(format!(
                "no query type '{name}': use all, any, phrase, weakAnd, web, tokenize, \
                 linguistics, near or onear"
            ));
        }
    };
    Ok(QueryType { composite, syntax, linguistics: name == "linguistics" })
}

fn composite(name: &str) -> Result<Composite, String> {
    Ok(match name {
        "and" => Composite::And,
        "or" => Composite::Or,
        "phrase" => Composite::Phrase,
        "weakAnd" => Composite::WeakAnd,
        "near" => Composite::Near,
        "oNear" => Composite::ONear,
        _ => {
            return Err(format!(
                "no composite '{name}': use and, or, phrase, weakAnd, near or oNear"
            ));
        }
    })
}

fn syntax(name: &str) -> Result<Syntax, String> {
    Ok(match name {
        "simple" => Syntax::Simple,
        "web" => Syntax::Web,
        "none" => Syntax::None,
        "advanced" | "json" | "programmatic" | "yql" => {
            return Err(format!("the syntax '{name}' is not supported by this server"));
        }
        _ => return Err(format!("no syntax '{name}': use simple, web or none")),
    })
}
