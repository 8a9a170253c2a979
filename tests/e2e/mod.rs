//! Whole stories: a search server fed, searched and measured; long files; many connections; the
//! quickstart.

mod memory;
mod quickstart;
mod search;
