//! A real nginx, with a log of what it answered.

use crate::process::{Place, Running, find_program, until};
use std::net::TcpStream;
use std::time::Duration;

/// nginx on a free port; ended when dropped.
pub struct Nginx {
    pub port: u16,
    log: std::path::PathBuf,
    _process: Running,
}

impl Nginx {
    /// Starts one whose `server` block holds `server` besides `listen`; `listen` is put after the
    /// address (`ssl` for TLS).
    pub fn start(place: &Place, listen: &str, server: &str) -> Self {
        // Another program may take the port between finding and using it.
        for _ in 0..5 {
            if let Some(nginx) = Self::try_start(place, listen, server) {
                return nginx;
            }
        }
        panic!("nginx did not start; see error.log in {}", place.path().display());
    }

    fn try_start(place: &Place, listen: &str, server: &str) -> Option<Self> {
        let port: u16 = crate::server::closed_port().parse().unwrap();
        let dir = place.path().join(format!("nginx-{port}"));
        std::fs::create_dir_all(dir.join("logs")).unwrap();
        let log = dir.join("access.log");
        let shown = dir.display();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {shown}/pid;\nerror_log {shown}/error.log info;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n\
             client_body_temp_path {shown}/body;\nproxy_temp_path {shown}/proxy;\n\
             fastcgi_temp_path {shown}/fastcgi;\nuwsgi_temp_path {shown}/uwsgi;\n\
             scgi_temp_path {shown}/scgi;\n\
             keepalive_requests 1000000;\n\
             log_format seen '$status $request_method $request_uri $ssl_protocol $ssl_client_verify \
             $ssl_server_name';\n\
             log_format traces '$http_traceparent';\n\
             access_log {shown}/access.log seen;\n\
             server {{\nlisten 127.0.0.1:{port} {listen};\n{server}\n}}\n}}\n"
        );
        let path = dir.join("nginx.conf");
        std::fs::write(&path, config).unwrap();
        let prefix = dir.display().to_string();
        let error_log = dir.join("error.log").display().to_string();
        let config = path.display().to_string();
        let command =
            place.program(find_program("nginx"), ["-p", &prefix, "-c", &config, "-e", &error_log]);
        let mut process = Running::start(command, b"");
        let mut up = false;
        until("nginx answers or ends", Duration::from_secs(20), || {
            up = TcpStream::connect(("127.0.0.1", port)).is_ok();
            up || !process.is_running()
        });
        (up && process.is_running()).then_some(Self { port, log, _process: process })
    }

    /// Lines of the log: status, method, target, TLS protocol, client's verification, name asked
    /// for.
    pub fn seen(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until `n` requests have been logged, which happens after the answer.
    pub fn wait_for(&self, n: usize) -> Vec<String> {
        until("nginx logs all requests", Duration::from_secs(5), || self.seen().len() >= n);
        self.seen()
    }
}
