// TLS for gRPC's server, from certificates that may change.
#ifndef HIPPODROME_SERVER_GRPC_TLS_CREDENTIALS_H_
#define HIPPODROME_SERVER_GRPC_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/tls/tls_files.h"

namespace hippodrome {

// Each connection uses what is in force in `files` when it is accepted. All connections must be
// accepted on one thread, for gRPC replaces certificates without a lock. TLS 1.2 and 1.3; clients
// must choose h2 (ALPN). The caller keeps it as long as the server.
std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(std::shared_ptr<const TlsFiles> files);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_TLS_CREDENTIALS_H_
