//! Users that may log in.

use plimsoll_wire::volt::{LoginCall, LoginCode, Password};
use std::collections::HashMap;

/// Users and their passwords. Without any, every login succeeds, with any name and password.
#[derive(Debug, Default)]
pub(crate) struct Users {
    by_name: HashMap<String, Password>,
}

impl Users {
    pub(crate) fn new(users: &[(String, String)]) -> Self {
        let by_name = users.iter().map(|(name, password)| (name.clone(), Password::new(password)));
        Self { by_name: by_name.collect() }
    }

    /// The code that a login is answered with.
    pub(crate) fn judge(&self, login: &LoginCall<'_>) -> i8 {
        if !login.is_to_database() {
            LoginCode::NO_SERVICE
        } else if self.by_name.is_empty()
            || self.by_name.get(login.user).is_some_and(|password| password.matches(login))
        {
            LoginCode::OK
        } else {
            LoginCode::REFUSED
        }
    }
}
