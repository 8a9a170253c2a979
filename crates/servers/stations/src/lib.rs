//! Servers whose truth is known. [`null`] answers at once, to show what a generator can do; [`queue`] is a station with
//! servers, a queue and a service time, whose response times follow from theory.

pub mod null;
pub mod queue;
