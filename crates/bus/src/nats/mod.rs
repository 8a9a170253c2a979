//! A bus over a NATS server. The client library runs on one thread of its own, and plimsoll calls it from others.

mod errors;
pub(crate) mod hello;
pub(crate) mod options;
mod reception;

pub use errors::ConnectError;
pub use options::{NatsOptions, Tls};

use crate::bus::{Bus, BusError, Link, PAYLOAD_MAX, PUBLISH_WAIT_MAX, Subscription, check_payload};
use crate::credentials::Credentials;
use crate::queue::{Bounds, Queue, Reader};
use crate::subject;
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use errors::Attempt;
use plimsoll_core::clock::now_ns;
use reception::{Closing, Echo, Watch, forward, forward_echo};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Longest time for a server to confirm a subscription.
const SUBSCRIBE_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two attempts at a server that is not there yet.
const ABSENT_PAUSE: Duration = Duration::from_millis(250);

/// A connection to a NATS server. It connects again by itself for as long as it exists; [`Bus::state`] tells since when it is
/// lost. Its calls block, so they must not be made from a thread of an async runtime.
pub struct Nats {
    client: Client,
    handle: Handle,
    bounds: Bounds,
    watch: Arc<Watch>,
    echo: Arc<Echo>,
    /// Subject of the messages by which this connection finds out how far the server is.
    echo_subject: String,
    server: String,
    /// Ends the thread of the client.
    _runtime: Runtime,
}

impl Nats {
    /// Connects to the server, and checks its version, its limits and the credentials.
    ///
    /// # Errors
    /// Each reason has a line of its own: see [`ConnectError`].
    pub fn connect(options: &NatsOptions) -> Result<Self, ConnectError> {
        let deadline_ns = now_ns()
            .saturating_add(u64::try_from(options.wait_for_server.as_nanos()).unwrap_or(u64::MAX));
        loop {
            match Self::connect_once(options) {
                Err(error) if error.is_absence() && now_ns() < deadline_ns => {
                    std::thread::sleep(ABSENT_PAUSE);
                }
                result => return result,
            }
        }
    }

    fn connect_once(options: &NatsOptions) -> Result<Self, ConnectError> {
        let place = options.address.place();
        if options.address.socket().is_some() {
            let why = "it is the socket of a process, and not a NATS server".to_owned();
            return Err(ConnectError::Other { place, why });
        }
        let for_client = options.for_client()?;
        hello::check(options)?;
        let runtime = Runtime::start().map_err(|error| ConnectError::Other {
            place: place.clone(),
            why: error.to_string(),
        })?;
        let handle = runtime.handle.clone();
        let watch = Arc::new(Watch::default());
        let client = open(options, for_client, &handle, &watch)?;
        let info = client.server_info();
        hello::check_version(&place, &info.version)?;
        if info.max_payload < PAYLOAD_MAX {
            return Err(ConnectError::SmallPayload { place, found: info.max_payload });
        }
        let echo = Arc::new(Echo::default());
        let echo_subject = client.new_inbox();
        let bus = Self {
            client,
            handle,
            bounds: options.bounds,
            watch,
            echo,
            echo_subject,
            server: format!("nats-server {}", errors::one_line(&info.version)),
            _runtime: runtime,
        };
        bus.listen_to_echo(options)?;
        Ok(bus)
    }

    fn listen_to_echo(&self, options: &NatsOptions) -> Result<(), ConnectError> {
        let place = options.address.place();
        let subscriber = self.wait(self.client.subscribe(self.echo_subject.clone()));
        if let Ok(Ok(subscriber)) = subscriber {
            self.handle.spawn(forward_echo(subscriber, Arc::clone(&self.echo)));
        }
        match self.flush(options.connect_within) {
            Ok(()) => Ok(()),
            Err(_) if self.watch.is_forbidden(&self.echo_subject) => {
                Err(ConnectError::NoInbox { place, credentials: options.credentials.shown() })
            }
            Err(_) => Err(ConnectError::Silent { place, within: options.connect_within }),
        }
    }

