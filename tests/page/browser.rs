//! Chromium, told what to do over the DevTools protocol: JSON messages that end with NUL, through a pair of pipes.

use plimsoll_core::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::any::Any;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longest wait for an answer of the browser, which may share the machine with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most of these messages of the browser that a test keeps.
const EVENTS: [&str; 7] = [
    "Fetch.requestPaused",
    "Log.entryAdded",
    "Network.requestWillBeSent",
    "Network.webSocketCreated",
    "Page.javascriptDialogOpening",
    "Runtime.consoleAPICalled",
    "Runtime.exceptionThrown",
];

fn since(start_ns: u64) -> Duration {
    Duration::from_nanos(now_ns() - start_ns)
}

/// A browser without a window, with a fresh profile. It ends when it is dropped.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    number: u64,
    /// What the page did, in its order.
    pub events: Vec<Value>,
    folder: tempfile::TempDir,
    // Last: the browser has ended when another test begins.
    _share: Box<dyn Any>,
}

impl Browser {
    /// Starts a browser with an empty page. `share` is kept until the browser has ended.
    pub fn start(program: &Path, share: Box<dyn Any>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The shell puts the pipes where the protocol wants them, 3 and 4, and becomes the browser.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--disable-sync",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let Ok(message) = message else { return };
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            input,
            messages,
            session: String::new(),
            number: 0,
            events: Vec::new(),
            folder,
            _share: share,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.size(1200, 900);
        browser
    }

    /// Opens an address in a tab of its own, in front, and returns the tab.
    pub fn open_tab(&mut self, url: &str) -> String {
        let before = std::mem::take(&mut self.session);
        let target = self.call("Target.createTarget", json!({"url": url}));
        let attached = self.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        self.session = before;
        attached["sessionId"].as_str().unwrap().to_owned()
    }

    /// Speaks with a tab from now on.
    pub fn turn_to(&mut self, tab: &str) {
        tab.clone_into(&mut self.session);
    }

    /// Sends a signal to the browser and its helpers.
    pub fn signal(&self, signal: Signal) {
        let group = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process_group(group, signal).unwrap();
    }

    /// Sends a command and returns its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let result = self.attempt(method, parameters);
        result.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn attempt(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let silent = "the browser does not answer";
        let sent = self.input.write_all(format!("{message}\0").as_bytes());
        sent.map_err(|error| format!("{silent}: {error}"))?;
        let start_ns = now_ns();
        loop {
            let left = PATIENCE.checked_sub(since(start_ns)).ok_or(silent)?;
            let message =
                self.messages.recv_timeout(left).map_err(|error| format!("{silent}: {error}"))?;
            if message["id"] == self.number {
                return match message.get("error") {
                    Some(error) => Err(error.to_string()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.keep(message);
        }
    }

    fn keep(&mut self, message: Value) {
        if message["method"].as_str().is_some_and(|method| EVENTS.contains(&method)) {
            self.events.push(message);
        }
    }

    /// Writes a page into the folder of the browser and opens it; returns when all its plots are drawn.
    pub fn open(&mut self, name: &str, html: &str) {
        let path = self.folder.path().join(name);
        std::fs::write(&path, html).unwrap();
        self.go(&format!("file://{}", path.display()));
        self.wait_for("document.documentElement.dataset.drawn !== undefined");
    }

    /// Opens an address and returns when the document is complete.
    pub fn go(&mut self, url: &str) {
        let loaded = self.call("Page.navigate", json!({"url": url}));
        assert!(loaded["errorText"].is_null(), "{url}: {loaded}");
        self.wait_for(&format!(
            "document.readyState === 'complete' && location.href.startsWith({})",
            json!(url)
        ));
    }

    /// Returns the value of an expression in the page; a promise is waited for.
    pub fn value(&mut self, expression: &str) -> Value {
        let reply = self.evaluated(expression);
        assert!(reply["exceptionDetails"].is_null(), "{expression}: {}", reply["exceptionDetails"]);
        reply["result"]["value"].clone()
    }

    fn evaluated(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        // An evaluation ends with an error if the page changes meanwhile.
        self.attempt("Runtime.evaluate", parameters)
            .unwrap_or_else(|error| json!({"exceptionDetails": error}))
    }

    /// Waits until an expression is true in the page.
    pub fn wait_for(&mut self, expression: &str) {
        let start_ns = now_ns();
        let mut last = self.evaluated(expression);
        while last["result"]["value"] != json!(true) {
            if since(start_ns) >= PATIENCE {
                let state = "[document.readyState, location.href, document.body?.innerText]";
                let page = self.evaluated(state)["result"]["value"].to_string();
                let page: String = page.chars().take(1000).collect();
                panic!("never true: {expression}\n{last}\n{page}\n{:#?}", self.events);
            }
            std::thread::sleep(Duration::from_millis(20));
            last = self.evaluated(expression);
        }
    }

    /// Sets the size of the window, pixels.
    pub fn size(&mut self, width: u32, height: u32) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}),
        );
    }

    /// Sets what the system prefers, `light` or `dark`, and the medium, `screen` or `print`.
    pub fn prefer(&mut self, scheme: &str, medium: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"media": medium, "features": [feature]}));
    }

    /// Waits until everything that was asked of the page is on the screen.
    pub fn settle(&mut self) {
        self.value(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))",
        );
    }

    /// Presses a key in the element that has the focus.
    pub fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let text = if key == "Enter" { "\r" } else { text };
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => 0,
        };
        for (kind, text) in [("keyDown", text), ("keyUp", "")] {
            self.call(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code}),
            );
        }
        self.settle();
    }

    /// Does something with the mouse at a place of the window: `mouseMoved`, `mousePressed`, `mouseReleased`.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), modifiers: u32) {
        let is_drag = kind != "mouseMoved";
        let button = if is_drag { "left" } else { "none" };
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": u32::from(is_drag), "modifiers": modifiers}),
        );
        self.settle();
    }

    /// Clicks on the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let place = self.place_of(selector, 0.5);
        self.mouse("mouseMoved", place, 0);
        self.mouse("mousePressed", place, 0);
        self.mouse("mouseReleased", place, 0);
    }

    /// Brings an element into sight and returns the point at this share of its width, in the middle of its height.
    pub fn place_of(&mut self, selector: &str, share: f64) -> (f64, f64) {
        let selector = json!(selector);
        self.value(&format!(
            "document.querySelector({selector}).scrollIntoView({{block: 'center'}})"
        ));
        self.settle();
        let place = self.value(&format!(
            "(({{left, top, width, height}}) => [left + width * {share}, top + height / 2])\
             (document.querySelector({selector}).getBoundingClientRect())"
        ));
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    /// Returns what the window shows, as PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        use base64::Engine as _;
        self.settle();
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }

    /// Fails if the page wrote to the console, threw something, opened a dialog, or asked for anything but the page itself.
    pub fn assert_quiet(&mut self, own: &str) {
        self.settle();
        for event in &self.events {
            let parameters = &event["params"];
            let url = parameters["request"]["url"].as_str().unwrap_or_default();
            let is_own = event["method"] == "Network.requestWillBeSent"
                && (url.starts_with(own) || url.starts_with("data:"));
            assert!(is_own, "{own}: {event:#}");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session.clear();
        let _ = self.attempt("Browser.close", json!({}));
        let start_ns = now_ns();
        while since(start_ns) < Duration::from_secs(5) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Its helpers end when they lose it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
