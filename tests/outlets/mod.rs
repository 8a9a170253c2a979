//! Outlets: what readers along get, and that they do not change the run.

mod grafana;
mod live;
mod lost;
mod prometheus;
mod stream;