    /// Name and version of the server, such as `nats-server 2.15.2`.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reason of the last failure to connect again; `None` if there was none.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.watch.trouble().map(|text| errors::one_line(text.trim_start_matches("nats: ")))
    }

    /// Waits for the client library for at most [`PUBLISH_WAIT_MAX`].
    fn wait<F: Future>(&self, future: F) -> Result<F::Output, BusError> {
        let mut future = pin!(future);
        // The library nearly always has room at once, and then no timer is needed.
        let first = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(output) = first {
            return Ok(output);
        }
        let within = PUBLISH_WAIT_MAX;
        let waited = self.handle.block_on(async { tokio::time::timeout(within, future).await });
        waited.map_err(|_| BusError::NotInTime { within })
    }

    /// Subscribes to several subjects, whose messages come in one queue, in the order in which they arrive.
    ///
    /// # Errors
    /// As [`Bus::subscribe`].
    pub fn subscribe_all(&self, subjects: &[&str]) -> Result<Box<dyn Subscription>, BusError> {
        subjects.iter().try_for_each(|subject| subject::check_subscribed(subject))?;
        self.check_link()?;
        let queue = Queue::new(self.bounds);
        let mut ends = Vec::new();
        for subject in subjects {
            let subscriber = self.wait(self.client.subscribe((*subject).to_owned()))?;
            let subscriber = subscriber.map_err(|_| BusError::Closed)?;
            let task = self.handle.spawn(forward(subscriber, Closing(Arc::clone(&queue))));
            ends.push(reception::End(task.abort_handle()));
        }
        self.watch.add(&queue);
        let reader = Reader::new(queue, ends);
        self.flush(SUBSCRIBE_WITHIN)?;
        match subjects.iter().find(|subject| self.watch.is_forbidden(subject)) {
            Some(subject) => Err(BusError::Forbidden { subject: (*subject).to_owned() }),
            None => Ok(Box::new(reader)),
        }
    }

    fn check_link(&self) -> Result<(), BusError> {
        if self.state().is_connected() { Ok(()) } else { Err(BusError::Disconnected) }
    }

    fn send(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        self.check_link()?;
        let payload = Bytes::copy_from_slice(payload);
        self.wait(self.client.publish(subject.to_owned(), payload))?.map_err(|_| BusError::Closed)
    }
}

/// Connects the client library.
fn open(
    options: &NatsOptions,
    for_client: ConnectOptions,
    handle: &Handle,
    watch: &Arc<Watch>,
) -> Result<Client, ConnectError> {
    let attempt = Attempt {
        place: options.address.place(),
        credentials: options.credentials.shown(),
        has_credentials: options.credentials != Credentials::None,
        has_client_certificate: options.tls.certificate.is_some(),
        within: options.connect_within,
    };
    let watch = Arc::clone(watch);
    let for_client = for_client.event_callback(move |event| {
        watch.take(&event);
        std::future::ready(())
    });
    let scheme = if options.address.is_tls() { "tls" } else { "nats" };
    let url = format!("{scheme}://{}", options.address.place());
    let within = options.connect_within;
    // The library takes its limit for each address of a name; this one is for all of them.
    let connecting = handle.block_on(async {
        tokio::time::timeout(within, tokio::spawn(for_client.connect(url))).await
    });
    match connecting {
        Ok(Ok(Ok(client))) => Ok(client),
        Ok(Ok(Err(error))) => Err(attempt.reason(&error)),
        Ok(Err(error)) => Err(ConnectError::Other {
            place: attempt.place,
            why: errors::one_line(&error.to_string()),
        }),
        Err(_) => Err(ConnectError::Silent { place: attempt.place, within }),
    }
}

impl Bus for Nats {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        subject::check_published(subject)?;
        check_payload(payload)?;
        if self.watch.is_forbidden(subject) {
            return Err(BusError::Forbidden { subject: subject.to_owned() });
        }
        self.send(subject, payload)
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        self.subscribe_all(&[subject])
    }

    fn flush(&self, within: Duration) -> Result<(), BusError> {
        let deadline_ns =
            now_ns().saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let number = self.echo.begin();
        self.send(&self.echo_subject, &number.to_le_bytes())?;
        loop {
            if self.echo.wait_for(number, deadline_ns) {
                return Ok(());
            }
            self.check_link()?;
            if now_ns() >= deadline_ns {
                return Err(BusError::NotInTime { within });
            }
        }
    }

    fn state(&self) -> Link {
        match self.client.connection_state() {
            State::Connected => Link::Connected,
            _ => Link::Disconnected { since_ns: self.watch.since_ns() },
        }
    }
}

/// The thread of the client library.
struct Runtime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("bus".to_owned()).spawn(move || {
            // Either way the owner has gone, and all that runs here with it.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
