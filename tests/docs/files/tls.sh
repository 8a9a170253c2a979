# An authority, and a certificate for `localhost` that it signed.
set -eu
new="openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
$new -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.pem 2>/dev/null
$new -subj /CN=localhost -keyout server.key -out server.csr 2>/dev/null
printf 'subjectAltName=DNS:localhost\n' >names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem 2>/dev/null
