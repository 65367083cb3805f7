// The files of TLS: who the daemon is, and whose clients it believes.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace eagle::server {

// PEM files. An empty certificate: no TLS.
struct TlsFiles {
  std::string certificate;  // of the daemon, with the chain that leads to its CA
  std::string key;
  std::string client_ca;  // empty: clients need no certificate

  [[nodiscard]] bool used() const { return !certificate.empty(); }
};

// Whether gRPC could serve with these: that they can be read, and belong together. BAD_VALUE names the file
// and says what is wrong with it; warnings go to the log. (gRPC itself says nothing, and closes every
// connection.)
Status check(const TlsFiles& files);

}  // namespace eagle::server
